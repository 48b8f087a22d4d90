"""The contract of paradigms: what an author of one writes, and what it is given to work with.

A class with `train` is a paradigm; what else it has not takes the defaults that stand in `Paradigm`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure, Predictions
from ianvs.exam.data.options import Options
from ianvs.exam.scenarios.exam import Rules
from ianvs.exam.scenarios.views import TestView, TrainView
from ianvs.plugins.contract import Learner

UNSEEN = -1
"""The label that says: this is of nothing that I was taught. An answer in open-world exams."""

Context = Mapping[str, Any]
"""What is told with a test set, as far as the exam's rules show it: `task`, `task_classes`. Hand it on in `call`."""


class Module(Protocol):
    """An object of an author's class that a session has given out. Call its methods by `Session.call`."""

    @property
    def plugin(self) -> object:
        """The object itself."""


class Session(Protocol):
    """What a paradigm has of the case that is under way.

    options: those of the algorithm's yaml, an object of the paradigm's `options`. rounds: names of the exam's rounds.
    rules: what the exam shows a learner. seed: of the case; the global random generators are seeded anew for every call
    that hands out training data.
    """

    options: Any
    seed: int

    @property
    def rounds(self) -> tuple[str, ...]: ...

    @property
    def rules(self) -> Rules: ...

    def module(self, kind: str, instance: str = "", *, fresh: bool = False) -> Module:
        """The algorithm's module of that kind, made when it is first asked for.

        instance: a name for one of several objects of the class, such as "client 2". fresh: a new one, as it was before
        it learned anything, takes its place. All of them are saved after each step, and brought back in a case that
        resumes.
        """

    def has(self, kind: str) -> bool:
        """Whether the algorithm lists a module of that kind, of those that may be left out."""

    def feed(
        self, first: int, last: int | None = None, *, share: tuple[int, int] = (0, 1), skew: float | None = None
    ) -> Iterator[TrainView]:
        """The training data of rounds `first` to `last` (from 1), one after the other: a single view of all of them,
        mixed; in a stream its chunks.

        share: (k, n), the k-th (from 0) of n parts that are alike in their classes; with `skew` they are not: shares of
        each class are drawn from Dir(skew). A view ends when the next one is asked for; `view.part(rows)` is training
        data as the view is, and `view.unlabelled()` its samples to ask about. Raises ExamRuleError for a round that has
        not come; who asks for earlier rounds is marked as a bound.
        """

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any:
        """What `method` of the author's object returns; it is given of the context what it names.

        That is what ianvs.plugins.contract.CONTEXT lists, and `context`. Its time counts as training or evaluation.
        """

    def measure(self, name: str, value: float) -> None:
        """Report something of this step, under a name of the paradigm's `measures`."""


class DetectsUnseen(Protocol):
    """A learner that knows what it does not know: a base model may have this method."""

    def detect_unseen(self, data: TestView, **context: Any) -> Any:
        """For each sample whether it is unlike all that was taught: (N,) bool, or (N,) scores.

        A score is the higher, the less the sample looks like what was taught; above 0 it is taken for unseen. A learner
        that was taught nothing yet says so of every sample.
        """


class Recogniser(Protocol):
    """Decides from the scores of a base model which samples are unseen (`unseen_sample_recognition`)."""

    def recognise(self, scores: NDArray[Any], **context: Any) -> Any:
        """(N,) bool of what `detect_unseen` has said, (N,) numbers or bool."""


def unseen_samples(
    session: Session, model: Module, data: TestView, context: Context, recogniser: Module | None = None
) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """((N,) scores, (N,) whether unseen) by `model`'s detect_unseen; None where it has none. Raises PluginError."""
    if not callable(getattr(model.plugin, "detect_unseen", None)):
        return None
    plugin_name = type(model.plugin).__name__
    scores = _numbers(
        session.call(model, "detect_unseen", data, **context), len(data), f"{plugin_name}.detect_unseen()"
    )
    if recogniser is None:
        return scores, scores.astype(np.float64) > 0
    decisions = session.call(recogniser, "recognise", scores, **context)
    decided = _numbers(decisions, len(data), f"{type(recogniser.plugin).__name__}.recognise()")
    return scores, decided.astype(bool)


def answers(
    session: Session, model: Module, data: TestView, context: Context, recogniser: Module | None = None
) -> Predictions:
    """What `model` predicts; in an open-world exam -1 for what it takes for unseen, and the scores as `unseen`."""
    wants_unseen = session.rules.unseen != "none"
    detected = unseen_samples(session, model, data, context, recogniser) if wants_unseen else None
    labels = session.call(model, "predict", data, **context)
    if detected is None:
        return Predictions(labels)
    scores, unseen = detected
    labels = labels.detach().cpu().numpy() if hasattr(labels, "detach") else np.asarray(labels)
    if labels.shape != unseen.shape:
        return Predictions(labels, {"unseen": scores})  # no class each: it is told what is wrong with it
    return Predictions(np.where(unseen, UNSEEN, labels.astype(np.int64)), {"unseen": scores})


def _numbers(values: Any, count: int, caller: str) -> NDArray[Any]:
    array = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
    if array.shape != (count,) or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise PluginError(
            f"{caller} returned {array.dtype} {array.shape}: return {count} finite numbers, one a sample.",
            code="invalid-result",
        )
    return array


class Paradigm(Protocol):
    """How a case is examined: which steps there are, what happens in one, how the model answers.

    One object of the class serves a case, without arguments; what has to outlive a kill belongs into modules.

    name: as yaml files call it. options: the keys that it adds to the algorithm's yaml. modules: for each type of
    module that it works with the protocol that the author's class has to satisfy, `Protocol | None` for one that may be
    left out. measures: what it reports beside scores, each a column. as_one: the exam comes as one round, with one test
    set for each domain or a single one. reference: others are compared with it; no rules on passes, budget or gate are
    for it. hears_feedback: what `feed` yields of a stream that is asked before it is told is `Told`, not training data.
    stateless: its modules are reset before each question, and told nothing. pictures: kinds of charts that reports
    draw of it, the most telling first: "how sure", "learning", "training" (what learners tell), "stability", "costs",
    "matrices", and "against NAME", a metric.
    """

    name: ClassVar[str]
    options: ClassVar[type[Options]] = Options
    modules: ClassVar[Mapping[str, Any]] = {"basemodel": Learner}
    measures: ClassVar[Mapping[str, Measure]] = {}
    as_one: ClassVar[bool] = False
    reference: ClassVar[bool] = False
    hears_feedback: ClassVar[bool] = False
    stateless: ClassVar[bool] = False
    pictures: ClassVar[tuple[str, ...]] = ("how sure", "learning", "training", "stability", "costs", "matrices")

    def steps(self, session: Session) -> Sequence[str]:
        """Names of the steps, after each of which the model is asked; step k brings round k."""
        return session.rounds

    def train(self, step: int, session: Session) -> None:
        """Step `step`, from 1."""

    def predict(self, data: TestView, context: Context, session: Session) -> Predictions:
        """Answers to all samples of `data` by the model as it is now."""
        return answers(session, session.module("basemodel"), data, context)

    def adapt(self, data: TrainView, session: Session) -> None:
        """Teach a copy of the model a downstream task (continual pre-training); the copy is thrown away."""
        session.call(session.module("basemodel"), "train", data)
