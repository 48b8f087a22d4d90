"""Selects one configuration of each algorithm on a part of the results, and reports it on the rest.

A selection on the reported results is biased: the best of ten looks 1.6 standard deviations of a seed better than it
is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ianvs.base.types import POOLED_TEST_SET, CaseResult, ScoreMatrix, TestCase
from ianvs.config.spec import SelectSpec
from ianvs.exam.metrics.metric_columns import MetricColumn, columns_named
from ianvs.results.report.leaderboard import SelectedResults
from ianvs.results.report.values import method_name
from ianvs.results.stats import summarise
from ianvs.results.stats.summary import Array
from ianvs.results.stored.case_results import by_group, numbers_of
from ianvs.store import CaseStore, ExamRecord, Study
from ianvs.store.keys import canonical

SHARE = 0.25  # default share of the samples of every test set for `by: validation`

Columns = Mapping[str, Sequence[MetricColumn]]
Part = Callable[[CaseResult], CaseResult | None]  # returns the part of a result that counts; None: nothing


@dataclass(frozen=True)
class _Split:
    """How results are split: the part to select on, and the part to report."""

    choosing: Part
    reporting: Part
    text: str
    saw_the_future: bool = True
    another_exam: bool = False  # then the selection applies to all other exams


def select(
    results: Iterable[CaseResult],
    cases: Sequence[TestCase],
    spec: SelectSpec | None,
    sort_by: Sequence[tuple[str, bool]],
    columns: Columns,
    seeds: int,
    studies: Sequence[Study] = (),
) -> SelectedResults:
    """Return the results of the best configuration of each algorithm in each exam, by the first metric of `sort_by`.

    A configuration that lacks a case can't be selected; if all do, all stay, with a note.

    Args:
        results: Of `cases`; read once here, and again each time that the selected ones are read.
        cases: The cases.
        spec: How to select; None: only searches select.
        sort_by: Metrics to select by.
        columns: Columns by exam.
        seeds: Number of seeds.
        studies: Searches, which have selected already, by their own metric.
    """
    name, descending = (studies[0].metric, studies[0].higher_is_better) if studies else sort_by[0]
    metric = columns_named(name, [column.name for of_exam in columns.values() for column in of_exam])[0]
    case_seeds = sorted({case.seed for case in cases})
    first = {seed for study in studies for seed in study.seeds} or first_half(case_seeds)
    if spec is None or spec.by == "exam" or (spec.by != "seeds" and len(case_seeds) < 2):
        first = set()
    halves = _ALL if spec is None else _split_of(spec, metric, columns, first, set(case_seeds) - first)
    found_by = {(study.testenv, study.algorithm): study for study in studies}
    scores: dict[tuple[str, str], dict[str, list[float | None]]] = {}
    for result in results:
        if result.case.role or (part := halves.choosing(result)) is None:
            continue
        group = "" if halves.another_exam else part.case.testenv, part.case.algorithm
        if group not in found_by:
            value = part.metrics.get(metric) if part.status == "finished" else None
            scores.setdefault(group, {}).setdefault(_configuration(result), []).append(value)
    best = {group: _best(by_configuration, descending) for group, by_configuration in scores.items()}

    def stays(result: CaseResult) -> bool:
        group = "" if halves.another_exam else result.case.testenv, result.case.algorithm
        if not result.case.role and group in found_by:
            return is_winner(result.case, found_by[group])
        return bool(result.case.role) or best.get(group) in (None, _configuration(result))

    def reported() -> Iterator[CaseResult]:
        for result in results:
            if stays(result) and (part := halves.reporting(result)) is not None:
                yield part

    exams = {case.testenv for case in cases}
    tried = {
        (exam, algorithm): len(by_configuration)
        for (exam_chosen_on, algorithm), by_configuration in scores.items()
        for exam in (exams if halves.another_exam else {exam_chosen_on})
    }
    future = " The choice has seen all rounds, the future of the first included." if halves.saw_the_future else ""
    texts = [] if spec is None else [f"Each algorithm's configuration is chosen by {metric} {halves.text}.{future}"]
    texts += [_search_text(study, spec) for study in studies]
    return SelectedResults(
        _Reiterable(reported),
        seeds - len(first),
        tried | {group: len(study.trials) for group, study in found_by.items()},
        tuple(texts),
        dict.fromkeys(found_by, "its search saw all rounds") if halves.saw_the_future else {},
    )


def worth_after(
    store: CaseStore,
    case_id: str,
    column: MetricColumn,
    columns: Sequence[MetricColumn],
    exam: ExamRecord,
    after: int | None,
    select: SelectSpec | None,
) -> float | None:
    """Return the number of `column` over the first `after` rounds and, if each round has a test set, over theirs.

    columns: of the exam. after: None for a finished case, for all rounds. select: by validation, only over its share of
    the groups of test samples. None if there is no number, or it is not finite.
    """
    score = column.name if column.metric.level == "score" else column.score
    stored = next((candidate for candidate in columns if candidate.name == score), None)
    stored_matrix = None if stored is None else store.score(case_id, stored.key, after)
    if stored is None or stored_matrix is None or not stored_matrix.values.size:
        return None
    count = len(stored_matrix.values) - 1
    each = not stored.metric.pooled and stored_matrix.values.shape[1] == len(exam.rounds)
    matrix = ScoreMatrix(
        stored_matrix.values,
        score,
        exam.rounds[:count],
        exam.tests if stored_matrix.values.shape[1] == len(exam.tests) else (POOLED_TEST_SET,),
        higher_is_better=stored.metric.higher_is_better,
    )
    if each:
        matrix = _cut(matrix, slice(count))
    if select is None or select.by != "validation":
        return numbers_of([column], {score: matrix}, {column.name: 0.0})[column.name]
    without = stored_matrix.left_out
    if each and without is not None:
        without = without[:, :count]
    groups = by_group(matrix, without, some=True)
    return None if groups is None else float(np.mean(_parts_of(groups, select.share)[0]))


def seen_results_text(spec: SelectSpec | None, seeds: Sequence[int]) -> str:
    """Return which results a search with these seeds uses, as text. spec: None: all reported ones."""
    named_seeds = f"seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))}"
    if spec is None or spec.by == "seeds":
        return f"on all rounds of {named_seeds}"
    if spec.by == "validation":
        return f"on {100 * (spec.share or SHARE):g} % of the samples of every test set, all rounds of {named_seeds}"
    return f"on the first {spec.rounds} rounds of {named_seeds}"


def is_winner(case: TestCase, study: Study) -> bool:
    """Return whether a case has the configuration that the study selected."""
    if study.winner is None or not study.ended:
        return False
    drawn = study.trials[study.winner - 1].drawn
    return canonical({name: case.hyperparameters.get(name) for name in drawn}) == canonical(dict(drawn))


def _search_text(study: Study, spec: SelectSpec | None) -> str:
    name = method_name(study.algorithm, study.testenv)
    trials = f"{len(study.trials)} trial{'s' * (len(study.trials) != 1)} ({study.search_settings['name']})"
    if not study.ended:
        return f"The search for {name} goes on: {trials} so far."
    if study.winner is None:
        return f"The search for {name} has no winner: none of its {trials} came to an end."
    text = f"{name} is the winner of {trials} by {study.metric} {study.values_description}."
    if spec is None:
        text += (
            " The search has seen all that is reported, the future of the first round included: its winner looks "
            "better than it is; `search: {select: ...}` keeps the two apart (docs/running.md)."
        )
    return f"{text} {study.note[0].upper()}{study.note[1:]}." if study.note else text


class _Reiterable:
    """Results that can be iterated more than once."""

    def __init__(self, read: Callable[[], Iterator[CaseResult]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[CaseResult]:
        return self._read()


_ALL = _Split(choosing=lambda result: None, reporting=lambda result: result, text="")


def _split_of(spec: SelectSpec, metric: str, columns: Columns, first: set[int], others: set[int]) -> _Split:
    """Return the split. first, others: seeds to select on and to report, so that both do not share a run's luck."""
    of_first = f" of seed{'s' * (len(first) > 1)} {', '.join(map(str, sorted(first)))}"
    match spec.by:
        case "seeds":
            text = f"on all{of_first} and reported on the other seeds"
            return _Split(_take_seeds(first), _take_seeds(others), text)
        case "exam":
            text = f"on {spec.exam} and reported on the other exams"
            return _Split(
                lambda result: result if result.case.testenv == spec.exam else None,
                lambda result: None if result.case.testenv == spec.exam else result,
                text,
                another_exam=True,
            )
        case "validation":
            share = spec.share or SHARE
            text = f"on {100 * share:g} % of the samples of every test set, and {metric} is reported on the others"
            halves = _Split(_take_samples(metric, share, chosen=True), _take_samples(metric, share, chosen=False), text)
        case "first_rounds":
            k = spec.rounds or 0
            text = f"on the first {k} rounds and reported on the test sets of the rounds after them"
            first_k, rest = _take_rounds(slice(k), columns), _take_rounds(slice(k, None), columns)
            halves = _Split(first_k, rest, text, saw_the_future=False)
    if not first:
        return halves
    return replace(
        halves,
        choosing=_take_seeds(first, halves.choosing),
        reporting=_take_seeds(others, halves.reporting),
        text=f"{halves.text}; the choice is{of_first}, the report of the other seeds",
    )


