r"""A leaderboard as a LaTeX table, to be read into a paper with `\input`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ianvs.results.report.columns import Column
from ianvs.results.report.layout import TextColumn, text_columns, varied
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow

__all__ = ["escaped", "latex"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
    "°": r"$^{\circ}$",
    "µ": r"$\mu$",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
}
# Greek letters have commands by their names, but for those that look like Latin ones.
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)$")
_LOOK_ALIKE = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))


def latex(leaderboard: Leaderboard, title: str = "Leaderboard", command: str | None = None) -> str:
    r"""A `table` with booktabs' rules: rank, tier, algorithm, what tells its rows apart, metrics as mean $\pm$ std.

    The best mean of each metric in each exam, among those that play by the rules, is bold; so is one that reads the
    same. command: what made the leaderboard. A job with several exams has a part for each.
    """
    found = text_columns(leaderboard)
    text = {column.column.key: column for column in found if column.column.kind == "metric"}
    ranks = next(column.cells for column in found if column.column.kind == "rank")
    columns = [column for column in leaderboard.columns if column.kind == "metric"]
    settings = varied(leaderboard)
    tiers = any(_tier(row) for row in leaderboard.rows)
    head = ["Rank", *(["Tier"] if tiers else []), "Algorithm", *(["Hyperparameters"] if settings else [])]
    head += [escaped(column.title) + _ARROWS[column.higher_is_better] for column in columns]
    firsts = len(head) - len(columns)
    lines = [_line(head), r"\midrule"]
    exams = list(dict.fromkeys(row.testenv for row in leaderboard.rows))
    for exam in exams:
        if exam:
            rule = [r"\midrule"] if exam != exams[0] else []
            lines += [*rule, rf"\multicolumn{{{len(head)}}}{{l}}{{\emph{{{escaped(exam)}}}}} \\"]
        best = {column.key: _best(leaderboard, column, text[column.key], exam) for column in columns}
        for position, row in enumerate(leaderboard.rows):
            if row.testenv == exam:
                cells = [ranks[position], *([_tier(row)] if tiers else []), row.algorithm]
                cells += [row.settings(settings)] if settings else []
                numbers = [_number(row, text[c.key].cells[position], best[c.key]) for c in columns]
                lines.append(_line([*map(escaped, cells), *numbers]))
    alignment = "r" + "l" * (firsts - 1) + "r" * len(columns)
    return "\n".join(
        [
            *_comments(command, lines),
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(title)}: {_caption(leaderboard)}}}",
            rf"\label{{tab:{re.sub(r'[^A-Za-z0-9]+', '-', title).strip('-') or 'leaderboard'}}}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


_ARROWS: Mapping[bool | None, str] = {True: r" $\uparrow$", False: r" $\downarrow$", None: ""}


def escaped(text: str) -> str:
    """`text` in one line, set by LaTeX as it stands: no command, comment or formula of whoever chose a name."""
    plain = "".join(map(_character, " ".join(text.split())))
    return plain if "--" not in text else re.sub("-(?=-)", "-{}", plain)  # else two hyphens are set as a dash


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character in _LOOK_ALIKE:
        return _LOOK_ALIKE[character]
    found = _GREEK.match(unicodedata.name(character, ""))
    if found is None:
        return character
    name = found[2].replace("LAMDA", "LAMBDA").lower()  # as Unicode and LaTeX spell it
    return rf"$\{name if found[1] == 'SMALL' else name.capitalize()}$"


def _comments(command: str | None, lines: Iterable[str]) -> Iterator[str]:
    r"""How it was made and what it needs; a command may have several lines."""
    for line in (command or "").splitlines():
        yield f"% Made by: {line}"
    yield r"% Needs \usepackage{booktabs}"
    # Beyond the letters of Latin that pdfLaTeX knows.
    if any(ord(character) > 0x17F for line in lines for character in line):
        yield "% Names have letters that pdflatex does not know: use lualatex or xelatex, with a font that has them."


def _caption(leaderboard: Leaderboard) -> str:
    if leaderboard.seeds == 1:
        return "one seed; the best value is bold."
    ranks = any(row.standing is not None and row.standing.low != row.standing.high for row in leaderboard.rows)
    which = r"; in parentheses the ranks that a method may have (95\,\%)" if ranks else ""
    return rf"mean $\pm$ sample standard deviation over {leaderboard.seeds} seeds; the best mean is bold{which}."


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tier(row: LeaderboardRow) -> str:
    return "" if row.standing is None else row.standing.tier


def _best(leaderboard: Leaderboard, column: Column, text: TextColumn, exam: str) -> str | None:
    """The best mean of a metric in an exam, as it is shown; None where there is none, or nothing is better."""
    if column.higher_is_better is None:
        return None
    found = [
        (summary.mean, _mean(cell))
        for row, cell in zip(leaderboard.rows, text.cells, strict=True)
        if row.testenv == exam and row.competes
        if (summary := row.metrics.get(column.key)) is not None and summary.mean is not None
    ]
    pick = max if column.higher_is_better else min
    return pick(found, key=lambda one: one[0])[1] if len(found) > 1 else None


def _mean(cell: str) -> str:
    return cell.partition(" ± ")[0]


def _number(row: LeaderboardRow, cell: str, best: str | None) -> str:
    r""" "0.912 ± 0.004" as $0.912 \pm 0.004$, the mean in bold if it is the `best`."""
    if not cell:
        return ""
    mean, _, spread = cell.partition(" ± ")
    shown = rf"\mathbf{{{mean}}}" if mean == best and row.competes else mean
    return rf"${shown} \pm {spread}$" if spread else f"${shown}$"
