"""Builds an exam from its data, and keeps what outlives the data."""

from __future__ import annotations

from collections.abc import Callable

from ianvs.base.errors import ConfigError, DataError, Place, Problem
from ianvs.exam import data
from ianvs.exam.kinds import KINDS
from ianvs.exam.scenarios import Part, manifest
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.scoring.misfits import note_fit, preflight_scores
from ianvs.running.session.lineage import content
from ianvs.store import ExamRecord, ExamStore

__all__ = ["prepare_exam"]


def prepare_exam(request: CaseRequest, report: Callable[[object], None]) -> list[Problem]:
    """Decode the data and store the exam's record, once for all its cases. Returns what is wrong with them."""
    with ExamStore(request.workspace).lock(request.exam_id):  # another run may be at it
        return _prepared(request, report)


def _prepared(request: CaseRequest, report: Callable[[object], None]) -> list[Problem]:
    store = ExamStore(request.workspace)
    try:
        exam = request.exam(report)
    except ConfigError as error:
        return list(error.problems)
    except DataError as error:
        return [Problem(str(error), request.testenv.dataset.place or Place(request.testenv.file))]
    if problems := preflight_scores(exam, request.testenv):
        return problems
    cache = request.workspace / "cache"
    note_fit(cache, request.exam_id, request.testenv)
    data.find_doubts(exam.dataset, cache)
    if store.damage(request.exam_id, thoroughly=True) is not None:
        record = ExamRecord(
            dataset=exam.dataset.name,
            kind=exam.dataset.kind,
            classes=exam.dataset.classes,
            rounds=tuple(round_.name for round_ in exam.rounds),
            tests=tuple(test.name for test in exam.tests),
            rules=vars(exam.rules),
            round_digests=tuple(content(exam.dataset.train, round_) for round_ in exam.rounds),
            test_digests=tuple(content(exam.dataset.test, test) for test in exam.tests),
            round_classes=tuple(round_.classes for round_ in exam.rounds),
            test_classes=tuple(test.classes for test in exam.tests),
            test_earlier=tuple(exam.taught_before(j) for j in range(len(exam.tests))),
            notes=tuple(exam.dataset.notes),
            shape=tuple(int(length) for length in exam.dataset.train.x.shape[1:]),
        )
        kind, samples = KINDS[exam.dataset.kind], exam.dataset.test
        truth = [kind.truth(samples, test.test) for test in exam.tests]
        shown = [kind.shown(Part(samples, test.test, test.transform)) for test in exam.tests]
        pictures = [picture for picture in shown if picture is not None]
        store.write(request.exam_id, record, truth, manifest(exam), pictures)
    return []
