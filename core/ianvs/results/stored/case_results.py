"""Reads a CaseResult from a case's folder: scores, matrices, and every column of the leaderboard."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import POOLED_TEST_SET, CaseResult, Doubt, Measure, RoundResult, ScoreMatrix, Status, TestCase
from ianvs.config.spec import BudgetSpec
from ianvs.exam.data_types import LONGEST_ANSWER
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import MetricColumn
from ianvs.exam.metrics.stream_record import StreamRecord
from ianvs.exam.metrics.system import system_value
from ianvs.exam.scenarios.budget import over_budget, unmeasured_budget_text
from ianvs.results.stored.score_parts import has_parts_alone, with_parts
from ianvs.results.stored.stream_results import baseline_sentences, read_stream
from ianvs.store import CaseState, CaseStore, ExamRecord, as_record
from ianvs.store.stored_score import StoredScore, finite, score_curve, stored_score


@dataclass(frozen=True)
class Reference:
    """Results of a reference run.

    Attributes:
        vectors: By score, (T,) the values that metrics use.
        vague: Scores with a value below ten times its own error, too uncertain to divide by.
        stream: (N,) scores of its predictions in a stream.
        damaged: Its damaged files.
    """

    status: Status = "unfinished"
    vectors: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    vague: Set[str] = frozenset()
    stream: NDArray[np.float64] | None = None
    damaged: tuple[str, ...] = ()


class ReferenceScores:
    """Scores of reference runs: the diagonal of the matrix, each round's own test set just after it.

    Attributes:
        by_case: {role: id of the reference case} by id of a case.
        read: Reads the result of one of `cases` with the matrices of an exam's scores, since two exams that share a
            reference may use a name for different scores.
    """

    def __init__(
        self,
        by_case: Mapping[str, Mapping[str, str]],
        cases: Iterable[TestCase],
        read: Callable[[TestCase, str], CaseResult],
    ) -> None:
        cases = tuple(cases)
        wanted = {reference for roles in by_case.values() for reference in roles.values()}
        self._by_case, self._read = by_case, read
        self._exams = {case.id: case.testenv for case in cases}
        self._cases = {case.id: case for case in cases if case.id in wanted}
        self._by_reference: dict[tuple[str, str], Reference] = {}  # by (id, exam)

    def of_case(self, case_id: str) -> dict[str, Reference]:
        """Return references by role, without those that are not among the cases."""
        exam, roles = self._exams.get(case_id, ""), self._by_case.get(case_id, {})
        return {role: self._scores(reference, exam) for role, reference in roles.items() if reference in self._cases}

    def _scores(self, reference: str, exam: str) -> Reference:
        if (reference, exam) not in self._by_reference:
            result = self._read(self._cases[reference], exam)
            matrices = result.matrices if result.status == "finished" else {}
            vectors = {
                name: np.diagonal(matrix.values[1:]).copy()
                for name, matrix in matrices.items()
                if matrix.values.shape[0] == matrix.values.shape[1] + 1
            }
            vague = {
                name
                for name, vector in vectors.items()
                if (errors := matrices[name].errors) is not None
                and (np.abs(vector) < 10 * np.diagonal(errors[1:])).any()
            }
            scores = result.stream.get("scores") if result.status == "finished" else None
            self._by_reference[reference, exam] = Reference(result.status, vectors, vague, scores, result.damaged)
        return self._by_reference[reference, exam]


def read_case(
    store: CaseStore,
    case: TestCase,
    state: CaseState,
    exam: ExamRecord | None,
    columns: Sequence[MetricColumn],
    references: Mapping[str, Reference],
    budget: BudgetSpec | None,
    exam_damage: tuple[str, ...] = (),
) -> CaseResult:
    """Read the result of a case, with `columns` computed from it.

    A case that has ended, but whose files (or those of its exam or references) have changed, is unfinished: the next
    run restores them.

    Args:
        store: The store.
        case: The case.
        state: Its status.
        exam: Its exam.
        columns: The metrics.
        references: By role.
        budget: The present budget of the exam, with which measured values are compared. References and bounds have
            none.
        exam_damage: Damaged files of the exam.

    Raises:
        DamagedError: If a file has its recorded size and time, but another content.
    """
    folder = store.folder(case.id)
    damaged = tuple(f"cases/{case.id}/{name}" for name in state.damaged)
    if state.status == "finished":
        damaged += (*exam_damage, *(path for reference in references.values() for path in reference.damaged))
    status = "unfinished" if damaged else state.status or "unfinished"
    stored = {} if damaged else state.result or {}
    bound = bool(stored.get("bound", False))
    if status == "finished":
        records, scores = store.finished_records(case.id)
        rounds = store.round_results(case.id, records)
    else:
        rounds, scores = store.complete_rounds(case.id), store.scores(case.id)
    judged = () if bound or case.role else rounds[1:]
    names = tuple(round_.name for round_ in rounds[1:])
    joint, alone = (references.get(role, Reference()) for role in ("joint", "single_task"))
    unfinished = [role for role, reference in references.items() if reference.status == "unfinished"]
    matrices: dict[str, ScoreMatrix] = {}
    details: dict[str, object] = {}
    left_out: dict[str, StoredScore] = {}  # by score
    samples: dict[str, NDArray[np.float64]] = {}
    for column in columns if exam is not None and not damaged else ():
        if exam is None or column.metric.level != "score" or column.key not in scores:
            continue
        stored_matrix = stored_score(scores[column.key])
        score, values, parts = column.name, stored_matrix.values, stored_matrix.details
        if values.size:
            matrices[score] = ScoreMatrix(
                values,
                score,
                names,
                (POOLED_TEST_SET,) if column.metric.pooled else exam.tests,
                curve=score_curve(stored_matrix, rounds),
                joint=joint.vectors.get(score),
                single_task=alone.vectors.get(score),
                higher_is_better=column.metric.higher_is_better,
                errors=_errors(stored_matrix.left_out_in_rounds),
            )
            left_out[score] = stored_matrix
        if any(part for row in parts for part in row):
            details[score] = parts
    stream, stateless = None, references.get("stateless", Reference()).stream
    if status == "finished" and (case.role == "stateless" or any(c.metric.level == "stream" for c in columns)):
        first = next((matrices[c.name] for c in columns if c.name in matrices), None)
        stream = read_stream(store, case.id, rounds, stateless, first)
    numbers: dict[str, float | None] = {}
    blank: list[str] = []
    if status == "finished" and "handed" not in stored:
        for column in (c for c in columns if not c.metric.mapping):  # several numbers: in `details`
            name, metric = column.name, column.metric
            if metric.level == "system":
                numbers[name] = system_value(metric.name, rounds)
            elif metric.level == "stream":
                numbers[name] = _of_stream(metric, stream)
            elif column.is_stored and metric.level == "matrix":
                stored_value = scores.get(column.key)
                numbers[name] = None if stored_value is None else finite(stored_score(stored_value).values[-1, -1])
            elif column.score in alone.vague and getattr(metric, "unit", "") == "relative change":  # it divides
                numbers[name] = None
                blank.append(f"{name} is blank: a single-task score is below ten times its own error")
            else:
                some = metric.partial or (exam is not None and exam.rules.get("asked") == "future")
                numbers[name] = _number(column, matrices, some)
                if numbers[name] is None and "untrained" in metric.needs and _lacks_untrained(matrices, column.score):
                    blank.append(f"{name} is blank: the learner can't predict before its first round")
                stored_of = left_out.get(column.score if metric.level == "matrix" else name)
                if stored_of is not None and (groups := _group_values(column, matrices, stored_of, some)) is not None:
                    samples[name] = groups
        of_parts = [c for c in columns if c.metric.level == "matrix" and has_parts_alone(c.score, details)]
        blank += [
            f"{c.name} is blank: {c.score} yields several numbers, and `of` names another score" for c in of_parts
        ]
        numbers = with_parts(numbers, details)
    file = folder / "result.json"
    unscored = [_skipped_evaluations(round_.unscored) for round_ in rounds if round_.unscored]
    if cut := sum(round_.cut_answers for round_ in rounds):
        unscored.append(f"{cut} {'answers' if cut > 1 else 'answer'} cut off after {LONGEST_ANSWER} characters")
    doubt, marks = _determinism_doubt(rounds)
    result = CaseResult(
        case=case,
        status=status,
        dataset=exam.dataset if exam else "",
        round_names=names or (exam.rounds if exam else ()),
        directory=folder,
        failure=None if damaged else store.failure_in(state.result, case.id),
        damaged=damaged,
        waiting=tuple(c.name for c in columns if not {*c.metric.needs}.isdisjoint(unfinished)),
        bound=bound,
        basemodel=str(stored.get("basemodel", "")),
        rounds=rounds,
        notes=(*(exam.notes if exam else ()), *(() if stream is None or case.role else baseline_sentences(stream))),
        remark=rounds[-1].remark if rounds else "",
        matrices=matrices,
        over_budget=tuple(over for round_ in judged for over in over_budget(budget, round_)),
        warnings=(*unmeasured_budget_text(budget, judged), *dict.fromkeys(unscored), *marks, *blank),
        details=details,
        metrics=numbers,
        measures={name: as_record(Measure, measure, file) for name, measure in stored.get("measures", {}).items()},
        samples=samples,
        stream={} if stream is None else {"scores": stream.scores, "gains": stream.gains},
        doubt=doubt,
        finished_at=stored.get("finished_at"),
        provenance=stored.get("provenance", {}),
    )
    return with_reported(result, stored["handed"], columns, file) if "handed" in stored else result


def _errors(left_out: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return jackknife standard errors for each score of the matrix."""
    if left_out is None:
        return None
    groups = len(left_out)
    return np.asarray(np.sqrt((groups - 1) / groups * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)))


