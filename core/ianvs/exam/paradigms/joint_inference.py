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
"""What the extra `route` says of a sample: whose answer was taken."""


class EdgeModel(Learner, Protocol):
    """A learner that also says how sure it is."""

    def probabilities(self, data: TestView, **context: Any) -> Any:
        """(N, C) of each class of the exam, each row of sum 1; asked with inference-then-mining."""


class Router(Protocol):
    """Says which samples are hard, so that the cloud has to answer (`hard_example_mining`).

    It may have train(train_data, **context), and then learns from each round as the models do; and save and load.
    """

    def hard(self, data: TestView, probabilities: NDArray[np.float64] | None, **context: Any) -> Any:
        """(N,) bool. probabilities: (N, C), what the edge says; None where the router is asked before the edge is."""


class JointOptions(Options):
    """hard_example_mining_mode: whether the router is asked before the edge model, or after it. link: between edge and
    cloud. edge_ms, cloud_ms: what an answer takes there, in ms. sample_bytes: of a sample on its way up; None: as large
    as it is in memory. answer_bytes: of an answer on its way down.
    """

    hard_example_mining_mode: Literal["mining-then-inference", "inference-then-mining"] = "inference-then-mining"
    link: Link | None = None
    edge_ms: float = Field(0.0, ge=0)
    cloud_ms: float = Field(0.0, ge=0)
    sample_bytes: int | None = Field(None, ge=0)
    answer_bytes: int = Field(8, ge=0)


class JointInference(Paradigm):
    """Both models learn each round, and the router if it can. Of answers it is told whose they are (`route`), what they
    took (`latency_ms`, where there is a link) and what was sent (`uploaded_bytes`, `downloaded_bytes`): extras of the
    same name for each sample, which metrics read.
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
        for data in session.feed(step):
            for learner in self._learners(session):
                session.call(learner, "train", data)

    def adapt(self, data: TrainView, session: Session) -> None:
        for learner in self._learners(session):
            session.call(learner, "train", data)

    def predict(self, data: TestView, context: Context, session: Session) -> Predictions:
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
        """edge: who says how sure it is before the router is asked; None: nobody."""
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
    """One for each sample of `data`."""
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
