"""The keeper's data_server: what a learner may have of the training data, and when."""

from collections.abc import Callable
from pathlib import Path

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.exam.data.parts import columns_of
from ianvs.exam.scenarios.exam import Exam
from ianvs.processes.sealing.peer import Message
from ianvs.processes.sealing.shared_arrays import ArrayWriter
from ianvs.running.session.feed import Chunk, DataFeed, Handout, joined
from ianvs.running.session.learner_messages import FeedCall
from ianvs.running.session.row_server import LENT, RowServer
from ianvs.running.session.session import ALL
from ianvs.running.session.stream_keeper import StreamKeeper

_BLOCK = 1 << 24  # bytes of a stream that are handed over at once; the learner sees one chunk after the other


class TrainingDataServer:
    """Answers a learner's calls for data.

    reference: the rules on past rounds and passes are not for it. between: examines it within a stream, after a chunk.
    folder: for what is too large for memory. stream: of an exam that asks before it tells. saw_past_rounds: whether it
    has asked for any; samples: that it was handed in the step that is under way.
    """

    def __init__(
        self,
        exam: Exam,
        feed: DataFeed,
        folder: Path,
        between: Callable[[Chunk], None],
        stream: StreamKeeper | None = None,
        *,
        reference: bool,
    ) -> None:
        self._stream = stream
        self._exam, self._feed, self._folder, self._between = exam, feed, folder, between
        self._reference = reference
        self.saw_past_rounds = False
        self.step = self.samples = 0
        self._lent: list[RowServer] = []

    def begin(self, step: int) -> None:
        self.step, self.samples = step, 0
        self.take_back()

    def take_back(self) -> None:
        """Nothing of what was lent can be read any more."""
        while self._lent:
            self._lent.pop().close()

    def lender(self) -> RowServer:
        """Of columns that are lent up to `take_back`."""
        self._lent.append(RowServer(self._folder))
        return self._lent[-1]

    def hand_out(self, asked: FeedCall) -> Message:
        """What was asked for. Raises ExamRuleError and PluginError, which are the learner's."""
        self._require(asked)
        free = self._reference or self.saw_past_rounds
        if self._feed.streams and not free:
            return self._block(asked) if self._stream is None else self._asked_first(asked, self._stream)
        first, last = asked.first, asked.last
        classes: tuple[int, ...] = tuple(self._exam.rounds[first - 1].classes)
        told: dict[str, object] = {}
        if first != last:
            classes = tuple(sorted({c for round_ in self._exam.rounds[first - 1 : last] for c in round_.classes}))
        elif self._exam.rules.task_in_training:
            told["task"] = first - 1
            if self._exam.rules.output_space == "task":
                told["task_classes"] = classes
        if not free:
            views = [self._feed.round(first, asked.share, asked.skew)]
        elif asked.past and not self._reference:
            views = self._feed.past_rounds(last)
        else:
            views = [self._feed.rounds(first, last, asked.share, asked.skew)]
        self.samples += sum(map(len, views))
        writer, lender = ArrayWriter(_written(views), self._folder), self.lender()
        handed = [described(view, writer, lender) for view in views]
        body = {"free": free, "classes": classes, "told": told, "views": handed}
        return Message(body, (writer.sealed(), *lender.door()))

    def _asked_first(self, asked: FeedCall, stream: StreamKeeper) -> Message:
        if asked.share != ALL or asked.first != asked.last or asked.first != self.step:
            raise ExamRuleError(
                f"feed({asked.first}, {asked.last}, share={asked.share}): this exam asks one stream before it tells "
                "(`prequential`), so its chunks can't be dealt out or come again. Take feed(step) whole, once.",
                code="broken-rule",
            )
        return stream.start()

    def _require(self, asked: FeedCall) -> None:
        first, last, (k, n), count = asked.first, asked.last, asked.share, len(self._exam.rounds)
        if not 1 <= first <= last <= count:
            raise PluginError(f"feed({first}, {last}): the exam has rounds 1 to {count}.", code="invalid-request")
        if not 0 <= k < n:
            raise PluginError(
                f"feed(share={(k, n)}): a share is (k, n), the k-th of n parts, with k from 0 to n - 1.",
                code="invalid-request",
            )
        if last > self.step:
            raise ExamRuleError(
                f"feed({first}, {last}): round {last} has not come yet in step {self.step}.", code="broken-rule"
            )
        self.saw_past_rounds |= first < self.step or (asked.past and not self._reference)

    def _block(self, asked: FeedCall) -> Message:
        """The next chunks of a stream, up to where the learner is examined or the asked rounds end."""
        chunks = [(index, c) for index in range(asked.first, asked.last + 1) for c in self._feed.chunks(index)]
        begin = 0
        if asked.after is not None:
            begin = next((i + 1 for i, (_, c) in enumerate(chunks) if c.number == asked.after), len(chunks))
            if begin and self._examined(chunks[begin - 1]):
                self._between(chunks[begin - 1][1])
        block: list[tuple[int, Chunk]] = []
        views: list[Handout] = []
        samples = sample = 0
        for one in chunks[begin:]:
            block.append(one)
            views.append(self._feed.chunk(one[1], asked.share, asked.skew))
            samples += len(views[-1])
            sample = sample or _bytes(views) // max(1, samples)
            if self._examined(one) or samples * sample >= _BLOCK:
                break
        self.samples += samples
        writer = ArrayWriter(samples * sample, self._folder)
        parts = joined([part for view in views for part in view.parts])
        told = [self._told(index, chunk, view) for (index, chunk), view in zip(block, views, strict=True)]
        columns = {name: writer.column(column) for name, column in columns_of(parts).items()} if parts else {}
        more = begin + len(block) < len(chunks)
        return Message({"chunks": told, "columns": columns, "more": more}, (writer.sealed(),))

    def _examined(self, one: tuple[int, Chunk]) -> bool:
        """Whether the learner is examined after this chunk; the end of a round is examined anyway."""
        index, chunk = one
        return chunk is not self._feed.chunks(index)[-1] and self._feed.examines_after(chunk)

    def _told(self, index: int, chunk: Chunk, view: Handout) -> dict[str, object]:
        chunks = self._feed.chunks(index)
        return {
            "round": index,
            "number": chunk.number,
            "count": len(view),
            "classes": chunk.classes,
            "done": (chunk.number - chunks[0].number + 1) / len(chunks),
            "name": view.name,
            "passes": view.passes,
            "labelled": view.labelled,
        }


def described(view: Handout, writer: ArrayWriter, lender: RowServer) -> dict[str, object]:
    """`view` in words, its columns in the file of `writer` or lent."""
    columns = {name: lender.told(column, writer) for name, column in view.columns.items()}
    return {"name": view.name, "passes": view.passes, "labelled": view.labelled, "columns": columns}


def _written(views: list[Handout]) -> int:
    return sum(column.nbytes for view in views for column in view.columns.values() if column.nbytes < LENT)


def _bytes(views: list[Handout]) -> int:
    return sum(column.nbytes for view in views for column in view.columns.values())
