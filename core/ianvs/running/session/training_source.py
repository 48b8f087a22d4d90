"""Serves the training data of a case under the rules of the exam, and collects the training curves."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.base.types import PredictionKey, Predictions
from ianvs.config.spec import PrequentialSpec
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import data_type
from ianvs.exam.scenarios.exam import Exam
from ianvs.processes.proc import own_cpu_seconds
from ianvs.running.loop import Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.case_learner import CaseLearner
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import ALL, Chunk, DataFeed, ServedSamples
from ianvs.running.session.measure import NOTHING_SPENT
from ianvs.running.session.prequential_server import PrequentialServer
from ianvs.running.session.reporting import RoundReporter
from ianvs.running.session.session import FeedCall, ServedRounds
from ianvs.store import CaseStore

_MAX_POINTS = 128  # curves of a round, and points of each curve


class CaseTrainingSource:
    """Serves rounds, shares of clients, chunks and the stream; evaluates the learner between the chunks of a stream.

    Implements `ianvs.running.loop.TrainingSource`, and `Source` of `ianvs.running.session.session` for the learner.

    Attributes:
        saw_past_rounds: Whether the learner requested data of earlier rounds.
        samples: Training samples served in the current round.
        evaluated: Predictions made between chunks of the current round.
        evaluation_times: (samples served, rounds begun, rounds ended) of each of these evaluations.
        curves: (fraction of the round, value) by name, as reported by the learner in the current round.
    """

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        feed: DataFeed,
        learner: CaseLearner,
        examination: Examination,
        reporter: RoundReporter,
    ) -> None:
        self._request, self._exam, self._feed = request, exam, feed
        self._learner, self._examination, self._reporter = learner, examination, reporter
        self._store = CaseStore(request.workspace)
        self._reference = learner.facts.reference and not learner.facts.stateless  # no rules on rounds and passes
        self.saw_past_rounds = False
        self.step = self.samples = 0
        self.evaluated: dict[PredictionKey, Predictions] = {}
        self.evaluation_times: list[tuple[int, int, int]] = []
        self.curves: dict[str, list[tuple[float, float]]] = {}
        spec = request.testenv.prequential
        self.keeper = None if spec is None or exam.stream is None or self._reference else self._stream_keeper(spec)

    @property
    def bound(self) -> bool:
        """Whether the learner sees earlier rounds, by declaration or because its paradigm requested them."""
        return self.saw_past_rounds or self._learner.state.sees_past_rounds

    # --- called by the loop -------------------------------------------------------------------------------------

    def begin(self, step: int) -> None:
        self.step, self.samples = step, 0
        self.evaluated, self.evaluation_times, self.curves = {}, [], {}
        self._examination.spent, self._learner.changed = NOTHING_SPENT, ""
        if self.keeper is not None and step:
            self.keeper.begin(step)

    def valid(self, step: int) -> ServedSamples | None:
        return None if self._learner.facts.reference else self._feed.valid(step)

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
    def served_samples(self) -> int:
        """Training samples served in the current round, with those of its prequential stream."""
        return self.samples + (0 if self.keeper is None else self.keeper.samples)

    def evaluation_points(self) -> tuple[tuple[int, int, int], ...]:
        """Return (samples served, rounds begun, rounds ended) of all evaluations of the current round, its end
        included.
        """
        return (*self.evaluation_times, (self._feed.samples_until(self.step), self.step, self.step))

    # --- called by the learner ----------------------------------------------------------------------------------

    def progress(self, step: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None:
        """Report progress within a round, and add points to the curves."""
        self._reporter.progress(step, fraction, rounds, numbers)
        for name, value in numbers.items():
            points = self.curves.get(name, [(-1.0, 0.0)])
            if fraction > points[-1][0] and max(len(points), len(self.curves)) < _MAX_POINTS:
                self.curves.setdefault(name, []).append((fraction, value))

    def serve(
        self, request: FeedCall
    ) -> ServedRounds | Iterator[tuple[int, Chunk, ServedSamples, float]] | PrequentialServer:
        """Serve a request of the learner.

        Returns:
            Whole rounds; or chunks as (round, chunk, samples, fraction of the round); or the server of a prequential
                stream.

        Raises:
            ExamRuleError, PluginError: If the request breaks a rule, or is invalid.
        """
        first, last, (k, n), count = request.first, request.last, request.share, len(self._exam.rounds)
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
        self.saw_past_rounds |= first < self.step or (request.past and not self._reference)
        free = self._reference or self.saw_past_rounds
        if self._feed.streams and not free:
            return self._stream(request)
        classes: tuple[int, ...] = tuple(self._exam.rounds[first - 1].classes)
        context: dict[str, object] = {}
        if first != last:
            classes = tuple(sorted({c for round_ in self._exam.rounds[first - 1 : last] for c in round_.classes}))
        elif self._exam.rules.task_in_training:
            context["task"] = first - 1
            if self._exam.rules.output_space == "task":
                context["task_classes"] = classes
        if not free:
            views = [self._feed.round(first, request.share, request.skew)]
        elif request.past and not self._reference:
            views = self._feed.past_rounds(last)
        else:
            views = [self._feed.rounds(first, last, request.share, request.skew)]
        self.samples += sum(map(len, views))
        return ServedRounds(tuple(views), classes, context, free=free)

    def _stream(self, request: FeedCall) -> Iterator[tuple[int, Chunk, ServedSamples, float]] | PrequentialServer:
        if self.keeper is None:
            return self._chunks(request)
        first, last = request.first, request.last
        if request.share != ALL or first != last or first != self.step:
            raise ExamRuleError(
                f"feed({first}, {last}, share={request.share}): this exam asks one stream before it "
                "tells (`prequential`), so its chunks can't be dealt out or come again. Take feed(step) whole, once.",
                code="broken-rule",
            )
        self.keeper.start()
        return self.keeper

    def _chunks(self, request: FeedCall) -> Iterator[tuple[int, Chunk, ServedSamples, float]]:
        for index in range(request.first, request.last + 1):
            chunks = self._feed.chunks(index)
            for number, chunk in enumerate(chunks, start=1):
                view = self._feed.chunk(chunk, request.share, request.skew)
                self.samples += len(view)
                yield index, chunk, view, number / len(chunks)
                if number < len(chunks) and self._feed.evaluates_after(chunk):  # the end of a round is evaluated anyway
                    self._evaluate_after(chunk)

    # --- evaluation within a round ------------------------------------------------------------------------------

    def _evaluate_after(self, chunk: Chunk) -> None:
        with self._saved() as model:
            self.evaluated |= self._examination.predictions(model, self.step - 1, chunk.samples)
        self.evaluation_times.append((chunk.samples, chunk.begun, chunk.ended))

    def _stream_keeper(self, spec: PrequentialSpec) -> PrequentialServer:
        exam, facts = self._exam, self._learner.facts
        return PrequentialServer(
            exam,
            spec,
            self._feed,
            data_type(exam.dataset.kind, self._request.testenv.dataset.data_type),
            self._request.algorithm.stream_cost,
            partial(self._store.journal, self._request.case.id),
            own_cpu_seconds,
            self._ahead,
            lambda chunk: self._evaluate_after(chunk) if self._feed.evaluates_after(chunk) else None,
            tells=not facts.stateless,
            receives_feedback=facts.receives_feedback,
        )

    def _ahead(self, parts: Sequence[Part]) -> list[Any]:
        with self._saved() as model:
            return self._examination.predict_ahead(parts, model, self.step)

    @contextmanager
    def _saved(self) -> Iterator[Model]:
        """Context manager: the learner saved within a round. The time inside is not counted as training."""
        root = self._store.folder(self._request.case.id)
        with self._learner.untimed(), tempfile.TemporaryDirectory(prefix=".model-", dir=root) as folder:
            yield self._learner.save(Path(folder), of_round=False)
