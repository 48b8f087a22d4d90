r"""The ranking of a document as a LaTeX table, to be included in a paper with `\input`."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from ianvs.base.visible_text import visible
from ianvs.results.report.document import Cell, Document, Table, TableColumn

_TEXTS = {"\\": "backslash", "^": "asciicircum", "~": "asciitilde", "<": "less", ">": "greater", "|": "bar"}
_FORMULAS = {"±": "pm", "×": "times", "·": "cdot", "≤": "leq", "≥": "geq", "≈": "approx", "∞": "infty", "µ": "mu"}
_PRINTED = {"−": "$-$", "–": "--", "—": "---", "“": "``", "”": "''", "‘": "`", "’": "'", "…": r"\dots{}"}
_SPECIAL = {
    **{character: rf"\{character}" for character in "{}$&#%_"},
    **{character: rf"\text{name}{{}}" for character, name in _TEXTS.items()},
    **{character: rf"$\{name}$" for character, name in _FORMULAS.items()},
    **_PRINTED,
    "→": r"$\rightarrow$",
    "°": r"$^{\circ}$",
}
# Greek letters have commands by their names, except those that look like Latin ones.
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)$")
_LOOK_ALIKE = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))


def latex(document: Document) -> str:
    r"""Return a `table` with booktabs' rules: rank, tier, algorithm, distinguishing settings, metrics as mean $\pm$
    std.

    The best mean of each metric in each exam, among rows that compete, is bold; so is one that reads the same. A job
    with several exams has a part for each.
    """
    table = document.ranking
    firsts = _first_columns(table)
    metrics = [column for column in table.columns if column.kind == "metric"]
    head = [*firsts, *(f"{escaped(column.title)}{_arrow(column)}" for column in metrics)]
    lines = [_line(head), r"\midrule"]
    exams = list(dict.fromkeys(row.exam for row in table.rows))
    for exam in exams:
        if exam:
            rule = [r"\midrule"] if exam != exams[0] else []
            lines += [*rule, rf"\multicolumn{{{len(head)}}}{{l}}{{\emph{{{escaped(exam)}}}}} \\"]
        for n in (n for n, row in enumerate(table.rows) if row.exam == exam):
            names = (escaped(texts[n]) for texts in firsts.values())
            lines.append(_line([*names, *(_number(column.cells[n]) for column in metrics)]))
    alignment = "r" + "l" * (len(firsts) - 1) + "r" * len(metrics)
    title = document.title
    return "\n".join(
        [
            *_comments(document.command, lines),
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(title)}: {_caption(document)}}}",
            rf"\label{{tab:{re.sub(r'[^A-Za-z0-9]+', '-', title).strip('-') or 'leaderboard'}}}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            *_below(document),
            r"\end{table}",
            "",
        ]
    )


def _first_columns(table: Table) -> dict[str, list[str]]:
    """Return the columns that identify a row: rank, tier, algorithm, and hyperparameters that distinguish rows."""
    texts = {column.kind: column.texts for column in table.columns}
    columns = {"Rank": texts["rank"]}
    if any(texts.get("tier", ())):
        columns["Tier"] = texts["tier"]
    columns["Algorithm"] = texts["algorithm"]
    if any(row.settings for row in table.rows):
        columns["Hyperparameters"] = [row.settings for row in table.rows]
    return columns


def _arrow(column: TableColumn) -> str:
    up = column.source and column.source.higher_is_better
    return "" if up is None else r" $\uparrow$" if up else r" $\downarrow$"


def escaped(text: str) -> str:
    """Return `text` in one line, escaped for LaTeX: names can contain no command, comment or formula."""
    plain = "".join(map(_character, visible(" ".join(text.split()))))
    return plain if "--" not in text else re.sub("-(?=-)", "-{}", plain)  # LaTeX would set two hyphens as a dash


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character in _LOOK_ALIKE:
        return _LOOK_ALIKE[character]
    match = _GREEK.match(unicodedata.name(character, ""))
    if match is None:
        return character
    name = match[2].replace("LAMDA", "LAMBDA").lower()  # Unicode spells it LAMDA
    return rf"$\{name if match[1] == 'SMALL' else name.capitalize()}$"


def _comments(command: str | None, lines: Iterable[str]) -> Iterator[str]:
    """Yield the command that created the table, which may have several lines, and the packages that it needs."""
    for line in (command or "").splitlines():
        yield f"% Made by: {line}"
    yield r"% Needs \usepackage{booktabs}"
    # Beyond the Latin letters that pdfLaTeX knows.
    if any(ord(character) > 0x17F for line in lines for character in line):
        yield "% Names have letters that pdflatex does not know: use lualatex or xelatex, with a font that has them."


def _caption(document: Document) -> str:
    if document.seeds == 1:
        return "one seed; the best value is bold."
    ranks = (cell.ranks for column in document.ranking.columns for cell in column.cells if cell.ranks)
    wide = any(low != high for low, high, *_ in ranks)
    which = r"; in parentheses the ranks that a method may have (95\,\%)" if wide else ""
    return rf"mean $\pm$ sample standard deviation over {document.seeds} seeds; the best mean is bold{which}."


def _below(document: Document) -> Iterator[str]:
    """Yield the notes in small print, as wide as the text."""
    if notes := document.run_notes:
        yield r"\par\smallskip"
        yield r"\begin{minipage}{\linewidth}\footnotesize"
        yield from (rf"{escaped(str(note))}\par" for note in notes)
        yield r"\end{minipage}"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _number(cell: Cell) -> str:
    r"""Return "0.912 ± 0.004" as $0.912 \pm 0.004$, with a bold mean if it is the best."""
    if not cell.text:
        return ""
    mean, _, spread = cell.text.partition(" ± ")
    shown = rf"\mathbf{{{mean}}}" if cell.best else mean
    return rf"${shown} \pm {spread}$" if spread else f"${shown}$"
