"""Decides which cases of several jobs go into a merged one, and reports what does not fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ianvs.base.errors import IanvsError, one_line
from ianvs.base.types import REPEAT_ROLE, TestCase
from ianvs.config.spec import BudgetSpec, PublishedSpec
from ianvs.exam.metrics.metric_columns import MetricColumn, metric_columns
from ianvs.exam.metrics.registry import resolve
from ianvs.results.comparing.merge_sources import FAILED, Source, StoredCase, case_text
from ianvs.results.report.document import Note
from ianvs.results.report.values import method_name
from ianvs.results.stored import Results
from ianvs.store.identity_differences import identity_differences
from ianvs.store.keys import canonical


class MergedExams:
    """Exams by name, each as the first job that has it defines it. `add` the sources in order."""

    def __init__(self, first: Results) -> None:
        self._first = first
        self._names: dict[str, str] = {}  # by content of an exam
        self._columns: dict[str, tuple[MetricColumn, ...]] = {}
        self.budgets: dict[str, BudgetSpec] = {}
        self.notes: dict[Note, None] = {}  # names of the jobs that an exam comes from, for messages

    def add(self, source: Source, messages: list[str]) -> dict[str, str]:
        """Add the exams of `source`.

        Returns {name in `source`: name in the merged job}; misfits are added to `messages`.
        """
        fitting, results = {}, source.results
        if results.contract != self._first.contract:
            messages.append(
                f"{source.name}: its plugins were called as `contract: {results.contract}` has it; left out."
            )
            return {}
        for name, signature in source.exam_signatures().items():
            if (same := self._names.get(signature)) is not None:
                self._hold_against(source, name, same, messages)
                fitting[name] = same
            elif name in self._columns or (self._columns and "" in (name, *self._columns)):
                messages.append(f"{source.name}: {_other_exam(name, name in self._columns)}")
            else:
                self._names[signature] = name
                self._columns[name] = results.metrics[name]
                self.notes |= dict.fromkeys(results.job_notes)
                if name in results.budgets:
                    self.budgets[name] = results.budgets[name]
                fitting[name] = name
        return fitting

    def metrics(self) -> Mapping[str, tuple[MetricColumn, ...]]:
        """Columns of metrics.

        Their names contain the score if exams have different ones, so they may change with each exam.
        """
        specs = [
            [(c.spec, resolve(c.spec) if c.metric.level == "matrix" else c.metric, c.key) for c in columns]
            for columns in self._columns.values()
        ]
        return dict(zip(self._columns, metric_columns(specs), strict=True))

    def columns(self) -> tuple[str, ...]:
        """Shown columns: those of the first job, then those of exams that it does not have."""
        pairs = [
            (old, new.name, exam)
            for exam, named in self.metrics().items()
            for old, new in zip(self._columns[exam], named, strict=True)
            if not old.metric.mapping
        ]
        shown = [new for name in self._first.columns for old, new, _ in pairs if old.name == name]
        more = [new for _, new, exam in pairs if exam not in self._first.metrics]
        return tuple(dict.fromkeys([*shown, *more]))

    def _hold_against(self, source: Source, name: str, same: str, messages: list[str]) -> None:
        keys = {column.key for column in self._columns[same]}
        more = [column.name for column in source.results.metrics[name] if column.key not in keys]
        where = f" of {same}" if same else ""
        if more:
            listed = ", ".join(more)
            messages.append(
                f"{source.name}: the metrics {listed}{where} are left out: the first job does not have them."
            )
        if source.results.budgets.get(name) != self.budgets.get(same):
            messages.append(
                f"{source.name}: the budget{where} is another one; that of the first job holds for all rows."
            )

    def needed(self, exam: str) -> dict[str, str]:
        """Return {key: name} of the scores that a case needs."""
        every = not self._first.keeps_exams
        columns = (column for column in self._columns[exam] if every or column.metric.level == "score")
        return {column.key: column.name for column in columns}


def _other_exam(name: str, same_name: bool) -> str:
    if same_name:
        which = f"the exam {name}" if name else "the exam"
        return f"{which} is left out: it is another exam under the same name (other data, scenario or rules)."
    which = f"the exam {name}" if name else "the exam, which has no name since it is the only one,"
    return f"{which} is left out: the exams of one of the jobs have no names. Name the job with several exams first."


@dataclass
class MergePlan:
    """A planned merge.

    Attributes:
        results: Of the merged job, in any folder.
        chosen: The stored copy that is kept, by id of a case.
        messages: Sentences on what was left out, and other facts that a reader must know.
    """

    results: Results
    chosen: dict[str, StoredCase] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    odd: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # cases by source and outcome
    helpful: set[str] = field(default_factory=set)  # sources with an undamaged finished case, or one that is kept

    def add_message(self, source: str, case: TestCase, outcome: str) -> None:
        """Collect a message on a case; equal messages are reported together."""
        self.odd.setdefault((source, outcome), []).append(case_text(case))


def plan_merge(sources: Sequence[Source]) -> MergePlan:
    """Return the cases of the first job, then the new ones of the others, if exam and identity agree.

    Raises IanvsError if nothing of a source fits.
    """
    if len(sources) < 2:
        raise IanvsError("a merge needs two workspaces, or more.", code="invalid-argument")
    plan, exams = MergePlan(sources[0].results), MergedExams(sources[0].results)
    fitting: dict[tuple[str, str], TestCase] = {}  # by id and name of the algorithm, since a case may have two names
    holders: dict[str, tuple[TestCase, list[Source]]] = {}  # by id
    rows: dict[str, tuple[str, Source, TestCase]] = {}  # by name of a row: its id, and its first source
    for source in sources:
        names = exams.add(source, plan.messages)
        fit = (case for case in source.results.ranked_cases if case.testenv in names)
        for case in (replace(case, testenv=names[case.testenv]) for case in fit):
            if not case.role and (why := _other_row(source, case, rows)):
                plan.add_message(source.name, case, f"left out: {why}")
            else:
                fitting.setdefault((case.id, case.algorithm), case)
                held = holders.setdefault(case.id, (case, []))[1]
                if not held or held[-1] is not source:
                    held.append(source)
    for case, held in holders.values():
        _choose(plan, case, held, exams.needed(case.testenv))
    plan.messages += [_outcome_text(source, outcome, cases) for (source, outcome), cases in plan.odd.items()]
    for source in sources:
        if source.name not in plan.helpful:
            reasons = "".join(f"\n  {message}" for message in plan.messages if message.startswith(source.name))
            raise IanvsError(
                f"nothing of {source.name} can be merged; nothing was written.{reasons}", code="unfit-results"
            )
    cases = [case for case in fitting.values() if case.id in plan.chosen]
    plan.results = _results(sources, exams, _in_plan_order(cases), plan.messages)
    return plan


def _outcome_text(source: str, outcome: str, cases: Sequence[str]) -> str:
    if len(cases) == 1:
        return f"{source}: {cases[0]} {outcome}."
    return f"{source}: {len(cases)} cases {outcome}: {one_line(cases, 4)}."


def _other_row(source: Source, case: TestCase, rows: dict[str, tuple[str, Source, TestCase]]) -> str:
    """Return why a case does not belong to the row of its name: something that determines results differs.

    "": it does.
    """
    name = canonical([case.algorithm, case.testenv, dict(case.hyperparameters), case.modules])
    row, where, other = rows.setdefault(name, (case.row, source, case))
    if row == case.row:
        return ""
    identities = [source.identity(case), where.identity(other)]
    differences = identity_differences(*reversed(identities)) if None not in identities else ["identity"]
    return f"it differs from that of {where.name} in {', '.join(differences)}, and could only be a row of another name"


def _choose(plan: MergePlan, case: TestCase, holders: Sequence[Source], needed: Mapping[str, str]) -> None:
    """Choose the first copy that is finished and undamaged; else one that failed or was interrupted."""
    copies = [source.stored(case, needed) for source in holders]
    able = (copy for copy in copies if not copy.lacks or copy.usable)
    chosen = min(able, key=lambda copy: (bool(copy.lacks), copy.lacks != FAILED), default=None)
    plan.helpful |= {copy.source.name for copy in copies if copy is chosen or not copy.lacks}
    if chosen is not None:
        plan.chosen[case.id] = chosen
    for copy in copies:
        name = copy.source.name
        if copy.lacks:
            plan.add_message(name, case, f"{'kept' if copy is chosen else 'left out'}: {copy.lacks}")
        elif chosen is not None and (other := _other_scores(chosen, copy, needed)):
            plan.add_message(name, case, f"left out: another {other} than in {chosen.source.name}")


def _other_scores(chosen: StoredCase, copy: StoredCase, needed: Mapping[str, str]) -> str:
    """Return which scores of the same case differ between copies, for example from another machine."""
    first, second = (stored.source.values(stored.case, needed) for stored in (chosen, copy))
    return " and ".join(name for key, name in needed.items() if first.get(key) != second.get(key))


def _in_plan_order(cases: Sequence[TestCase]) -> list[TestCase]:
    """Return cases row by row in the order of each row's first case, as in a plan: repetitions and references last."""
    position: dict[tuple[str, str, str], int] = {}
    for case in cases:
        position.setdefault((case.testenv, case.row, case.algorithm), len(position))
    roles = {"": 0, REPEAT_ROLE: 1}
    return sorted(cases, key=lambda c: (roles.get(c.role, 2), position[c.testenv, c.row, c.algorithm]))


