"""What a learner may have of the training data, and when."""

from collections.abc import Callable, Iterator

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.exam.scenarios.exam import Exam
from ianvs.running.session.feed import ALL, Chunk, DataFeed, Handout
from ianvs.running.session.session import FeedCall, Whole
from ianvs.running.session.stream_keeper import StreamKeeper


class TrainingData:
    """Serves the training data of one case (ianvs.running.session.session.Source).

    reference: the rules on past rounds and passes are not for it. between: examines it within a stream, after a chunk.
    stream: of an exam that asks before it tells. saw_past_rounds: whether it has asked for any; samples: that it was
    handed in the step that is under way.
    """

    def __init__(
        self,
        exam: Exam,
        feed: DataFeed,
        between: Callable[[Chunk], None],
        stream: StreamKeeper | None = None,
        *,
        reference: bool,
    ) -> None:
        self._exam, self._feed, self._between, self._reference = exam, feed, between, reference
        self.stream = stream
        self.saw_past_rounds = False
        self.step = self.samples = 0

    def begin(self, step: int) -> None:
        self.step, self.samples = step, 0

    def asked_for(self, asked: FeedCall) -> Whole | Iterator[tuple[int, Chunk, Handout, float]] | StreamKeeper:
        """The rounds as a whole, the chunks of a stream with the share of the round that is over after each, or who
        asks before it tells. Raises ExamRuleError and PluginError, which are the learner's."""
        self._require(asked)
        free = self._reference or self.saw_past_rounds
        if not self._feed.streams or free:
            return self._whole(asked, free=free)
        if self.stream is None:
            return self._chunks(asked)
        if asked.share != ALL or asked.first != asked.last or asked.first != self.step:
            raise ExamRuleError(
                f"feed({asked.first}, {asked.last}, share={asked.share}): this exam asks one stream before it tells "
                "(`prequential`), so its chunks can't be dealt out or come again. Take feed(step) whole, once.",
                code="broken-rule",
            )
        self.stream.start()
        return self.stream

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

    def _whole(self, asked: FeedCall, *, free: bool) -> Whole:
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
        return Whole(tuple(views), classes, told, free=free)

    def _chunks(self, asked: FeedCall) -> Iterator[tuple[int, Chunk, Handout, float]]:
        for index in range(asked.first, asked.last + 1):
            chunks = self._feed.chunks(index)
            for number, chunk in enumerate(chunks, start=1):
                view = self._feed.chunk(chunk, asked.share, asked.skew)
                self.samples += len(view)
                yield index, chunk, view, number / len(chunks)
                if number < len(chunks) and self._feed.examines_after(chunk):  # a round's end is examined anyway
                    self._between(chunk)
