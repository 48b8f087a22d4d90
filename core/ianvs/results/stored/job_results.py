"""The results of a job, as objects and as pandas frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ianvs.base.errors import DamagedError, IanvsError, closest, shown_path
from ianvs.base.secrets import without_secrets
from ianvs.base.types import CaseResult, TestCase
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import BudgetSpec, MetricSpec, PublishedSpec, RankSpec, SelectSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import MetricColumn, metric_columns
from ianvs.exam.metrics.registry import find, resolve
from ianvs.results.report.document import TO_KNOW, Note
from ianvs.results.report.leaderboard import Leaderboard, SelectedResults, build_leaderboard
from ianvs.results.report.measured_elsewhere import with_measured
from ianvs.results.report.notes import notes_of
from ianvs.results.report.row_scores import PassedScores
from ianvs.results.report.row_tables import cases_frame, rounds_frame, to_frame
from ianvs.results.stored.case_results import Reference, ReferenceScores, read_case
from ianvs.results.stored.selection import is_winner, select
from ianvs.store import CaseState, CaseStore, ExamRecord, ExamStore, JobStore, Study, StudyStore, as_record

if TYPE_CHECKING:
    import pandas as pd

_ELSEWHERE = Path("a-file-that-is-not-known-any-more.py")

REMEDY = "Give a workspace (WORKSPACE, or WORKSPACE:JOB where it holds several jobs), or a job file"
HELD = 5_000  # number of cases kept in memory: 50 MB


@dataclass(frozen=True)
class Results:
    """The results of a job, read from its workspace on demand; more than HELD cases are read again at each use.

    Iterate it for typed results (one CaseResult per case, in the order of the plan); `leaderboard_frame`, `cases` and
    `rounds` are pandas frames. exit_code: 0 success, 1 a case failed, 130 interrupted.
    """

    name: str
    workspace: Path
    rank: RankSpec
    seeds: int
    # By exam ("" if the job has one): every stored score, and the metrics computed from them. Exams may use a name for
    # different metrics: another file, or BWT of another score.
    metrics: Mapping[str, tuple[MetricColumn, ...]]
    columns: tuple[str, ...]  # names of shown columns
    case_list: tuple[TestCase, ...]
    provenance: Mapping[str, object]
    references: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # case id -> {role: id of its reference}
    budgets: Mapping[str, BudgetSpec] = field(default_factory=dict)  # by exam, if it has one
    published: Mapping[str, Mapping[str, PublishedSpec]] = field(default_factory=dict)  # by algorithm and metric
    # By exam, if its data have another name than the stored one.
    titles: Mapping[str, str] = field(default_factory=dict)
    overlaps: Mapping[str, str] = field(default_factory=dict)  # by row: overlap of its pretraining data with the exam
    job_notes: tuple[Note, ...] = ()  # notes on settings and data
    studies: tuple[Study, ...] = ()  # searches that have begun; `rank` has what they may use
    contract: str = NATIVE  # contract of the plugins (ianvs.config.spec.AlgorithmSpec)
    exit_code: int = 0
    ran: int = 0
    states: Mapping[str, CaseState] = field(default_factory=dict, repr=False)  # of cases, as last read

    @property
    def keeps_exams(self) -> bool:
        """Whether exams are stored, and scores separately from results.

        Not for a contract that runs its cases itself.
        """
        return self.contract == NATIVE

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self._held) if self._few else self._read()

    def _repr_html_(self) -> str:
        """Return the ranking and its leader for a notebook."""
        from html import escape

        from ianvs.results.report.build_document import document_of
        from ianvs.results.report.document import FIRST
        from ianvs.results.report.markdown import aligned
        from ianvs.results.report.ranking_table import without_constants

        document = document_of(self.leaderboard)
        columns, _ = without_constants(document.ranking.columns)
        notes = "".join(f"<p>{escape(line)}</p>" for line in document.texts("leader", *FIRST))
        return aligned([column for column in columns if not column.blank], "html") + notes

    @property
    def _few(self) -> bool:
        return len(self.case_list) <= HELD

    @cached_property
    def _held(self) -> tuple[CaseResult, ...]:
        return tuple(self._read())

    def _read(self, case_list: Sequence[TestCase] | None = None) -> Iterator[CaseResult]:
        """Read the results of some cases, by default of all."""
        cases, exams = CaseStore(self.workspace), ExamStore(self.workspace)
        records: dict[str, tuple[ExamRecord | None, str | None]] = {}

        def read(case: TestCase, exam: str, among: Mapping[str, Reference] = MappingProxyType({})) -> CaseResult:
            seen = self.states.get(case.id) if self._few else None
            state = cases.state(case.id) if seen is None else seen
            exam_id = ""
            with suppress(DamagedError):  # otherwise the state of the case decides
                if self.keeps_exams:
                    exam_id = state.exam_id or cases.exam_id(case.id)
            if exam_id not in records:
                damage = exams.damaged_file(exam_id) if exam_id else None
                records[exam_id] = None if damage or not exam_id else exams.record(exam_id), damage
            record, damage = records[exam_id]
            columns, budget = self.metrics.get(exam, ()), self.budgets.get(exam)
            damaged = () if damage is None else (f"exams/{exam_id}/{damage}",)
            result = read_case(cases, case, state, record, columns, among, budget, damaged)
            return replace(result, dataset=self.titles[exam]) if exam in self.titles else result

        references = ReferenceScores(self.references, self.case_list, read)
        for case in self.case_list if case_list is None else case_list:
            yield read(case, case.testenv, references.of_case(case.id))

    def __len__(self) -> int:
        return len(self.case_list)

    def __repr__(self) -> str:
        """Return a few lines: the number of cases in each state, and the leader."""
        states = Counter(case.status for case in self if not case.case.role)
        counts = ", ".join(f"{count} {state}" for state, count in states.items()) or "no cases"
        lines = [f"Results of {self.name}: {counts}; in {shown_path(self.workspace)}"]
        for row in [row for row in self.leaderboard.rows if row.rank is not None][:3]:
            exam = f" in {row.testenv}" if row.testenv else ""
            means = ((column, row.mean(column)) for column in self.columns[:2])
            scores = ", ".join(f"{name} {mean:.3f}" for name, mean in means if mean is not None)
            lines.append(f"  {row.rank}. {row.algorithm}{exam}: {scores}")
        return "\n".join([*lines, "  .leaderboard_frame, .cases and .rounds have it all, as pandas frames."])

    @property
    def leaderboard(self) -> Leaderboard:
        """Ranked rows, one for each algorithm and choice of hyperparameters."""
        return self._seen[0]

    @property
    def passed(self) -> PassedScores:
        """Scores of its rows for charts."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[Leaderboard, PassedScores]:
        shown = {column.name: column.metric for columns in self.metrics.values() for column in columns}
        names = [*self.columns, *(name for name, metric in shown.items() if metric.mapping)]
        shown_columns = [shown[name] for name in names]
        seeds = self.seeds if self._selected is None else self._selected.seeds
        passed = PassedScores(seeds)
        board = build_leaderboard(
            passed.watch(_with_column_names(self.reported, self.rank.columns)),
            self.rank,
            shown_columns,
            names,
            seeds,
            self.workspace,
            published=self.published,
            overlaps=self.overlaps,
            chosen=self._selected,
            contract=self.contract,
        )
        board = replace(board, studies=self.studies, notes=(*self.job_notes, *board.notes))
        return with_measured(board, self.workspace / self.name), passed

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes for readers, as all reports show them."""
        return tuple(note for note in notes_of(self.leaderboard) if note.kind in TO_KNOW)

    @property
    def ranked_cases(self) -> tuple[TestCase, ...]:
        """Cases of the plan, without configurations that a search only tried."""
        studies = {(study.testenv, study.algorithm): study for study in self.studies}
        with_studies = ((case, studies.get((case.testenv, case.algorithm))) for case in self.case_list)
        return tuple(case for case, study in with_studies if case.role or study is None or is_winner(case, study))

    @property
    def reported(self) -> Iterable[CaseResult]:
        """The results of the leaderboard: all, or the reported part of a selection by `rank`."""
        return self if self._selected is None else self._selected.results

    def of_rows(self, keys: Collection[tuple[str, str]]) -> Iterable[CaseResult]:
        """Return the reported results of some rows of the leaderboard; `keys` has (id, algorithm) of each."""
        if self._few or self._selected is not None:
            return (result for result in self.reported if (result.case.row, result.case.algorithm) in keys)
        return self._read([case for case in self.case_list if (case.row, case.algorithm) in keys])

    @cached_property
    def _selected(self) -> SelectedResults | None:
        rank = self.rank
        if rank.select is None and not self.studies:
            return None
        return select(self, self.case_list, rank.select, rank.sort_by, self.metrics, self.seeds, self.studies)

    @property
    def leaderboard_frame(self) -> pd.DataFrame:
        """The leaderboard with every column, typed; `frame.attrs` has the meaning of each column."""
        return to_frame(self.leaderboard)

    @property
    def cases(self) -> pd.DataFrame:
        """One row per case."""
        return cases_frame(self, self.workspace)

    @property
    def rounds(self) -> pd.DataFrame:
        """One row per case, round, test set and score."""
        return rounds_frame(self)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(result for result in self if result.status == "failed")


def _with_column_names(results: Iterable[CaseResult], columns: Mapping[str, str]) -> Iterator[CaseResult]:
    """Yield the results with hyperparameters named like the columns that show them."""
    for result in results:
        given = result.case.hyperparameters
        names = {name: columns.get(name, name) for name in given}
        if names == {name: name for name in given} or len({*names.values()}) < len(
            names
        ):  # it has both, since they differ
            yield result
        else:
            case = replace(result.case, hyperparameters={names[name]: value for name, value in given.items()})
            yield replace(result, case=case)


def load_results(workspace: str | Path, job: str | None = None) -> Results:
    """Load the results of a job that ran in `workspace`. job: its name; optional if there is one only.

    Raises DamagedError if the job's record or the identity of a case is damaged.
    """
    name, workspace = name_of_job(Path(workspace), job), Path(workspace).resolve()
    file = JobStore(workspace, name).path
    record = JobStore(workspace, name).read()
    assert record is not None, "its name was found by its record"
    store = CaseStore(workspace)
    stored_cases = {stored["id"]: store.case(stored["id"]) for stored in record["cases"]}
    # Another job may have named the case differently: jobs share cases.
    cases = [
        replace(case, algorithm=stored["algorithm"], testenv=stored["testenv"], row=stored.get("row", case.row))
        for stored in record["cases"]
        if (case := stored_cases[stored["id"]]) is not None
    ]
    metrics = (tuple(map(_metric_from_record, stored)) for stored in record["metrics"].values())
    rank: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in record["rank"].items()
    }
    rank["sort_by"] = tuple((column, descending) for column, descending in rank["sort_by"])
    if rank.get("select") is not None:
        rank["select"] = as_record(SelectSpec, rank["select"], file)
    return Results(
        name=name,
        workspace=workspace,
        rank=as_record(RankSpec, rank, file),
        seeds=record["seeds"],
        metrics=dict(zip(record["metrics"], metric_columns(metrics), strict=True)),
        columns=tuple(record["columns"]),
        case_list=tuple(cases),
        provenance=record["provenance"],
        references=record["references"],
        budgets={exam: as_record(BudgetSpec, stored, file) for exam, stored in record["budgets"].items()},
        published={
            algorithm: {name: as_record(PublishedSpec, entry, file) for name, entry in stored.items()}
            for algorithm, stored in record.get("published", {}).items()
        },
        overlaps=record.get("overlaps", {}),
        job_notes=tuple(  # ianvs 0.2 and earlier stored a string
            Note("data", entry) if isinstance(entry, str) else as_record(Note, entry, file)
            for entry in record.get("notes", ())
        ),
        studies=tuple(StudyStore(workspace, name).begun(record.get("studies", ()))),
        contract=record.get("contract", NATIVE),
    )


def name_of_job(workspace: Path, name: str | None = None) -> str:
    """Return `name`, or the name of the only job that has run in `workspace`.

    Raises IanvsError for unknown or several ones.
    """
    names, where = list(JobStore.names(workspace)), shown_path(workspace)
    if not names:
        raise IanvsError(f"{where} holds no results: no job has run there. {REMEDY}.", code="missing-results")
    if name is None and len(names) > 1:
        raise IanvsError(
            f"{where} holds results of several jobs. Say which: {', '.join(f'{where}:{job}' for job in names)}; in "
            f"Python: job={names[0]!r}.",
            code="ambiguous-name",
        )
    if name is not None and name not in names:
        raise IanvsError(
            f"{where} holds no job '{name}'.{closest(name, names)} It holds: {', '.join(names)}.", code="unknown-name"
        )
    return name or names[0]


def record_of(results: Results) -> dict[str, object]:
    """Return what `load_results` needs to load the results again, as a JSON value."""
    return {
        "name": results.name,
        "contract": results.contract,
        "notes": list(map(vars, results.job_notes)),
        "all_notes": list(map(vars, results.notes)),
        "studies": [study.key for study in results.studies],
        "seeds": results.seeds,
        "rank": {
            **_without_places(results.rank),
            "select": None if results.rank.select is None else _without_places(results.rank.select),
        },
        "columns": results.columns,
        "metrics": {exam: list(map(_metric_record, columns)) for exam, columns in results.metrics.items()},
        "cases": [
            {"id": case.id, "row": case.row, "algorithm": case.algorithm, "testenv": case.testenv}
            for case in results.case_list
        ],
        "references": {case_id: dict(roles) for case_id, roles in results.references.items()},
        "budgets": {exam: vars(budget) for exam, budget in results.budgets.items()},
        "published": {
            algorithm: {name: _without_places(spec) for name, spec in specs.items()}
            for algorithm, specs in results.published.items()
        },
        "overlaps": dict(results.overlaps),
        "provenance": dict(results.provenance),
    }


def _without_places(spec: PublishedSpec | RankSpec | SelectSpec) -> dict[str, object]:
    return {name: value for name, value in vars(spec).items() if name not in ("place", "places")}


def _metric_record(column: MetricColumn) -> dict[str, object]:
    spec, metric = column.spec, column.metric
    return {
        "name": spec.name,
        "of": spec.score,
        "options": without_secrets(spec.options),
        "key": column.key,
        "custom": spec.url is not None or find(spec.name) is None,  # of a contract, such as MATRIX
        **{name: getattr(metric, name) for name in _RECORDED},
    }


_RECORDED = ("level", "summary", "higher_is_better", "mapping", "pooled", "over_rounds", "partial")


def _metric_from_record(stored: Mapping[str, Any]) -> tuple[MetricSpec, Metric, str]:
    """Restore a metric without loading an author's file or a contract, since its scores are stored."""
    spec = MetricSpec(stored["name"], score=stored["of"], options=stored["options"])
    if not stored["custom"]:
        return spec, resolve(spec), stored["key"]
    spec = replace(spec, url=_ELSEWHERE)  # for who writes a record of these results
    facts = {"level": "score"} | {name: stored[name] for name in _RECORDED if name in stored}
    return spec, Metric(spec.name, **facts), stored["key"]
