"""Scenarios by name: ours, those that are installed beside ianvs, and those in an author's file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ianvs.config.spec import ScenarioSpec
from ianvs.errors import PluginError, closest, one_line
from ianvs.plugins.loader import Loaded, installed, load
from ianvs.scenarios.blurred import BlurredBoundary
from ianvs.scenarios.class_incremental import ClassIncremental, TaskIncremental
from ianvs.scenarios.continual_pretraining import ContinualPretraining
from ianvs.scenarios.domain_incremental import DomainIncremental, MultiDomainIncremental
from ianvs.scenarios.instance_incremental import InstanceIncremental
from ianvs.scenarios.manifest import FromManifest
from ianvs.scenarios.request import Scenario
from ianvs.scenarios.streams import Online, TaskFree

__all__ = ["ENTRY_POINTS", "SCENARIOS", "find_scenario", "is_authors", "load_scenario"]

ENTRY_POINTS = "ianvs.scenarios"

SCENARIOS: Mapping[str, type[Scenario]] = MappingProxyType(
    {
        kind.names[0]: kind
        for kind in (
            InstanceIncremental,
            DomainIncremental,
            TaskIncremental,
            ClassIncremental,
            TaskFree,
            Online,
            BlurredBoundary,
            ContinualPretraining,
            MultiDomainIncremental,
            FromManifest,
        )
    }
)
"""Those of the survey arXiv 2302.00487, that of MDIL-SS (arXiv 2110.12205), and exams from a file, by name."""


def find_scenario(name: str) -> type[Scenario] | None:
    """One of ours by any of its names, whatever their case, with blanks or underscores for hyphens."""
    wanted = _folded(name)
    return next((kind for kind in SCENARIOS.values() if wanted in map(_folded, kind.names)), None)


def is_authors(spec: ScenarioSpec) -> bool:
    """Whether it takes an author's code to find out more of the scenario."""
    return spec.url is not None or (find_scenario(spec.name) is None and spec.name in installed(ENTRY_POINTS))


def load_scenario(spec: ScenarioSpec) -> Loaded:
    """The class. Raises PluginError if there is none."""
    ours = find_scenario(spec.name)
    if not is_authors(spec):
        if ours is None:
            names = [*(name for kind in SCENARIOS.values() for name in kind.names), *installed(ENTRY_POINTS)]
            listed = one_line([*SCENARIOS, *installed(ENTRY_POINTS)])
            message = f"there is no scenario '{spec.name}'.{closest(spec.name, names)} There are: {listed}."
            raise PluginError(f"{message} One of your own needs the `url` of its file.")
        return Loaded(ours)
    loaded = load(None if spec.url is None else str(spec.url), spec.name, ENTRY_POINTS)
    if isinstance(loaded.target, type) and issubclass(loaded.target, Scenario):
        return loaded
    raise PluginError(f"'{spec.name}' is no subclass of ianvs.scenarios.Scenario.")


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-").replace(" ", "-")