def numbers_of(
    columns: Sequence[MetricColumn], matrices: Mapping[str, ScoreMatrix], stored: Mapping[str, float | None]
) -> dict[str, float | None]:
    """Return `stored`, the numbers of a finished case, with those of matrices computed from these."""
    numbers = dict(stored)
    for column in columns:
        if (
            stored.get(column.name) is not None
            and not column.metric.mapping
            and column.metric.level not in ("system", "stream", "reported")
        ):
            numbers[column.name] = _number(column, matrices, some=True)  # nan is valid here, since there was a number
    return numbers


def _lacks_untrained(matrices: Mapping[str, ScoreMatrix], score: str) -> bool:
    return score in matrices and matrices[score].untrained is None


def _number(column: MetricColumn, matrices: Mapping[str, ScoreMatrix], some: bool) -> float | None:
    """Return the number of a score, or of a metric over its matrix. some: see _final_score."""
    metric = column.metric
    if metric.level == "score":
        return _score(metric, matrices.get(column.name), some)
    matrix = matrices.get(column.score)
    if matrix is None or metric.function is None:
        return None
    value = metric.function(matrix)
    return None if isinstance(value, Mapping) else finite(value)


def _of_stream(metric: Metric, record: StreamRecord | None) -> float | None:
    value = None if record is None or metric.function is None else metric.function(record)
    return None if value is None or isinstance(value, Mapping) else finite(value)


