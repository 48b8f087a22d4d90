"""Sources of a merge: jobs of several workspaces, read and checked; nothing is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ianvs.base.errors import DamagedError, IanvsError, one_line
from ianvs.base.types import TestCase
from ianvs.exam.scenarios.per_seed_exam import CASE, SEEDS
from ianvs.results.comparing.sides import report_file, stored_results
from ianvs.results.report.values import method_name
from ianvs.results.stored import Results
from ianvs.results.stored.job_results import REMEDY
from ianvs.store import CaseStore, ExamStore
from ianvs.store.keys import digest

_OF_ALGORITHM = ("as_one", "splitting_method")  # facts of an exam that depend on the algorithm or its paradigm
FAILED = "it failed"


@dataclass(frozen=True)
class StoredCase:
    """A case in one source.

    Attributes:
        lacks: Why it is not a complete finished case; "": it is.
        usable: Whether it can be kept if no other copy has finished: it failed or was interrupted, and nothing is
            damaged.
    """

    source: Source
    case: TestCase
    lacks: str
    usable: bool


class Source:
    """A job of a workspace. name: as the user typed it."""

    def __init__(self, name: str, results: Results) -> None:
        self.name, self.results = name, results
        self.cases, self.exams = CaseStore(results.workspace), ExamStore(results.workspace)
        self._damage: dict[str, str | None] = {}  # by exam

    def identity(self, case: TestCase) -> Mapping[str, Any] | None:
        """Return the identity of a case; None if it is damaged."""
        try:
            return self.cases.identity(case.id)
        except DamagedError:
            return None

    def stored(self, case: TestCase, needed: Mapping[str, str]) -> StoredCase:
        """Return the status of a case. All of its files are read and compared with their digests.

        needed: {key: name} of the scores that it must have.
        """
        state, identity = self.cases.state(case.id, thoroughly=True), self.identity(case)
        lacks = ""
        if identity is None:
            lacks = "its case.json is damaged"
        elif state.damaged:
            lacks = f"damaged are {one_line(state.damaged, 3)}"
        elif state.status != "finished":
            return StoredCase(self, case, FAILED if state.status == "failed" else "it has not finished", usable=True)
        elif damage := self._exam_damage(identity):
            lacks = f"its exam is damaged: {damage}"
        elif missing := [name for key, name in needed.items() if key not in state.score_keys]:
            lacks = f"it has no score {one_line(missing)}"
        return StoredCase(self, case, lacks, usable=not lacks)

    def values(self, case: TestCase, keys: Iterable[str]) -> dict[str, str]:
        """Return the stored values of a finished case under `keys`, as strings that are equal for equal numbers."""
        reported = (self.cases.result(case.id) or {}).get("handed")
        if reported is not None:
            return {key: json.dumps(reported["scores"].get(key)) for key in keys}
        read = ((key, self.cases.score(case.id, key)) for key in keys)
        return {key: json.dumps([score[0].tolist(), score[1]]) for key, score in read if score is not None}

    def exam_signatures(self) -> dict[str, str]:
        """Return {name of an exam: its content}, independent of algorithms and seeds, for exams whose content is
        known.
        """
        signatures = {}
        for case in self.results.case_list:
            if case.testenv not in signatures and not case.role and (identity := self.identity(case)) is not None:
                drawn = digest([case.row, case.seed]) != case.id  # each seed has an exam of its own
                facts = {name: value for name, value in identity["exam"].items() if name not in _OF_ALGORITHM}
                signatures[case.testenv] = json.dumps(_sorted_facts(facts, case.seed if drawn else None))
        return signatures

    def _exam_damage(self, identity: Mapping[str, Any]) -> str | None:
        if not self.results.keeps_exams:
            return None
        exam = identity["exam_id"]
        if exam not in self._damage:
            damage = self.exams.damaged_file(exam, thoroughly=True)
            self._damage[exam] = None if damage is None else f"exams/{exam}/{damage}"
        return self._damage[exam]


def read_source(source: str | Path) -> Source:
    """Read a source. Raises IanvsError if it is no job with its cases."""
    if report_file(source) is not None:
        raise IanvsError(f"{source} is the table of a report; its cases are needed. {REMEDY}.", code="unfit-results")
    results = stored_results(source)
    odd = [case.id for case in results.case_list if not case.id.isalnum()]
    if odd:
        raise IanvsError(f"{source}: '{odd[0]}' is not the id of a case.", code="unfit-results")
    return Source(str(source), results)


def case_text(case: TestCase) -> str:
    """Return "case ab12cd34 (ewc in online, seed 0)"."""
    return f"case {case.id[:8]} ({method_name(case.algorithm, case.testenv)}, seed {case.seed})"


def _sorted_facts(value: object, seed: int | None) -> object:
    """Return facts of an exam with sorted keys, and "case" in place of the case's `seed`."""
    if isinstance(value, Mapping):
        drawn = {name for name in SEEDS if seed is not None and value.get(name) == seed}
        return {name: CASE if name in drawn else _sorted_facts(inner, seed) for name, inner in sorted(value.items())}
    return [_sorted_facts(inner, seed) for inner in value] if isinstance(value, list | tuple) else value
