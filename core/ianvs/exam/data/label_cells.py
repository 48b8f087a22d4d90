"""Several labels in one cell of a table: which separator splits them, and when that is ambiguous.

The separator is decided once for all cells of a dataset: cells in brackets are lists; `;` and `|` always separate
labels; others do if the parts also occur elsewhere. "traffic light" stays whole beside `;`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ianvs.exam.data.cells import CLASS_INDEX

NO_SEPARATOR = "none"  # the value of `label_separator` if every cell is one label
DOCUMENTED = ";"
_LIST = "list"
_CERTAIN = (DOCUMENTED, "|")
_USUAL = ("\n", "\t", ",")
_DOUBTFUL = ("/", "&", "+", " ")
_CALLED = {" ": "blanks (' ')", "\n": "line breaks", "\t": "tabs", ",": "commas (',')"}
_BRACKETS = re.compile(
    r"(?:frozenset|set|array)?\(?\s*[\[({](.*?)[\])}]\s*(?:,\s*dtype=\S+?)?\)?|(?:frozen)?set\(\)", re.DOTALL
)
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)["]""", re.DOTALL)


class UnclearLabelsError(ValueError):
    """Cells that can be read in more than one way.

    Attributes:
        index: Position of the first such cell.
    """

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


@dataclass(frozen=True)
class SplitLabels:
    """Labels by sample.

    Attributes:
        labels: (N,) a list for each cell that was text or empty, else the value of the cell.
        separator: The separator of cells; `NO_SEPARATOR` if each is one label.
        index: Position of the first cell with several labels, else of the first; for messages.
    """

    labels: list[Any]
    separator: str
    index: int

    @property
    def remark(self) -> str:
        """A note on the separator that was found, or ""."""
        if self.separator == DOCUMENTED:
            return ""
        if self.separator == NO_SEPARATOR:
            return (
                "no cell holds several labels: each is read as one. If they are parted by something, say by what: "
                '`label_separator: "-"` in the dataset.'
            )
        if self.separator == _LIST:
            return (
                "the labels are lists in brackets, and are read as such. If each cell is one label, write "
                f"`label_separator: {NO_SEPARATOR}` in the dataset."
            )
        return (
            f"the labels of a sample are parted by {_separator_name(self.separator)}. `label_separator: "
            f"{json.dumps(self.separator)}` in the dataset says that this is right, `label_separator: {NO_SEPARATOR}` "
            "that each cell is one label."
        )


def _separator_name(separator: str) -> str:
    return _CALLED.get(separator, f"'{separator}'")


def split_labels(cells: Sequence[Any], separator: str | None, classes: Iterable[str] | None) -> SplitLabels:
    """Return the labels in the cells of a dataset.

    Args:
        cells: (N,) strings; other values stay as they are. None, nan and blank strings are no label.
        separator: Separator of labels; `NO_SEPARATOR`: each cell is one label; None: it is detected.
        classes: The class names, if they are known.

    Raises:
        UnclearLabelsError: If the cells can be read in more than one way.
    """
    texts = {cell: cell.strip() for cell in dict.fromkeys(c for c in cells if isinstance(c, str)) if cell.strip()}
    distinct = list(dict.fromkeys(map(str, texts.values())))
    try:
        chosen = _separator(distinct, classes) if separator is None else separator
    except _Unclear as unclear:
        index = next(i for i, cell in enumerate(cells) if isinstance(cell, str) and cell.strip() == unclear.text)
        raise UnclearLabelsError(unclear.message, index) from None
    parted = {cell: _parts(text, chosen) for cell, text in texts.items()}
    several = (i for i, cell in enumerate(cells) if isinstance(cell, str) and len(parted.get(cell, ())) > 1)
    labels = [
        list(parted.get(cell, ())) if isinstance(cell, str) else [] if _is_empty(cell) else cell for cell in cells
    ]
    return SplitLabels(labels, chosen if texts else DOCUMENTED, next(several, 0))


