"""Computes the metrics of a case from its stored predictions; nothing is trained or predicted again.

A score is also computed without parts of the samples, to estimate its variance over samples.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import IanvsError, PluginError, ValidationError, one_line
from ianvs.base.types import POOLED_TEST_SET, PredictionKey, Predictions, RoundResult, ScoreMatrix
from ianvs.config.spec import MetricSpec
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.metrics.label_pictures import LabelPictures, lacks_masks
from ianvs.exam.metrics.metric import EvaluationRecord, Fed, Metric, PartialRecord
from ianvs.exam.metrics.pooled_record import pool_records
from ianvs.exam.metrics.ragged import Ragged
from ianvs.exam.metrics.registry import resolve
from ianvs.plugins.loader import cause
from ianvs.processes.interpreters.wire import error_text
from ianvs.running.inspector import Inspector
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.identity import metric_key
from ianvs.running.planning.plan import Plan
from ianvs.running.sample_groups import FEW_GROUPS, GROUPS, MOST_LEFT_OUT, group_samples, stored_samples, without_groups
from ianvs.store import CaseStore, ExamRecord, ExamStore
from ianvs.store.stored_score import finite, score_curve, score_record

Seen = TypeVar("Seen")
Said = TypeVar("Said")
Parts = dict[str, float | None] | None
Score = tuple[float | None, Parts]  # the number, and the parts if there are some
Numbers = NDArray[np.float64]
Wanted = tuple[MetricSpec, str, Metric]  # a metric with the key of its values


def score_case(request: CaseRequest) -> None:
    """Compute the missing scores of `request`: on every test set after every round.

    Of a case that pauses, those of its first rounds, for its search.
    """
    cases, exams, after = CaseStore(request.workspace), ExamStore(request.workspace), request.until
    missing = [(spec, key) for spec, key in request.scores if not cases.has_score(request.case.id, key, after)]
    if not missing:
        return
    record = exams.record(request.exam_id)
    if record is None:
        raise FileNotFoundError(f"{exams.folder(request.exam_id)} is gone: run the job again to make it anew")
    resolved = [(spec, key, resolve(spec)) for spec, key in missing]
    metrics = [
        (spec, key, score.on_device(request.device) if score.on_device else score) for spec, key, score in resolved
    ]
    over_matrix = [(spec, key, metric) for spec, key, metric in metrics if metric.level == "matrix"]
    if scores := [(spec, key, metric) for spec, key, metric in metrics if metric.level != "matrix"]:
        given = [spec.dataset_columns for spec, _, _ in scores]  # several exams may share a reference run
        for columns in (each for n, each in enumerate(given) if each not in given[:n]):
            _write_scores(request, record, [entry for entry in scores if entry[0].dataset_columns == columns], columns)
    for spec, key, metric in over_matrix:  # they read the scores
        score, of_key = next((score, of_key) for score, of_key in request.scores if metric_key(spec, score) == key)
        stored = cases.score(request.case.id, of_key, after)
        assert stored is not None, "scores are written first"
        rounds = cases.complete_rounds(request.case.id)[: len(stored.values)]
        matrix = ScoreMatrix(
            stored.values,
            score.name,
            tuple(round_.name for round_ in rounds[1:]),
            record.tests if stored.values.shape[1] == len(record.tests) else (POOLED_TEST_SET,),
            curve=score_curve(stored, rounds),
            higher_is_better=resolve(score).higher_is_better,
        )
        value, _ = score_of(spec, metric, matrix)
        cases.write_score(request.case.id, key, score_record(np.array([[value]], dtype=np.float64)), after)


def _write_scores(
    request: CaseRequest, record: ExamRecord, metrics: Sequence[Wanted], columns: Mapping[str, object]
) -> None:
    """Compute and store scores. columns: those from the dataset's settings."""
    cases, exams, after = CaseStore(request.workspace), ExamStore(request.workspace), request.until
    kind = data_type(record.kind, request.testenv.dataset.data_type)
    wanted = not kind.stores_truth and any(metric.pictures for _, _, metric in metrics)
    every = _all_true_masks(request, kind) if wanted else None
    truth = exams.truth(request.exam_id)
    shown: Sequence[Any] = exams.pictures(request.exam_id)
    shown = shown or [None] * len(truth)
    stored_columns = exams.columns(request.exam_id, len(truth))
    of_sheets = [
        {**kind.columns(metric_asked), **its, **columns}
        for metric_asked, its in zip(shown, stored_columns, strict=True)
    ]
    exam = _ScoredExam(record, kind, truth, every, exams.rows(request.exam_id), of_sheets)
    state = {key: _StatefulMetric(spec, metric.accumulate) for spec, key, metric in metrics if metric.accumulate}
    # They are known only from the predictions of a round.
    alone = [metric_asked for metric_asked in metrics if metric_asked[1] not in state]
    values: dict[str, list[Numbers]] = {key: [] for _, key, _ in metrics}
    details: dict[str, list[list[Parts]]] = {key: [] for _, key, _ in metrics}
    between: dict[str, dict[int, Numbers]] = {key: {} for _, key, _ in metrics}
    in_rounds: dict[str, list[Numbers]] = {key: [] for _, key, _ in metrics}  # [k] (G, J)
    last: Sequence[EvaluationRecord | None] = []
    rounds = cases.complete_rounds(request.case.id)[: None if request.until is None else request.until + 1]
    by_round = len(rounds) * len(record.tests) * FEW_GROUPS <= MOST_LEFT_OUT
    for arrived, row in _rows(cases, request, exam, rounds):
        scores = _row_scores(alone, row)
        if arrived is not None:
            for key, row_scores in scores.items():
                between[key][arrived] = _numbers(row_scores)
            continue
        last = row
        scores |= {key: state[key].row_scores(metric, row) for _, key, metric in metrics if key in state}
        for key, row_scores in scores.items():
            values[key].append(_numbers(row_scores))
            details[key].append([parts for _, parts in row_scores])
        for metric_asked in alone if by_round else ():
            in_rounds[metric_asked[1]].append(_part_scores(metric_asked, row, FEW_GROUPS))
    for metric_asked in metrics:
        _, key, metric = metric_asked
        by_last = metric.over_rounds == "last" and metric_asked in alone
        score = score_record(
            np.array(values[key]),
            details[key],
            between[key],
            None if metric.about is None else metric.about(),
            _part_scores(metric_asked, last, GROUPS) if by_last else None,
            _by_group(in_rounds[key]),
        )
        cases.write_score(request.case.id, key, score, after)


