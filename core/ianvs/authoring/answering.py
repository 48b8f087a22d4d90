"""How a learner with a network answers: labels, probabilities, scores, features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ianvs.authoring.holder import NetworkHolder
from ianvs.authoring.round_data import output_mask
from ianvs.plugins.contract import TestData


class Answering(NetworkHolder):
    """What of TorchLearner is asked when it is tested."""

    # What a method may override.

    def answers(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, num_classes) what prepared samples x (B, ...) of a test are answered with; by default the logits.

        mask: (num_classes,) to be added, -inf for classes that are not among the answers; None when all are.
        """
        return self.logits(x, mask)

    # What the benchmark calls.

    def predict(self, data: TestData, **context: Any) -> NDArray[np.int64]:
        """(N,) the most probable of the task's classes, where the exam gives them, or else of the classes seen so far;
        of all classes if the model is untrained."""
        labels: NDArray[np.int64] = self.answer_logits(data, **context).argmax(1).cpu().numpy()
        return labels

    def probabilities(self, data: TestData, **context: Any) -> NDArray[np.float32]:
        """(N, num_classes) the softmax over the classes that `predict` answers with; 0 for the others."""
        shares: NDArray[np.float32] = self.answer_logits(data, **context).softmax(1).cpu().numpy()
        return shares

    def scores(self, data: TestData, **context: Any) -> NDArray[np.float32]:
        """(N, num_classes) the logits, for `task_scores: true`: also of classes that were not taught yet, so that who
        knows the task may look among its classes. Where the exam gives the task's classes, -inf for all others."""
        logits: NDArray[np.float32] = self.answer_logits(data, **{**context, "classes_seen": ()}).cpu().numpy()
        return logits

    def features(
        self, data: TestData, *, num_classes: int, device: str = "cpu", seed: int = 0, **context: object
    ) -> NDArray[np.float32]:
        """(N, D) what the head is given: the representation of each sample."""
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        return self._features(x).cpu().numpy()

    # For methods to use.

    def answer_logits(
        self,
        data: TestData,
        *,
        num_classes: int,
        classes_seen: Sequence[int] = (),
        task_classes: Sequence[int] | None = None,
        device: str = "cpu",
        seed: int = 0,
        **context: object,
    ) -> Tensor:
        """(N, num_classes) what answers are made from, -inf for classes that are not among them."""
        allowed = tuple(classes_seen) if task_classes is None else tuple(task_classes)
        mask = output_mask(allowed, num_classes, torch.device(device))
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        return self.each(x, lambda part: self.answers(part, mask))