def first_half(seeds: Sequence[int]) -> set[int]:
    """Return at least one seed, and the smaller half of an odd number, since reporting needs more of them."""
    return set(seeds[: max(len(seeds) // 2, 1)])


def _take_seeds(seeds: set[int], part: Part = lambda result: result) -> Part:
    return lambda result: part(result) if result.case.seed in seeds else None


def _take_samples(metric: str, share: float, *, chosen: bool) -> Part:
    """Return a function that restricts results to groups of samples by their pseudo-values (CaseResult.samples)."""

    def part(result: CaseResult) -> CaseResult:
        groups = result.samples.get(metric)
        if groups is None:
            return replace(result, metrics={**result.metrics, metric: None})
        selected = _parts_of(groups, share)[not chosen]
        samples = {**result.samples, metric: selected} if len(selected) > 1 else {}
        return replace(result, metrics={**result.metrics, metric: float(np.mean(selected))}, samples=samples)

    return part


def _parts_of(groups: Array, share: float | None) -> tuple[Array, Array]:
    """Return the groups of samples to select on, and those to report. share: None: a quarter."""
    cut = min(max(round((share or SHARE) * len(groups)), 1), len(groups) - 1)
    return groups[:cut], groups[cut:]


def _take_rounds(rounds: slice, columns: Columns) -> Part:
    def part(result: CaseResult) -> CaseResult:
        matrices = {name: _cut(matrix, rounds) for name, matrix in result.matrices.items()}
        first = next(iter(matrices.values()), None)
        return replace(
            result,
            matrices=matrices,
            round_names=result.round_names if first is None else first.rounds,
            metrics=numbers_of(columns.get(result.case.testenv, ()), matrices, result.metrics),
            samples={},
            details={},
        )

    return part


def _cut(matrix: ScoreMatrix, rounds: slice) -> ScoreMatrix:
    """Return the matrix of these rounds and their test sets; the untrained model stays."""

    def cut_vector(vector: Array | None) -> Array | None:
        return None if vector is None else vector[rounds]

    return replace(
        matrix,
        values=matrix.values[[0, *range(1, len(matrix.values))[rounds]]][:, rounds],
        rounds=matrix.rounds[rounds],
        tests=matrix.tests[rounds],
        curve=None,
        joint=cut_vector(matrix.joint),
        single_task=cut_vector(matrix.single_task),
    )


def _configuration(result: CaseResult) -> str:
    """Return a key of the configuration, which is the same in every exam of a job."""
    return repr(sorted((name, repr(value)) for name, value in result.case.hyperparameters.items()))


def _best(by_configuration: Mapping[str, Sequence[float | None]], descending: bool) -> str | None:
    means = {name: summarise(values).mean for name, values in by_configuration.items()}
    ranked = {name: mean if descending else -mean for name, mean in means.items() if mean is not None}
    return max(ranked, key=ranked.__getitem__) if ranked else None