def _numbers(row: Sequence[Score]) -> Numbers:
    """Return (J,) numbers, nan for missing ones."""
    return np.array([number for number, _ in row], dtype=np.float64)


class _StatefulMetric:
    """A metric with state over rounds: one for each test set, called in the order of rounds."""

    def __init__(self, spec: MetricSpec, make: Callable[[], Fed]) -> None:
        self._spec, self._make = spec, make
        self._states: dict[int, Fed] = {}
        self._round = -1

    def row_scores(self, metric: Metric, row: Sequence[EvaluationRecord | None]) -> list[Score]:
        """Return scores of the predictions at the end of the next round."""
        self._round += 1
        return [self._fed(metric, j, record_for_metric(metric, cell)) for j, cell in enumerate(row)]

    def _fed(self, metric: Metric, test: int, seen: EvaluationRecord | None) -> Score:
        if seen is None:
            return None, None

        def feed(record: EvaluationRecord) -> float | Mapping[str, float]:
            if test not in self._states:
                self._states[test] = self._make()
            return self._states[test](self._round, record)

        return _score(self._spec, metric, _call_metric(self._spec, feed, seen))


def _row_scores(metrics: Sequence[Wanted], row: Sequence[EvaluationRecord | None]) -> dict[str, list[Score]]:
    """Return scores of one test set after the other, so that metrics share counts of one test set, and memory is
    limited.
    """
    scores: dict[str, list[Score]] = {key: [] for _, key, _ in metrics}
    for cell in row:
        for spec, key, metric in metrics:
            if not metric.pooled:
                scores[key].append(score_of(spec, metric, record_for_metric(metric, cell)))
        if cell is not None:
            cell.forget()
    whole = pool_records(row) if any(metric.pooled for _, _, metric in metrics) else None
    for spec, key, metric in metrics:
        if metric.pooled:
            scores[key].append(score_of(spec, metric, whole))
    return scores


