"""What a report says, apart from how it looks: built once of a leaderboard, written by four views.

The views are the terminal, markdown, LaTeX and html. Each takes what it shows by kind; none computes anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from markupsafe import Markup

from ianvs.base.visible_text import visible
from ianvs.results.report.columns import Column
from ianvs.results.report.leaderboard_row import FailedCase
from ianvs.results.report.values import Value

TableKind = Literal["ranking", "exam ranking", "how sure", "search", "over exams", "test sets", "numbers"]
HowToRead = Literal["leader", "parts", "ranked by", "statement", "seeds", "published", "definition"]
ToKnow = Literal[
    "settings", "version", "partial", "limit", "bound", "gate", "row", "remark", "failed", "data", "metric"
]  # fmt: skip
NoteKind = HowToRead | ToKnow
FIRST: tuple[NoteKind, ...] = ("settings", "version", "partial")
"""Notes without which a ranking is misread: they stand above it."""

BELOW: tuple[NoteKind, ...] = ("parts", "ranked by", "statement", "limit", "bound", "gate", "row", "data", "metric")
"""Those that stand below it as they are."""

TO_KNOW: tuple[NoteKind, ...] = get_args(ToKnow)

RowMark = Literal["", "best", "bound", "over", "changed", "unsaved", "untrained", "failed", "unfinished"]


@dataclass(frozen=True)
class Cell:
    """value: typed; None is blank. text: as it is shown. best: the best of its column, among rows of an exam that
    compete. ranks: (lowest, highest, rank, of how many) where the cell is a rank that is not sure."""

    value: Value
    text: str
    best: bool = False
    ranks: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class TableColumn:
    """A column with its cells in the order of the rows. align: "" leaves the alignment to the view.

    source: what of a leaderboard it shows. about: what it means, in sentences. sort_order: its place among the metrics
    that rows are ranked by. distinctive: a hyperparameter that tells rows of one algorithm apart.
    """

    title: str
    cells: tuple[Cell, ...]
    align: Literal["", "left", "right"] = ""
    source: Column | None = None
    about: tuple[str, ...] = ()
    sort_order: int | None = None
    distinctive: bool = False

    @property
    def texts(self) -> list[str]:
        return [visible(cell.text) for cell in self.cells]

    @property
    def kind(self) -> str:
        """The location of its source, "" without one."""
        return self.source.kind if self.source else ""

    @property
    def key(self) -> str:
        return self.source.key if self.source else ""

    @property
    def blank(self) -> bool:
        return not any(cell.text for cell in self.cells)

    @property
    def constant(self) -> bool:
        """Every row says the same."""
        return len({cell.text for cell in self.cells}) <= 1


@dataclass(frozen=True)
class TableRow:
    """A row of a ranking. settings: hyperparameters that distinguish rows of one algorithm, as "rate=0.1".

    name: what it is called, in all tables and charts. id: of the row in charts.
    """

    mark: RowMark
    exam: str
    settings: str
    name: str
    id: str


@dataclass(frozen=True)
class Table:
    """above, below: sentences. exam: that it is of, "" where a job has one. rows: of a ranking."""

    kind: TableKind
    columns: tuple[TableColumn, ...]
    title: str = ""
    exam: str = ""
    above: str = ""
    below: str = ""
    rows: tuple[TableRow, ...] = ()

    @property
    def heads(self) -> list[str]:
        return [column.title for column in self.columns]

    @property
    def lines(self) -> list[list[str]]:
        """The texts of each row, without the blanks at its end that nobody wrote."""
        lines = []
        for row in zip(*(column.cells for column in self.columns), strict=True):
            end = max((n for n, cell in enumerate(row, 1) if cell.value is not None), default=0)
            lines.append([cell.text for cell in row[:end]])
        return lines


def text_table(
    kind: TableKind,
    heads: Sequence[str],
    lines: Iterable[Sequence[str]],
    *,
    title: str = "",
    exam: str = "",
    above: str = "",
    below: str = "",
) -> Table:
    """Return a table of texts. What a short line lacks is blank."""
    padded = [[*(Cell(text, text) for text in line), *[Cell(None, "")] * (len(heads) - len(line))] for line in lines]
    columns = (TableColumn(head, tuple(line[place] for line in padded)) for place, head in enumerate(heads))
    return Table(kind, tuple(columns), title, exam, above, below)


@dataclass(frozen=True)
class Note:
    """Something that a reader has to know beside the numbers: a sentence, and what can be done about it in another.

    about: what it concerns. subject: which of them, where that is not all or one.
    """

    kind: NoteKind
    text: str
    subject: str = ""
    about: Literal["job", "testenv", "row", "case"] = "job"
    remedy: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.subject}: {self.text}" if self.subject else self.text, self.remedy)))


@dataclass(frozen=True)
class Picture:
    """name: of its file, without a suffix. drawing: an svg element, or the bytes of a PNG.

    legend: its lines, each with "id", "label", "sample" (an svg element) and whether it is "on" at first. numbers: what
    it is drawn of.
    """

    name: str
    title: str
    drawing: Markup | bytes
    note: str = ""
    legend: Sequence[Mapping[str, object]] = ()
    numbers: Table | None = None

    @property
    def file(self) -> str:
        return f"{self.name}.{'svg' if isinstance(self.drawing, str) else 'png'}"


@dataclass(frozen=True)
class FailureGroup:
    """Cases that failed for the same reason. which: they, in words. first: the first of them that has a log."""

    which: str
    reason: str
    cases: int
    first: FailedCase | None

    @property
    def which_log(self) -> str:
        return "log" if self.cases == 1 else "first log"


@dataclass(frozen=True)
class Document:
    """command: what makes the report. pictures: paths of files beside the report. origin: versions, machine, commit.

    seeds: of each row.
    """

    title: str
    command: str | None
    seeds: int
    tables: tuple[Table, ...]  # the ranking of all rows is the first
    notes: tuple[Note, ...]
    failures: tuple[FailureGroup, ...] = ()
    pictures: tuple[str, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranking(self) -> Table:
        return self.tables[0]

    def tables_of(self, kind: TableKind) -> list[Table]:
        return [table for table in self.tables if table.kind == kind]

    @property
    def to_know(self) -> list[Note]:
        """The notes on what was run, as opposed to how the numbers are to be read."""
        return [note for note in self.notes if note.kind in TO_KNOW]

    def texts(self, *kinds: NoteKind) -> list[str]:
        """Return the notes of these kinds as texts, in their order."""
        return [str(note) for note in self.notes if note.kind in kinds]
