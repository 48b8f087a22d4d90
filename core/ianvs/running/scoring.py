"""Metrics of a case from what is stored of its evaluations; nothing is trained or predicted again.

A score is also computed without parts of the samples: how much of it is chance of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import IanvsError, PluginError, Problem, one_line
from ianvs.base.types import POOLED, Asked, Predictions, RoundResult, ScoreMatrix
from ianvs.config.spec import MetricSpec
from ianvs.exam.kinds import KINDS
from ianvs.exam.kinds.picture_kind import lacks_pictures
from ianvs.exam.metrics.label_pictures import LabelPictures
from ianvs.exam.metrics.metric import EvaluationRecord, Fed, Metric, Rows
from ianvs.exam.metrics.registry import resolve
from ianvs.exam.metrics.replies import Replies
from ianvs.plugins.loader import cause
from ianvs.running.inspector import Inspector
from ianvs.running.planning import Plan
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.identity import metric_key
from ianvs.store import CaseStore, ExamRecord, ExamStore
from ianvs.store.stored_score import finite, score_curve

Batch = Callable[[Sequence[EvaluationRecord]], tuple[list[Rows], Mapping[str, str]]]
Seen = TypeVar("Seen")
Said = TypeVar("Said")
Parts = dict[str, float | None] | None
Score = tuple[float | None, Parts]  # the number, and the parts where there are some
Numbers = NDArray[np.float64]
Wanted = tuple[MetricSpec, str, Metric]  # with the key of its values
_Row = Sequence[EvaluationRecord | None]  # what is known of each test set
_Rows = dict[str, list[Rows | None]]  # [j] by the key of a metric


def score_case(request: CaseRequest) -> None:
    """Compute the scores of `request` that are not there yet: on every test set after every round.

    Of a case that is to pause those of its first rounds, for the search that looks at it there.
    """
    cases, exams, after = CaseStore(request.workspace), ExamStore(request.workspace), request.until
    missing = [(spec, key) for spec, key in request.scores if not cases.has_score(request.case.id, key, after)]
    if not missing:
        return
    record = exams.record(request.exam_id)
    if record is None:
        raise FileNotFoundError(f"{exams.folder(request.exam_id)} is gone: run the job again to make it anew")
    resolved = [(spec, key, resolve(spec)) for spec, key in missing]
    metrics = [(spec, key, of.on_device(request.device) if of.on_device else of) for spec, key, of in resolved]
    over_matrix = [(spec, key, metric) for spec, key, metric in metrics if metric.level == "matrix"]
    if scores := [one for one in metrics if one[2].level != "matrix"]:
        _write_scores(request, record, scores)
    for spec, key, metric in over_matrix:  # they read the scores
        of, of_key = next((of, of_key) for of, of_key in request.scores if metric_key(spec, of) == key)
        found = cases.score(request.case.id, of_key, after)
        assert found is not None, "scores are written first"
        rounds = cases.complete_rounds(request.case.id)[: len(found.values)]
        matrix = ScoreMatrix(
            found.values,
            of.name,
            tuple(round_.name for round_ in rounds[1:]),
            record.tests if found.values.shape[1] == len(record.tests) else (POOLED,),
            curve=score_curve(found, rounds),
            higher_is_better=resolve(of).higher_is_better,
        )
        value, _ = score_of(spec, metric, matrix)
        cases.write_score(request.case.id, key, np.array([[value]], dtype=np.float64), [[None]], after=after)


def _write_scores(request: CaseRequest, record: ExamRecord, metrics: Sequence[Wanted]) -> None:
    cases, exams, after = CaseStore(request.workspace), ExamStore(request.workspace), request.until
    at_once = any(metric.batch is not None for _, _, metric in metrics)
    wanted = not KINDS[record.kind].stores_truth and any(metric.pictures for _, _, metric in metrics)
    every = _every_truth(request) if wanted else None
    state = {key: _OverRounds(spec, metric.accumulate) for spec, key, metric in metrics if metric.accumulate}
    alone = [one for one in metrics if one[2].batch is None and one[1] not in state]  # the answers of a round tell them
    found = {key: _Found() for _, key, _ in metrics}
    kept: list[_Row] = []  # where a metric wants everything at once
    last: tuple[_Row, _Rows] = ([], {})
    rounds = cases.complete_rounds(request.case.id)[: None if request.until is None else request.until + 1]
    by_round = len(rounds) * len(record.tests) * FEW_GROUPS <= _MOST_LEFT_OUT
    when: list[int | None] = []
    for arrived, row in _rows(cases, request, record, exams.truth(request.exam_id), every, rounds):
        when.append(arrived)
        kept += [row] if at_once else []
        scores, by_sample = _row_scores(alone, row)
        for _, key, metric in metrics:
            if key in state:
                scores[key] = state[key].row_scores(metric, row, at_end=arrived is None)
            if key in scores:
                found[key].add(arrived, scores[key])
        if arrived is None:
            last = row, by_sample
            few = _left_out(alone, row, by_sample, FEW_GROUPS) if by_round else {}
            for _, key, _ in alone:
                found[key].in_rounds.append(few.get(key, np.empty(0)))
    for spec, key, metric in metrics:
        if metric.batch is not None:
            last[1][key] = _at_once(spec, metric, metric.batch, list(zip(when, kept, strict=True)), found[key])
    without = _left_out([one for one in metrics if one[2].over_rounds == "last" and one[1] not in state], *last, GROUPS)
    for _, key, _ in metrics:
        one = found[key]
        cases.write_score(
            request.case.id, key, one.values, one.details, {} if key in state else one.between, one.about,
            without.get(key), _by_group(one.in_rounds), after,
        )  # fmt: skip


class _Found:
    """What is known of one metric. values[k]: (J,) numbers; details[k][j]: parts; in_rounds[k]: (G, J), or empty."""

    def __init__(self) -> None:
        self.values: list[Numbers] = []
        self.details: list[list[Parts]] = []
        self.between: dict[int, Numbers] = {}
        self.in_rounds: list[Numbers] = []
        self.about: Mapping[str, str] | None = None

    def add(self, arrived: int | None, row: Sequence[Score]) -> None:
        if arrived is not None:
            self.between[arrived] = _numbers(row)
            return
        self.values.append(_numbers(row))
        self.details.append([parts for _, parts in row])


def _numbers(row: Sequence[Score]) -> Numbers:
    """(J,) nan where there is none."""
    return np.array([number for number, _ in row], dtype=np.float64)


class _OverRounds:
    """A metric with state over rounds: one for each test set, fed in the order of rounds."""

    def __init__(self, spec: MetricSpec, make: Callable[[], Fed]) -> None:
        self._spec, self._make = spec, make
        self._of: dict[int, Fed] = {}
        self._round = -1

    def row_scores(self, metric: Metric, row: _Row, *, at_end: bool) -> list[Score]:
        """at_end: of a round; what is asked within one is not fed."""
        if not at_end:
            return [(None, None)] * len(row)
        self._round += 1
        return [self._fed(metric, j, as_read(metric, cell)) for j, cell in enumerate(row)]

    def _fed(self, metric: Metric, test: int, seen: EvaluationRecord | None) -> Score:
        if seen is None:
            return None, None

        def feed(record: EvaluationRecord) -> float | Mapping[str, float]:
            if test not in self._of:
                self._of[test] = self._make()
            return self._of[test](self._round, record)

        return _score(self._spec, metric, _guarded(self._spec, feed, seen))


def _row_scores(
    metrics: Sequence[Wanted], row: _Row, refused: set[str] | None = None
) -> tuple[dict[str, list[Score]], _Rows]:
    """The scores of each metric, and what those that go sample by sample make of the samples.

    Test set after test set: what one metric counts is there for the next, and of one test set at a time. refused: takes
    the keys of metrics that can't be computed; None: that is an error.
    """
    scores: dict[str, list[Score]] = {key: [] for _, key, _ in metrics}
    by_sample: _Rows = {key: [] for _, key, metric in metrics if metric.by_sample is not None and not metric.pooled}
    together = pooled(row) if any(metric.pooled for _, _, metric in metrics) else None
    for cells, wanted in ((row, False), ([together], True)):
        asked = [one for one in metrics if one[2].pooled is wanted]
        for cell in cells if asked else ():
            for spec, key, metric in asked:
                try:
                    rows = _by_sample(spec, metric, cell) if key in by_sample else None
                    by_sample.get(key, []).append(rows)
                    told = score_of(spec, metric, as_read(metric, cell)) if rows is None else None
                    scores[key].append(told or _of_rows(spec, metric, rows, cell))
                except IanvsError:
                    if refused is None:
                        raise
                    refused.add(key)
            if cell is not None:
                cell.forget()
    return scores, by_sample


def _by_sample(spec: MetricSpec, metric: Metric, cell: EvaluationRecord | None) -> Rows | None:
    """None: where it was not asked, or samples are not told apart."""
    if cell is None or metric.by_sample is None or not _size(cell):
        return None
    return _guarded(spec, metric.by_sample, cell)


def _of_rows(spec: MetricSpec, metric: Metric, rows: Rows | None, cell: EvaluationRecord | None = None) -> Score:
    """With the parts by topic where `cell`, whose rows they are, tells the topics."""
    score, topics = metric.of_rows, None if cell is None else cell.topics
    if rows is None or score is None:
        return None, None
    return _score(spec, metric, _guarded(spec, lambda rows: score(rows, topics), rows))


def _left_out(metrics: Sequence[Wanted], row: _Row, by_sample: _Rows, groups: int) -> dict[str, Numbers]:
    """By metric: (G, J) scores without the g-th group of samples.

    by_sample: of each test set, as of `_row_scores`. A metric that needs more samples is missing, and one that has no
    number: nothing is known of their chance.
    """
    found: dict[str, list[Numbers]] = {key: [] for _, key, metric in metrics if not metric.mapping}
    others = [one for one in metrics if one[1] in found and one[1] not in by_sample]
    read = [cell and _whole(cell) for cell in row] if others else []
    refused = set[str]()
    for kept in without_groups(row, groups):
        part = [None if cell is None or of is None else _part(cell, of) for cell, of in zip(read, kept, strict=False)]
        scores = _row_scores([one for one in others if one[1] not in refused], part, refused)[0]
        for spec, key, metric in metrics:
            if key in by_sample and key in found:
                both = zip(by_sample[key], kept, strict=True)
                scores[key] = [
                    _of_rows(spec, metric, None if rows is None or of is None else rows[of]) for rows, of in both
                ]
        for key in scores.keys() - refused:
            found[key].append(_numbers(scores[key]))
    return {key: np.array(without) for key, without in found.items() if without and key not in refused}


def _by_group(rounds: Sequence[Numbers]) -> Numbers | None:
    """(G, K, J) of [k] (G, J), nan after a round that nothing was asked after; None where numbers of groups differ."""
    if len({len(one) for one in rounds if len(one)}) != 1:
        return None
    nothing = np.full_like(next(one for one in rounds if len(one)), np.nan)
    return np.stack([one if len(one) else nothing for one in rounds], axis=1)


def as_read(metric: Metric, cell: EvaluationRecord | None) -> EvaluationRecord | None:
    """`cell` as `metric` sees it: label pictures only if it reads them."""
    if cell is None or metric.pictures or not isinstance(cell.y_true, LabelPictures):
        return cell
    return replace(cell, y_true=None, y_pred=None)


def pooled(row: _Row) -> EvaluationRecord | None:
    """The samples of all test sets that were asked as those of one; None where none was asked.

    Of what not all of them have, nothing is kept.
    """
    records = [_whole(record) for record in row if record is not None]
    if not records:
        return None

    def joined(columns: Sequence[object]) -> NDArray[Any] | None:
        arrays = [column for column in columns if isinstance(column, np.ndarray)]
        return np.concatenate(arrays) if len(arrays) == len(columns) else None

    counts = joined([None if record.counts is None else record.counts[None] for record in records])
    names = set.intersection(*(set(record.extras) for record in records))
    return EvaluationRecord(
        records[0].classes,
        y_true=joined([record.y_true for record in records]),
        y_pred=joined([record.y_pred for record in records]),
        counts=None if counts is None else counts.sum(0),
        extras={name: np.concatenate([record.extras[name] for record in records]) for name in names},
        unseen=joined([record.unseen for record in records]),
    )


def _every_truth(request: CaseRequest) -> list[LabelPictures | None]:
    """[j] all true labels of test set j, read from the data where the store does not keep them."""
    exam = request.exam()
    kind = KINDS[exam.dataset.kind]
    return [kind.every_truth(exam.dataset.test, test.test) for test in exam.tests]


def _rows(
    cases: CaseStore,
    request: CaseRequest,
    record: ExamRecord,
    truth: Sequence[NDArray[Any]],
    every: Sequence[LabelPictures | None] | None,
    rounds: Sequence[RoundResult],
) -> Iterator[tuple[int | None, list[EvaluationRecord | None]]]:
    """(samples that had arrived, what is known of each test set) of each examination; None at the end of a round.

    One by one, and nothing of them is kept: a long stream is examined thousands of times.
    """
    for round_ in rounds:
        stored = cases.predictions(request.case.id, round_.index)
        for samples in (None, *(arrived for arrived, _, _ in round_.examined[:-1])):
            asked = [Asked(j, samples) for j in range(len(truth))]
            yield samples, [_seen(record, truth, every, stored, one, round_.index) for one in asked]


def _seen(
    record: ExamRecord,
    truth: Sequence[NDArray[Any]],
    every: Sequence[LabelPictures | None] | None,
    stored: Mapping[Asked, Predictions],
    asked: Asked,
    rounds: int,
) -> EvaluationRecord | None:
    """What is known of a test set after so many `rounds`; None where it was not asked."""
    if asked not in stored:
        return None
    j, said, kind = asked.test, stored[asked], KINDS[record.kind]
    about = EvaluationRecord(
        record.classes,
        labels=record.test_classes[j],
        earlier=record.test_earlier[j],
        extras={name: values for name, values in said.extras.items() if name not in kind.own_extras},
        unseen=_unseen(record, j, truth[j], rounds),
    )
    return kind.record(about, truth[j], said, None if every is None else every[j])


def _unseen(record: ExamRecord, j: int, truth: NDArray[Any], rounds: int) -> NDArray[np.bool_] | None:
    """(N,) whether each sample of test set j is of what was not taught in the first `rounds`; None: nobody asks."""
    what = record.rules.get("unseen", "none")
    if what == "none":
        return None
    if what == "rounds":
        return np.full(len(truth), j >= rounds)
    taught = sorted({label for classes in record.round_classes[:rounds] for label in classes})
    return ~np.isin(truth, taught)


def _at_once(
    spec: MetricSpec, metric: Metric, batch: Batch, rows: Sequence[tuple[int | None, _Row]], found: _Found
) -> list[Rows | None]:
    """Add the scores of all evaluations to `found`; what it made of the samples after the last round."""
    values, found.about = _guarded(spec, batch, [cell for _, row in rows for cell in row if cell is not None])
    left = iter(values)
    last: list[Rows | None] = []
    for arrived, row in rows:
        each = [None if cell is None else next(left) for cell in row]
        both = zip(row, each, strict=True)
        found.add(arrived, [_of_rows(spec, metric, one, cell) for cell, one in both])
        last = each if arrived is None else last
    return last


def score_of(spec: MetricSpec, metric: Metric, seen: EvaluationRecord | ScoreMatrix | None) -> Score:
    """(number, parts): a metric that yields a mapping gives parts, and its number is the part of its own name."""
    if seen is None or metric.function is None:
        return None, None
    return _score(spec, metric, _guarded(spec, metric.function, seen))


def _guarded(spec: MetricSpec, function: Callable[[Seen], Said], seen: Seen) -> Said:
    """What the metric's function says; its own errors under the metric's name, with the line of the author's file."""
    try:
        return function(seen)
    except IanvsError:
        raise
    except Exception as error:
        where = None if spec.url is None else spec.url.resolve()
        raise PluginError(f"metric '{spec.name}' failed: {cause(error, where)}") from error


