"""What an author's class measures of itself beside scores: `measures` and `measured` of ianvs.plugins.Learner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ianvs.base.errors import PluginError, closest
from ianvs.base.types import Measure

if TYPE_CHECKING:
    from ianvs.running.session.modules import AuthorsModule

__all__ = ["checked_measures", "declared_measures"]


def declared_measures(modules: Iterable[AuthorsModule], taken: Iterable[str]) -> dict[str, Measure]:
    """What the modules say that they measure. taken: names of the paradigm's. Raises PluginError."""
    found: dict[str, Measure] = {}
    for module in modules:
        said = getattr(module.plugin, "measures", None)
        if said is None or callable(said):
            continue
        if not isinstance(said, Mapping) or not all(isinstance(one, Measure) for one in said.values()):
            raise PluginError(f"{module.name}.measures must be a dict: name -> ianvs.base.types.Measure.")
        if twice := sorted(set(said) & {*taken, *found}):
            raise PluginError(f"{module.name}.measures has '{twice[0]}', which is measured already. Rename it.")
        found |= said
    return found


def checked_measures(module: AuthorsModule, said: object) -> dict[str, float]:
    """What `measured` of a module has returned: a finite number for each name, of those that it declares."""
    known = module.plugin.measures
    who = f"{module.name}.measured()"
    if not isinstance(said, Mapping):
        raise PluginError(f"{who} returned {type(said).__name__}: return a dict, name -> number.")
    for name, value in said.items():
        if name not in known:
            raise PluginError(f"{who} returned '{name}', which is not in its `measures`.{closest(str(name), known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise PluginError(f"{who} returned {value!r} as '{name}': a finite number is needed.")
    return {name: float(value) for name, value in said.items()}