def _score(metric: Metric, matrix: ScoreMatrix | None, some: bool) -> float | None:
    if matrix is None or metric.over_rounds == "last":
        return _final_score(matrix, some)
    every = (_final_score(replace(matrix, values=matrix.values[: k + 1]), some) for k in range(1, len(matrix.values)))
    defined = [score for score in every if score is not None]
    return finite(np.mean(defined)) if defined else None


def _final_score(matrix: ScoreMatrix | None, some: bool) -> float | None:
    """Return the unweighted mean over test sets after the last round.

    some: leave out test sets that were not evaluated, or that the score is not defined for.
    """
    if matrix is None:
        return None
    last = matrix.values[-1]
    if some:
        last = last[~np.isnan(last)]
    return finite(np.mean(last)) if last.size else None


def _group_values(
    column: MetricColumn, matrices: Mapping[str, ScoreMatrix], stored: StoredScore, some: bool
) -> NDArray[np.float64] | None:
    """Return pseudo-values by groups of the last round if they determine the number.

    Else by those of every round, if any.
    """
    metric = column.metric
    name = column.score if metric.level == "matrix" else column.name
    if metric.level == "score" and metric.over_rounds == "last":
        return by_group(matrices.get(name), stored.left_out, some)
    if name not in matrices or stored.left_out_in_rounds is None:
        return None
    # Evaluations within rounds of a stream have no groups of samples; neither have numbers computed from them.
    matrix = replace(matrices[name], curve=None)
    whole = _number(column, {name: matrix}, some)
    if whole is None or whole != _number(column, matrices, some):
        return None
    without = [_number(column, {name: replace(matrix, values=values)}, some) for values in stored.left_out_in_rounds]
    return None if None in without else _pseudo_values(whole, np.array(without, dtype=float))


