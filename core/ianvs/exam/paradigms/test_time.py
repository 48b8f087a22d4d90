"""Test-time learning: systems that answer, are told how that went, and answer better; with or without new weights.

StreamBench (Wu et al. 2024, arXiv 2406.08747) calls it an input-feedback sequence, Evo-Memory (arXiv 2511.20857)
test-time learning.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.paradigms.paradigm import Context, Paradigm, Session
from ianvs.exam.scenarios.feedback_view import Told
from ianvs.exam.scenarios.views import TestView


class System(Protocol):
    """Answers questions, and is told afterwards. Its constructor's keyword arguments are its hyperparameters.

    Optional: `feedback(told, **context)`, in which it learns (without it a `memory` has to be listed);
    `predict(data, **context)`, asked of copies at the ends of rounds, else `answer`; `reset()`: be as just built again,
    for the reference that remembers nothing (a loaded model may stay); `save(path)` and `load(path)`.
    """

    def answer(self, data: TestView, **context: Any) -> Any:
        """(N,) answers to `data.x`, which it may keep. notes: of a listed `memory`, what its read() gave."""


class Memory(Protocol):
    """What a system is told, kept apart from it (module type `memory`). Optional: `reset`, `save`, `load`."""

    def write(self, feedback: Told, **context: Any) -> None:
        """Keep what may help later."""

    def read(self, data: TestView, **context: Any) -> Any:
        """For each question of `data` a list of (question, answer) that were told before."""


class _Asked(Paradigm):
    """Answers by the base model, with what a memory has to say."""

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


class TestTimeLearning(_Asked):
    """`answer` before it is told, `feedback` afterwards; a `memory` writes down what is told and is read before."""

    __test__: ClassVar[bool] = False  # the name is not an invitation to pytest

    name: ClassVar[str] = "testtimelearning"
    hears_feedback: ClassVar[bool] = True
    pictures: ClassVar[tuple[str, ...]] = ("how sure", "training", "learning", "stability", "costs", "matrices")

    def train(self, step: int, session: Session) -> None:
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


class Stateless(_Asked):
    """The reference `stateless`: the modules of an algorithm, as they were built, before each question of a stream.

    It is told nothing. What CL-Bench (arXiv 2606.05661) calls `reset_between_instances`.
    """

    name: ClassVar[str] = "stateless"
    reference: ClassVar[bool] = True
    stateless: ClassVar[bool] = True

    def train(self, step: int, session: Session) -> None:
        for _ in session.feed(step):
            pass

    def answer(self, data: TestView, context: Context, session: Session) -> Predictions:
        has_answer = callable(getattr(session.module("basemodel").plugin, "answer", None))
        return self._answers("answer" if has_answer else "predict", data, context, session)
