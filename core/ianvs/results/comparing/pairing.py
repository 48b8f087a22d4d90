"""Finds the corresponding rows of two sides, and in what their cases differ."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ianvs.results.comparing.sides import CaseFacts, Side, SideRow
from ianvs.results.report.values import commit_text
from ianvs.store.identity_differences import OTHER_VERSION, identity_differences


@dataclass(frozen=True)
class RowPair:
    """Two corresponding rows.

    Attributes:
        seeds: Common seeds.
        same: Those of them whose cases have the same id: everything that determines a result is equal.
        differs: Differences of their cases, as text; for rows of a report only hyperparameters are compared.
    """

    before: SideRow
    after: SideRow
    seeds: tuple[int, ...]
    same: tuple[int, ...]
    differs: tuple[str, ...]


def pair_rows(before: Side, after: Side) -> tuple[list[RowPair], list[SideRow], list[SideRow]]:
    """Return pairs of corresponding rows, in the order of `before`, and the rows that only `before` or only `after`
    has.

    Rows correspond if algorithm, hyperparameters and exam are equal; else if they have the same cases under other
    names; else if they are the only remaining rows of an algorithm in an exam, with other hyperparameters.
    """
    before, after = (_without_modules(side, before.modules | after.modules) for side in (before, after))
    exams = _exam_names(before, after)
    keys: tuple[Callable[[SideRow, str], Hashable], ...] = (
        lambda row, exam: (row.algorithm, exam, frozenset(row.settings.items())),
        lambda row, exam: frozenset(case.id for case in row.cases.values()) or None,
        lambda row, exam: (row.algorithm, exam),
    )
    partners: dict[int, SideRow] = {}
    left = list(after.rows)
    for key in keys:
        first = _unique((key(row, row.testenv), row) for row in before.rows if id(row) not in partners)
        other = _unique((key(row, exams.get(row.testenv, row.testenv)), row) for row in left)
        for name, row in first.items():
            if name in other:
                partners[id(row)] = other[name]
                left = [each for each in left if each is not other[name]]
    pairs = [_pair(row, partners[id(row)]) for row in before.rows if id(row) in partners]
    return pairs, [row for row in before.rows if id(row) not in partners], left


def _without_modules(side: Side, modules: frozenset[str]) -> Side:
    """Return a side read from a report without the columns of modules, which a table doesn't tell from
    hyperparameters.
    """
    if not side.is_report:
        return side
    rows = (replace(row, settings={t: s for t, s in row.settings.items() if t not in modules}) for row in side.rows)
    return replace(side, rows=tuple(rows))


def _unique(rows: Iterable[tuple[Hashable, SideRow]]) -> Mapping[Hashable, SideRow]:
    """Return rows by key, without those that share a key or have none."""
    by_key: dict[Hashable, list[SideRow]] = {}
    for key, row in rows:
        by_key.setdefault(key, []).append(row)
    return {key: of_key[0] for key, of_key in by_key.items() if len(of_key) == 1 and key is not None}


def _exam_names(before: Side, after: Side) -> dict[str, str]:
    """Return {name of an exam in `after`: its name in `before`} by content, since the only exam of a job has no
    name.
    """
    ids_by_exam: dict[str, set[str]] = {}
    for row in before.rows:
        ids_by_exam.setdefault(row.testenv, set()).update(row.exams)
    names = {}
    for row in after.rows:
        same = [name for name, ids in ids_by_exam.items() if ids & row.exams]
        if row.testenv not in ids_by_exam and same:
            names[row.testenv] = same[0]
    return names


def _pair(before: SideRow, after: SideRow) -> RowPair:
    both = [seed for seed in before.cases if seed in after.cases]
    differs = [difference for seed in both for difference in case_differences(before.cases[seed], after.cases[seed])]
    same = [seed for seed in both if before.cases[seed].id == after.cases[seed].id]
    if not both:
        differs = changes(before.settings, after.settings)
    return RowPair(before, after, tuple(sorted(both)), tuple(sorted(same)), tuple(dict.fromkeys(differs)))


def case_differences(before: CaseFacts, after: CaseFacts) -> list[str]:
    """Return differences of cases as text, each once.

    Cases of one id may have run with other software or on another machine.
    """
    differences = [] if before.id == after.id else _relevant_differences(before.identity, after.identity)
    if before.provenance and after.provenance:  # else one of them is unknown
        differences += changes(_flat_provenance(before.provenance), _flat_provenance(after.provenance))
    return differences


def _relevant_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    differences = identity_differences(before, after)
    versions = [identity["algorithm"].get("version") for identity in (before, after)]
    if differences == [OTHER_VERSION] and versions[0] == versions[1]:
        differences = []
    differences += changes(before["hyperparameters"], after["hyperparameters"])
    return differences or ["a value that isn't stored, such as a secret hyperparameter"]


def _flat_provenance(provenance: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a provenance that may change a result."""
    packages = {name: version for name, version in (provenance.get("packages") or {}).items() if version}
    return {
        **packages,
        "Python": provenance.get("python"),
        "platform": provenance.get("platform"),
        "CPU": (provenance.get("cpu") or {}).get("model"),
        "GPU": ", ".join(provenance.get("gpus") or ()) or None,
        "device": provenance.get("device"),
        "commit": commit_text(provenance) or None,
    }


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return "name old -> new" of each value that differs or is missing on one side."""
    pairs = ((name, before.get(name), after.get(name)) for name in {**before, **after})
    return [
        f"{name} {'none' if old is None else old} -> {'none' if new is None else new}"
        for name, old, new in pairs
        if old != new
    ]
