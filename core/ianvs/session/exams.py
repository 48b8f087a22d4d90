"""Builds an exam from its data, and keeps what outlives the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ianvs import data
from ianvs.errors import ConfigError, DataError, Place, Problem
from ianvs.planning.case_request import CaseRequest
from ianvs.scenarios import build_exam, manifest
from ianvs.scenarios.exam import Exam
from ianvs.scoring.misfits import preflight_scores
from ianvs.scoring.replies import packed
from ianvs.session.evaluation import SHOWN
from ianvs.session.lineage import content
from ianvs.store import ExamRecord, ExamStore

__all__ = ["open_exam", "prepare_exam"]


def open_exam(request: CaseRequest, progress: Callable[[float], None] | None = None) -> Exam:
    """The exam with its data: memory maps that all cases share. Raises ConfigError or DataError."""
    spec = request.testenv
    dataset = data.load(spec.dataset, request.workspace / "cache", progress)
    return build_exam(
        dataset,
        spec.scenario,
        using=spec.dataset.using,
        incremental_rounds=spec.incremental_rounds,
        splitting_method=request.splitting_method,
        single_task=request.single_task,
    )


def prepare_exam(request: CaseRequest, report: Callable[[Any], None]) -> list[Problem]:
    """Decode the data and store the exam's record, once for all its cases. Returns what is wrong with them."""
    store = ExamStore(request.workspace)
    try:
        exam = open_exam(request, report)
    except ConfigError as error:
        return list(error.problems)
    except DataError as error:
        return [Problem(str(error), request.testenv.dataset.place or Place(request.testenv.file))]
    if problems := preflight_scores(exam, request.testenv):
        return problems
    if not store.exists(request.exam_id):
        record = ExamRecord(
            dataset=exam.dataset.name,
            kind=exam.dataset.kind,
            classes=exam.dataset.classes,
            rounds=tuple(round_.name for round_ in exam.rounds),
            tests=tuple(test.name for test in exam.tests),
            rules=vars(exam.rules),
            round_digests=tuple(content(exam.dataset.train, round_) for round_ in exam.rounds),
            test_digests=tuple(content(exam.dataset.test, test) for test in exam.tests),
            test_classes=tuple(test.classes for test in exam.tests),
            test_earlier=tuple(exam.taught_before(j) for j in range(len(exam.tests))),
            notes=tuple(exam.dataset.notes),
            shape=tuple(int(length) for length in exam.dataset.train.x.shape[1:]),
        )
        truth, pictures = _kept(exam)
        store.write(request.exam_id, record, truth, manifest(exam), pictures)
    return []


def _kept(exam: Exam) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """(true labels, pictures) to keep of each test set: of label pictures the first few, else all labels alone."""
    test = exam.dataset.test
    if exam.dataset.kind == "conversation":
        topics = [None if test.topics is None else test.topics[asked.test].tolist() for asked in exam.tests]
        return [packed(test.y[asked.test].tolist(), of) for asked, of in zip(exam.tests, topics, strict=True)], []
    if exam.dataset.kind != "segmentation":
        return [test.y[asked.test] for asked in exam.tests], []
    shown = [(asked.test[:SHOWN], asked.transform) for asked in exam.tests]
    pictures = [test.x[first] if transform is None else transform(test.x[first]) for first, transform in shown]
    return [test.y[first] for first, _ in shown], pictures
