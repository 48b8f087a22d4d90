"""Runs a method of ours beside a naive statement of it, compares what they did, and breaks the method on purpose."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

TOLERANCE = 1e-6  # where the sums are in the same order


@dataclass
class After:
    """What is left after a round.

    weights: all parameters and buffers, in order. memory: columns of what is kept of samples. answers: to the test.
    more: whatever else has to be equal, such as importances of weights.
    """

    weights: list[torch.Tensor]
    memory: list[torch.Tensor]
    answers: np.ndarray
    more: list[torch.Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class Mutant:
    """A slip that the comparison has to notice: in the file of `where`, `old` (which stands there once) becomes `new`.

    kind: "first epoch only", "sign", "missing detach", "factor", "memory before or after the step", "mask", "order of
    rounds", or what else it is. where: a class or function of that file; None: the method's own file.
    """

    kind: str
    old: str
    new: str
    where: Any = None


@dataclass(frozen=True)
class Check:
    """A method, what it did in three rounds, and what the naive statement does in the same three.

    why: the reason of a tolerance above 1e-6.
    """

    method: type
    ours: Callable[[], Iterable[After]]
    naive: Callable[[], Iterable[After]]
    mutants: Sequence[Mutant]
    tolerance: float = TOLERANCE
    why: str = ""
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.method.__name__

    def conforms(self) -> None:
        """AssertionError that says what differs first."""
        assert self.tolerance <= TOLERANCE or self.why, "a wider tolerance needs a reason"
        expected = list(self.naive())
        assert len(expected) >= 3
        assert unlike(expected[0].weights, expected[-1].weights, 0.0), "nothing was learned after round 1"
        found = self.first_difference(expected)
        assert not found, f"{self.name}: {found}"

    def first_difference(self, expected: Sequence[After]) -> str:
        """In words, where ours leaves what is expected; "" where it does not."""
        for k, (ours, theirs) in enumerate(zip(self.ours(), expected, strict=True), start=1):
            for name in ("weights", "memory", "more"):
                found = unlike(getattr(ours, name), getattr(theirs, name), self.tolerance)
                if found:
                    return f"{name} after round {k}: {found}"
            if not np.array_equal(ours.answers, theirs.answers):
                return f"answers after round {k}: {np.mean(ours.answers != theirs.answers):.0%} are others"
        return ""


def compared(
    method: type,
    training: dict[str, Any],
    ours: Callable[[Callable[[], Any]], Iterable[After]],
    naive: Callable[..., Iterable[After]],
    mutants: Sequence[Mutant],
    exam: Any,
    *,
    tolerance: float = TOLERANCE,
    why: str = "",
    title: str = "",
    naive_options: dict[str, Any] | None = None,
    **options: Any,
) -> Check:
    """`method` with `options` beside `naive(exam, **options)`; naive_options: where the statement has others.

    training: the options of ours that the exam decides. ours: (what makes a learner) -> what it did in the exam.
    """

    @cache
    def theirs() -> Sequence[After]:  # once for all slips
        return list(naive(exam, **(options if naive_options is None else naive_options)))

    def make() -> Any:
        return method(**{**training, **options})

    return Check(method, lambda: ours(make), theirs, mutants, tolerance, why, title)


def unlike(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor], tolerance: float) -> str:
    """In words, in what these differ; "" where all numbers are within `tolerance` (relative above 1)."""
    if len(ours) != len(theirs):
        return f"{len(ours)} tensors, not {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.shape != b.shape:
            return f"tensor {i} has shape {tuple(a.shape)}, not {tuple(b.shape)}"
        a, b = a.detach().cpu().double(), b.detach().cpu().double()
        if not bool(a.isfinite().all() and b.isfinite().all()):
            return f"tensor {i} is not finite"
        off = ((a - b).abs() / b.abs().clamp_min(1.0)).max().item() if a.numel() else 0.0
        if off > tolerance:
            return f"tensor {i} is off by {off:.1e}"
    return ""


# Mutants.


@contextmanager
def mutated(mutant: Mutant, method: type) -> Iterator[None]:
    """The method with that slip in it: functions get the byte code of the changed file, so that whoever has imported
    them has the slip, too."""
    module = inspect.getmodule(mutant.where or method)
    assert module is not None and module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"{source.count(mutant.old)} times in {module.__name__}: {mutant.old!r}"
    other = types.ModuleType(module.__name__)
    other.__file__ = module.__file__
    exec(compile(source.replace(mutant.old, mutant.new), module.__file__, "exec"), other.__dict__)
    pairs = list(_changed(module, other))
    assert pairs, f"no function is another one for {mutant.new!r}"
    kept = [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f, _ in pairs]
    try:
        for f, new in pairs:
            f.__code__, f.__defaults__, f.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
        yield
    finally:
        for f, *old in kept:
            f.__code__, f.__defaults__, f.__kwdefaults__ = old


def _changed(module: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    for f, g in zip(_functions(module), _functions(other), strict=True):
        if (f.__code__, f.__defaults__, f.__kwdefaults__) != (g.__code__, g.__defaults__, g.__kwdefaults__):
            yield f, g


def _functions(module: Any) -> Iterator[Any]:
    """All that are written in the module, those of its classes too, in the order of the file."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        for each in vars(value).values() if inspect.isclass(value) else [value]:
            each = inspect.unwrap(getattr(each, "fget", None) or getattr(each, "__func__", None) or each)
            if inspect.isfunction(each) and each.__code__.co_filename == module.__file__:
                yield each


def noticed(check: Check, mutant: Mutant) -> str:
    """What the comparison says of the mutant; AssertionError where it sees nothing."""
    expected = list(check.naive())
    with mutated(mutant, check.method):
        try:
            found = check.first_difference(expected)
        except Exception as error:  # a slip may also make it fall over
            found = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    assert found, f"{check.name} with '{mutant.kind}' ({mutant.old!r} -> {mutant.new!r}) is not told from the right one"
    return found
