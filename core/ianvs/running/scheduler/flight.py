"""The checks of one job while they are made, and what they have found. ianvs.running.scheduler.preflight lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from ianvs.base.errors import ConfigError, Problem
from ianvs.config.spec import JobSpec
from ianvs.processes.engines.engine import Engine
from ianvs.running.inspector import Inspector
from ianvs.running.planning import Plan, make_plan
from ianvs.running.scheduler import checks

__all__ = ["Check", "Preflight", "Watcher"]


class Watcher(Protocol):
    """Is told how far the data are prepared."""

    def preparing(self, what: str, fraction: float) -> None: ...


@dataclass(frozen=True)
class Check:
    """One of the checks. A warning among what it finds stops nothing.

    stands_on_others: it takes for granted that those before it have found nothing wrong.
    """

    name: str
    find: Callable[[Preflight], Iterable[Problem]]
    stands_on_others: bool = False


class Preflight:
    """The checks of one job, and what they have found. engine: whose processes build exams; None: no plan yet."""

    def __init__(
        self, job: JobSpec, inspector: Inspector, engine: Callable[[Plan | None], Engine], watcher: Watcher
    ) -> None:
        self.job, self.inspector, self.watcher = job, inspector, watcher
        self._engine = engine
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = list(job.warnings)
        self.samples: tuple[str | None, ...] = ()  # fingerprints of each testenv's, where they are known by then
        self.asking: set[tuple[Any, ...]] = set()  # modules whose plugins want to see the facts of an exam

    def make(self, checks_: Sequence[Check]) -> None:
        """Make these checks, those apart that stand on others which have found something."""
        for check in checks_:
            if not (self.problems and check.stands_on_others):
                for problem in check.find(self):
                    (self.warnings if problem.warning else self.problems).append(problem)

    def insist(self) -> JobSpec:
        """The job with all warnings. Raises ConfigError if anything is wrong."""
        if self.problems:
            raise ConfigError(dict.fromkeys(self.problems), dict.fromkeys(self.warnings))
        return replace(self.job, warnings=tuple(dict.fromkeys(self.warnings)))

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.job, self.inspector, self.samples)

    @cached_property
    def metrics(self) -> tuple[list[Problem], dict[str, str]]:
        return checks.metric_levels(self.job, self.inspector)

    @property
    def levels(self) -> dict[str, str]:
        return self.metrics[1]

    @property
    def engine(self) -> Engine:
        return self._engine(None if self.problems else self.plan)