def _score(spec: MetricSpec, metric: Metric, value: Mapping[str, SupportsFloat] | SupportsFloat | None) -> Score:
    if isinstance(value, Mapping):
        parts = {str(name): finite(part) for name, part in value.items()}
        return parts.get(spec.name, parts.get(metric.name)), parts
    return (None if value is None else finite(value)), None


GROUPS = 100  # of test samples: one for each sample where there are fewer
FEW_GROUPS = 20  # where every round is scored without each, for what is computed over rounds
_MOST_LEFT_OUT = 10_000  # numbers of a score that are stored for that
_SEED = 20_240_903  # the same groups for all methods, rounds and seeds: differences are paired
_BY_SAMPLE = ("y_true", "y_pred", "probe", "topics", "unseen")


def without_groups(row: _Row, groups: int) -> Iterator[list[NDArray[np.bool_] | None]]:
    """[j] the samples of test set j without the g-th of its groups, which are drawn at random and equally large.

    There are `groups` of them, or as many as the smallest test set has samples. None where samples are not kept (of
    label pictures only counts are), or where a test set has a single one.
    """
    sizes = [_size(record) for record in row if record is not None]
    groups = min([groups, *sizes])
    if not sizes or groups < 2:
        return
    drawn = [None if record is None else _drawn(_size(record), groups) for record in row]
    for group in range(groups):
        yield [None if of is None else of != group for of in drawn]


