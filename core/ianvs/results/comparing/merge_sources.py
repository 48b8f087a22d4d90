"""What is merged: the jobs of several workspaces, read and checked; nothing is written."""

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

_OF_ALGORITHM = ("as_one", "splitting_method")  # facts about an exam that an algorithm or its paradigm decides
FAILED = "it failed"


@dataclass(frozen=True)
class StoredCase:
    """A case as one source has it. lacks: why it can't stand for a finished one; "": it is finished and whole.

    usable: whether it can be kept where no other has finished: it failed, or was cut off, and nothing is damaged.
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
        """None: it can't be believed."""
        try:
            return self.cases.identity(case.id)
        except DamagedError:
            return None

    def stored(self, case: TestCase, needed: Mapping[str, str]) -> StoredCase:
        """Return how the case stands. Everything that belongs to it is read and held against its digests.

        needed: {key: name} of the scores that it has to have.
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
        """Of a finished case what is stored under `keys`, as text that is the same for the same numbers."""
        reported = (self.cases.result(case.id) or {}).get("handed")
        if reported is not None:
            return {key: json.dumps(reported["scores"].get(key)) for key in keys}
        read = ((key, self.cases.score(case.id, key)) for key in keys)
        return {key: json.dumps([score[0].tolist(), score[1]]) for key, score in read if score is not None}

    def exam_signatures(self) -> dict[str, str]:
        """{name of an exam: what it is}, whatever algorithms and seeds take it; without those that nothing tells of."""
        signatures = {}
        for case in self.results.case_list:
            if case.testenv not in signatures and not case.role and (identity := self.identity(case)) is not None:
                drawn = digest([case.row, case.seed]) != case.id  # each seed has an exam of its own
                facts = {name: value for name, value in identity["exam"].items() if name not in _OF_ALGORITHM}
                signatures[case.testenv] = json.dumps(_ordered(facts, case.seed if drawn else None))
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
    """Raises IanvsError for what is no job with its cases."""
    if report_file(source) is not None:
        raise IanvsError(f"{source} is the table of a report; its cases are needed. {REMEDY}.", code="unfit-results")
    results = stored_results(source)
    odd = [case.id for case in results.case_list if not case.id.isalnum()]
    if odd:
        raise IanvsError(f"{source}: '{odd[0]}' is not the id of a case.", code="unfit-results")
    return Source(str(source), results)


def shown_case(case: TestCase) -> str:
    """ "case ab12cd34 (ewc in online, seed 0)" """
    return f"case {case.id[:8]} ({method_name(case.algorithm, case.testenv)}, seed {case.seed})"


def _ordered(value: object, seed: int | None) -> object:
    """Return facts of an exam in the order of their names; "case" for the case's `seed`."""
    if isinstance(value, Mapping):
        drawn = {name for name in SEEDS if seed is not None and value.get(name) == seed}
        return {name: CASE if name in drawn else _ordered(inner, seed) for name, inner in sorted(value.items())}
    return [_ordered(inner, seed) for inner in value] if isinstance(value, list | tuple) else value
