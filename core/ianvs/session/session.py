"""What a paradigm works with in one case: modules, data, calls, measurements. Implements ianvs.paradigms.Session."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ianvs.data.options import Options
from ianvs.errors import ExamRuleError, PluginError, closest
from ianvs.paradigms.paradigm import Module, Paradigm
from ianvs.planning.case_request import CaseRequest
from ianvs.scenarios.exam import Exam, Rules, TestSet
from ianvs.scenarios.views import TrainView
from ianvs.seeding import generator
from ianvs.session.feed import ALL, Chunk, DataFeed, Share
from ianvs.session.measure import NOTHING_SPENT, Spent, stopwatch
from ianvs.session.modules import AuthorsModule, Modules, Taught
from ianvs.session.seeds import Seeds
from ianvs.types import Asked, Predictions

__all__ = ["CaseSession", "Step"]

Tell = Callable[[Any], None]


@dataclass
class Step:
    """What happened in one step so far."""

    index: int = 0
    samples: int = 0  # of training, as often as they were handed out
    passes: int = 0
    trained: Spent = NOTHING_SPENT
    asked: Spent = NOTHING_SPENT
    predictions: dict[Asked, Predictions] = field(default_factory=dict)  # from within a stream
    examined: list[tuple[int, int, int]] = field(default_factory=list)  # (samples, rounds begun, rounds ended)
    measures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fed:
    """Where a view's data come from, and what a learner is told with them."""

    view: TrainView
    seed: int | None  # of the global generators, with the purpose "global"; None: they go on, and nothing is counted
    number: int = 0  # of the round, or of the chunk
    share: Share = ALL
    classes: tuple[int, ...] = ()
    chunk: Chunk | None = None
    context: Mapping[str, Any] = field(default_factory=dict)


