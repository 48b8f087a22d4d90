"""The session of a paradigm: modules, data, calls, measurements. Implements ianvs.exam.paradigms.Session.

It gets data of the exam only from a source, a round at a time.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ianvs.base.errors import PluginError, closest
from ianvs.base.seeding import generator
from ianvs.exam.data.options import Options
from ianvs.exam.data.parts import as_served
from ianvs.exam.data_types import DataType
from ianvs.exam.paradigms.paradigm import Module, Paradigm
from ianvs.exam.scenarios.exam import Rules
from ianvs.exam.scenarios.feedback_view import FeedbackView
from ianvs.exam.scenarios.views import TrainView
from ianvs.plugins.signature import LazyArgument
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.feed import ALL, Chunk, ServedSamples, Share
from ianvs.running.session.generators import start_generators
from ianvs.running.session.measure import synchronise
from ianvs.running.session.modules import AuthorsModule, Modules, TrainingHistory
from ianvs.running.session.prequential_server import PrequentialServer
from ianvs.running.session.prequential_stream import revealed_chunks

_PERIOD = 0.1  # seconds between progress reports


@dataclass(frozen=True)
class ExamInfo:
    """Facts of the exam that a learner may know from the start. streams: whether rounds are served in chunks."""

    kind: str
    rounds: tuple[str, ...]
    classes: tuple[str, ...]
    rules: Rules
    streams: bool


@dataclass
class Step:
    """Measurements of one step so far."""

    index: int = 0
    passes: int = 0
    measures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FeedCall:
    """A request for rounds `first` to `last`. past: also for all earlier rounds, separately.

    share, skew: as in ianvs.exam.paradigms.Session.feed.
    """

    first: int
    last: int
    share: Share = ALL
    skew: float | None = None
    past: bool = False


@dataclass(frozen=True)
class ServedRounds:
    """Rounds as served. classes: of their labels. context: keyword arguments for the learner. free: without a limit of
    passes."""

    views: tuple[ServedSamples, ...]
    classes: tuple[int, ...]
    context: Mapping[str, Any]
    free: bool


class Source(Protocol):
    """Serves training data and receives progress reports."""

    def serve(
        self, request: FeedCall
    ) -> ServedRounds | Iterator[tuple[int, Chunk, ServedSamples, float]] | PrequentialServer: ...

    def progress(self, round_: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None: ...


@dataclass(frozen=True)
class _ServedData:
    """A view of training data, with the context for the learner."""

    view: TrainView | FeedbackView
    # Of the global generators, with the purpose "global"; None: not seeded, and passes are not counted.
    seed: int | None
    number: int = 0  # number of the round or the chunk
    share: Share = ALL
    classes: tuple[int, ...] = ()
    in_stream: bool = False
    context: Mapping[str, Any] = field(default_factory=dict)


class CaseSession:
    """Implements ianvs.exam.paradigms.Session. `step` is the current step."""

    def __init__(
        self,
        request: CaseRequest,
        brief: ExamInfo,
        kind: DataType,
        paradigm: Paradigm,
        options: Options,
        device: str,
        folder: Path,
    ) -> None:
        self.kind = kind
        self.options, self.seed = options, request.case.seed
        self.step: Step
        self.modules = Modules(request.algorithm, request.case, brief.rules, request.started_in)
        self.valid: TrainView | None = None  # the held-out part of the round
        self.caller = f"{paradigm.name}.predict()"  # method of the last predictions, for errors
        self.source: Source
        self.paradigm, self._brief = paradigm, brief
        self.rounds, self.rules, self.classes = brief.rounds, brief.rules, len(brief.classes)
        self._device, self._folder, self._threads = device, folder, request.threads
        self._fed: dict[int, _ServedData] = {}  # open views by id
        self._calls: Counter[int] = Counter()  # training calls in this step, by seed
        self._passed: dict[int, dict[Share, int]] = {}  # passes over rounds or chunks in this step, by number
        self._context: dict[str, Any]  # keyword arguments for every call of this step
        budget = None if paradigm.reference else request.testenv.budget
        limits = (brief.rules.passes, None if budget is None else budget.passes)
        self._reported_at = -math.inf  # time of the last progress report
        self._cells: dict[tuple[str, ...], tuple[int, int]] = {}  # last reported hundredth by names of numbers
        self._passes = min((limit for limit in limits if limit is not None), default=None)
        self.begin(0)

    # --- what paradigms use -------------------------------------------------------------------------------------

    def module(self, kind: str, instance: str = "", *, fresh: bool = False) -> AuthorsModule:
        return self.modules.get(kind, instance, fresh=fresh)

    def has(self, kind: str) -> bool:
        return self.modules.has(kind)

    def feed(
        self, first: int, last: int | None = None, *, share: Share = ALL, skew: float | None = None
    ) -> Iterator[Any]:
        last, past = first if last is None else last, self.modules.sees_past_rounds
        synchronise()
        served = self.source.serve(FeedCall(first, last, share, skew, past))
        if isinstance(served, ServedRounds):
            passed = 0 if served.free else self._passes_so_far(first, share)
            views = [self.view(view, passed) for view in served.views]
            context: dict[str, Any] = dict(served.context)
            if served.free:
                context["passes"] = None
            else:
                context["valid_data"] = self.valid if share == ALL else None
            if past:
                context["train_rounds"] = tuple(views)
                if not self.paradigm.reference:
                    context["valid_data"] = self.valid
            if len(views[-1]):
                fed = _ServedData(views[-1], self.step.index, first, share, served.classes, context=context)
                yield from self._served_iterator(fed)
        elif isinstance(served, PrequentialServer):
            for told_chunk in revealed_chunks(self, served):
                number = told_chunk.number
                yield from self._served_iterator(
                    _ServedData(told_chunk.view, number, number, classes=told_chunk.classes, in_stream=True)
                )
        else:
            for index, chunk, handout, done in served:
                if len(handout):
                    view = self.view(handout, self._passes_so_far(chunk.number, share))
                    number = chunk.number
                    yield from self._served_iterator(
                        _ServedData(view, number, number, share, chunk.classes, in_stream=True)
                    )
                self._report_progress(index, done)

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any:
        assert isinstance(module, AuthorsModule)
        fed = None  # what is served of the first argument that is a view of training data, or a part of one
        for data in arguments:
            if fed is None and isinstance(data, TrainView | FeedbackView) and id(data.whole) in self._fed:
                fed = self._fed[id(data.whole)]
                if data is not data.whole and data.classes is not None:
                    fed = replace(fed, classes=data.classes)
        if fed is not None and fed.seed is not None:
            call, before = self._calls[fed.seed], module.taught
            self._calls[fed.seed] += 1
            start_generators(self.seed, f"global, call {call}" if call else "global", fed.seed)
            more = set(fed.classes).difference(before.seen)
            seen = tuple(sorted({*before.seen, *more})) if more else before.seen
            new = tuple(sorted(more)) if fed.in_stream else fed.classes
            module.taught = TrainingHistory(before.calls + 1, seen, new)
        taught = module.taught
        if not taught.calls:  # it may learn from other modules instead of data: what they have learned together
            every = [other.taught for other in self.modules]
            earlier, fresh = {c for each in every for c in each.seen}, {c for each in every for c in each.new}
            calls = max((each.calls for each in every), default=0)
            taught = TrainingHistory(calls, tuple(sorted(earlier)), tuple(sorted(fresh)))
        of_data = {"valid_data": None, **fed.context} if fed is not None else {}
        offered = {
            **self._context,
            **self.round_context(taught.calls, taught.seen, taught.new),
            **of_data,
            **context,
        }
        self.caller = f"{module.name}.{method}()"
        return module.call(method, arguments, offered)

    def measure(self, name: str, value: float) -> None:
        declared = self.paradigm.measures
        if name not in declared:
            raise PluginError(
                f"the paradigm measures '{name}', which is not in its `measures`.{closest(name, declared)}",
                code="invalid-result",
            )
        if not math.isfinite(value):
            raise PluginError(
                f"the paradigm measures {value} as '{name}': a finite number is needed.", code="invalid-result"
            )
        before = self.step.measures.get(name)
        if before is not None and declared[name].reduce != "last":
            value = before + value if declared[name].reduce == "sum" else max(before, value)
        self.step.measures[name] = float(value)

    # --- what the learner uses ---------------------------------------------------------------------------------

    def begin(self, index: int) -> None:
        self.step = Step(index)
        self._calls.clear()
        self._passed.clear()
        self._context = {
            "classes": self._brief.classes,
            "num_classes": self.classes,
            "device": self._device,
            "seed": self.seed,
            "folder": self._folder,
            "passes": self._passes,
            "progress": lambda fraction, **numbers: self._progress(index, fraction, numbers),
        }
        if not self.rules.training_labels:
            self._context["pretraining"] = True

    def set_last_chunk(self, number: int) -> None:
        """Set the context key `chunk`, the number of the last predicted chunk of the stream."""
        self._context = {**self._context, "chunk": number}

    @contextmanager
    def replaced(self, modules: Modules, *, pretraining: bool | None = None) -> Iterator[None]:
        """Context manager: use `modules` instead of the session's. pretraining: their context key of this name."""
        before = self.modules, self._context
        self.modules = modules
        if pretraining is not None:
            self._context = {**self._context, "pretraining": pretraining}
        try:
            yield
        finally:
            self.modules, self._context = before

    def round_context(self, number: int, seen: tuple[int, ...], new: tuple[int, ...]) -> dict[str, Any]:
        """Return the context of a round, for calls before or after its training."""
        # Lazy, because it takes as long as a small layer.
        draws = LazyArgument(partial(generator, self.seed, number, "plugin"))
        return {"round": number, "classes_seen": seen, "new_classes": new, "generator": draws}

    def view(self, handout: ServedSamples, passed: int = 0) -> TrainView:
        """Return served samples as a learner's TrainData. passed: earlier passes over the same data."""
        columns = {name: as_served(column, self._threads) for name, column in handout.columns.items()}
        labelled, passes = handout.labelled, handout.passes
        return TrainView(columns, name=handout.name, passes=passes, passed=passed, labelled=labelled)

    def adaptation(self, view: TrainView, context: Mapping[str, Any], classes: tuple[int, ...]) -> Iterator[TrainView]:
        """Context manager with the samples to adapt a copy of the learner; the learner itself is unchanged.

        context: that of the test set.
        """
        extended = {**context, "new_classes": classes, "train_rounds": (view,)}
        yield from self._served_iterator(_ServedData(view, None, context=extended))

    # --- private ------------------------------------------------------------------------------------------------

    def _served_iterator(self, fed: _ServedData) -> Iterator[Any]:
        views = fed.context.get("train_rounds", (fed.view,))
        self._fed[id(fed.view)] = fed
        try:
            yield fed.view
        finally:
            del self._fed[id(fed.view)]
            if fed.seed is not None:
                self.step.passes = max(self.step.passes, fed.view.passes)
                passed = self._passed.setdefault(fed.number, {})
                passed[fed.share] = passed.get(fed.share, 0) + fed.view.passes
            for view in views:
                view.close()

    def _passes_so_far(self, number: int, share: Share) -> int:
        """Return passes in this step over a share of round or chunk `number`; each view is counted once."""
        passed = self._passed.get(number, {})
        return max(passed.get(share, 0), math.floor(sum(count / n for (_, n), count in passed.items()) + 1e-9))

    def _progress(self, index: int, fraction: float, numbers: Mapping[str, float]) -> None:
        """Report progress, and numbers for curves at most once for each hundredth of a round."""
        if self._brief.streams:  # chunks of a stream are too short for progress reports
            return
        finite = {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
        names, cell = tuple(finite), (index, int(100 * fraction + 1e-9))
        if finite and self._cells.get(names) != cell:
            self._cells[names], self._reported_at = cell, -math.inf
        else:
            finite = {}
        self._report_progress(index, float(fraction), len(self._brief.rounds), finite)

    def _report_progress(self, round_: int, fraction: float, rounds: int | None = None, numbers: Any = None) -> None:
        """Report progress for display, rate-limited."""
        if (now := time.monotonic()) - self._reported_at >= _PERIOD:
            self._reported_at = now
            self.source.progress(round_, fraction, rounds, numbers or {})