def _results(sources: Sequence[Source], exams: MergedExams, cases: Sequence[TestCase], messages: list[str]) -> Results:
    first = sources[0].results
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for case in cases:
        if not case.role:
            seeds.setdefault((case.row, case.algorithm, case.testenv), set()).add(case.seed)
    expected = max([first.seeds, *map(len, seeds.values())])
    for (_, algorithm, testenv), row_seeds in seeds.items():
        if len(row_seeds) < expected:
            messages.append(
                f"{method_name(algorithm, testenv)} has {len(row_seeds)} of {expected} seeds: it is unfinished."
            )
    references: dict[str, Mapping[str, str]] = {}
    published: dict[str, Mapping[str, PublishedSpec]] = {}
    overlaps: dict[str, str] = {}
    for results in (source.results for source in reversed(sources)):
        for case_id, roles in results.references.items():
            references[case_id] = {**references.get(case_id, {}), **roles}
        published |= results.published
        overlaps |= results.overlaps
    return replace(
        first,
        seeds=expected,
        metrics=exams.metrics(),
        columns=exams.columns(),
        case_list=tuple(cases),
        studies=(),  # only the winner of a search is merged
        references={case.id: references[case.id] for case in cases if case.id in references},
        budgets=exams.budgets,
        published=published,
        overlaps=overlaps,
        job_notes=tuple(exams.notes),
        provenance=_provenance(sources),
    )


def _provenance(sources: Sequence[Source]) -> dict[str, object]:
    """Return the provenance of the first job with the commands of all; "parts" has those of all jobs if they differ."""
    parts: list[Mapping[str, Any]] = []
    for source in sources:
        provenance = source.results.provenance
        parts += [part for part in provenance.get("parts", [provenance]) if part not in parts]  # type: ignore[attr-defined]
    commands = dict.fromkeys(str(part.get("command", "")) for part in parts)
    merged = {name: value for name, value in sources[0].results.provenance.items() if name != "parts"}
    merged["command"] = "\n".join(filter(None, commands))
    return merged | ({"parts": parts} if len(parts) > 1 else {})
