"""Test-time learning: systems that predict, get feedback, and improve, with or without new weights.

StreamBench (Wu et al. 2024, arXiv 2406.08747) calls it an input-feedback sequence, Evo-Memory (arXiv 2511.20857)
test-time learning.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.paradigms.paradigm import Context, Paradigm, Session
from ianvs.exam.scenarios.feedback_view import FeedbackView
from ianvs.exam.scenarios.views import TestView


class System(Protocol):
    """A system that predicts, then gets feedback. The keyword arguments of its constructor are its hyperparameters.

    Optional methods: `feedback(told, **context)`, in which it learns (without it, a `memory` must be listed);
    `predict(data, **context)`, called for copies at the ends of rounds instead of `answer`; `reset()`, which restores
    the state after construction for the reference without memory (a loaded model may stay); `save(path)` and
    `load(path)`.
    """

    def answer(self, data: TestView, **context: Any) -> Any:
        """Return (N,) predictions for `data.x`.

        Args:
            data: The samples. It may keep them.
            **context: As for `predict`. With a listed `memory`, `notes` is what its read() returned.
        """


class Memory(Protocol):
    """A memory of feedback, apart from the system (module type `memory`). Optional: `reset`, `save`, `load`."""

    def write(self, feedback: FeedbackView, **context: Any) -> None:
        """Store feedback that may help later."""

    def read(self, data: TestView, **context: Any) -> Any:
        """Return for each sample of `data` a list of (sample, label) from earlier feedback."""


class _TestTimeParadigm(Paradigm):
    """Predicts by the base model, with the notes of a memory if there is one."""

    modules: ClassVar[Mapping[str, Any]] = {"basemodel": System, "memory": Memory | None}

    def answer(self, data: TestView, context: Context, session: Session) -> Predictions:
        return self._answers("answer", data, context, session)

    def predict(self, data: TestView, context: Context, session: Session) -> Predictions:
        has_predict = callable(getattr(session.module("basemodel").plugin, "predict", None))
        return self._answers("predict" if has_predict else "answer", data, context, session)

    def _answers(self, method: str, data: TestView, context: Context, session: Session) -> Predictions:
        if session.has("memory"):
            context = {**context, "notes": session.call(session.module("memory"), "read", data, **context)}
        return Predictions(session.call(session.module("basemodel"), method, data, **context))


class TestTimeLearning(_TestTimeParadigm):
    """Calls `answer`, then `feedback`. A `memory` stores the feedback, and is read before `answer`."""

    __test__: ClassVar[bool] = False  # the name is not an invitation to pytest

    name: ClassVar[str] = "testtimelearning"
    hears_feedback: ClassVar[bool] = True
    pictures: ClassVar[tuple[str, ...]] = ("how sure", "training", "learning", "stability", "costs", "matrices")

    def train(self, step: int, session: Session) -> None:
        """Pass the round's feedback to the system and the memory."""
        system = session.module("basemodel")
        learns = callable(getattr(system.plugin, "feedback", None))
        if not learns and not session.has("memory"):
            raise PluginError(
                f"{type(system.plugin).__name__} has no feedback(), so it learns nothing. Give it "
                "feedback(told, **context), or list a module of type `memory`.",
                code="broken-contract",
            )
        for feedback in session.feed(step):
            if learns:
                session.call(system, "feedback", feedback)
            if session.has("memory"):
                session.call(session.module("memory"), "write", feedback)


class Stateless(_TestTimeParadigm):
    """The reference `stateless`: the modules of an algorithm, reset before each sample of a stream.

    It gets no feedback. CL-Bench (arXiv 2606.05661) calls it `reset_between_instances`.
    """

    name: ClassVar[str] = "stateless"
    reference: ClassVar[bool] = True
    stateless: ClassVar[bool] = True

    def train(self, step: int, session: Session) -> None:
        """Skip the round: nothing is learned."""
        for _ in session.feed(step):
            pass

    def answer(self, data: TestView, context: Context, session: Session) -> Predictions:
        """Predict by the modules after a reset."""
        has_answer = callable(getattr(session.module("basemodel").plugin, "answer", None))
        return self._answers("answer" if has_answer else "predict", data, context, session)
