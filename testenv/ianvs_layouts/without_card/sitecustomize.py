"""On a machine without a card: torch's calls that name one compute on the CPU. Python imports this file as it starts."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Changes torch once it has been imported, whoever imports it; costs nothing where nobody does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                if not module.cuda.is_available():
                    _without_card(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _without_card(torch: Any) -> None:
    for kind in (torch.Tensor, torch.nn.Module):
        kind.cuda = lambda self, *_, **__: self
        kind.to = _moved(kind.to, (str, torch.device))
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.set_device = lambda *_: None


def _moved(to: Callable[..., Any], names: tuple[type, ...]) -> Callable[..., Any]:
    def here(value: object) -> object:
        return "cpu" if isinstance(value, names) and str(value).startswith("cuda") else value

    def moved(self: object, *places: object, **named: object) -> Any:
        return to(self, *map(here, places), **{key: here(value) for key, value in named.items()})

    return moved


sys.meta_path.insert(0, _AfterTorch())
