"""What a contract says of itself: how plugins that are written for it are read, checked, run and scored.

`native` is our own: plugins are what `ianvs.plugins.contract` says, and `ianvs.running` examines them. Any other is a
class derived from `Contract`, found by its name among the entry points of the group `ianvs.contracts`. It runs its
cases itself, and tells what came of them. All algorithms of a job are under one contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ianvs.base.entry_points import installed, origin_text
from ianvs.base.errors import Location, PluginError, ValidationError
from ianvs.config.models.contract_name import GROUP, NATIVE, contract_names
from ianvs.config.paths import Lookup
from ianvs.config.spec import AlgorithmSpec, JobSpec, MetricSpec, ParadigmSpec, RankSpec, TestEnvSpec
from ianvs.config.strict_yaml import Document

if TYPE_CHECKING:
    from ianvs.base.types import CaseResult, Measure, RoundResult  # numpy, which nobody needs who only reads files
    from ianvs.config.reading import Reading

Matrix = Sequence[Sequence[float | None]]
Table = Sequence[tuple[str, str, str]]
"""Of each column of all_rank.csv its kind, its key (of a hyperparameter as in "basemodel-lr"), and its title."""


@dataclass(frozen=True)
class MetricFacts:
    """What a metric is that a contract computes. mapping: it yields several numbers, and is no column.

    higher_is_better: None where nobody says.
    """

    summary: str = ""
    mapping: bool = False
    higher_is_better: bool | None = None


@dataclass(frozen=True)
class ContractCase:
    """A case that its contract runs.

    hyperparameters: of each module, by its type. metrics: those that are to be computed. folder: the case's own, where
    it may keep files. cache: of the workspace, for data. working_directory: as the job names it. shared:
    <workspace>/<job>/<algorithm>, of all cases of the algorithm.
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
    """What came of a case, in plain data. scores: by the metric's name, a number, a text, or None for no value.

    dataset: what its data are called; None: as the testenv has it. trained: False if something was to be trained, and
    nothing was; then the case takes no rank.

    rounds: what each cost, from the one before training on. R: [k][j] the score `metric` on part j after round k + 1;
    untrained: [j] before the first; None is "not evaluated". parts: their names; (): their numbers.
    matrices: further ones, by name. measures: what the numbers in `rounds` mean. test_labels: whether the plugin was
    given them. warnings, notes: marks of its row.
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
    """Another plugin API: it runs its cases itself, in its own order of calls, and says what their result is.

    Derive from it, and define `name` (what files call it), `run` and `score`; for all else there is a default.
    """

    name: ClassVar[str]
    adapter: ClassVar[str | None] = None
    apart: ClassVar[bool] = False

    # --- read -----------------------------------------------------------------------------------------------------

    def reading(self, job: Document, lookup: Lookup) -> Reading | None:
        """What reads the files of a job in a form of this contract's own; None: they are not in that form.

        Args:
            job: The job's file as it is written.
            lookup: How paths in this file are resolved.

        Raises:
            ConfigError: Algorithms of another contract are among its own.
        """
        return None

    def module_types(self, paradigm: ParadigmSpec) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """(all that a paradigm of its own knows, those that an algorithm has to list); None: it is one of ours."""
        return None

    def metric(self, spec: MetricSpec) -> MetricFacts | None:
        """What a metric is that `score` computes; None: it is ours to say. Raises ConfigError for an unknown one."""
        return MetricFacts()

    # --- check ----------------------------------------------------------------------------------------------------

    def setting_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        """What is wrong with what the job's files say, beyond their form; nothing but files is read."""
        return ()

    def code_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        """What is wrong with plugins, as far as it shows without running their code."""
        return ()

    def import_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        """The same, where nothing else is wrong. Their code may run, in a process of its own."""
        return ()

    # --- identity: what determines a result, beside data, modules, hyperparameters and seed -------------------------
    # A MetricSpec in it counts by its source, a Path by the content of what is there.

    def exam_identity(self, exam: TestEnvSpec) -> Mapping[str, object]:
        """What of a testenv does."""
        return {}

    def algorithm_identity(self, algorithm: AlgorithmSpec) -> Mapping[str, object]:
        """What of an algorithm's file does, beside its contract."""
        return {}

    # --- run a case -----------------------------------------------------------------------------------------------

    def run(self, case: ContractCase, report: Callable[[str], None]) -> None:
        """Run it, in a process of its own, or go on where an earlier one was ended; what has run does nothing.

        What `score` needs is left in the case's folder. report: is told in words what happens now.
        """
        raise NotImplementedError

    def score(self, case: ContractCase) -> ContractResult:
        """What came of a case that has run. In a process of its own, too: metrics are code of authors."""
        raise NotImplementedError

    # --- results --------------------------------------------------------------------------------------------------

    def table(self, columns: Table) -> Table:
        """all_rank.csv: of the columns that there are those to be written, with their titles."""
        return [column for column in columns if column[0] != "url"]

    def tables(self, results: Iterable[CaseResult], rank: RankSpec) -> Mapping[str, str]:
        """Where `rank.style` asks for it: further tables in a form of its own, by their file's name."""
        return {}


