"""A row of a leaderboard: an algorithm with one choice of hyperparameters, over its seeds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import Doubt
from ianvs.config.spec import PublishedSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.system import SYSTEM
from ianvs.results.report.values import Value, cell_text
from ianvs.results.stats import Difference, RankInterval, Summary

_ONLY_ASKED = (
    *("build_seconds", "save_seconds", "measure_seconds", "samples_per_second", "memory_mb"),
    *("samples_transfer_ratio", "samples_transfer_share"),
)
COSTS: Mapping[str, Metric] = MappingProxyType({m.name: m for m in SYSTEM if m.name not in _ONLY_ASKED})
"""Costs of a case: system metrics that a leaderboard shows by default if they were measured."""

RowKey = tuple[str, str]  # id and algorithm: two algorithms of the same content are two rows


@dataclass(frozen=True)
class FailedCase:
    """A case without a result. Secrets are hidden in `message`."""

    id: str
    seed: int
    error: str  # "RuntimeError", "killed by SIGKILL", "timeout"
    message: str
    log: Path | None
    log_shown: str | None  # as in files: relative to the workspace

    def text(self, longest: int | None = None) -> str:
        """Error and message in one line of at most `longest` characters."""
        line = " ".join((f"{self.error}: {self.message}" if self.message else self.error).split())
        return line if longest is None or len(line) <= longest else line[: longest - 3].rstrip() + "..."


@dataclass(frozen=True)
class LeaderboardRow:
    """One algorithm with one choice of hyperparameters; its cases are repetitions with different seeds.

    A row that lacks a case has neither a rank nor a mean, since a mean of the finished ones would not be comparable.
    """

    id: str
    algorithm: str
    paradigm: str
    rounds: int
    dataset: str
    modules: Mapping[str, str]
    hyperparameters: Mapping[str, Value]  # secrets are hidden already
    seeds: tuple[int, ...]  # seeds of finished cases
    expected: int  # number of cases that belong to the row
    metrics: Mapping[str, Summary]  # by column name; empty when a case is missing
    by_seed: Mapping[str, tuple[float | None, ...]]  # the values of each seed, in the order of `seeds`
    costs: Mapping[str, Summary]  # by key of COSTS; empty when a case is missing
    # By test set: (score, value just after its round, value at the end).
    tests: Mapping[str, tuple[str, Summary, Summary]]
    bound: bool  # a reference: it was given earlier rounds, or all of them at once
    doubt: Doubt  # why its predictions may not be those of the trained and saved model; "": no indication
    failures: tuple[FailedCase, ...]
    status: str
    time: str  # "YYYY-MM-DD HH:MM:SS" UTC, "" when no case has ended
    testenv: str = ""  # name of its testenv, if the job has several
    adopted: tuple[int, int] | None = None  # rounds whose new model passed the gate, and all; None: there is no gate
    over_budget: tuple[str, ...] = ()  # messages about exceeded budgets of the exam
    urls: tuple[str, ...] = ()  # folders of its cases, relative to the workspace
    texts: Mapping[str, str] = field(default_factory=dict)  # by column name, values of metrics that are not numbers
    remarks: Mapping[int, str] = field(default_factory=dict)  # messages of its plugin about the training, by seed
    published: Mapping[str, PublishedSpec] = field(default_factory=dict)  # by column name
    rank: int | None = None  # None: it does not compete, a case is missing, or its metric has no value
    # By column name, (seeds, G): pseudo-values of groups of test samples; CaseResult.samples.
    samples: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, compare=False, repr=False)
    test_samples: int = 0  # test sets evaluated after the last round
    standing: RankInterval | None = None  # None: it does not compete, or the spread is unknown
    standing_here: RankInterval | None = None  # on this test set; None: `standing` is already, or there is none
    to_best: Difference | None = None  # its score minus the best; None for the best, and without a spread
    to_baseline: Difference | None = None  # the same for `rank.baseline`
    tried: int | None = None  # number of configurations that it was selected from; None: no selection
    overlap: str = ""  # overlap of its pretraining data with the exam, as text
    pareto: bool = False  # see ranking.with_pareto

    @property
    def complete(self) -> bool:
        return len(self.seeds) == self.expected

    def mean(self, metric: str) -> float | None:
        """Return the summary of a metric's column."""
        return self.metrics[metric].mean if metric in self.metrics else None

    def errors(self, metric: str) -> tuple[float | None, float | None]:
        """Return standard errors of its mean: over other seeds, and over other test samples; None if unknown."""
        summary, groups = self.metrics[metric], self.samples.get(metric)
        seeds = None if summary.std is None else summary.std / sqrt(summary.n)
        return seeds, None if groups is None else float(groups.mean(axis=0).std(ddof=1)) / sqrt(groups.shape[1])

    def cost(self, name: str) -> float | None:
        """Return the mean of a cost, by key of COSTS or by name of its paradigm's measure."""
        return self.costs[name].mean if name in self.costs else None

    def settings(self, names: Iterable[str] | None = None) -> str:
        """Return "strength=100, epochs=20": those of its hyperparameters that are in `names`, or all."""
        wanted = self.hyperparameters if names is None else [name for name in names if name in self.hyperparameters]
        return ", ".join(f"{name}={cell_text(self.hyperparameters[name])}" for name in wanted)

    def named(self, names: Iterable[str] | None = None) -> str:
        """Return "ewc (strength=100)", with `settings` if there are any."""
        settings = self.settings(names)
        return f"{self.algorithm} ({settings})" if settings else self.algorithm

    @property
    def waiting(self) -> int:
        """Number of cases that have not ended."""
        return self.expected - len(self.seeds) - len(self.failures)

    @property
    def place(self) -> int | str:
        """The rank, or the reason for having none."""
        if not self.complete:
            return "-"
        return self.out_of_rank or ("-" if self.rank is None else self.rank)

    @property
    def competes(self) -> bool:
        """Whether it is ranked with the others."""
        return not self.out_of_rank

    @property
    def out_of_rank(self) -> Literal["", "bound", "over", "changed", "unsaved", "untrained"]:
        """Why it takes no rank; "": it does."""
        return "bound" if self.bound else "over" if self.over_budget else self.doubt
