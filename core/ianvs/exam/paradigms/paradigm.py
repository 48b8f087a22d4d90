"""The interface of paradigms, and what their methods receive.

A class with `train` is a paradigm. What it does not define has the defaults in `Paradigm`.
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
"""The label for samples of unknown classes, an answer in open-world exams."""

Context = Mapping[str, Any]
"""The context of a test set, as far as the exam's rules show it: `task`, `task_classes`. Pass it on in `call`."""


class Module(Protocol):
    """An object of an author's class in a session. Its methods are called by `Session.call`."""

    @property
    def plugin(self) -> object:
        """The object itself."""


class Session(Protocol):
    """The running case, as a paradigm sees it.

    Attributes:
        options: The options in the algorithm's yaml, an object of the paradigm's `options`.
        seed: The seed of the case. Global random generators are seeded again before every call that gets training data.
    """

    options: Any
    seed: int

    @property
    def rounds(self) -> tuple[str, ...]:
        """Names of the exam's rounds."""

    @property
    def rules(self) -> Rules:
        """What the exam shows to a learner."""

    def module(self, kind: str, instance: str = "", *, fresh: bool = False) -> Module:
        """Return the algorithm's module of a type, which is built at the first call.

        All objects are saved after each step, and restored in a case that resumes.

        Args:
            kind: The type, such as "basemodel".
            instance: The name of one of several objects of the class, such as "client 2".
            fresh: Replace the object by a new, untrained one.
        """

    def has(self, kind: str) -> bool:
        """Return whether the algorithm lists a module of this optional type."""

    def feed(
        self, first: int, last: int | None = None, *, share: tuple[int, int] = (0, 1), skew: float | None = None
    ) -> Iterator[TrainView]:
        """Iterate over training data: one view of the rounds `first` to `last`, mixed, or the chunks of a stream.

        A view is closed when the next one is requested. `view.part(rows)` is a part of it, and `view.unlabelled()` its
        samples as test data.

        Args:
            first: The first round, counted from 1.
            last: The last round; None: `first`.
            share: (k, n): the k-th (from 0) of n equal parts of each class.
            skew: Draw the shares of each class from Dir(skew) instead.

        Raises:
            ExamRuleError: A round is not available yet. Requests for earlier rounds mark the row as an upper bound.
        """

    def call(self, module: Module, method: str, *arguments: Any, **context: Any) -> Any:
        """Call a method of an author's object and return its result.

        The method receives those keys of ianvs.plugins.contract.CONTEXT and of `context` that it names as parameters.
        The time counts as training or evaluation.
        """

    def measure(self, name: str, value: float) -> None:
        """Report a number of this step under a name of the paradigm's `measures`."""


class DetectsUnseen(Protocol):
    """A learner that recognises samples of unknown classes: a base model may have this method."""

    def detect_unseen(self, data: TestView, **context: Any) -> Any:
        """Return whether each sample is unlike everything that was taught.

        Returns:
            (N,) bool, or (N,) scores: the higher, the less the sample resembles the training data; above 0 it counts as
            unseen. Before training every sample is unseen.
        """


class Recogniser(Protocol):
    """Decides from the scores of a base model which samples are unseen (module `unseen_sample_recognition`)."""

    def recognise(self, scores: NDArray[Any], **context: Any) -> Any:
        """Return (N,) bool, whether each sample is unseen.

        Args:
            scores: (N,) the results of `detect_unseen`, numbers or bool.
            **context: As for `train`.
        """


def unseen_samples(
    session: Session, model: Module, data: TestView, context: Context, recogniser: Module | None = None
) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Call `detect_unseen` of a model.

    Returns:
        ((N,) scores, (N,) whether each is unseen); None if the model has no such method.

    Raises:
        PluginError: The results are not N finite numbers.
    """
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


def open_world_predictions(
    session: Session, model: Module, data: TestView, context: Context, recogniser: Module | None = None
) -> Predictions:
    """Return the predictions of a model where unseen samples have the label -1; the scores are the extra `unseen`."""
    detected = unseen_samples(session, model, data, context, recogniser)
    labels = session.call(model, "predict", data, **context)
    if detected is None:
        return Predictions(labels)
    scores, unseen = detected
    labels = labels.detach().cpu().numpy() if hasattr(labels, "detach") else np.asarray(labels)
    if labels.shape != unseen.shape:
        return Predictions(labels, {"unseen": scores})  # not a class per sample: the check reports what is wrong
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
    """How a case is examined: which steps there are, what each does, and how the model predicts.

    One object of the class serves a case. It is built without arguments. State that must survive a restart belongs into
    modules.

    Attributes:
        name: The name in yaml files (`paradigm_type`).
        options: Keys that it adds to the algorithm's yaml.
        modules: For each type of module the protocol of the author's class; `Protocol | None` if it may be left out.
        measures: Numbers that it reports besides scores; each is a column.
        as_one: The exam has a single round with one test set per domain, or one in all.
        reference: Other cases are compared with it; limits on passes, budget and gate do not apply.
        hears_feedback: In a prequential stream `feed` yields `FeedbackView` instead of training data.
        stateless: Its modules are reset before each sample, and get no labels.
        pictures: Charts in reports, the most informative first: "how sure", "learning", "training" (numbers that
            learners report), "stability", "costs", "matrices", and "against NAME", a metric.
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
        """Return the names of the steps. Step k brings round k, and the model is tested after each."""
        return session.rounds

    def train(self, step: int, session: Session) -> None:
        """Carry out a step.

        Args:
            step: Its number, from 1.
            session: The running case.
        """

    def predict(self, data: TestView, context: Context, session: Session) -> Predictions:
        """Return the predictions of the present model for all samples of `data`."""
        model = session.module("basemodel")
        if session.rules.unseen == "none":
            return Predictions(session.call(model, "predict", data, **context))
        return open_world_predictions(session, model, data, context)

    def adapt(self, data: TrainView, session: Session) -> None:
        """Adapt a copy of the model to a downstream task (continual pre-training). The copy is discarded afterwards."""
        session.call(session.module("basemodel"), "train", data)
