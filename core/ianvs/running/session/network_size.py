"""Size of the networks that a learner predicts with: parameters, and floating-point operations of one forward pass."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

_MAX_OBJECTS = 10_000  # limit of the search for networks
_HIDDEN = "Parameters and FLOPs are blank: no attribute of the plugin holds a torch.nn.Module"


@dataclass(frozen=True)
class NetworkSize:
    """The size of networks; None is "not measured".

    Attributes:
        parameters: Of all networks that `predict` calls, each shared tensor once.
        trainable: Those of them with `requires_grad`.
        flops: Of predicting one sample; a multiplication and an addition are two.
        note: Why a value is missing; "" if none is.
    """

    parameters: int | None = None
    trainable: int | None = None
    flops: int | None = None
    note: str = ""


def network_size(plugins: Iterable[object], predict_one: Callable[[], object] | None) -> NetworkSize:
    """Measure the networks of the plugins.

    Args:
        plugins: The author's objects. Objects in another interpreter are not visible.
        predict_one: Predicts one sample; None if that is not possible.

    Returns:
        All None if the plugins have no torch network.
    """
    plugins = list(plugins)
    torch = sys.modules.get("torch")
    networks = [] if torch is None else _networks(plugins, torch.nn.Module)
    if not networks:
        uses_torch = any(_imports_torch(type(plugin)) for plugin in plugins)
        return NetworkSize(note=_HIDDEN if uses_torch else "")
    flops, note = None, ""
    if predict_one is not None:
        try:
            called, flops = _forward(predict_one)
        except Exception as error:
            note = f"FLOPs are blank: predicting a single sample failed ({type(error).__name__}: {error})"
        else:
            networks = called or networks
            if not called:
                flops, note = None, "FLOPs are blank: predict() calls no torch.nn.Module"
    parameters = {id(parameter): parameter for network in networks for parameter in network.parameters()}.values()
    total = sum(parameter.numel() for parameter in parameters)
    return NetworkSize(
        total, sum(parameter.numel() for parameter in parameters if parameter.requires_grad), flops, note
    )


def _forward(predict_one: Callable[[], object]) -> tuple[list["nn.Module"], int]:
    """Returns the modules that were called, and the number of operations."""
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.utils.flop_counter import FlopCounterMode

    called: dict[int, nn.Module] = {}

    def note(module: "nn.Module", _: object) -> None:
        called.setdefault(id(module), module)

    hook = register_module_forward_pre_hook(note)
    try:
        with FlopCounterMode(display=False) as counter:
            predict_one()
    finally:
        hook.remove()
    return list(called.values()), int(counter.get_total_flops())


def _networks(plugins: Iterable[object], network_type: type["nn.Module"]) -> list["nn.Module"]:
    """Return networks among the attributes, also in containers and in the attributes of other objects."""
    networks: list[nn.Module] = []
    seen: set[int] = set()
    waiting: list[Any] = list(plugins)
    while waiting and len(seen) < _MAX_OBJECTS:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | type):
            continue
        seen.add(id(value))
        if isinstance(value, network_type):
            networks.append(value)
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value[:_MAX_OBJECTS]
        elif not callable(value):
            waiting += getattr(value, "__dict__", {}).values()
    return networks


def _imports_torch(plugin: type) -> bool:
    return hasattr(sys.modules.get(plugin.__module__), "torch")
