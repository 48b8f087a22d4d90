"""Where the learner of one case gets its training data, and what it says while it learns."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.base.types import Asked, Predictions
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import data_type
from ianvs.exam.scenarios.exam import Exam
from ianvs.processes.proc import own_cpu_seconds
from ianvs.running.loop import Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import ALL, Chunk, DataFeed, Handout
from ianvs.running.session.learner import LocalLearner
from ianvs.running.session.reporting import RoundReporter
from ianvs.running.session.session import FeedCall, Whole
from ianvs.running.session.stream_keeper import StreamKeeper
from ianvs.store import CaseStore

_MOST_TOLD = 128  # of quantities, and of points of each; a session tells of a hundred


class TrainingSource:
    """Serves rounds, shares of clients, chunks and the stream, and examines the learner between chunks
    (ianvs.running.session.session.Source, ianvs.running.loop.Source).

    saw_past_rounds: whether the learner has asked for any. Of the round that is under way: samples that it was handed;
    answered, examined: between chunks, the latter as (samples, rounds begun, rounds ended); curves: of the call.
    """

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        feed: DataFeed,
        learner: LocalLearner,
        examination: Examination,
        reporter: RoundReporter,
    ) -> None:
        self._request, self._exam, self._feed = request, exam, feed
        self._learner, self._examination, self._reporter = learner, examination, reporter
        self._store = CaseStore(request.workspace)
        self._reference = learner.ready.reference and not learner.ready.stateless  # free of rules on rounds and passes
        self.saw_past_rounds = False
        self.step = self.samples = 0
        self.answered: dict[Asked, Predictions] = {}
        self.examined: list[tuple[int, int, int]] = []
        self.curves: dict[str, list[tuple[float, float]]] = {}
        self.keeper = None if self._reference else self._stream_keeper()

    @property
    def bound(self) -> bool:
        """Whether the learner sees past rounds: a class of its says so, or its paradigm has asked for them."""
        return self.saw_past_rounds or self._learner.state.past

    # --- what the loop asks for ---------------------------------------------------------------------------------

    def begin(self, step: int) -> None:
        self.step, self.samples = step, 0
        self.answered, self.examined, self.curves = {}, [], {}
        if self.keeper is not None and step:
            self.keeper.begin(step)

    def valid(self, step: int) -> Handout | None:
        return None if self._learner.ready.reference else self._feed.valid(step)

    def stream(self, *, last: bool) -> dict[str, NDArray[Any]]:
        if self.keeper is None or self.bound:
            return {}
        for chunk in self.keeper.differing:
            print(f"answers differently since it was killed: chunk {chunk}")
        return self.keeper.record(last=last)

    def end(self) -> None:
        if self.keeper is not None:
            self.keeper.end()

    @property
    def handed_over(self) -> int:
        """Training samples, in the round that is under way."""
        return self.samples + (0 if self.keeper is None else self.keeper.samples)

    def all_examined(self) -> tuple[tuple[int, int, int], ...]:
        """Those within the round that is under way, and that at its end."""
        return (*self.examined, (self._feed.arrived(self.step), self.step, self.step))

    # --- what the learner asks for ------------------------------------------------------------------------------

    def progress(self, round_: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None:
        """Tell how far the round is, and keep points of curves."""
        self._reporter.inside(round_, fraction, rounds, numbers)
        for quantity, value in numbers.items():
            known = self.curves.get(quantity, [(-1.0, 0.0)])
            if fraction > known[-1][0] and max(len(known), len(self.curves)) < _MOST_TOLD:
                self.curves.setdefault(quantity, []).append((fraction, value))

    def asked_for(self, asked: FeedCall) -> Whole | Iterator[tuple[int, Chunk, Handout, float]] | StreamKeeper:
        """The rounds as a whole, the chunks of a stream with the share of the round that is over after each, or who
        asks before it tells. Raises ExamRuleError and PluginError, which are the learner's."""
        self._require(asked)
        free = self._reference or self.saw_past_rounds
        if not self._feed.streams or free:
            return self._whole(asked, free=free)
        if self.keeper is None:
            return self._chunks(asked)
        if asked.share != ALL or asked.first != asked.last or asked.first != self.step:
            raise ExamRuleError(
                f"feed({asked.first}, {asked.last}, share={asked.share}): this exam asks one stream before it tells "
                "(`prequential`), so its chunks can't be dealt out or come again. Take feed(step) whole, once.",
                code="broken-rule",
            )
        self.keeper.start()
        return self.keeper

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
                    self._examine_after(chunk)

    # --- within a round -----------------------------------------------------------------------------------------

    def _examine_after(self, chunk: Chunk) -> None:
        with self._saved() as model:
            self.answered |= self._examination.predictions(model, self.step - 1, chunk.samples)
        self.examined.append((chunk.samples, chunk.begun, chunk.ended))

    def _stream_keeper(self) -> StreamKeeper | None:
        spec, exam, ready = self._request.testenv.prequential, self._exam, self._learner.ready
        if spec is None or exam.stream is None:
            return None
        return StreamKeeper(
            exam,
            spec,
            self._feed,
            data_type(exam.dataset.kind, self._request.testenv.dataset.data_type),
            self._request.algorithm.stream_cost,
            partial(self._store.journal, self._request.case.id),
            own_cpu_seconds,
            self._ahead,
            lambda chunk: self._examine_after(chunk) if self._feed.examines_after(chunk) else None,
            tells=not ready.stateless,
            hears=ready.hears,
        )

    def _ahead(self, parts: Sequence[Part]) -> list[Any]:
        with self._saved() as model:
            return self._examination.ahead(parts, model, self.step)

    @contextmanager
    def _saved(self) -> Iterator[Model]:
        """The learner as it is within a round, saved; what happens within is not counted as its training."""
        root = self._store.folder(self._request.case.id)
        with self._learner.apart(), tempfile.TemporaryDirectory(prefix=".model-", dir=root) as folder:
            yield self._learner.save(Path(folder), of_round=False)