def _part_scores(wanted: Wanted, row: Sequence[EvaluationRecord | None], groups: int) -> Numbers:
    """Return (G, J) scores without the g-th group.

    Empty for a metric that needs more samples, or has no number of its own.
    """
    spec, key, metric = wanted
    if metric.pooled and any(cell and (cell.positions is not None or isinstance(cell.y_true, Ragged)) for cell in row):
        row = [pool_records(row)]  # a sample of several test sets is left out of all of them
        _row_scores([wanted], row)  # matches of all samples are reused for all parts
    try:
        if metric.mean_of is not None and not metric.pooled:
            return _means_without_groups(spec, metric.mean_of, row, groups)
        parts = () if metric.mapping else without_groups(row, groups)
        return np.array([_numbers(_row_scores([wanted], part)[key]) for part in parts])
    except IanvsError:
        return np.empty(0)


def _means_without_groups(
    spec: MetricSpec,
    mean_of: Callable[[EvaluationRecord], NDArray[Any]],
    row: Sequence[EvaluationRecord | None],
    groups: int,
) -> Numbers:
    """Return (G, J) of a metric that is the mean of `mean_of` over samples, from the sums over groups."""
    groups, drawn = group_samples(row, groups)
    means = np.full((groups, len(row)), np.nan)
    for j, (record, group_of) in enumerate(zip(row, drawn, strict=True)):
        if record is not None and group_of is not None:
            values = _call_metric(spec, mean_of, record)
            left = len(values) - np.bincount(group_of, minlength=groups)
            means[:, j] = (values.sum() - np.bincount(group_of, values, minlength=groups)) / left
    return means


def _by_group(rounds: Sequence[Numbers]) -> Numbers | None:
    """Return (G, K, J) from [k] (G, J), nan after a round without predictions; None if numbers of groups differ."""
    present = [scores for scores in rounds if len(scores)]
    if len({len(scores) for scores in present}) != 1:
        return None
    return np.stack([scores if len(scores) else np.full_like(present[0], np.nan) for scores in rounds], axis=1)


def record_for_metric(metric: Metric, cell: EvaluationRecord | None) -> EvaluationRecord | None:
    """Return `cell` as `metric` sees it: with segmentation masks only if it reads them."""
    if cell is None or metric.pictures or not isinstance(cell.y_true, LabelPictures):
        return cell
    return replace(cell, y_true=None, y_pred=None)


def _all_true_masks(request: CaseRequest, kind: DataType) -> list[LabelPictures | None]:
    """Return all true labels by evaluation batch, read from the data; None where the store keeps them."""
    exam = request.exam()
    return [kind.every_truth(exam.dataset.test, batch.union.test) for batch in exam.evaluation_batches]


@dataclass(frozen=True)
class _ScoredExam:
    """Facts of an exam for scoring.

    Attributes:
        truth: True labels by evaluation batch.
        every: All true masks by evaluation batch.
        rows: Positions of a test set in its batch, unless it is all of it.
        columns: Further columns by evaluation batch.
    """

    record: ExamRecord
    kind: DataType
    truth: Sequence[NDArray[Any]]
    every: Sequence[LabelPictures | None] | None
    rows: Mapping[int, NDArray[np.int64]]
    columns: Sequence[Mapping[str, Any]]

    def record_of(
        self, stored: Mapping[PredictionKey, Predictions], key: PredictionKey, rounds: int
    ) -> EvaluationRecord | None:
        """Return the record of a test set after so many `rounds`; None if it was not evaluated."""
        record, j, batch = self.record, key.test, self.record.batch(key.test)
        predictions = stored.get(PredictionKey(batch, key.samples))
        if predictions is None:
            return None
        about = EvaluationRecord(
            record.classes,
            labels=record.test_classes[j],
            earlier=record.test_earlier[j],
            extras={name: values for name, values in predictions.extras.items() if name not in self.kind.own_extras},
            unseen=_unseen(record, j, self.truth[batch], rounds),
            seen=_taught(record, rounds),
            seen_before=_taught(record, max(rounds - 1, 0)),
            seen_first=_taught(record, 1),
            test=record.tests[j],
            tests=record.tests,
            columns=self.columns[batch],
        )
        whole = None if self.every is None else self.every[batch]
        seen_record = self.kind.record(about, self.truth[batch] if whole is None else whole, predictions)
        if len(record.batches) > 1 and not any(record.batches) and (count := stored_samples(seen_record)):
            seen_record = replace(seen_record, positions=np.arange(count))
        return PartialRecord.select(seen_record, self.rows[j]) if j in self.rows else seen_record