def by_group(
    matrix: ScoreMatrix | None, left_out: NDArray[np.float64] | None, some: bool
) -> NDArray[np.float64] | None:
    """Return (G,) jackknife pseudo-values of the score after the last round for groups of test samples."""
    whole = _final_score(matrix, some)
    if matrix is None or left_out is None or whole is None:
        return None
    without = left_out.mean(axis=1)
    if some and np.isnan(left_out).any():
        scores = (_final_score(replace(matrix, values=row[None]), some) for row in left_out)
        without = np.array([np.nan if score is None else score for score in scores])
    return _pseudo_values(whole, without)


def _pseudo_values(whole: float, without: NDArray[np.float64]) -> NDArray[np.float64] | None:
    groups = len(without)
    values = groups * whole - (groups - 1) * without
    return values if np.isfinite(values).all() else None


def _determinism_doubt(rounds: Sequence[RoundResult]) -> tuple[Doubt, list[str]]:
    """Return whether the predictions are those of the trained and saved model, and messages on why not."""
    changed = next((round_.changed for round_ in rounds if round_.changed), "")
    unsaved = next((round_.unsaved for round_ in rounds if round_.unsaved), "")
    marks = [f"changed by its examination: {changed} is not what it was before predict()"] if changed else []
    marks += [f"what save() wrote is not what was examined: {unsaved}"] if unsaved else []
    return "changed" if changed else "unsaved" if unsaved else "", marks


def with_reported(
    result: CaseResult, reported: Mapping[str, Any], columns: Sequence[MetricColumn], file: Path
) -> CaseResult:
    """Return `result` of a finished case with the values that its record, in `file`, has under "handed".

    Raises DamagedError.
    """
    values = {column.name: reported["scores"].get(column.key) for column in columns if not column.metric.mapping}
    rounds = tuple(as_record(RoundResult, stored, file) for stored in reported["rounds"])
    marks = [f"contract {reported.get('contract', 'ianvs')}"]  # formerly the only one
    if reported["test_labels"]:
        marks.append("had access to the test labels")
    untrained = not reported.get("trained", True)
    if untrained:
        marks.append("nothing was trained")
    return replace(
        result,
        dataset=reported["dataset"],
        doubt="untrained" if untrained else "",
        rounds=rounds,
        round_names=tuple(round_.name for round_ in rounds[1:]),
        metrics={name: value if isinstance(value, int | float) else None for name, value in values.items()},
        texts={name: value for name, value in values.items() if isinstance(value, str)},
        matrices=_matrices(reported),
        warnings=(*result.warnings, *marks, *reported["warnings"], *reported["notes"]),
    )


def _matrices(reported: Mapping[str, Any]) -> dict[str, ScoreMatrix]:
    """Return R of the model's metric, if the paradigm evaluates every part; a missing cell is nan."""
    if not reported["R"]:
        return {}
    width = max(map(len, reported["R"]))
    first = reported["untrained"] or [None] * width
    rows = np.array([[*row, *[None] * (width - len(row))] for row in (first, *reported["R"])], dtype=float)
    rounds, tests = (tuple(str(k + 1) for k in range(count)) for count in (len(rows) - 1, width))
    parts = tuple(reported.get("parts", ()))
    return {reported["metric"]: ScoreMatrix(rows, reported["metric"], rounds, parts if len(parts) == width else tests)}


def _skipped_evaluations(reason: str) -> str:
    """Return the reason of skipped evaluations.

    Up to ianvs 0.3 only that was stored, for the only optional evaluation.
    """
    return reason if reason.startswith("no ") else f"no task scores: {reason}"
