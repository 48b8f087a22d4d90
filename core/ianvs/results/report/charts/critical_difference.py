"""Mean ranks over exams on a line; bars join methods that the tests do not separate (Demsar 2006, section 3.2)."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ianvs.results.report.charts.svg import figure, num, tag, text
from ianvs.results.report.further_tables import short_names
from ianvs.results.report.ranking import MethodsOverExams
from ianvs.results.report.values import fit

_APART = 0.05  # two methods are separated up to this p
_SIDE, _WIDTH, _ROW, _BAR = 190, 420, 19, 9


def critical_difference(key: str, comparison: MethodsOverExams | None) -> Markup:
    """Return the chart; "" if there are too few exams for the tests, which the text beside the table states."""
    if comparison is None or comparison.together.pairs is None:
        return Markup("")
    names = short_names(comparison.names)
    ranked = [(row.mean_rank, i) for i, row in enumerate(comparison.together.rows) if row is not None]
    ranked.sort(key=lambda pair: pair[0])
    m = len(ranked)

    def at(rank: float) -> float:
        return _SIDE + _WIDTH * (rank - 1) / (m - 1)

    groups = groups_not_apart([i for _, i in ranked], ~(comparison.together.pairs > _APART))
    line = 34.0
    parts = [tag("path", d=f"M{num(at(1))} {num(line)}H{num(at(m))}", class_="axis")]
    for whole in range(1, m + 1):
        parts.append(tag("path", d=f"M{num(at(whole))} {num(line)}v-5", class_="axis"))
        parts.append(text(at(whole), line - 10, str(whole), "middle"))
    for n, (first, last) in enumerate(groups):
        y = line + 10 + n * _BAR
        ends = at(ranked[first][0]) - 3, at(ranked[last][0]) + 3
        parts.append(tag("path", d=f"M{num(ends[0])} {num(y)}H{num(ends[1])}", class_="not-apart"))
    below, half = line + 22 + len(groups) * _BAR, (m + 1) // 2
    for place, (rank, i) in enumerate(ranked):
        left = place < half
        y = below + _ROW * (place if left else m - 1 - place)
        end = _SIDE - 8 if left else _SIDE + _WIDTH + 8
        parts.append(tag("path", d=f"M{num(at(rank))} {num(line)}V{num(y)}H{num(end)}", class_="leader"))
        label = f"{fit(names[i], 22)} {rank:.2f}" if left else f"{rank:.2f} {fit(names[i], 22)}"
        parts.append(text(end - 5 if left else end + 5, y + 4, label, "end" if left else None))
    runs = ([names[i] for _, i in ranked[first : last + 1]] for first, last in groups)
    alike = "; ".join(f"{', '.join(run[:-1])} and {run[-1]}" for run in runs) or "none"
    about = f"Mean ranks of {m} methods over {comparison.together.exams} exams, 1 is the best. Not told apart: {alike}."
    height = below + _ROW * half
    return figure(
        key, 2 * _SIDE + _WIDTH, height, "Mean rank over exams", about, tag("g", *parts, class_="axes"), class_="chart"
    )


def groups_not_apart(order: Sequence[int], apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the longest runs of methods, as (first, last) positions in `order`, of which no two are separated.

    order: indices of methods, the best first. apart: (m, m).
    """
    groups: list[tuple[int, int]] = []
    ordered = apart[np.ix_(order, order)]
    # By position: the earliest start of a run that contains it.
    begins = [int(np.flatnonzero(ordered[:place, place]).max(initial=-1)) + 1 for place in range(len(order))]
    last = 0
    for first in range(len(order)):
        last = max(first, last)
        while last + 1 < len(order) and begins[last + 1] <= first:
            last += 1
        if last > first and not (groups and groups[-1][1] >= last):
            groups.append((first, last))
    return groups