class CaseSession:
    """See ianvs.paradigms.Session. `step` is the step that is under way; CaseRounds takes it from one to the next.

    between: examines the model within a stream, after a chunk.
    """

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        paradigm: Paradigm,
        options: Options,
        device: str,
        folder: Path,
        tell: Tell,
    ) -> None:
        self.options, self.seed = options, request.case.seed
        self.step = Step()
        self.between: Callable[[Chunk], None] = lambda chunk: None
        self.seeds = Seeds(self.seed)
        self.modules = Modules(request.algorithm, request.case, exam.rules, self.seeds)
        self.valid: TrainView | None = None  # the held-out part of the round
        self.saw_past_rounds = False
        self.who = f"{paradigm.name}.predict()"  # whose answers came last, for errors
        self.paradigm, self._exam, self._tell = paradigm, exam, tell
        self._train_ratio = request.train_ratio
        self._device, self._folder = device, folder
        self._fed: dict[int, _Fed] = {}  # open views by id
        self._calls: Counter[int] = Counter()  # with training data, in this step, by seed
        self._passed: dict[int, Counter[Share]] = {}  # over rounds or chunks, in this step, by number
        self._training = self._counts = True  # what a call's time is taken for, and whether it is
        budget = None if paradigm.reference else request.testenv.budget
        limits = (exam.rules.passes, None if budget is None else budget.passes)
        self._passes = min((limit for limit in limits if limit is not None), default=None)

    # --- what paradigms use -------------------------------------------------------------------------------------

    @property
    def rounds(self) -> tuple[str, ...]:
        return tuple(round_.name for round_ in self._exam.rounds)

    @property
    def rules(self) -> Rules:
        return self._exam.rules

    def module(self, kind: str, instance: str = "", *, fresh: bool = False) -> AuthorsModule:
        return self.modules.get(kind, instance, fresh=fresh)

    def feed(self, first: int, last: int | None = None, *, share: Share = ALL) -> Iterator[TrainView]:
        last = first if last is None else last
        self._require(first, last, share)
        free = self.paradigm.reference or self.bound or first < self.step.index
        if self.feeder.streams and not free:
            for index in range(first, last + 1):
                yield from self._chunks(index, share)
            return
        fed = self._whole(first, last, share, free)
        if len(fed.view):
            yield from self._handed_out(fed)

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any:
        assert isinstance(module, AuthorsModule)
        fed = next((self._fed[id(one)] for one in arguments if id(one) in self._fed), None)
        if fed is not None and fed.seed is not None:
            self._seed(fed.seed)
            module.taught = _taught(module.taught, fed)
        taught = module.taught if module.taught.calls else self._common()
        offered = self._always() | self._told(taught.calls, taught.seen, taught.new)
        if fed is not None:
            offered |= {"valid_data": None, **fed.context}
        self.who = f"{module.name}.{method}()"
        with stopwatch() as watch:
            found = module.call(method, arguments, offered | context)
        if self._counts and self._training:
            self.step.trained += watch.spent
        elif self._counts:
            self.step.asked += watch.spent
        return found

    def measure(self, name: str, value: float) -> None:
        known = self.paradigm.measures
        if name not in known:
            raise PluginError(f"the paradigm measures '{name}', which is not in its `measures`.{closest(name, known)}")
        if not math.isfinite(value):
            raise PluginError(f"the paradigm measures {value} as '{name}': a finite number is needed.")
        before = self.step.measures.get(name)
        if before is not None and known[name].over != "last":
            value = before + value if known[name].over == "sum" else max(before, value)
        self.step.measures[name] = float(value)

    # --- what the rounds of a case use --------------------------------------------------------------------------

    @cached_property
    def feeder(self) -> DataFeed:
        return DataFeed(self._exam, self._train_ratio, self.seed, self._exam.rules.passes)

    @property
    def bound(self) -> bool:
        """Whether it sees past rounds: a class of its says so, or its paradigm has asked for them."""
        return self.saw_past_rounds or self.modules.sees_past_rounds

    def begin(self, index: int) -> Step:
        """Step `index` begins; the record that it fills."""
        self.step = Step(index)
        self._calls.clear()
        self._passed.clear()
        return self.step

    @contextmanager
    def examining(self, *, counts: bool = True) -> Iterator[None]:
        """Calls within are of an examination. counts: whether what they take is counted."""
        before = self._training, self._counts
        self._training, self._counts = False, counts
        try:
            yield
        finally:
            self._training, self._counts = before

    @contextmanager
    def as_copy(self, modules: Modules) -> Iterator[None]:
        """Within, `modules` are those of the session."""
        before, self.modules = self.modules, modules
        try:
            yield
        finally:
            self.modules = before

    def round_context(self, index: int) -> dict[str, Any]:
        """What a learner is told of round `index` before it is taught it, for its held-out part."""
        rounds = self._exam.rounds
        seen = sorted({c for round_ in rounds[:index] for c in round_.classes})
        new = tuple(rounds[index - 1].classes)
        return self._told(index, tuple(seen), new)

    def adaptation(self, test: TestSet, context: Mapping[str, Any]) -> Iterator[TrainView]:
        """What a copy of the learner is adapted on before it answers `test`; the learner itself goes on as it is.

        context: what is told with the test set.
        """
        view = self.feeder.adaptation(test)
        told = {**context, "pretraining": False, "new_classes": test.classes, "train_rounds": (view,)}
        yield from self._handed_out(_Fed(view, None, context=told))

    # --- within -------------------------------------------------------------------------------------------------

    def _require(self, first: int, last: int, share: Share) -> None:
        count, (k, n) = len(self._exam.rounds), share
        if not 1 <= first <= last <= count:
            raise PluginError(f"feed({first}, {last}): the exam has rounds 1 to {count}.")
        if not 0 <= k < n:
            raise PluginError(f"feed(share={share}): a share is (k, n), the k-th of n parts, with k from 0 to n - 1.")
        if last > self.step.index:
            raise ExamRuleError(f"feed({first}, {last}): round {last} has not come yet in step {self.step.index}.")
        self.saw_past_rounds |= first < self.step.index

    def _whole(self, first: int, last: int, share: Share, free: bool) -> _Fed:
        """Rounds `first` to `last` as one view."""
        classes = tuple(self._exam.rounds[first - 1].classes)
        told: dict[str, Any] = {}
        if first != last:
            classes = tuple(sorted({c for round_ in self._exam.rounds[first - 1 : last] for c in round_.classes}))
        elif self.rules.task_in_training:
            told["task"] = first - 1
            if self.rules.output_space == "task":
                told["task_classes"] = classes
        if not free:
            told["valid_data"] = self.valid if share == ALL else None
            view = self.feeder.round(first, share, self._gone_over(first, share))
            return _Fed(view, self.step.index, first, share, classes, context=told)
        told["passes"] = None
        views = [self.feeder.rounds(first, last, share)]
        if self.modules.sees_past_rounds:
            if not self.paradigm.reference:
                told["valid_data"], views = self.valid, self.feeder.past_rounds(last)
            told["train_rounds"] = tuple(views)
        return _Fed(views[-1], self.step.index, first, share, classes, context=told)

    def _chunks(self, index: int, share: Share) -> Iterator[TrainView]:
        chunks = self.feeder.chunks(index)
        for chunk in chunks:
            view = self.feeder.chunk(chunk, share, self._gone_over(chunk.number, share))
            if len(view):
                yield from self._handed_out(_Fed(view, chunk.number, chunk.number, share, chunk=chunk))
            done = (chunk.number - chunks[0].number + 1) / len(chunks)
            self._tell({"round": index, "fraction": done})
            if chunk is not chunks[-1] and self.feeder.examines_after(chunk):
                self.between(chunk)

    def _handed_out(self, fed: _Fed) -> Iterator[TrainView]:
        views = fed.context.get("train_rounds", (fed.view,))
        self._fed[id(fed.view)] = fed
        try:
            yield fed.view
        finally:
            del self._fed[id(fed.view)]
            if fed.seed is not None:
                self.step.samples += sum(map(len, views))
                self.step.passes = max(self.step.passes, fed.view.passes)
                self._passed.setdefault(fed.number, Counter())[fed.share] += fed.view.passes
            for view in views:
                view.close()

    def _gone_over(self, number: int, share: Share) -> int:
        """Passes so far, in this step, over a share of round or chunk `number`: what was handed out is counted once."""
        passed = self._passed.get(number, Counter())
        return max(passed[share], math.floor(sum(count / n for (_, n), count in passed.items()) + 1e-9))

    def _seed(self, number: int) -> None:
        """A stream of its own for each call of a step with training data."""
        call = self._calls[number]
        self._calls[number] += 1
        self.seeds.start(f"global, call {call}" if call else "global", number)

    def _common(self) -> Taught:
        """What the modules were taught together: for one that learns from others instead of data."""
        taught = [module.taught for module in self.modules if module.taught.calls]
        if not taught:
            return Taught()
        seen, new = {c for one in taught for c in one.seen}, {c for one in taught for c in one.new}
        return Taught(self.step.index, tuple(sorted(seen)), tuple(sorted(new)))

    def _told(self, number: int, seen: tuple[int, ...], new: tuple[int, ...]) -> dict[str, Any]:
        draws = generator(self.seed, number, "plugin")
        return {"round": number, "classes_seen": seen, "new_classes": new, "generator": draws}

    def _always(self) -> dict[str, Any]:
        classes, index = self._exam.dataset.classes, self.step.index
        context = {
            "classes": classes,
            "num_classes": len(classes),
            "device": self._device,
            "seed": self.seed,
            "folder": self._folder,
            "passes": self._passes,
            "progress": lambda fraction: self._progress(index, fraction),
        }
        return context if self.rules.training_labels else {**context, "pretraining": True}

    def _progress(self, index: int, fraction: float) -> None:
        if not self.feeder.streams:  # the chunks of a stream are too short to tell how far each is
            self._tell({"round": index, "rounds": len(self._exam.rounds), "fraction": fraction})


def _taught(before: Taught, fed: _Fed) -> Taught:
    if fed.chunk is None:
        return Taught(before.calls + 1, tuple(sorted({*before.seen, *fed.classes})), fed.classes)
    new = tuple(sorted(set(fed.chunk.classes).difference(before.seen)))
    return Taught(before.calls + 1, tuple(sorted((*before.seen, *new))) if new else before.seen, new)
