"""Which cases of several jobs go into one, and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ianvs.comparing.merge_exams import MergedExams
from ianvs.comparing.merge_sources import Source, StoredCase, shown_case
from ianvs.errors import IanvsError
from ianvs.planning.identity_differences import identity_differences
from ianvs.results import Results
from ianvs.store.keys import canonical
from ianvs.types import TestCase

__all__ = ["MergePlan", "plan_merge"]


@dataclass
class MergePlan:
    """results: of the merged job, wherever it will be. chosen: by id of a case, the copy that is kept.

    said: what does not fit and was left out, and what a reader must know besides, a sentence each.
    """

    results: Results
    chosen: dict[str, StoredCase] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def taken(self) -> dict[str, int]:
        """How many cases come from each source."""
        return dict(Counter(stored.source.name for stored in self.chosen.values()))


def plan_merge(sources: Sequence[Source]) -> MergePlan:
    """The cases of the first job, then what is new in the others, where exam and identity agree.

    Raises IanvsError where nothing of a source fits.
    """
    if len(sources) < 2:
        raise IanvsError("a merge needs two workspaces, or more.")
    first = sources[0].results
    said: list[str] = []
    exams = MergedExams(first)
    fitting: dict[tuple[str, str], tuple[TestCase, list[Source]]] = {}  # by id and name of the algorithm
    identities: dict[str, tuple[str, Source, TestCase]] = {}  # of the rows of a name: row, and where it is first
    for source in sources:
        names = exams.add(source, said)
        before = len(said)
        fits = 0
        for case in _named(source, names):
            if not case.role and (why := _other_row(source, case, identities)):
                said.append(f"{source.name}: {case.algorithm} is left out: {why}.")
                continue
            fits += 1
            fitting.setdefault((case.id, case.algorithm), (case, []))[1].append(source)
        said[before:] = dict.fromkeys(said[before:])
        if not fits:
            reasons = "\n  ".join(said) or "it has no cases"
            raise IanvsError(f"nothing of {source.name} fits {sources[0].name}:\n  {reasons}\nNothing was written.")
    plan = MergePlan(first, said=said)
    for case, holders in fitting.values():
        if case.id not in plan.chosen:
            _choose(plan, case, holders, exams.needed(case.testenv))
    cases = [case for case, _ in fitting.values() if case.id in plan.chosen]
    plan.results = _results(sources, exams, _ordered(cases), said)
    return plan


def _named(source: Source, names: Mapping[str, str]) -> Iterator[TestCase]:
    """Cases of exams that fit, under the merged names of these."""
    for case in source.results.case_list:
        if case.testenv in names:
            yield replace(case, testenv=names[case.testenv])


def _other_row(source: Source, case: TestCase, known: dict[str, tuple[str, Source, TestCase]]) -> str:
    """Why a case belongs to no row of its name: what determines its result differs. "": it fits."""
    name = canonical([case.algorithm, case.testenv, dict(case.hyperparameters), case.modules])
    row, where, other = known.setdefault(name, (case.row, source, case))
    if row == case.row:
        return ""
    identities = [source.identity(case), where.identity(other)]
    told = identity_differences(*reversed(identities)) if None not in identities else ["identity"]  # type: ignore[arg-type]
    return f"it differs from {where.name}'s in {', '.join(told)}. Under another name it would be a row of its own"


def _choose(plan: MergePlan, case: TestCase, holders: Sequence[Source], needed: Mapping[str, str]) -> None:
    """The first copy that is finished and whole; else one that failed or was cut off."""
    copies = [source.stored(case, needed) for source in holders]
    good = [copy for copy in copies if not copy.lacks]
    rest = sorted((copy for copy in copies if copy.lacks and copy.usable), key=lambda copy: copy.status != "failed")
    kept = next(iter([*good, *rest]), None)
    if kept is not None:
        plan.chosen[case.id] = kept
    for copy in copies:
        if copy is kept:
            if copy.lacks:
                plan.said.append(f"{copy.source.name}: {shown_case(case)} is {copy.lacks.removeprefix('is ')}.")
        elif copy.lacks:
            plan.said.append(f"{copy.source.name}: {shown_case(case)} is left out: {copy.lacks}.")
        elif kept is not None and (other := _other_scores(kept, copy, needed)):
            plan.said.append(
                f"{copy.source.name}: {shown_case(case)} has another {other} than in {kept.source.name}, which is kept."
            )


def _other_scores(kept: StoredCase, copy: StoredCase, needed: Mapping[str, str]) -> str:
    """Which scores of the same case differ, such as on another machine."""
    first, second = (one.source.values(one.case, needed) for one in (kept, copy))
    return " and ".join(name for key, name in needed.items() if first.get(key) != second.get(key))


def _ordered(cases: Sequence[TestCase]) -> list[TestCase]:
    """Row by row in the order of the first case of each, seeds ascending, as a plan has them; references last."""
    position: dict[tuple[str, str, str], int] = {}
    for case in cases:
        position.setdefault((case.testenv, case.row, case.algorithm), len(position))
    return sorted(cases, key=lambda c: (bool(c.role), position[c.testenv, c.row, c.algorithm]))


def _results(sources: Sequence[Source], exams: MergedExams, cases: Sequence[TestCase], said: list[str]) -> Results:
    first = sources[0].results
    seeds: dict[tuple[str, str], set[int]] = {}
    for case in cases:
        if not case.role:
            seeds.setdefault((case.row, case.algorithm), set()).add(case.seed)
    expected = max([first.seeds, *map(len, seeds.values())])
    names = {(case.row, case.algorithm): case for case in reversed(cases)}
    for key, found in seeds.items():
        if len(found) < expected:
            where = f" in {names[key].testenv}" if names[key].testenv else ""
            said.append(f"{names[key].algorithm}{where} has {len(found)} of {expected} seeds: it is unfinished.")
    ids = {case.id for case in cases}
    references: dict[str, Mapping[str, str]] = {}
    for source in sources:
        for case_id, roles in source.results.references.items():
            if case_id in ids:
                references[case_id] = {**roles, **references.get(case_id, {})}
    published: dict[str, Any] = {}
    for source in reversed(sources):
        published |= source.results.published
    return replace(
        first,
        seeds=expected,
        metrics=exams.metrics(),
        columns=exams.columns(),
        case_list=tuple(cases),
        references={case.id: references[case.id] for case in cases if case.id in references},
        budgets=exams.budgets,
        published=published,
        notes=tuple(dict.fromkeys(note for source in sources for note in source.results.notes)),
        provenance=_provenance(sources),
    )


def _provenance(sources: Sequence[Source]) -> dict[str, object]:
    """Of the first, with the commands of all; "parts" has each job's own where they are not all the same."""
    parts: list[Mapping[str, Any]] = []
    for source in sources:
        own = source.results.provenance
        parts += [part for part in own.get("parts", [own]) if part not in parts]  # type: ignore[attr-defined]
    commands = dict.fromkeys(str(part.get("command", "")) for part in parts)
    merged = {name: value for name, value in sources[0].results.provenance.items() if name != "parts"}
    merged["command"] = "\n".join(filter(None, commands))
    return merged | ({"parts": parts} if len(parts) > 1 else {})
