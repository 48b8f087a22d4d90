"""What a paradigm works with in one case: modules, data, calls, measurements. Implements ianvs.exam.paradigms.Session.

It has of the exam what a source hands out, a round at a time.
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
from ianvs.exam.data.parts import presented
from ianvs.exam.data_types import DataType
from ianvs.exam.paradigms.paradigm import Module, Paradigm
from ianvs.exam.scenarios.exam import Exam, Rules
from ianvs.exam.scenarios.feedback_view import Told
from ianvs.exam.scenarios.views import TrainView
from ianvs.plugins.signature import Late
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.asked_stream import asked_chunks
from ianvs.running.session.feed import ALL, Chunk, Handout, Share
from ianvs.running.session.generators import start_generators
from ianvs.running.session.measure import synchronise
from ianvs.running.session.modules import AuthorsModule, Modules, Taught
from ianvs.running.session.stream_keeper import StreamKeeper

_PERIOD = 0.1  # seconds between two reports of progress


@dataclass(frozen=True)
class Brief:
    """What a learner knows of the exam before it begins. streams: rounds are handed over in chunks."""

    kind: str
    rounds: tuple[str, ...]
    classes: tuple[str, ...]
    rules: Rules
    streams: bool


def brief_of(exam: Exam) -> Brief:
    return Brief(
        kind=exam.dataset.kind,
        rounds=tuple(round_.name for round_ in exam.rounds),
        classes=exam.dataset.classes,
        rules=exam.rules,
        streams=exam.stream is not None,
    )


@dataclass
class Step:
    """What happened in one step so far."""

    index: int = 0
    passes: int = 0
    measures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FeedCall:
    """Rounds `first` to `last` are asked for. past: and all before them, one by one.

    share, skew: as in ianvs.exam.paradigms.Session.feed.
    """

    first: int
    last: int
    share: Share = ALL
    skew: float | None = None
    past: bool = False


@dataclass(frozen=True)
class Whole:
    """Rounds as they are handed over. classes: that they teach. context: what a learner gets with them. free: no rule
    on passes is for it."""

    views: tuple[Handout, ...]
    classes: tuple[int, ...]
    context: Mapping[str, Any]
    free: bool


class Source(Protocol):
    """Serves training data and receives progress reports."""

    def serve(self, request: FeedCall) -> Whole | Iterator[tuple[int, Chunk, Handout, float]] | StreamKeeper: ...

    def progress(self, round_: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None: ...


@dataclass(frozen=True)
class _Fed:
    """A view that was handed out, and what a learner is told with it."""

    view: TrainView | Told
    seed: int | None  # of the global generators, with the purpose "global"; None: they go on, and nothing is counted
    number: int = 0  # of the round, or of the chunk
    share: Share = ALL
    classes: tuple[int, ...] = ()
    in_stream: bool = False
    context: Mapping[str, Any] = field(default_factory=dict)


class CaseSession:
    """See ianvs.exam.paradigms.Session. `step` is the step that is under way."""

    def __init__(
        self,
        request: CaseRequest,
        brief: Brief,
        kind: DataType,
        paradigm: Paradigm,
        options: Options,
        device: str,
        folder: Path,
    ) -> None:
        self.kind = kind
        self.options, self.seed = options, request.case.seed
        self.step = Step()
        self.modules = Modules(request.algorithm, request.case, brief.rules, request.started_in)
        self.valid: TrainView | None = None  # the held-out part of the round
        self.caller = f"{paradigm.name}.predict()"  # whose answers came last, for errors
        self.source: Source
        self.paradigm, self._brief = paradigm, brief
        self.rounds, self.rules, self.classes = brief.rounds, brief.rules, len(brief.classes)
        self._device, self._folder, self._threads = device, folder, request.threads
        self._fed: dict[int, _Fed] = {}  # open views by id
        self._calls: Counter[int] = Counter()  # with training data, in this step, by seed
        self._passed: dict[int, dict[Share, int]] = {}  # over rounds or chunks, in this step, by number
        self._context: dict[str, Any] = {}  # what is told in every call of this step
        budget = None if paradigm.reference else request.testenv.budget
        limits = (brief.rules.passes, None if budget is None else budget.passes)
        self._reported_at = -math.inf  # when progress was told last
        self._cells: dict[tuple[str, ...], tuple[int, int]] = {}  # by names of numbers, the hundredth they were told in
        self._passes = min((limit for limit in limits if limit is not None), default=None)

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
        if isinstance(served, Whole):
            fed = self._whole(served, first, share)
            if len(fed.view):
                yield from self._handed_out(fed)
        elif isinstance(served, StreamKeeper):
            for told_chunk in asked_chunks(self, served):
                number = told_chunk.number
                yield from self._handed_out(
                    _Fed(told_chunk.view, number, number, classes=told_chunk.classes, in_stream=True)
                )
        else:
            for index, chunk, handout, done in served:
                if len(handout):
                    view = self.view(handout, self._gone_over(chunk.number, share))
                    number = chunk.number
                    yield from self._handed_out(_Fed(view, number, number, share, chunk.classes, in_stream=True))
                self._say(index, done)

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any:
        assert isinstance(module, AuthorsModule)
        fed = next(filter(None, map(self._fed_as, arguments)), None)
        if fed is not None and fed.seed is not None:
            self._seed(fed.seed)
            before = module.taught
            more = set(fed.classes).difference(before.seen)
            seen = tuple(sorted({*before.seen, *more})) if more else before.seen
            new = tuple(sorted(more)) if fed.in_stream else fed.classes
            module.taught = Taught(before.calls + 1, seen, new)
        taught = module.taught if module.taught.calls else self._common()
        of_data = {"valid_data": None, **fed.context} if fed is not None else {}
        offered = {**self._always(), **self.round_context(taught.calls, taught.seen, taught.new), **of_data, **context}
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
        self._context = {}

    def tell_chunk(self, number: int) -> None:
        """From now on learners that name it are told which chunk of the stream was asked last."""
        self._context = {**self._always(), "chunk": number}

    @contextmanager
    def replaced(self, modules: Modules, *, pretraining: bool | None = None) -> Iterator[None]:
        """Context manager: `modules` stand in the place of the session's own. pretraining: what they are told."""
        before = self.modules, self._context
        self.modules = modules
        if pretraining is not None:
            self._context = {**self._always(), "pretraining": pretraining}
        try:
            yield
        finally:
            self.modules, self._context = before

    def round_context(self, number: int, seen: tuple[int, ...], new: tuple[int, ...]) -> dict[str, Any]:
        """What a learner is told of a round, before or after it is taught it."""
        draws = Late(partial(generator, self.seed, number, "plugin"))  # takes as long as a small layer
        return {"round": number, "classes_seen": seen, "new_classes": new, "generator": draws}

    def view(self, handout: Handout, passed: int = 0) -> TrainView:
        """What is handed over, as a learner gets it. passed: passes before over the same data."""
        columns = {name: presented(column, self._threads) for name, column in handout.columns.items()}
        labelled, passes = handout.labelled, handout.passes
        return TrainView(columns, name=handout.name, passes=passes, passed=passed, labelled=labelled)

    def adaptation(self, view: TrainView, context: Mapping[str, Any], classes: tuple[int, ...]) -> Iterator[TrainView]:
        """What a copy of the learner is adapted on before it answers; the learner itself goes on as it is.

        context: what is told with the test set.
        """
        extended = {**context, "new_classes": classes, "train_rounds": (view,)}
        yield from self._handed_out(_Fed(view, None, context=extended))

    # --- within -------------------------------------------------------------------------------------------------

    def _whole(self, whole: Whole, first: int, share: Share) -> _Fed:
        """Rounds from `first` on as one view; the rounds before beside it, for who sees them."""
        passed = 0 if whole.free else self._gone_over(first, share)
        views = [self.view(view, passed) for view in whole.views]
        context: dict[str, Any] = dict(whole.context)
        if whole.free:
            context["passes"] = None
        else:
            context["valid_data"] = self.valid if share == ALL else None
        if self.modules.sees_past_rounds:
            context["train_rounds"] = tuple(views)
            if not self.paradigm.reference:
                context["valid_data"] = self.valid
        return _Fed(views[-1], self.step.index, first, share, whole.classes, context=context)

    def _fed_as(self, argument: object) -> _Fed | None:
        """What is told with `argument`, if it is training data that were handed out, or a part of them."""
        if not isinstance(argument, TrainView | Told) or id(argument.whole) not in self._fed:
            return None
        fed = self._fed[id(argument.whole)]
        if argument is argument.whole or (classes := argument.classes) is None:
            return fed
        return replace(fed, classes=classes)

    def _handed_out(self, fed: _Fed) -> Iterator[Any]:
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

    def _gone_over(self, number: int, share: Share) -> int:
        """Passes so far, in this step, over a share of round or chunk `number`: what was handed out is counted once."""
        passed = self._passed.get(number, {})
        return max(passed.get(share, 0), math.floor(sum(count / n for (_, n), count in passed.items()) + 1e-9))

    def _seed(self, number: int) -> None:
        """A stream of its own for each call of a step with training data."""
        call = self._calls[number]
        self._calls[number] += 1
        start_generators(self.seed, f"global, call {call}" if call else "global", number)

    def _common(self) -> Taught:
        """What the modules were taught together: for one that learns from others instead of data."""
        taught = [module.taught for module in self.modules]
        seen, new = {c for each in taught for c in each.seen}, {c for each in taught for c in each.new}
        return Taught(max((each.calls for each in taught), default=0), tuple(sorted(seen)), tuple(sorted(new)))

    def _always(self) -> dict[str, Any]:
        if self._context:
            return self._context
        classes, index = self._brief.classes, self.step.index
        self._context = {
            "classes": classes,
            "num_classes": len(classes),
            "device": self._device,
            "seed": self.seed,
            "folder": self._folder,
            "passes": self._passes,
            "progress": lambda fraction, **numbers: self._progress(index, fraction, numbers),
        }
        if not self.rules.training_labels:
            self._context["pretraining"] = True
        return self._context

    def _progress(self, index: int, fraction: float, numbers: Mapping[str, float]) -> None:
        """Numbers become curves: once for each hundredth of a round, however fast it goes."""
        if self._brief.streams:  # the chunks of a stream are too short to tell how far each is
            return
        finite = {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
        names, cell = tuple(finite), (index, int(100 * fraction + 1e-9))
        if finite and self._cells.get(names) != cell:
            self._cells[names], self._reported_at = cell, -math.inf
        else:
            finite = {}
        self._say(index, float(fraction), len(self._brief.rounds), finite)

    def _say(self, round_: int, fraction: float, rounds: int | None = None, numbers: Any = None) -> None:
        """For eyes: not more often than they can see."""
        if (now := time.monotonic()) - self._reported_at >= _PERIOD:
            self._reported_at = now
            self.source.progress(round_, fraction, rounds, numbers or {})
