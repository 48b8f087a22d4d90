"""The tables below a ranking: certainty, searches, several exams, test sets."""

from collections.abc import Callable, Iterator
from itertools import combinations

from ianvs.results.report.document import Table, text_table
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.ranking import MethodsOverExams
from ianvs.results.report.ranking_table import shown_rank, varied
from ianvs.results.report.trials import search_table
from ianvs.results.report.values import difference_text
from ianvs.results.stats import ENOUGH_EXAMS, RankInterval, exams_needed


def further_tables(leaderboard: Leaderboard) -> Iterator[Table]:
    exams = list(dict.fromkeys(row.testenv for row in leaderboard.rows))
    if leaderboard.significance:
        yield _certainty_table(leaderboard)
    yield from map(search_table, leaderboard.studies)
    if leaderboard.over_exams is not None:
        yield _over_exams(leaderboard.over_exams)
    for exam in exams:
        yield from _test_sets(leaderboard, exam)


def _certainty_table(leaderboard: Leaderboard) -> Table:
    """Return intervals and differences of the metric that exams are ranked by."""
    metric, differing = leaderboard.significance[0].metric, varied(leaderboard)
    rows = [row for row in leaderboard.rows if metric in row.metrics and row.metrics[metric].std is not None]
    columns: list[tuple[str, Callable[[LeaderboardRow], str]]] = [
        ("Rank", lambda row: shown_rank(row, row.place)),
        ("Tier", lambda row: (row.standing.tier or "") if row.standing else ""),
        ("Testenv", lambda row: row.testenv),
        ("Algorithm", lambda row: row.algorithm),
        ("Hyperparameters", lambda row: row.settings(differing)),
        (metric, lambda row: _number(row.metrics[metric].mean, 4)),
        ("Error of seeds", lambda row: _number(row.errors(metric)[0], 2)),
        ("of samples", lambda row: _number(row.errors(metric)[1], 2)),
        ("Ranks on this test set", lambda row: _ranks(row.standing_here)),
        ("Minus the best", lambda row: difference_text(row.to_best)),
        (f"Minus {leaderboard.baseline}", lambda row: difference_text(row.to_baseline)),
    ]
    filled = [(title, cells) for title, cell in columns if any(cells := [cell(row) for row in rows])]
    above = (
        "Standard errors of the mean, of seeds and of test samples. Differences are paired by seed; with the margin "
        "behind ± all of an exam hold at once with 95 %, so those that exclude 0 are real (docs/statistics.md)."
    )
    lines = zip(*(cells for _, cells in filled), strict=True)
    return text_table("how sure", [title for title, _ in filled], list(lines), title="How sure", above=above)


def _ranks(ranks: RankInterval | None) -> str:
    return "" if ranks is None else str(ranks.low) if ranks.low == ranks.high else f"{ranks.low}-{ranks.high}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _over_exams(methods: MethodsOverExams) -> Table:
    """Return methods over several exams, with the results of tests over exams below."""
    short = short_names(methods.names)
    order = sorted(
        range(len(methods.names)),
        key=lambda i: -row.mean if (row := methods.together.rows[i]) is not None else float("inf"),
    )
    many = methods.together.exams >= ENOUGH_EXAMS
    heads = ["Method", "Mean rank", "Win rate", f"Mean {methods.metric}", "Tier"]
    heads += ["Interquartile mean"] if many else []
    lines = []
    for i in order:
        row, standing = methods.together.rows[i], methods.standing[i]
        if row is None:
            lines.append([short[i], "lacks an exam", *[""] * (len(heads) - 2)])
            continue
        ends = row.mean_interval
        if ends is not None and not methods.higher:
            ends = -ends[1], -ends[0]
        cells = [short[i], _with_interval(row.mean_rank, row.mean_rank_interval, 2), f"{row.win_rate:.2f}"]
        cells += [_with_interval(row.mean if methods.higher else -row.mean, ends, 3)]
        cells += [f"{standing.tier} ({_ranks(standing)})" if standing else ""]
        cells += [_with_interval(row.iqm, row.iqm_interval, 3)] if row.iqm is not None else []
        lines.append(cells)
    spread = "with 95 % intervals of the bootstrap over exams" if many else "too few exams for intervals over them"
    over = "over other seeds and other test samples" if methods.samples else "over other seeds on these test samples"
    above = (
        f"{methods.together.exams} exams, {spread}; the tier is of the mean over these exams, {over}. Win rate: of all "
        "comparisons with other methods, wins and half of the ties."
    )
    return text_table("over exams", heads, lines, title="Over exams", above=above, below=_tests(methods, short))


def _tests(comparison: MethodsOverExams, names: tuple[str, ...]) -> str:
    """Return the results of Friedman's and Wilcoxon's tests, or why they are not possible."""
    together, methods = comparison.together, sum(row is not None for row in comparison.together.rows)
    if together.pairs is None:
        return (
            f"No test over exams: with {methods} methods the pairwise tests can say something from "
            f"{exams_needed(methods)} exams on."
        )
    pairs = [(i, j) for i, j in combinations(range(len(names)), 2) if together.pairs[i, j] <= 0.05]
    apart = ", ".join(f"{names[i]} and {names[j]}" for i, j in pairs) or "none"
    friedman = "" if together.friedman is None else f"Friedman's test of equality: p = {together.friedman:.2g}. "
    return f"{friedman}Apart over exams (Wilcoxon's signed-rank test, Holm's steps): {apart}."


def short_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names without hyperparameters if an algorithm occurs once."""
    plain = [name.partition(" (")[0] for name in names]
    return tuple(name if plain.count(short) > 1 else short for name, short in zip(names, plain, strict=True))


def _with_interval(value: float, interval: tuple[float, float] | None, decimals: int) -> str:
    shown = f"{value:.{decimals}f}"
    return shown if interval is None else f"{shown} ({interval[0]:.{decimals}f} to {interval[1]:.{decimals}f})"


def _test_sets(leaderboard: Leaderboard, exam: str) -> Iterator[Table]:
    """Yield the scores of each test set just after its round and after the last one, if there are several."""
    rows = [row for row in leaderboard.rows if row.testenv == exam and len(row.tests) > 1]
    if not rows:
        return
    names, differing = list(dict.fromkeys(name for row in rows for name in row.tests)), varied(leaderboard)
    lines = [[row.algorithm, row.settings(differing), *(_scores(row, name) for name in names)] for row in rows]
    score = next(iter(rows[0].tests.values()))[0]
    above = f"{score} on each test set: just after its round -> after the last round. Mean over seeds."
    heads = ["Algorithm", "Hyperparameters", *names]
    yield text_table("test sets", heads, lines, title="By test set", exam=exam, above=above)


def _scores(row: LeaderboardRow, name: str) -> str:
    if name not in row.tests:
        return ""
    _, learned, final = row.tests[name]
    after = "" if final.mean is None else f"{final.mean:.3f}"
    return after if learned.mean is None else f"{learned.mean:.3f} -> {after}"
