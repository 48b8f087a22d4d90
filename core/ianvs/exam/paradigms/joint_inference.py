"""Ianvs's jointinference, for native plugins: a small model at the edge, a large one in the cloud, and a router."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import PluginError
from ianvs.base.types import Predictions
from ianvs.exam.data.options import Options
from ianvs.exam.paradigms.link import Link, size_of
from ianvs.exam.paradigms.paradigm import Context, Module, Paradigm, Session
from ianvs.exam.scenarios.views import TestView, TrainView
from ianvs.plugins.contract import Learner

EDGE, CLOUD = 0, 1
"""Values of the extra `route`: which model's answer was used."""


class EdgeModel(Learner, Protocol):
    """A learner that also returns probabilities."""

    def probabilities(self, data: TestView, **context: Any) -> Any:
        """Return (N, C), the probability of each class of the exam; called with inference-then-mining."""


class Router(Protocol):
    """Decides which samples are hard and go to the cloud (`hard_example_mining`).

    It may have train(train_data, **context), called for each round, and save and load.
    """

    def hard(self, data: TestView, probabilities: NDArray[np.float64] | None, **context: Any) -> Any:
        """Return (N,) bool, whether each sample is hard.

        Args:
            data: The samples.
            probabilities: (N, C) of the edge model; None if the router is called first.
            **context: As for `predict`.
        """


class JointOptions(Options):
    """Options of joint inference in an algorithm's yaml.

    Attributes:
        hard_example_mining_mode: Whether the router is called before the edge model, or after it.
        link: The link between edge and cloud.
        edge_ms: Time of a prediction at the edge, in ms.
        cloud_ms: Time of a prediction in the cloud, in ms.
        sample_bytes: Size of a sample that is uploaded; None: its size in memory.
        answer_bytes: Size of a prediction that is downloaded.
    """

    hard_example_mining_mode: Literal["mining-then-inference", "inference-then-mining"] = "inference-then-mining"
    link: Link | None = None
    edge_ms: float = Field(0.0, ge=0)
    cloud_ms: float = Field(0.0, ge=0)
    sample_bytes: int | None = Field(None, ge=0)
    answer_bytes: int = Field(8, ge=0)


class JointInference(Paradigm):
    """Edge and cloud model train on each round, and the router if it can; the router selects who predicts.

    Extras of the predictions, which metrics read: `route` (0 edge, 1 cloud), `latency_ms` (if there is a link),
    `uploaded_bytes` and `downloaded_bytes`.
    """

    name: ClassVar[str] = "jointinference"
    options: ClassVar[type[Options]] = JointOptions
    modules: ClassVar[Mapping[str, Any]] = {
        "edgemodel": EdgeModel,
        "cloudmodel": Learner,
        "hard_example_mining": Router,
    }
    pictures: ClassVar[tuple[str, ...]] = (
        *("against latency_ms", "against uploaded_bytes", "against edge_share", "how sure", "training", "costs"),
    )

    def train(self, step: int, session: Session) -> None:
        """Train both models, and the router if it can."""
        for data in session.feed(step):
            for learner in self._learners(session):
                session.call(learner, "train", data)

    def adapt(self, data: TrainView, session: Session) -> None:
        """Adapt both models, and the router if it can."""
        for learner in self._learners(session):
            session.call(learner, "train", data)

    def predict(self, data: TestView, context: Context, session: Session) -> Predictions:
        """Predict by the model that the router selects for each sample."""
        options = session.options
        edge, cloud = session.module("edgemodel"), session.module("cloudmodel")
        first = options.hard_example_mining_mode == "inference-then-mining"
        hard = self._hard(data, context, session, edge if first else None)
        labels: list[Any] = [None] * len(data)
        for model, mine in ((edge, ~hard), (cloud, hard)):
            if mine.any():
                rows = np.flatnonzero(mine)
                model_answers = _answers(session, model, data if mine.all() else data.part(rows), context)
                for row, answer in zip(rows.tolist(), model_answers, strict=True):
                    labels[row] = answer
        sizes = [size_of(sample) for sample in data.x] if options.sample_bytes is None else options.sample_bytes
        up = np.where(hard, sizes, 0)
        down = np.where(hard, options.answer_bytes, 0)
        extras: dict[str, NDArray[Any]] = {
            "route": np.where(hard, CLOUD, EDGE).astype(np.int8),
            "uploaded_bytes": up.astype(np.float64),
            "downloaded_bytes": down.astype(np.float64),
        }
        if options.link is not None:
            at_edge = np.where(hard & (not first), 0.0, options.edge_ms)
            away = options.cloud_ms + np.array([options.link.milliseconds(u, d) for u, d in zip(up, down, strict=True)])
            extras["latency_ms"] = at_edge + np.where(hard, away, 0.0)
        return Predictions(labels, extras)

    def _learners(self, session: Session) -> list[Module]:
        router = session.module("hard_example_mining")
        learners = [session.module("edgemodel"), session.module("cloudmodel")]
        return [*learners, router] if callable(getattr(router.plugin, "train", None)) else learners

    def _hard(self, data: TestView, context: Context, session: Session, edge: Module | None) -> NDArray[np.bool_]:
        """Return (N,) bool, which samples are hard.

        Edge: its probabilities go to the router; None: the router is called first.
        """
        shares = None
        if edge is not None:
            probabilities = session.call(edge, "probabilities", data, **context)
            shares = np.asarray(
                probabilities.detach().cpu() if hasattr(probabilities, "detach") else probabilities, np.float64
            )
            if shares.ndim != 2 or len(shares) != len(data) or not np.isfinite(shares).all():
                name = f"{type(edge.plugin).__name__}.probabilities()"
                wanted = f"return (N, C) finite numbers, N = {len(data)}."
                raise PluginError(f"{name} returned shape {shares.shape}: {wanted}", code="invalid-result")
        router = session.module("hard_example_mining")
        hard = np.asarray(session.call(router, "hard", data, shares, **context))
        if hard.shape != (len(data),) or hard.dtype != bool:
            name = f"{type(router.plugin).__name__}.hard()"
            raise PluginError(
                f"{name} returned {hard.dtype} {hard.shape}: return ({len(data)},) bool.", code="invalid-result"
            )
        return hard


def _answers(session: Session, model: Module, data: TestView, context: Context) -> Any:
    """Return one answer for each sample of `data`."""
    answers = session.call(model, "predict", data, **context)
    if hasattr(answers, "detach"):
        answers = answers.detach().cpu().numpy()
    if not hasattr(answers, "__len__") or len(answers) != len(data):
        description = f"{len(answers)} answers" if hasattr(answers, "__len__") else type(answers).__name__
        name = f"{type(model.plugin).__name__}.predict()"
        raise PluginError(
            f"{name} returned {description} for {len(data)} samples: return one for each.", code="invalid-result"
        )
    return answers