class Native(Contract):
    """Plugins are what `ianvs.plugins.contract` says, or, in a class derived from this, are made so by `adapter`.

    adapter: the name of a module with a function `adapted`, which makes a plugin's class from what `url` names. Another
    interpreter (`python` of an algorithm) imports it by its file: it imports nothing of ianvs. apart: its plugins live
    in one of their own alone, where a function `found` of that module gets them by the url and the name.
    """

    name = NATIVE

    def setting_problems(self, job: JobSpec) -> Iterable[ValidationError]:
        if job.rank.style not in (NATIVE, "proposal"):
            message = f"rank.style '{job.rank.style}' is for jobs under `contract: {job.rank.style}`. Leave it out."
            yield ValidationError(message, Location(job.file), code="invalid-choice")

    def metric(self, spec: MetricSpec) -> None:
        return None


_NATIVE = Native()


@lru_cache(maxsize=64)
def _loaded(point: EntryPoint) -> Contract:
    kind: Any = point.load()
    if not (isinstance(kind, type) and issubclass(kind, Contract)):
        raise TypeError(f"it is not a class derived from {Contract.__module__}.Contract")
    return kind()


def contracts() -> list[Contract]:
    """All that are installed, ours first. One that can't be imported is told of where it is named."""
    all_contracts: list[Contract] = [_NATIVE]
    for point in installed(GROUP).values():
        with suppress(Exception):
            all_contracts.append(_loaded(point))
    return all_contracts


def contract_named(name: str) -> Contract:
    """Raises PluginError for one that is not installed, or can't be imported."""
    if name == NATIVE:
        return _NATIVE
    if (point := installed(GROUP).get(name)) is None:
        there_are = ", ".join(contract_names())
        raise PluginError(f"contract '{name}' is not installed. There are: {there_are}.", code="missing-package")
    try:
        return _loaded(point)
    except Exception as error:
        raise PluginError(
            f"the contract '{name}', {origin_text(point)}, can't be imported: {type(error).__name__}: {error}",
            code="unloadable-plugin",
        ) from error


def runner_named(name: str) -> Contract | None:
    """The contract of this name if it runs its cases itself; None: `ianvs.running` does."""
    contract = contract_named(name)
    return None if isinstance(contract, Native) else contract


def runner_of(job: JobSpec) -> Contract | None:
    """What runs the cases of the job, in the place of `ianvs.running`; None: that does."""
    return runner_named(job.algorithms[0].contract)


def contract_of(job: JobSpec) -> Contract:
    """That of its algorithms; of those that core examines our own, whatever makes plugins of them."""
    return runner_of(job) or _NATIVE


@dataclass(frozen=True)
class Surroundings:
    """Where an author's object lives. python: another interpreter; None: this one. adapter: of its contract."""

    python: str | None = None
    adapter: str | None = None


HERE = Surroundings()


def surroundings(algorithm: AlgorithmSpec) -> Surroundings:
    python = None if algorithm.python is None else str(algorithm.python)
    return Surroundings(python, contract_named(algorithm.contract).adapter)


def mixed(named: Sequence[tuple[str, str]]) -> str | None:
    """What is wrong with algorithms of several contracts in one job; None where they have one.

    named: (algorithm, contract).
    """
    named = [(name, NATIVE if runner_named(contract) is None else contract) for name, contract in named]
    sides = {side: ", ".join(name for name, other in named if other == side) for _, side in named}
    if len(sides) < 2:
        return None
    listed = " and ".join(f"`contract: {side}` ({names})" for side, names in sides.items())
    return (
        f"algorithms under {listed} in one job: they are handed other things and can't be compared. "
        "Give each kind a job of its own."
    )
