"""Sentences on the certainty of a ranking: sources of variance, separated rows, remedies, and the machine's noise."""

from collections.abc import Iterable, Sequence

import numpy as np

from ianvs.results.report.aggregate_cases import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.ranking import ExamSignificance
from ianvs.results.report.values import shown_hyperparameters
from ianvs.results.stats.standing import expected_largest, samples_to_separate, seeds_to_separate

_MOST_PAIRS = 6


def statements(
    rows: Sequence[LeaderboardRow], significance: Sequence[ExamSignificance], metric: str
) -> tuple[str, ...]:
    """Return statements on exams with comparable rows, and on configurations that were selected on reported data.

    metric: by which rows are ranked.
    """
    several = len({row.testenv for row in rows}) > 1
    sentences = []
    for of_exam in significance:
        exam = f"{of_exam.testenv}: " if several else ""
        details = "; ".join(filter(None, (_separation(of_exam), _fixed_test_set(of_exam), _remedy(of_exam))))
        sentences.append(f"{exam}{_chance(of_exam)} {details}.")
    return (*sentences, *_selection_bias(rows, metric))


def _chance(exam: ExamSignificance) -> str:
    fewest, most = exam.counts
    seeds = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    compared = "" if exam.pairs.family == "all" else " of each method with the best alone"
    if exam.groups:
        chance = f"other seeds and other test samples ({seeds}{f', {exam.samples} samples' if exam.samples else ''})"
    else:
        chance = f"other seeds, on this very test set ({seeds}; what parts of it say of {exam.metric} is not known)"
    return f"Ranks allow for {chance}: simultaneous 95 % intervals{compared}."


def _separation(exam: ExamSignificance) -> str:
    """Describe which neighbours in the ranking are separated."""
    pairs, names, count = exam.pairs, exam.rows, exam.pairs.distinct
    if not pairs.apart.any():
        if count == 1:
            return "All methods have the same scores"
        return f"No two of {count} distinct methods are separated" if count > 2 else "The two methods are not separated"
    if pairs.family == "best":
        return f"{int(pairs.apart.sum())} of {len(names)} methods are separated from the best"
    both = (pairs.between(i, i + 1) for i in range(len(names) - 1))
    near = [(names[i], names[i + 1]) for i, pair in enumerate(both) if pair is not None and not pair.separated]
    if not near:
        return "Every method is separated from the next"
    shown = ", ".join(f"{method} and {other}" for method, other in near[:_MOST_PAIRS])
    more = f" and {len(near) - _MOST_PAIRS} pairs more" if len(near) > _MOST_PAIRS else ""
    return f"Not separated: {shown}{more}"


def _fixed_test_set(exam: ExamSignificance) -> str:
    if not exam.groups or exam.pairs.distinct == 1:
        return ""
    count = int(exam.fixed_pairs.apart.sum())
    if not exam.pairs.apart.any():
        return f"on this very test set {count or 'no'} {'pair is' if count == 1 else 'pairs are'}"
    return f"on this very test set {count} of {len(exam.fixed_pairs.apart)} pairs are separated"


def _remedy(exam: ExamSignificance) -> str:
    """Estimate the number of seeds or test samples that would separate the first and the last row."""
    pairs = exam.pairs
    ends = pairs.between(0, len(exam.rows) - 1)
    if ends is None or ends.low is None or ends.separated:
        return ""
    at = np.flatnonzero((pairs.first == 0) & (pairs.second == len(exam.rows) - 1))[0]
    spread, of_samples = float(pairs.spread[at]), float(pairs.samples[at])
    seeds = seeds_to_separate(ends.mean, spread, of_samples, pairs.distinct, exam.groups, pairs.family)
    which = "the first from the last" if len(exam.rows) > 2 else "them"
    if seeds is not None:
        return f"about {seeds} seeds would separate {which} with 80 % chance, if spreads stay"
    if not of_samples or not ends.mean:
        return ""
    times = samples_to_separate(ends.mean, of_samples, pairs.distinct, exam.groups, pairs.family)
    needed = f"about {exam.samples * times:.0f}" if exam.samples else f"{times:.1f} times as many"
    return f"{needed} test samples might separate {which}, more seeds alone would not"


def _selection_bias(rows: Sequence[LeaderboardRow], metric: str) -> list[str]:
    """Warn about selection bias: the best of several configurations, selected on the reported score, looks better
    than it is.
    """
    alike: dict[tuple[str, str], list[LeaderboardRow]] = {}
    for row in rows:
        if row.competes and row.complete:
            alike.setdefault((row.testenv, row.algorithm), []).append(row)
    many = {algorithm: group for (_, algorithm), group in alike.items() if len(group) > 1}
    chosen = []
    for algorithm, group in many.items():
        errors = [error for row in group if metric in row.metrics if (error := row.errors(metric)[0]) is not None]
        most = expected_largest(len(group)) * float(np.median(errors)) if errors else 0.0
        by = f" (chance alone improves its {metric} by about {most:.2g})" if most else ""
        chosen.append(f"the best of {len(group)} configurations of {algorithm}{by}")
    sentence = (
        f"Selection: {'; '.join(chosen)}. A best row that is chosen by the scores of this table looks better than it "
        "is; `rank: {select: {by: seeds}}` chooses on other seeds than it reports (docs/statistics.md)."
    )
    return [sentence] if chosen else []


def noise_statement(rows: Iterable[LeaderboardRow], repeated: Sequence[RowCases], metric: str) -> str:
    """Describe the spread over repetitions of the same case; "" if there are no finished ones."""
    by_method = {(row.testenv, row.algorithm, str(dict(row.hyperparameters))): row for row in rows}
    changes: list[tuple[float, str]] = []
    for group in repeated:
        case = group.case
        row = by_method.get((case.testenv, case.algorithm, str(shown_hyperparameters(case.hyperparameters))))
        if row is None:
            continue
        first = dict(zip(row.seeds, row.by_seed.get(metric, ()), strict=False)).get(case.seed)
        known_values = (value for value in group.metrics.get(metric, ()) if value is not None)
        changes += [(abs(value - first), row.algorithm) for value in known_values if first is not None]
    if not changes:
        return ""
    widest, where = max(changes, key=lambda change: change[0])
    if not widest:
        return f"Repeated with the same seed, every case gave the same {metric} ({len(changes)} repetitions)."
    return f"Repeated with the same seed, {metric} differs by up to {widest:.2g} ({where}; {len(changes)} repetitions)."
