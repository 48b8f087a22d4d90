"""What may be said of a ranking, in sentences: whose chance is counted, who is separated from whom, what would help;
how much is noise of the machine, and how well the exam was sealed."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ianvs.base.types import SEALING_VERSION, Sealing
from ianvs.results.report.gather import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.ranking import ExamSignificance
from ianvs.results.report.values import shown_hyperparameters
from ianvs.results.stats.standing import expected_largest, samples_to_separate, seeds_to_separate

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
        found = "; ".join(filter(None, (_separation(told), _here(told), _remedy(told))))
        said.append(f"{exam}{_chance(told)} {found}.")
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


def _choice(rows: Sequence[LeaderboardRow], metric: str) -> list[str]:
    """The best of several configurations, chosen on the score that is reported, looks better than it is."""
    alike: dict[tuple[str, str], list[LeaderboardRow]] = {}
    for row in rows:
        if row.competes and row.complete:
            alike.setdefault((row.testenv, row.algorithm), []).append(row)
    many = {algorithm: found for (_, algorithm), found in alike.items() if len(found) > 1}
    said = []
    for algorithm, found in many.items():
        errors = [one for row in found if metric in row.metrics if (one := row.errors(metric)[0]) is not None]
        most = expected_largest(len(found)) * float(np.median(errors)) if errors else 0.0
        by = f", by up to {most:.2g}" if most else ""
        said.append(f"{algorithm} ({len(found)}{by})")
    told = (
        f"Several configurations of {', '.join(said)}: the best of them is chosen on what is reported, and looks "
        "better than it is; `rank: {select: {by: seeds}}` keeps the two apart (docs/statistics.md)."
    )
    return [told] if said else []


def noise_statement(rows: Iterable[LeaderboardRow], repeated: Sequence[RowCases], metric: str) -> str:
    """What repetitions of the same case say; "" where nothing was repeated, or not to its end."""
    known = {(row.testenv, row.algorithm, str(dict(row.hyperparameters))): row for row in rows}
    found: list[tuple[float, str]] = []
    for group in repeated:
        case = group.case
        row = known.get((case.testenv, case.algorithm, str(shown_hyperparameters(case.hyperparameters))))
        if row is None:
            continue
        first = dict(zip(row.seeds, row.by_seed.get(metric, ()), strict=False)).get(case.seed)
        known_values = (value for value in group.metrics.get(metric, ()) if value is not None)
        found += [(abs(value - first), row.algorithm) for value in known_values if first is not None]
    if not found:
        return ""
    widest, where = max(found, key=lambda one: one[0])
    if not widest:
        return f"Repeated with the same seed, every case gave the same {metric} ({len(found)} repetitions)."
    return f"Repeated with the same seed, {metric} differs by up to {widest:.2g} ({where}; {len(found)} repetitions)."


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
    denied = ", ".join(sorted({name for one in found for name, _ in one.denied})) or "nothing of that kind"
    handed = f"plugins under `contract: {contract}` are handed the exam's files"
    why = {
        "handed": f"{handed}; metrics ran in processes of their own",
        "none": "learners ran in the process that holds the exam",
        "open": "`sealing: open` left learners and the copies that answer what they like",
        "audit": f"an audit let pass what copies are denied otherwise; it called {denied}",
    }
    for how in why:
        if any(one.how == how for one in found):
            return f"Not sealed: {why[how]} (docs/trust.md)."
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
