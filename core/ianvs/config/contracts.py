"""Contracts: how plugins for another API are read, checked, run and scored.

The contract `native` is ianvs's own: plugins follow `ianvs.plugins.contract`, and `ianvs.running` evaluates them. Any
other contract is a subclass of `Contract` in the entry point group `ianvs.contracts`. It runs its cases itself and
returns their results. All algorithms of a job have the same contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ianvs.base.entry_points import installed, origin_text
from ianvs.base.errors import PluginError, ValidationError
from ianvs.config.models.contract_name import GROUP, NATIVE, contract_names
from ianvs.config.paths import Lookup
from ianvs.config.spec import AlgorithmSpec, JobSpec, MetricSpec, ParadigmSpec, RankSpec, TestEnvSpec
from ianvs.config.strict_yaml import Document

if TYPE_CHECKING:
    from ianvs.base.types import (
        CaseResult,
        Measure,
        RoundResult,
    )  # imports numpy, which is not needed for reading files
    from ianvs.config.reading import Reading

Matrix = Sequence[Sequence[float | None]]
Table = Sequence[tuple[str, str, str]]
"""Columns of all_rank.csv: (type, key, title). A hyperparameter's key is as in "basemodel-lr"."""


@dataclass(frozen=True)
class MetricFacts:
    """A metric that a contract computes.

    Attributes:
        summary: One line.
        mapping: Whether it yields several numbers, and is no column.
        higher_is_better: The direction; None: unknown.
    """

    summary: str = ""
    mapping: bool = False
    higher_is_better: bool | None = None


@dataclass(frozen=True)
class ContractCase:
    """A case that its contract runs.

    Attributes:
        algorithm: The algorithm.
        testenv: The exam.
        hyperparameters: Those of each module, by the type of the module.
        seed: The seed.
        metrics: The metrics to compute.
        folder: The case's own folder, for its files.
        cache: The workspace's folder for data.
        working_directory: As the job names it.
        shared: <workspace>/<job>/<algorithm>, shared by all cases of the algorithm.
    """

    algorithm: AlgorithmSpec
    testenv: TestEnvSpec
    hyperparameters: Mapping[str, Mapping[str, object]]
    seed: int
    metrics: tuple[MetricSpec, ...]
    folder: Path
    cache: Path
    working_directory: Path | None = None
    shared: Path | None = None


@dataclass(frozen=True)
class ContractResult:
    """The result of a case.

    Attributes:
        scores: By the metric's name a number, a string, or None for no value.
        rounds: The costs of each round; the first is the untrained model.
        metric: The name of the score in R.
        R: [k][j] the score on part j after round k + 1; None: not evaluated.
        parts: Names of the parts; (): their numbers.
        untrained: [j] the scores before the first round.
        matrices: Further matrices, by the name of the score.
        measures: What the numbers in `rounds` mean.
        test_labels: Whether the plugin had access to the test labels.
        warnings: Warnings on its row.
        notes: Notes on its row.
        dataset: The name of its data; None: that of the testenv.
        trained: False if nothing was trained although something should have been. The case then has no rank.
    """

    scores: Mapping[str, float | str | None]
    rounds: Sequence[RoundResult] = ()
    metric: str = ""
    R: Matrix = ()
    parts: Sequence[str] = ()
    untrained: Sequence[float | None] | None = None
    matrices: Mapping[str, Matrix] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    test_labels: bool = False
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    dataset: str | None = None
    trained: bool = True


