"""The content of a report, independent of its format: built once from a leaderboard, written by four views.

The views are the terminal, markdown, LaTeX and html. Each selects what it shows by kind; none computes anything.
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
"""Notes that prevent misreading a ranking: they are shown above it."""

BELOW: tuple[NoteKind, ...] = ("parts", "ranked by", "statement", "limit", "bound", "gate", "row", "data", "metric")
"""Notes shown below the ranking."""

TO_KNOW: tuple[NoteKind, ...] = get_args(ToKnow)

RowMark = Literal["", "best", "bound", "over", "changed", "unsaved", "untrained", "failed", "unfinished"]


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        value: Typed; None is blank.
        text: As shown.
        best: Whether it is the best of its column, among rows of an exam that compete.
        ranks: (lowest, highest, rank, number of rows) of an uncertain rank.
    """

    value: Value
    text: str
    best: bool = False
    ranks: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class TableColumn:
    """A column with its cells in the order of the rows.

    Attributes:
        align: "" leaves the alignment to the view.
        source: The column of the leaderboard that it shows.
        about: Its meaning, in sentences.
        sort_order: Its position among the metrics that rows are ranked by.
        distinctive: Whether it is a hyperparameter that distinguishes rows of one algorithm.
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
        """The kind of its source, "" without one."""
        return self.source.kind if self.source else ""

    @property
    def key(self) -> str:
        return self.source.key if self.source else ""

    @property
    def blank(self) -> bool:
        return not any(cell.text for cell in self.cells)

    @property
    def constant(self) -> bool:
        """Whether all cells are equal."""
        return len({cell.text for cell in self.cells}) <= 1


@dataclass(frozen=True)
class TableRow:
    """A row of a ranking.

    Attributes:
        settings: Hyperparameters that distinguish rows of one algorithm, as "rate=0.1".
        name: Its name in all tables and charts.
        id: Its id in charts.
    """

    mark: RowMark
    exam: str
    settings: str
    name: str
    id: str


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        above: Sentences above it.
        below: Sentences below it.
        exam: The exam that it belongs to, "" if a job has one.
        rows: The rows of a ranking.
    """

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
        """The texts of each row, without trailing blank cells."""
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
    """Return a table of strings. Short lines are filled with blanks."""
    padded = [[*(Cell(text, text) for text in line), *[Cell(None, "")] * (len(heads) - len(line))] for line in lines]
    columns = (TableColumn(head, tuple(line[place] for line in padded)) for place, head in enumerate(heads))
    return Table(kind, tuple(columns), title, exam, above, below)


@dataclass(frozen=True)
class Note:
    """Something that a reader must know: a sentence, and a remedy in another.

    Attributes:
        about: The topic.
        subject: What it applies to, if not to all or a single one.
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
    """A chart or image.

    Attributes:
        name: Of its file, without a suffix.
        drawing: An svg element, or the bytes of a PNG.
        legend: Its lines, each with "id", "label", "sample" (an svg element) and whether it is "on" at first.
        numbers: The numbers that it shows.
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
    """Cases that failed for the same reason. which: a description of the cases.

    First: the first of them that has a log.
    """

    which: str
    reason: str
    cases: int
    first: FailedCase | None

    @property
    def which_log(self) -> str:
        return "log" if self.cases == 1 else "first log"


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        command: The command that creates the report.
        pictures: Paths of files beside the report.
        origin: Versions, machine, commit.
        seeds: Number of seeds of each row.
    """

    title: str
    command: str | None
    seeds: int
    tables: tuple[Table, ...]  # the first one is the ranking of all rows
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
    def run_notes(self) -> list[Note]:
        """Notes on what was run, as opposed to how the numbers are to be read."""
        return [note for note in self.notes if note.kind in TO_KNOW]

    def texts(self, *kinds: NoteKind) -> list[str]:
        """Return the notes of these kinds as texts, in their order."""
        return [str(note) for note in self.notes if note.kind in kinds]
