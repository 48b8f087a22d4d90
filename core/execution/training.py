"""Hands a learner what it is to learn from: a round, the pieces of a stream, or all that a reference may see."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.execution import measure
from core.execution.delivery import Delivery
from core.execution.engine import Reporter
from core.execution.evaluation import Evaluation
from core.execution.learner import LearnerCalls
from core.execution.request import CaseRequest
from core.execution.told import Told
from core.scenarios.handed import HandedTrain
from core.seeding import stream_seed

__all__ = ["Trained", "Training", "seed_everything"]


@dataclass
class Trained:
    """What the training of a round took, and what was asked in the midst of it."""

    samples: int = 0
    seconds: float = 0.0
    passes: int = 0
    eval_seconds: float = 0.0
    answers: dict[str, NDArray[Any]] = field(default_factory=dict)  # "<j>@<samples>": as core.execution.evaluation
    examined: list[tuple[int, int, int]] = field(default_factory=list)  # (samples, rounds begun, rounds ended)

    def add(self, samples: int, seconds: float, passes: int) -> None:
        self.samples += samples
        self.seconds += seconds
        self.passes = max(self.passes, passes)

    def examine(self, answers: dict[str, NDArray[Any]], seconds: float, when: tuple[int, int, int]) -> None:
        self.answers |= {f"{name}@{when[0]}": kept for name, kept in answers.items()}
        self.eval_seconds += seconds
        self.examined.append(when)


class Training:
    """The ways in which a round is taught."""

    def __init__(self, request: CaseRequest, delivery: Delivery, told: Told, report: Reporter) -> None:
        self._request, self._delivery, self._told, self._report = request, delivery, told, report

    def seed_for(self, purpose: str, number: int = 0) -> None:
        """Start the global random streams anew."""
        seed_everything(stream_seed(self._request.case.seed, number, purpose))

    def on_round(self, learner: LearnerCalls, index: int, valid: HandedTrain | None) -> Trained:
        """Round `index` as a whole; a bound is given all rounds so far, and no rule on passes is for it."""
        context = self._told.after_round(index, learner)
        if not learner.sees_past_rounds:
            return self._train(learner, index, [self._delivery.round(index)], valid, context)
        leases = self._delivery.past_rounds(index)
        context |= {"train_rounds": tuple(leases), "passes": None}
        return self._train(learner, index, leases, valid, context)

    def on_pieces(self, learner: LearnerCalls, evaluation: Evaluation, index: int) -> Trained:
        """The pieces of a stream that arrive in round `index`; some are followed by an examination."""
        trained = Trained()
        pieces = self._delivery.pieces(index)
        for piece in pieces:
            context = self._told.after_piece(piece)
            lease = self._delivery.piece(piece)
            self.seed_for("global", piece.number)
            with measure.stopwatch() as watch:
                learner.train(lease, None, context)
            trained.add(len(lease), watch.seconds, lease.passes)
            lease.close()
            self._report({"round": index, "fraction": (piece.number - pieces[0].number + 1) / len(pieces)})
            if piece is not pieces[-1] and self._delivery.examines_after(piece):
                answers, seconds = evaluation.answers_between(index, context)
                trained.examine(answers, seconds, (piece.samples, piece.begun, piece.ended))
        return trained

    def reference_learner(self, learner: LearnerCalls) -> LearnerCalls:
        """A fresh model of the same class, initialised as every case of this seed is."""
        self.seed_for("global")
        return learner.fresh()

    def reference(self, learner: LearnerCalls, index: int) -> Trained:
        """Round `index` alone ("solo"), or rounds 1 to `index` as if they were one ("joint")."""
        context = self._told.by_reference(index, learner)
        alone = self._request.case.role == "solo"
        lease = self._delivery.rounds(index, index if alone else 1)
        if learner.sees_past_rounds:
            context["train_rounds"] = (lease,)
        return self._train(learner, index, [lease], None, context)

    def _train(
        self,
        learner: LearnerCalls,
        index: int,
        leases: list[HandedTrain],
        valid: HandedTrain | None,
        context: dict[str, Any],
    ) -> Trained:
        self.seed_for("global", index)
        with measure.stopwatch() as watch:
            learner.train(leases[-1], valid, context)
        trained = Trained(sum(map(len, leases)), watch.seconds, leases[-1].passes)
        for lease in leases:
            lease.close()
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