class Contract:
    """Another plugin API, which runs its own cases and returns their results.

    Subclasses define `name`, `run` and `score`. Everything else has a default.

    Attributes:
        name: The name in yaml files.
        adapter: See `Native`.
        apart: See `Native`.
    """

    name: ClassVar[str]
    adapter: ClassVar[str | None] = None
    apart: ClassVar[bool] = False

    # --- read -----------------------------------------------------------------------------------------------------

    def reading(self, job: Document, lookup: Lookup) -> Reading | None:
        """Return the reader for files in a form of this contract's own; None: they are in our form.

        A contract derived from `Native` is not asked.

        Args:
            job: The job's file as it is written.
            lookup: How paths in this file are resolved.

        Raises:
            ConfigError: The job also has algorithms of another contract.
        """
        return None

    def module_types(self, paradigm: ParadigmSpec) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return (known types of modules, required types) of a paradigm of its own; None: it is one of ours."""
        return None

    def metric(self, spec: MetricSpec) -> MetricFacts | None:
        """Return the facts of a metric that `score` computes; None: it is one of ours.

        Raises:
            ConfigError: The metric is unknown.
        """
        return MetricFacts()

    # --- check ----------------------------------------------------------------------------------------------------

    def setting_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        """Check the settings in the job's files beyond their form. Only files are read."""
        return ()

    def code_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        """Check plugins without running their code."""
        return ()

    def import_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        """Check plugins by running their code, in a process of its own, if no other check failed."""
        return ()

    # --- identity: what determines a result, beside data, modules, hyperparameters and seed -------------------------
    # A MetricSpec in it counts by its source, a Path by the content of what is there.

    def exam_identity(self, exam: TestEnvSpec) -> Mapping[str, object]:
        """Return what in a testenv determines results."""
        return {}

    def algorithm_identity(self, algorithm: AlgorithmSpec) -> Mapping[str, object]:
        """Return what in an algorithm's file determines results, besides its contract."""
        return {}

    # --- run a case -----------------------------------------------------------------------------------------------

    def run(self, case: ContractCase, report: Callable[[str], None]) -> None:
        """Run a case in a process of its own, or continue one that was interrupted. A complete case does nothing.

        What `score` needs is left in the case's folder.

        Args:
            case: The case.
            report: Called with a line of text about the present step.
        """
        raise NotImplementedError

    def score(self, case: ContractCase) -> ContractResult:
        """Return the result of a case that has run, in a process of its own: metrics are authors' code."""
        raise NotImplementedError

    # --- results --------------------------------------------------------------------------------------------------

    def table(self, columns: Table) -> Table:
        """Return the columns of all_rank.csv that are written, with their titles."""
        return [column for column in columns if column[0] != "url"]

    def tables(self, results: Iterable[CaseResult], rank: RankSpec) -> Mapping[str, str]:
        """Return further tables by file name, where `rank.style` asks for them."""
        return {}


class Native(Contract):
    """Plugins follow `ianvs.plugins.contract`, or, in a subclass, are adapted to it by `adapter`.

    Attributes:
        adapter: A module with a function `adapted`, which makes a plugin class of the object that `url` names. Another
            interpreter (`python` of an algorithm) imports it by its file, so it must not import ianvs.
        apart: Whether plugins always run in another interpreter. A function `found` of the module then loads them by
            url and name.
    """

    name = NATIVE


_NATIVE = Native()


def contract_named(name: str) -> Contract:
    """Return the contract of this name.

    Raises:
        PluginError: It is not installed, or can't be imported.
    """
    if name == NATIVE:
        return _NATIVE
    if (point := installed(GROUP).get(name)) is None:
        there_are = ", ".join(contract_names())
        raise PluginError(f"contract '{name}' is not installed. There are: {there_are}.", code="missing-package")
    try:
        kind: Any = point.load()
        if not (isinstance(kind, type) and issubclass(kind, Contract)):
            raise TypeError(f"it is not a class derived from {Contract.__module__}.Contract")
        contract: Contract = kind()
        return contract
    except Exception as error:
        raise PluginError(
            f"the contract '{name}', {origin_text(point)}, can't be imported: {type(error).__name__}: {error}",
            code="unloadable-plugin",
        ) from error


def runner_of(algorithm: AlgorithmSpec) -> Contract | None:
    """Return the contract of an algorithm if it runs its cases itself; None: `ianvs.running` runs them."""
    contract = contract_named(algorithm.contract)
    return None if isinstance(contract, Native) else contract


@dataclass(frozen=True)
class Interpreter:
    """The interpreter and environment of a plugin object.

    Attributes:
        python: Another interpreter; None: this one.
        adapter: The adapter of its contract.
    """

    python: str | None = None
    adapter: str | None = None


THIS_INTERPRETER = Interpreter()


def interpreter_of(algorithm: AlgorithmSpec) -> Interpreter:
    """Return where the objects of an algorithm run."""
    python = None if algorithm.python is None else str(algorithm.python)
    return Interpreter(python, contract_named(algorithm.contract).adapter)


def mixed(named: Sequence[tuple[str, str]]) -> str | None:
    """Return what is wrong with several contracts in one job; None if there is one.

    Args:
        named: (algorithm, contract) of each.
    """
    ours = {contract for _, contract in named if isinstance(contract_named(contract), Native)}
    named = [(name, NATIVE if contract in ours else contract) for name, contract in named]
    sides = {side: ", ".join(name for name, other in named if other == side) for _, side in named}
    if len(sides) < 2:
        return None
    listed = " and ".join(f"`contract: {side}` ({names})" for side, names in sides.items())
    return (
        f"algorithms under {listed} in one job: they get different data and can't be compared. "
        "Give each kind a job of its own."
    )