def _rows(
    cases: CaseStore, request: CaseRequest, exam: _ScoredExam, rounds: Sequence[RoundResult]
) -> Iterator[tuple[int | None, list[EvaluationRecord | None]]]:
    """Yield (samples that had arrived, record of each test set) of each evaluation; None at the end of a round.

    They are read one by one and not kept: a long stream has thousands of evaluations.
    """
    tests = range(len(exam.record.tests))
    for round_ in rounds:
        stored = cases.predictions(request.case.id, round_.index)
        for samples in (None, *(arrived for arrived, _, _ in round_.examined[:-1])):
            yield samples, [exam.record_of(stored, PredictionKey(j, samples), round_.index) for j in tests]


def _unseen(record: ExamRecord, j: int, truth: NDArray[Any], rounds: int) -> NDArray[np.bool_] | None:
    """Return (N,) True for samples of test set j whose class was not taught in the first `rounds`; None if not used."""
    unseen = record.rules.get("unseen", "none")
    if unseen == "none":
        return None
    if unseen == "rounds":
        return np.full(len(truth), j >= rounds)
    return ~np.isin(truth, sorted({label for classes in record.round_classes[:rounds] for label in classes}))


def _taught(record: ExamRecord, rounds: int) -> tuple[int, ...] | None:
    """Return class indices taught in the first `rounds`; None if all rounds have the same classes."""
    if len({frozenset(classes) for classes in record.round_classes}) < 2:
        return None
    return tuple(sorted({label for classes in record.round_classes[:rounds] for label in classes}))


def score_of(spec: MetricSpec, metric: Metric, seen: EvaluationRecord | ScoreMatrix | None) -> Score:
    """Return (number, parts); the number of a metric that returns a mapping is the part with the metric's name."""
    if seen is None or metric.function is None:
        return None, None
    return _score(spec, metric, _call_metric(spec, metric.function, seen))


def _call_metric(spec: MetricSpec, function: Callable[[Seen], Said], seen: Seen) -> Said:
    """Call the metric's function; its errors are reported under its name, with the line of the author's file."""
    try:
        return function(seen)
    except IanvsError:
        raise
    except SystemExit as error:
        raise PluginError(f"metric '{spec.name}' failed: {error_text(error)}.", code="failed-plugin") from error
    except Exception as error:
        where = None if spec.url is None else spec.url.resolve()
        raise PluginError(f"metric '{spec.name}' failed: {cause(error, where)}", code="failed-plugin") from error


def _score(spec: MetricSpec, metric: Metric, value: Mapping[str, SupportsFloat] | SupportsFloat | None) -> Score:
    if isinstance(value, Mapping):
        parts = {str(name): finite(part) for name, part in value.items()}
        return parts.get(spec.name, parts.get(metric.name)), parts
    return (None if value is None else finite(value)), None


def missing_pictures(plan: Plan, inspector: Inspector) -> list[ValidationError]:
    """Return errors for finished cases without stored segmentation masks that a metric reads.

    There is an error for each metric, which names the cases that have to run again.
    """
    authored = {key: spec for each in plan.algorithms for spec, key in each.scores if spec.url is not None}
    answers = {key: inspector.metric(spec) for key, spec in authored.items()}
    reading = {key for key, metric in answers.items() if not isinstance(metric, list) and metric.pictures}
    if not reading:
        return []
    lacking: dict[str, list[str]] = {}
    for planned in plan:
        if planned.state == "finished":
            for _, key in planned.algorithm.scores:
                case = planned.case.id
                if key in reading and not plan.store.has_score(case, key):
                    rounds = (round_.index for round_ in plan.store.complete_rounds(case))
                    if any(lacks_masks(plan.store.extras(case, index)) for index in rounds):
                        lacking.setdefault(key, []).append(case[:8])
    problems = []
    for key, cases in lacking.items():
        count = f"{len(cases)} finished cases" if len(cases) > 1 else "a finished case"
        message = (
            f"metric '{authored[key].name}' reads all predicted masks, which are stored only where a metric "
            f"asks for them; {count} kept nothing but counts: {one_line(cases)}. Run them again (`--rerun all`, or "
            "`--rerun` with the beginning of an id), or let the metric take one argument `confusion`: the counts."
        )
        problems.append(ValidationError(message, authored[key].place, code="missing-predictions"))
    return problems
