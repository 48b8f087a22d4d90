"""A document as a self-contained markdown page."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from ianvs.base.visible_text import visible
from ianvs.results.report.document import BELOW, FIRST, Document, FailureGroup, Table, TableColumn
from ianvs.results.report.ranking_table import constants_note, without_constants

# Includes what GitHub links without brackets. Left as they are, since they are no markup: an underscore after a letter,
# brackets without an address (no page defines references), a star between blanks, `<` before a sign or a digit.
_MARKUP = re.compile(
    r"[|`\\~$]|(?<![^\W_])_|\*(?!\s)|(?<!\s)\*|<(?=[A-Za-z/!?])|\](?=\()|&(?=#?\w+;)"
    r"|^[#>\[]|^[+-](?= )|:(?=//)|(?<=\bwww)\.|@"
)
_CODE = re.compile(r"`([^`|]+)`")


def markdown(document: Document) -> str:
    """Return the page: table, how it is ranked, what each metric means, bounds, failures, and how to make it again."""
    columns, told_once = without_constants(document.ranking.columns)
    notes = document.texts(*BELOW, "seeds")
    remarks = [f"{_escape(note.subject)}: {_escape(note.text)}" for note in document.notes if note.kind == "remark"]
    below = [*document.tables_of("over exams"), *document.tables_of("test sets")]
    blocks = [
        f"# {_escape(document.title)}",
        f"Made by:\n\n{_fenced(document.command)}" if document.command else "",
        *map(_escape, document.texts("leader", *FIRST)),
        aligned(columns, "github", _escape),
        *map(_escape, filter(None, [constants_note(told_once), *notes])),
        *_listed("Metrics", map(_escape, document.texts("definition"))),
        *_listed("Published", map(_escape, document.texts("published"))),
        *(block for table in document.tables_of("how sure") for block in _section(table)),
        *_searches(document),
        *(block for table in below for block in _section(table)),
        *_listed("Remarks", remarks),
        *_listed("Failed cases", map(_failed, document.failures)),
        *_pictures(document),
        *_listed("Provenance", (f"{name}: {_escape(fact)}" for name, fact in document.origin.items())),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def aligned(
    columns: Sequence[TableColumn],
    style: str = "simple",
    escape: Callable[[str], str] = str,
    widths: Sequence[int | None] | None = None,
) -> str:
    """Return aligned text; `style` is a table format of tabulate. widths: of columns whose longer texts are folded."""
    from tabulate import tabulate

    rows = [list(map(escape, line)) for line in zip(*(column.texts for column in columns), strict=True)]
    # Without disable_numparse tabulate would turn the text "0.10" into 0.1, and a hyperparameter "1e3" into 1000.
    return tabulate(
        rows,
        [escape(visible(column.title)) for column in columns],
        tablefmt=style,
        colalign=[column.align for column in columns] if rows and all(column.align for column in columns) else None,
        disable_numparse=True,
        maxcolwidths=widths,
    )


def _section(table: Table, level: int = 2) -> list[str]:
    exam = f": {_escape(table.exam)}" if table.exam else ""
    heading = f"{'#' * level} {_escape(table.title)}{exam}"
    return [heading, _escape(table.above), aligned(table.columns, "github", _escape), _escape(table.below)]


def _searches(document: Document) -> list[str]:
    blocks = [block for table in document.tables_of("search") for block in _section(table, 3)]
    return ["## Search", *blocks] if blocks else []


def _listed(title: str, lines: Iterable[str]) -> list[str]:
    text = "\n".join(f"- {line}" for line in lines)
    return [f"## {title}", text] if text else []


def _pictures(document: Document) -> list[str]:
    names = ((path, PurePosixPath(path).stem.replace("[", "(").replace("]", ")")) for path in document.pictures)
    shown = (f"![{_escape(name)}](<{path}>)" for path, name in names)
    return ["## Images", "\n".join(shown)] if document.pictures else []


def _failed(group: FailureGroup) -> str:
    text = _escape(f"{group.which}: {group.reason}")
    return f"{text}; {group.which_log} `{group.first.log_shown}`" if group.first else text


def _escape(text: str) -> str:
    """Return `text` in one line, escaped for markdown: names can contain no image, link or html."""
    line = visible(" ".join(text.split()))
    pieces = _CODE.split(line)  # within code, a backslash would be shown
    if "``" in line or any("`" in piece for piece in pieces):
        return _MARKUP.sub(r"\\\g<0>", line)
    return "".join(f"`{piece}`" if n % 2 else _escape_piece(piece, first=n == 0) for n, piece in enumerate(pieces))


def _escape_piece(text: str, *, first: bool) -> str:
    return _MARKUP.sub(r"\\\g<0>", text) if first else _MARKUP.sub(r"\\\g<0>", f" {text}")[1:]


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"
