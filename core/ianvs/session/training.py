"""Hands a learner what it is to learn from: a round, the chunks of a stream, or all that a reference may see."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.engines.engine import Reporter
from ianvs.planning.case_request import CaseRequest
from ianvs.scenarios.views import TrainView
from ianvs.seeding import stream_seed
from ianvs.session import measure
from ianvs.session.context import ContextBuilder
from ianvs.session.evaluation import Evaluation
from ianvs.session.feed import DataFeed
from ianvs.session.learner_calls import LearnerCalls
from ianvs.session.measure import NOTHING_SPENT, Spent

__all__ = ["Trained", "Training", "seed_everything"]


@dataclass
class Trained:
    """What the training of a round took, and what was asked in the midst of it."""

    samples: int = 0
    spent: Spent = NOTHING_SPENT
    passes: int = 0
    eval_spent: Spent = NOTHING_SPENT
    predictions: dict[str, NDArray[Any]] = field(default_factory=dict)  # "<j>@<samples>": as ianvs.session.evaluation
    examined: list[tuple[int, int, int]] = field(default_factory=list)  # (samples, rounds begun, rounds ended)

    def add(self, samples: int, spent: Spent, passes: int) -> None:
        self.samples += samples
        self.spent += spent
        self.passes = max(self.passes, passes)

    def examine(self, predictions: dict[str, NDArray[Any]], spent: Spent, when: tuple[int, int, int]) -> None:
        self.predictions |= {f"{name}@{when[0]}": kept for name, kept in predictions.items()}
        self.eval_spent += spent
        self.examined.append(when)


class Training:
    """The ways in which a round is taught."""

    def __init__(self, request: CaseRequest, feed: DataFeed, contexts: ContextBuilder, report: Reporter) -> None:
        self._request, self._feed, self._contexts, self._report = request, feed, contexts, report

    def seed_for(self, purpose: str, number: int = 0) -> None:
        """Start the global random streams anew."""
        seed_everything(stream_seed(self._request.case.seed, number, purpose))

    def on_round(self, learner: LearnerCalls, index: int, valid: TrainView | None) -> Trained:
        """Round `index` as a whole; a bound is given all rounds so far, and no rule on passes is for it."""
        context = self._contexts.after_round(index, learner)
        if not learner.sees_past_rounds:
            return self._train(learner, index, [self._feed.round(index)], valid, context)
        views = self._feed.past_rounds(index)
        context |= {"train_rounds": tuple(views), "passes": None}
        return self._train(learner, index, views, valid, context)

    def on_chunks(self, learner: LearnerCalls, evaluation: Evaluation, index: int) -> Trained:
        """The chunks of a stream that arrive in round `index`; some are followed by an examination."""
        trained = Trained()
        chunks = self._feed.chunks(index)
        for chunk in chunks:
            context = self._contexts.after_chunk(chunk)
            view = self._feed.chunk(chunk)
            self.seed_for("global", chunk.number)
            with measure.stopwatch() as watch:
                learner.train(view, None, context)
            trained.add(len(view), watch.spent, view.passes)
            view.close()
            self._report({"round": index, "fraction": (chunk.number - chunks[0].number + 1) / len(chunks)})
            if chunk is not chunks[-1] and self._feed.examines_after(chunk):
                predictions, spent = evaluation.predictions_between(index, context)
                trained.examine(predictions, spent, (chunk.samples, chunk.begun, chunk.ended))
        return trained

    def reference_learner(self, learner: LearnerCalls) -> LearnerCalls:
        """A fresh model of the same class, initialised as every case of this seed is."""
        self.seed_for("global")
        return learner.fresh()

    def reference(self, learner: LearnerCalls, index: int) -> Trained:
        """Round `index` alone ("single_task"), or rounds 1 to `index` as if they were one ("joint")."""
        context = self._contexts.by_reference(index, learner)
        alone = self._request.case.role == "single_task"
        view = self._feed.rounds(index, index if alone else 1)
        if learner.sees_past_rounds:
            context["train_rounds"] = (view,)
        return self._train(learner, index, [view], None, context)

    def _train(
        self,
        learner: LearnerCalls,
        index: int,
        views: list[TrainView],
        valid: TrainView | None,
        context: dict[str, Any],
    ) -> Trained:
        self.seed_for("global", index)
        with measure.stopwatch() as watch:
            learner.train(views[-1], valid, context)
        trained = Trained(sum(map(len, views)), watch.spent, views[-1].passes)
        for view in views:
            view.close()
        return trained


def seed_everything(seed: int) -> None:
    """Seed the global generators, at the start of every round, so that a resumed case draws the same numbers."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # plugins may use the legacy generator
    torch = sys.modules.get("torch")
    if torch is not None:
        # torch.manual_seed() would note down a stack trace for each kind of accelerator that is not in use: 0.3 ms.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)
