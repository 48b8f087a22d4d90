"""Methods over several exams as a markdown table, and what the tests over exams can say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from ianvs.results.report.layout import tabulated
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.method_exams import MethodsOverExams
from ianvs.results.stats import ENOUGH_EXAMS, exams_needed

__all__ = ["exams_table", "over_exams_cells", "short_names"]


def exams_table(leaderboard: Leaderboard, escape: Callable[[str], str]) -> str:
    """escape: of what names may hold. "" for a job with one exam."""
    told = over_exams_cells(leaderboard)
    if told is None:
        return ""
    said, headers, lines, tests = told
    table = tabulated(list(map(escape, headers)), [list(map(escape, line)) for line in lines])
    return f"{escape(said)}\n\n{table}\n\n{escape(tests)}"


def over_exams_cells(leaderboard: Leaderboard) -> tuple[str, list[str], list[list[str]], str] | None:
    """(what it is, headers, a line of cells for each method, what the tests say); None for a job with one exam."""
    found = leaderboard.over_exams
    if found is None:
        return None
    short = short_names(found.names)
    order = sorted(
        range(len(found.names)),
        key=lambda i: -one.mean if (one := found.together.rows[i]) is not None else float("inf"),
    )
    headers = ["Method", "Mean rank", "Win rate", f"Mean {found.metric}", "Tier"]
    headers += ["Interquartile mean"] if found.together.exams >= ENOUGH_EXAMS else []
    lines = []
    for i in order:
        one, standing = found.together.rows[i], found.standing[i]
        if one is None:
            lines.append([short[i], "lacks an exam", *[""] * (len(headers) - 2)])
            continue
        sign = 1 if found.higher else -1
        mean = [sign * one.mean, *([sign * end for end in one.mean_interval][::sign] if one.mean_interval else [])]
        cells = [short[i], _with_interval(one.mean_rank, one.mean_rank_interval, 2), f"{one.win_rate:.2f}"]
        cells += [_with_interval(mean[0], (mean[1], mean[2]) if len(mean) > 1 else None, 3)]
        cells += [f"{standing.tier} ({standing.low}-{standing.high})" if standing else ""]
        cells += [_with_interval(one.iqm, one.iqm_interval, 3)] if one.iqm is not None else []
        lines.append(cells)
    return _said(found), headers, lines, _tests(found, short)


def _said(found: MethodsOverExams) -> str:
    many = found.together.exams >= ENOUGH_EXAMS
    spread = "with 95 % intervals of the bootstrap over exams" if many else "too few exams for intervals over them"
    return (
        f"{found.together.exams} exams, {spread}; the tier is of the mean over these exams, by the chance of the seeds "
        "alone. Win rate: of all comparisons with other methods, wins and half of the ties."
    )


def _tests(found: MethodsOverExams, names: tuple[str, ...]) -> str:
    """What Friedman's and Wilcoxon's tests say, or why they can't say anything."""
    together, methods = found.together, sum(row is not None for row in found.together.rows)
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
    """Without hyperparameters where an algorithm comes once."""
    plain = [name.partition(" (")[0] for name in names]
    return tuple(name if plain.count(short) > 1 else short for name, short in zip(names, plain, strict=True))


def _with_interval(value: float, interval: tuple[float, float] | None, decimals: int) -> str:
    shown = f"{value:.{decimals}f}"
    return shown if interval is None else f"{shown} ({interval[0]:.{decimals}f} to {interval[1]:.{decimals}f})"
