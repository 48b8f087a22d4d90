"""Builds an exam from its data, tries its scores on perfect predictions, and stores the exam's record."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import ConfigError, DataError, IanvsError, Location, ValidationError, code_of
from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec, TestEnvSpec
from ianvs.exam import data
from ianvs.exam.data.dataset import Positions, Samples
from ianvs.exam.data.fingerprint import digest_of, read_memo, write_memo
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import resolve
from ianvs.exam.scenarios import Exam, manifest
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.identity import metric_key
from ianvs.running.planning.plan import scored_metrics
from ianvs.running.scoring import record_for_metric, score_of
from ianvs.store import ExamRecord, ExamStore

FITS = "fits"  # folder of the cache
_FEW = 16  # number of perfect predictions


def prepare_exam(request: CaseRequest, report: Callable[[object], None]) -> list[ValidationError]:
    """Decode the data and store the exam's record, once for all its cases. Returns errors."""
    with ExamStore(request.workspace).lock(request.exam_id), request.planned_code():  # another run may do the same
        return _prepared(request, report)


def _prepared(request: CaseRequest, report: Callable[[object], None]) -> list[ValidationError]:
    store = ExamStore(request.workspace)
    try:
        exam = request.exam(report)
    except ConfigError as error:
        return list(error.problems)
    except DataError as error:
        place = request.testenv.dataset.place or Location(request.testenv.file)
        return [ValidationError.from_exception(error, place, "unreadable-data")]
    if problems := _scoring_errors(exam, request.testenv):
        return problems
    cache = request.workspace / "cache"
    try:
        data.try_pictures(exam.dataset, report)
    except data.SourceError as error:
        return list(error.problems)
    write_memo(_memo_path(cache, request.exam_id, request.testenv), request.exam_id)
    data.find_data_warnings(exam.dataset, cache)
    if store.damaged_file(request.exam_id, thoroughly=True) is not None:
        kind, samples = data_type(exam.dataset.kind, request.testenv.dataset.data_type), exam.dataset.test
        batch_of = {j: number for number, batch in enumerate(exam.evaluation_batches) for j in batch.tests}
        record = ExamRecord(
            dataset=exam.dataset.name,
            kind=exam.dataset.kind,
            classes=exam.dataset.classes,
            rounds=tuple(round_.name for round_ in exam.rounds),
            tests=tuple(test.name for test in exam.tests),
            rules=exam.rules.to_json(),
            round_classes=tuple(round_.classes for round_ in exam.rounds),
            test_classes=tuple(test.classes for test in exam.tests),
            test_earlier=tuple(exam.taught_before(j) for j in range(len(exam.tests))),
            notes=tuple(exam.dataset.notes),
            shape=tuple(int(length) for length in exam.dataset.train.x.shape[1:]),
            batches=tuple(batch_of[j] for j in range(len(exam.tests))),
            shows=kind.shows,
        )
        tests = [batch.union for batch in exam.evaluation_batches]
        truth = [kind.truth(samples, test.test) for test in tests]
        shown = [kind.shown(Part(samples, test.test, test.transform)) for test in tests]
        pictures = [picture for picture in shown if picture is not None]
        rows = {j: rows for batch in exam.evaluation_batches for j, rows in zip(batch.tests, batch.rows, strict=False)}
        columns = [_columns(samples, test.test) for test in tests]
        store.write(request.exam_id, record, truth, manifest(exam), pictures, rows, columns)
    return []


def _scoring_errors(exam: Exam, spec: TestEnvSpec) -> list[ValidationError]:
    """Return errors of the scores in `spec` on this type of data; slow scores are not tried."""
    problems = []
    kind = data_type(exam.dataset.kind, spec.dataset.data_type)
    if of_settings := spec.dataset.mismatched_settings(exam.dataset.classes):
        return of_settings
    seen = _oracle_record(kind, exam, spec.dataset.columns_of_settings)
    answered = {task.name for task in spec.evaluation_tasks}  # answered by learners only
    for metric_spec in _metrics_to_try(spec):
        metric = resolve(metric_spec)
        if lacking := [name for name in metric.columns if metric.level == "score" and name not in seen.columns]:
            message = f"metric '{metric_spec.name}' needs a column: {seen.no_column(lacking[0])}"
            problems.append(ValidationError(message, metric_spec.place, code="unfit-metric"))
            continue
        if metric.level == "matrix" and metric_spec.url is not None:
            # Scores of a learner that is perfect on trained test sets and untrained before.
            values, untrained = np.tri(len(exam.rounds), len(exam.tests)), np.zeros(len(exam.tests))
            tried: EvaluationRecord | ScoreMatrix | None = ScoreMatrix.from_rounds(values, untrained=untrained)
        elif metric.level == "score" and metric.about is None and not answered.intersection(metric.asks):
            tried = record_for_metric(metric, seen)
        else:
            continue
        try:
            score_of(metric_spec, metric, tried)
        except IanvsError as error:
            message = kind.misfit(metric_spec.name, error)
            code = "unfit-metric" if metric_spec.url is None else code_of(error, "failed-plugin")
            problems.append(ValidationError(message, metric_spec.place, code=code))
    return problems


def _oracle_record(kind: DataType, exam: Exam, columns: Mapping[str, object]) -> EvaluationRecord:
    """Return the record of perfect predictions for the first samples of the first test set."""
    samples, test, classes = exam.dataset.test, exam.tests[0], exam.dataset.classes
    few = test.test[:_FEW]
    truth = np.asarray(samples.y[few])
    names = tuple(each.name for each in exam.tests)
    columns = {**_columns(samples, few), **kind.columns(kind.shown(Part(samples, few))), **columns}
    about = EvaluationRecord(classes, labels=test.classes, earlier=(), columns=columns, test=test.name, tests=names)
    predictions = kind.stored_predictions([(Part(samples, few), kind.packed(kind.perfect(truth)))], len(classes))
    every = kind.every_truth(samples, few)
    seen = kind.record(about, kind.truth(samples, few) if every is None else every, predictions)
    return replace(seen, probe=truth) if kind.probes else seen


def _columns(samples: Samples, positions: Positions) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(values[positions]) for name, values in samples.columns.items()}


def scores_are_checked(cache: Path, exam_id: str, spec: TestEnvSpec) -> bool:
    """Return whether an earlier run found no errors of these metrics in the exam."""
    return read_memo(_memo_path(cache, exam_id, spec)) is not None


def _memo_path(cache: Path, exam_id: str, spec: TestEnvSpec) -> Path:
    metrics, columns = [metric_key(metric) for metric in _metrics_to_try(spec)], spec.dataset.columns_of_settings
    return cache / FITS / f"{digest_of([exam_id, metrics, columns])[:32]}.json"


def _metrics_to_try(spec: TestEnvSpec) -> list[MetricSpec]:
    return [*(metric for metric, _ in scored_metrics(spec)), *([spec.gate.metric] if spec.gate else [])]