class _Unclear(Exception):  # noqa: N818 - it becomes an UnclearLabelsError
    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.message, self.text = message, text


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _parts(text: str, separator: str) -> list[str]:
    if separator == NO_SEPARATOR:
        return [text]
    if separator == _LIST:
        return _parse_list(text) or []
    pieces = text.split() if separator == " " else text.split(separator)
    return [piece.strip() for piece in pieces if piece.strip()]


def _parse_list(text: str) -> list[str] | None:
    """Return the entries of a list, set, tuple or array in the notation of Python, numpy or JSON; None for other
    text.
    """
    match = _BRACKETS.fullmatch(text)
    if match is None:
        return None
    inside = (match[1] or "").strip()
    if inside[:1] in ("'", '"'):
        if _QUOTED.sub("", inside).strip(", \n\t"):
            return None
        return [re.sub(r"\\(.)", r"\1", first or second) for first, second in _QUOTED.findall(inside)]
    pieces = [piece.strip() for piece in inside.split(",") if piece.strip()]
    numbers = [piece.removesuffix(".") for piece in inside.replace(",", " ").split()]  # numpy writes no commas
    return numbers if all(map(CLASS_INDEX.fullmatch, numbers)) else pieces


def _separator(texts: Sequence[str], classes: Iterable[str] | None) -> str:
    lists = [_parse_list(text) is not None for text in texts]
    if all(lists):
        return _LIST
    every = (NO_SEPARATOR, *_CERTAIN, *_USUAL, *_DOUBTFUL)
    names = frozenset(classes or ())
    named = {*map(str, range(len(names))), *names}
    fitting = (
        candidate for candidate in every if all(part in named for text in texts for part in _parts(text, candidate))
    )
    if names and (separator := next(fitting, None)):
        return separator
    if any(is_list and text[0] in "[{" for is_list, text in zip(lists, texts, strict=True)):
        text = texts[lists.index(False)]
        raise _Unclear(f"'{text}' is no list in brackets, as other labels are. Write all in one way.", text)
    certain = [mark for mark in _CERTAIN if any(mark in text for text in texts)]
    if len(certain) == 2:
        text = next(text for text in texts if certain[1] in text)
        raise _Unclear(f"'{text}': both ';' and '|' are in the labels. {_remedy(';')}", text)
    if certain:
        return certain[0]
    is_list = (mark for mark in (*_USUAL, *_DOUBTFUL) if _separates_labels(mark, texts))
    return next(is_list, NO_SEPARATOR)


def _separates_labels(mark: str, texts: Sequence[str]) -> bool:
    """Return whether `mark` separates labels, rather than being part of their names. Raises _Unclear if that is
    ambiguous.
    """
    parted = {text: _parts(text, mark) for text in texts}
    holding = [text for text in texts if mark in text]
    if not holding:
        return False
    if all(CLASS_INDEX.fullmatch(part) for parts in parted.values() for part in parts):
        return True
    alone = {text for text in texts if mark not in text}
    counts = Counter(part for parts in parted.values() for part in set(parts))
    seen = {part for part, count in counts.items() if part in alone or count > 1}
    of_holding = {part for text in holding for part in parted[text]}
    if mark in _USUAL and of_holding & seen:
        return True
    sizes = {len(parted[text]) for text in holding}
    if any(alone.issuperset(parted[text]) for text in holding) or (of_holding <= seen and len(sizes) > 1):
        return True
    if mark in _USUAL or of_holding & seen:
        separator = _separator_name(mark)
        message = f"'{holding[0]}' may be one label with {separator} in its name, or several labels. {_remedy(mark)}"
        raise _Unclear(message, holding[0])
    return False


def _remedy(mark: str) -> str:
    return (
        f"Say what parts labels: `label_separator: {json.dumps(mark)}` in the dataset, or another, or "
        f"`label_separator: {NO_SEPARATOR}` where each cell is one label."
    )
