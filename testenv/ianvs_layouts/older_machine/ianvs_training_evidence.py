"""Whether a plugin's `train` changed weights, from the parameters of an optimizer before and after a step.

Only steps called from a function named `train` count, and comparing stops after the first change.
"""

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from ianvs_records import record

_MOST = 16  # parameters of a step that are compared
_seen = False


def _training() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "train" and "site-packages" not in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _compare(before: list[Any], after: list[Any], library: str) -> None:
    global _seen
    if not _seen and any(bool((old != new).any()) for old, new in zip(before, after, strict=False)):
        _seen = True
        record("trained", library)


def _torch(torch: Any) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    held: dict[int, list[Any]] = {}

    def parameters(optimizer: Any) -> list[Any]:
        every = (parameter for group in optimizer.param_groups for parameter in group["params"])
        return [parameter.detach() for parameter in every if parameter.grad is not None][:_MOST]

    def before(optimizer: Any, *_: Any) -> None:
        if not _seen and _training():
            held[id(optimizer)] = [parameter.clone() for parameter in parameters(optimizer)]

    def after(optimizer: Any, *_: Any) -> None:
        if (old := held.pop(id(optimizer), None)) is not None:
            _compare(old, parameters(optimizer), "torch")

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def _values(variables: Iterable[Any]) -> list[Any] | None:
    """Return the values; None while a graph is traced, as there are none then."""
    import numpy as np

    try:
        return [np.array(variable) for variable in list(variables)[:_MOST]]
    except Exception:  # the backend may raise any error there
        return None


def _compared(call: Callable[..., Any], variables: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    def compared(self: Any, *given: Any, **named: Any) -> Any:
        if _seen or not _training():
            return call(self, *given, **named)
        before = _values(variables(self, *given))
        result = call(self, *given, **named)
        after = _values(variables(self, *given)) if before is not None else None
        if before is not None and after is not None:
            _compare(before, after, "keras")
        return result

    return compared


def _keras_optimizer(module: Any) -> None:
    if hasattr(module, "BaseOptimizer"):  # keras 3
        kind = module.BaseOptimizer

        def given(self: Any, grads: Any, variables: Any = None, *_: Any) -> Iterable[Any]:
            return variables or getattr(self, "_trainable_variables", [])

        kind.apply = _compared(kind.apply, given)
    elif hasattr(module, "Optimizer"):  # keras 2

        def paired(self: Any, pairs: Any, *_: Any) -> Iterable[Any]:
            return [variable for _, variable in pairs] if isinstance(pairs, (list, tuple)) else []

        def apply_gradients(self: Any, pairs: Any, *given: Any, **named: Any) -> Any:
            return apply(self, list(pairs), *given, **named)

        apply = _compared(module.Optimizer.apply_gradients, paired)
        module.Optimizer.apply_gradients = apply_gradients


def _keras_fit(name: str) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        kind = getattr(module, name)
        kind.fit = _compared(kind.fit, lambda self, *_: getattr(self, "trainable_variables", []))

    return change


CHANGES: dict[str, Callable[[Any], None]] = {
    "torch": _torch,
    "keras.src.optimizers.base_optimizer": _keras_optimizer,
    "keras.src.optimizers.optimizer": _keras_optimizer,
    "keras.src.backend.tensorflow.trainer": _keras_fit("TensorFlowTrainer"),
    "keras.src.engine.training": _keras_fit("Model"),
}
