"""Resolves the conflict of `train` in a plugin that is a `torch.nn.Module`: PyTorch's mode switch and the author's
method.

`eval()` calls `train(False)`, and `train()` means `train(True)`. torch is not imported here: a subclass of its Module
has done so.
"""

import functools
import inspect
import sys
from typing import Any


def separate_mode_switch(target: object) -> None:
    """Make mode switches of an `nn.Module` skip the author's `train(train_data, ...)`, in the class itself.

    A call without arguments, with one bool, or with `mode` alone goes to the next class that has a `train`, finally to
    PyTorch's. A method that has a parameter `mode`, or checks for a `bool`, switches modes itself and stays unchanged.

    Args:
        target: A plugin's object; anything but a subclass of `nn.Module` is unchanged.
    """
    module: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
    if module is None or not isinstance(target, type) or not issubclass(target, module):
        return
    for layer in target.__mro__[: target.__mro__.index(module)]:
        train = vars(layer).get("train")
        if inspect.isfunction(train) and not _switches_modes(train):
            layer.train = _separated(layer, train)  # type: ignore[attr-defined]


def lacks_train(target: type) -> bool:
    """Return whether the only `train` of the class is PyTorch's mode switch."""
    module: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
    return module is not None and issubclass(target, module) and target.train is module.train  # type: ignore[attr-defined]


def _switches_modes(train: Any) -> bool:
    names = inspect.signature(train).parameters
    return (
        hasattr(train, "separates_mode_switch") or "mode" in names or "bool" in inspect.unwrap(train).__code__.co_names
    )


def _separated(layer: Any, train: Any) -> Any:
    @functools.wraps(train)
    def separated(self: Any, *arguments: Any, **named: Any) -> Any:
        only = (*arguments, *named.values())
        if named.keys() <= {"mode"} and len(only) <= 1 and all(isinstance(value, bool) for value in only):
            return super(layer, self).train(*arguments, **named)
        return train(self, *arguments, **named)

    separated.separates_mode_switch = True  # type: ignore[attr-defined]
    return separated
