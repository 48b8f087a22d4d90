"""The table of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ianvs.scenarios.blurred import BlurredOptions, blurred_boundary
from ianvs.scenarios.class_incremental import ClassIncrementalOptions, class_incremental, task_incremental
from ianvs.scenarios.continual_pretraining import PretrainingOptions, continual_pretraining
from ianvs.scenarios.domain_incremental import (
    DomainIncrementalOptions,
    MultiDomainOptions,
    domain_incremental,
    multi_domain_incremental,
)
from ianvs.scenarios.exam import Exam
from ianvs.scenarios.instance_incremental import InstanceIncrementalOptions, instance_incremental
from ianvs.scenarios.manifest import ManifestOptions, from_manifest
from ianvs.scenarios.request import ScenarioOptions, ScenarioRequest
from ianvs.scenarios.streams import OnlineOptions, StreamOptions, online, task_free

__all__ = ["SCENARIOS", "Scenario", "find_scenario"]


@dataclass(frozen=True)
class Scenario:
    """A way in which data arrive."""

    name: str
    aliases: tuple[str, ...]
    options: type[ScenarioOptions]
    build: Callable[[ScenarioRequest], Exam]


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            Scenario("instance-incremental", ("IIL",), InstanceIncrementalOptions, instance_incremental),
            Scenario("domain-incremental", ("DIL",), DomainIncrementalOptions, domain_incremental),
            Scenario("task-incremental", ("TIL",), ClassIncrementalOptions, task_incremental),
            Scenario("class-incremental", ("CIL",), ClassIncrementalOptions, class_incremental),
            Scenario("task-free", ("TFCL", "task-free-continual-learning"), StreamOptions, task_free),
            Scenario("online", ("OCL", "online-continual-learning"), OnlineOptions, online),
            Scenario(
                "blurred-boundary", ("BBCL", "blurred-boundary-continual-learning"), BlurredOptions, blurred_boundary
            ),
            Scenario("continual-pre-training", ("CPT",), PretrainingOptions, continual_pretraining),
            Scenario(
                "multi-domain-incremental", ("MDIL", "domain-aware"), MultiDomainOptions, multi_domain_incremental
            ),
            Scenario("manifest", (), ManifestOptions, from_manifest),
        )
    }
)
"""Those of the survey arXiv 2302.00487, that of MDIL-SS (arXiv 2110.12205), and exams from a file, by name."""


def find_scenario(name: str) -> Scenario | None:
    """By name or alias, whatever its case, with blanks or underscores for hyphens."""
    wanted = _folded(name)
    return next((s for s in SCENARIOS.values() if wanted in map(_folded, (s.name, *s.aliases))), None)


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-").replace(" ", "-")
