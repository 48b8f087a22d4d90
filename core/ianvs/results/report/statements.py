"""What may be said of a ranking, in sentences: whose chance is counted, who is separated from whom, what would help;
how much is noise of the machine, and how well the exam was sealed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import sqrt

import numpy as np

from ianvs.base.types import SEALING_VERSION, Sealing
from ianvs.results.report.gather import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.ranking import ExamSignificance
from ianvs.results.report.values import shown_hyperparameters
from ianvs.results.stats.standing import expected_largest, samples_to_separate, seeds_to_separate, unseen_failure

_MOST_PAIRS = 6


def statements(
    rows: Sequence[LeaderboardRow], significance: Sequence[ExamSignificance], metric: str
) -> tuple[str, ...]:
    """Of the exams whose rows have a standing, and of configurations that were chosen on what is reported.

    metric: by which rows are ranked.
    """
    several = len({row.testenv for row in rows}) > 1
    said = []
    for told in significance:
        exam = f"{told.testenv}: " if several else ""
        parts = (
            _chance(told),
            f"{'; '.join(filter(None, (_separation(told), _here(told), _remedy(told))))}.",
            *_limits(told),
        )
        said.append(f"{exam}{' '.join(parts)}")
    return (*said, *_choice(rows, metric))


def _chance(told: ExamSignificance) -> str:
    fewest, most = told.counts
    seeds = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    compared = "" if told.pairs.family == "all" else " of each method with the best alone"
    if told.groups:
        of = f"other seeds and other test samples ({seeds}{f', {told.samples} samples' if told.samples else ''})"
    else:
        of = f"other seeds, on this very test set ({seeds}; what parts of it say of {told.metric} is not known)"
    return f"Ranks allow for {of}: simultaneous 95 % intervals{compared}."


def _separation(told: ExamSignificance) -> str:
    """Of neighbours in the ranking, which are apart."""
    pairs, names, count = told.pairs, told.rows, told.pairs.distinct
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
    shown = ", ".join(f"{one} and {other}" for one, other in near[:_MOST_PAIRS])
    more = f" and {len(near) - _MOST_PAIRS} pairs more" if len(near) > _MOST_PAIRS else ""
    return f"Not separated: {shown}{more}"


def _here(told: ExamSignificance) -> str:
    if not told.groups:
        return ""
    count = int(told.here.apart.sum())
    if not told.pairs.apart.any():
        return f"on this very test set {count or 'no'} {'pair is' if count == 1 else 'pairs are'}"
    return f"on this very test set {count} of {len(told.here.apart)} pairs are separated"


def _remedy(told: ExamSignificance) -> str:
    """What would separate the first and the last, as things look now."""
    pairs = told.pairs
    ends = pairs.between(0, len(told.rows) - 1)
    if ends is None or ends.low is None or ends.separated:
        return ""
    at = np.flatnonzero((pairs.first == 0) & (pairs.second == len(told.rows) - 1))[0]
    spread, of_samples = float(pairs.spread[at]), float(pairs.samples[at])
    seeds = seeds_to_separate(ends.mean, spread, of_samples, pairs.distinct, told.groups, pairs.family)
    which = "the first from the last" if len(told.rows) > 2 else "them"
    if seeds is not None:
        return f"about {seeds} seeds would separate {which} with 80 % chance, if spreads stay"
    if not of_samples or not ends.mean:
        return ""
    times = samples_to_separate(ends.mean, of_samples, pairs.distinct, told.groups, pairs.family)
    needed = f"about {told.samples * times:.0f}" if told.samples else f"{times:.1f} times as many"
    return f"{needed} test samples might separate {which}, more seeds alone would not"


def _limits(told: ExamSignificance) -> list[str]:
    """What these intervals do not cover."""
    fewest = told.counts[0]
    rare = f"A failure that {fewest} seed{'s have' if fewest > 1 else ' has'} not shown may still be as probable as "
    said = [f"{rare}{100 * unseen_failure(fewest):.0f} %."]
    if fewest == 2:
        said.append("Two seeds separate next to nothing: run a third.")
    if fewest == 4 and told.pairs.apart.any():
        said.append("From a fifth seed on variances are pooled by their median, which can undo a separation.")
    for row, seeds in told.wild.items():
        known = [score for score in told.scores[:, row].tolist() if score == score]
        far, every = (", ".join(f"{score:.4g}" for score in some) for some in (told.scores[seeds, row], known))
        said.append(
            f"{told.rows[row]}: {len(seeds)} of {len(known)} scores {'is' if len(seeds) == 1 else 'are'} far from "
            f"their median ({far}; all: {every}); intervals take scores for normal draws, which these are not."
        )
    return said


def _choice(rows: Sequence[LeaderboardRow], metric: str) -> list[str]:
    """The best of several configurations, chosen on the score that is reported, looks better than it is."""
    alike: dict[tuple[str, str], list[LeaderboardRow]] = {}
    for row in rows:
        if row.competes and row.complete:
            alike.setdefault((row.testenv, row.algorithm), []).append(row)
    many = {algorithm: found for (_, algorithm), found in alike.items() if len(found) > 1}
    if not many:
        return []
    said = []
    for algorithm, found in many.items():
        errors = [one for row in found if metric in row.metrics if (one := _error(row, metric)) is not None]
        most = expected_largest(len(found)) * float(np.median(errors)) if errors else 0.0
        by = f", by up to {most:.2g}" if most else ""
        said.append(f"{algorithm} ({len(found)}{by})")
    return [
        f"Several configurations of {', '.join(said)}: the best of them is chosen on what is reported, and looks "
        "better than it is; `rank: {select: {by: seeds}}` keeps the two apart (docs/statistics.md)."
    ]


def _error(row: LeaderboardRow, metric: str) -> float | None:
    """Standard error of a mean, by the seeds."""
    return None if (std := row.metrics[metric].std) is None else std / sqrt(row.metrics[metric].n)


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


_WALLS = {
    "files": "what opens the exam's files",
    "writes": "what learners leave outside of their own folders",
    "truncation": "learners that cut off files",
    "weights": "what learners put into the user's caches of weights (`download: true`)",
    "signals": "signals that end other processes",
}
"""What is possible where a wall of that name is missing (ianvs.processes.sealing.places). Others are words already."""


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
    missing = [_WALLS.get(name, name) for name in sorted({name for one in found for name in one.missing})]
    strictly = "Strictly sealed" if all(one.how == "strict" for one in found) else "Sealed"
    said = [
        f"{'Not sealed against ' + ' and '.join(missing) if missing else strictly}: learners ran in processes of their "
        "own, which were handed one round's data at a time",
        "the kernel closed the files of the exam, the data and other cases to them"
        if all(one.closed for one in found)
        else "but the kernel did not close the files of the exam to them (no Landlock)",
        "answers came from copies that were thrown away"
        if all(one.copies != "none" for one in found)
        else "answers came from copies that were thrown away, but for the learners that are marked",
    ]
    if any(one.version < SEALING_VERSION for one in found):
        which = "the cases" if all(one.version < SEALING_VERSION for one in found) else "some cases"
        said.append(f"{which} were sealed by version 1 of these rules, which let learners write wherever the user can")
    return "; ".join(said) + " (docs/trust.md)."
