"""What may be said of a ranking, in sentences: whose chance is counted, who is separated from whom, what would help;
how much is noise of the machine, and how well the exam was sealed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import sqrt

import numpy as np

from ianvs.base.types import Sealing
from ianvs.results.report.gather import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.ranking import ExamSignificance
from ianvs.results.report.values import shown_hyperparameters
from ianvs.results.stats import seeds_to_separate

_MOST_PAIRS = 6


def statements(rows: Sequence[LeaderboardRow], significance: Sequence[ExamSignificance]) -> tuple[str, ...]:
    """Of the exams whose rows have a standing, and of configurations that were chosen on what is reported."""
    several = len({row.testenv for row in rows}) > 1
    said = []
    for told in significance:
        exam = f"{told.testenv}: " if several else ""
        said.append(f"{exam}{_chance(told)} {_separation(told)}")
    return (*said, *_choice(rows))


def _chance(told: ExamSignificance) -> str:
    if not told.samples:
        return f"{told.seeds} seeds: rank intervals and tiers speak of the seed only."
    seeds, samples = told.pairs.variances["seeds"], told.pairs.variances["samples"]
    total = seeds + samples
    share = float(np.median(samples[total > 0] / total[total > 0])) if (total > 0).any() else 0.0
    return (
        f"{told.seeds} seeds: rank intervals and tiers speak of the seed and of the choice of test samples, which has "
        f"{100 * share:.0f} % of the variance of a difference (median)."
    )


def _separation(told: ExamSignificance) -> str:
    """Of neighbours in the ranking, which are apart; where none of all is, what it would take."""
    pairs, names, count = told.pairs, told.rows, len(told.rows)
    if not pairs.separated.any():
        first = f"No two of the {count} methods are separated" if count > 2 else "The two methods are not separated"
        return f"{first}{_remedy(told)}."
    near = [(names[i], names[i + 1]) for i in range(count - 1) if not pairs.separated[i, i + 1]]
    if not near:
        return "Every method is separated from the next."
    shown = ", ".join(f"{one} and {other}" for one, other in near[:_MOST_PAIRS])
    more = f" and {len(near) - _MOST_PAIRS} pairs more" if len(near) > _MOST_PAIRS else ""
    return f"Not separated: {shown}{more}."


def _remedy(told: ExamSignificance) -> str:
    """How many seeds the widest difference would need, as things look now."""
    pairs = told.pairs
    widest = int(np.argmax(np.abs(pairs.difference)))
    spread = pairs.variances["seeds"][widest] * told.seeds
    floor = pairs.variances["samples"][widest] if told.samples else 0.0
    needed = seeds_to_separate(float(pairs.difference[widest]), sqrt(spread), len(pairs.difference), float(floor))
    if needed is None or needed <= told.seeds:
        return ""
    return f"; as they differ now, about {needed} seeds would separate the first and the last"


def _choice(rows: Sequence[LeaderboardRow]) -> list[str]:
    """The best of several configurations, chosen on the score that is reported, looks better than it is."""
    tried: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.competes:
            tried[row.testenv, row.algorithm] = tried.get((row.testenv, row.algorithm), 0) + 1
    many = {algorithm: count for (_, algorithm), count in tried.items() if count > 1}
    if not many:
        return []
    listed = ", ".join(f"{algorithm} ({count})" for algorithm, count in many.items())
    return [
        f"Several configurations of {listed}: the best of them is chosen on what is reported, and looks better than it "
        "is; `rank: {select: ...}` keeps the two apart (docs/statistics.md)."
    ]


def noise_statement(rows: Iterable[LeaderboardRow], repeated: Sequence[RowCases], metric: str) -> str:
    """What repetitions of the same case say; "" where nothing was repeated, or not to its end."""
    known = {(row.testenv, row.algorithm, str(dict(row.hyperparameters))): row for row in rows}
    widest, where, count = 0.0, "", 0
    for group in repeated:
        case = group.case
        row = known.get((case.testenv, case.algorithm, str(shown_hyperparameters(case.hyperparameters))))
        if row is None:
            continue
        first = dict(zip(row.seeds, row.by_seed.get(metric, ()), strict=False)).get(case.seed)
        for value in group.metrics.get(metric, ()):
            if value is None or first is None:
                continue
            count += 1
            if abs(value - first) > widest:
                widest, where = abs(value - first), row.algorithm
    if not count:
        return ""
    if not widest:
        return f"Repeated with the same seed, every case gave the same {metric} ({count} repetitions)."
    return f"Repeated with the same seed, {metric} differs by up to {widest:.2g} ({where}; {count} repetitions)."


def sealing_note(found: Collection[Sealing], contract: str) -> str:
    """How the exam was kept from the learners, in the weakest of all cases; "" where none has ended."""
    if not found:
        return ""
    if any(one.how == "handed" for one in found):
        return (
            f"Not sealed: plugins under `contract: {contract}` are handed the exam's files; metrics ran in processes "
            "of their own (docs/trust.md)."
        )
    if any(one.how == "none" for one in found):
        return "Not sealed: learners ran in the process that holds the exam (docs/trust.md)."
    if any(one.how == "open" for one in found):
        return "Not sealed: `sealing: open` left learners and the copies that answer what they like (docs/trust.md)."
    if any(one.how == "audit" for one in found):
        denied = sorted({name for one in found for name, _ in one.denied})
        told = f"it called {', '.join(denied)}" if denied else "it called nothing of that kind"
        return f"Not sealed: an audit let pass what copies are denied otherwise; {told} (docs/trust.md)."
    strictly = "Strictly sealed" if all(one.how == "strict" for one in found) else "Sealed"
    said = [
        f"{strictly}: learners ran in processes of their own, which were handed one round's data at a time",
        "the kernel closed the files of the exam, the data and other cases to them"
        if all(one.closed for one in found)
        else "but the kernel did not close the files of the exam to them (no Landlock)",
        "answers came from copies that were thrown away"
        if all(one.copies != "none" for one in found)
        else "answers came from copies that were thrown away, but for the learners that are marked",
    ]
    if missing := sorted({name for one in found for name in one.missing}):
        said[0] = f"Not sealed against {' and '.join(missing)}{said[0][said[0].index(':') :]}"
    return "; ".join(said) + " (docs/trust.md)."