def _size(record: EvaluationRecord) -> int:
    """How many samples can be told apart; 0: none."""
    if record.y_true is None or isinstance(record.y_true, LabelPictures):
        return 0
    return len(record.y_true)


def _drawn(samples: int, groups: int) -> NDArray[np.int64]:
    return np.asarray(np.random.default_rng(_SEED).permutation(samples) % groups)


def _whole(record: EvaluationRecord) -> EvaluationRecord:
    """With replies that are read, where samples are picked from them many times."""
    if not isinstance(record.y_true, Replies):
        return record
    return replace(record, y_true=np.asarray(record.y_true), y_pred=np.asarray(record.y_pred))


def _part(record: EvaluationRecord, kept: NDArray[np.bool_]) -> EvaluationRecord:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    parts = {name: values[name][kept] for name in _BY_SAMPLE if values[name] is not None}
    extras = {name: value[kept] for name, value in record.extras.items()}
    return replace(record, **parts, extras=extras, counts=None)


def missing_pictures(plan: Plan, inspector: Inspector) -> list[Problem]:
    """Finished cases whose predicted label pictures a metric reads, and that kept none.

    A problem for each metric, which names the cases that have to be run again for it.
    """
    authored = {key: spec for scores in plan.scores for spec, key in scores if spec.url is not None}
    told = inspector.metrics(list(authored.values()))
    both = zip(authored, told, strict=True)
    reading = {key for key, metric in both if not isinstance(metric, list) and metric.pictures}
    if not reading:
        return []
    lacking: dict[str, list[str]] = {}
    for planned in plan:
        if planned.state == "finished":
            for _, key in plan.scores_of(planned.algorithm):
                case = planned.case.id
                if key in reading and not plan.store.has_score(case, key):
                    rounds = (one.index for one in plan.store.complete_rounds(case))
                    if any(lacks_pictures(plan.store.extras(case, index)) for index in rounds):
                        lacking.setdefault(key, []).append(case[:8])
    problems = []
    for key, cases in lacking.items():
        count = f"{len(cases)} finished cases" if len(cases) > 1 else "a finished case"
        message = (
            f"metric '{authored[key].name}' reads all predicted label pictures, which are stored only where a metric "
            f"asks for them; {count} kept nothing but counts: {one_line(cases)}. Run them again (`--rerun all`, or "
            "`--rerun` with the beginning of an id), or let the metric take one argument `confusion`: the counts."
        )
        problems.append(Problem(message, authored[key].place))
    return problems
