"""The outputs of a learner with a network: labels, probabilities, scores, features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ianvs.authoring.holder import NetworkHolder
from ianvs.authoring.round_data import output_mask
from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError
from ianvs.plugins.contract import TestData

_DATA_TYPES, _OWN = "ianvs.data_types", "classification"  # the entry points' group, and what predict() is made for


class Answering(NetworkHolder):
    """The part of TorchLearner that is used in testing."""

    # What a method may override.

    def answers(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, num_classes) scores from which prepared test samples x (B, ...) are predicted; by default the logits.

        mask: (num_classes,) to be added, -inf for classes that may not be predicted; None if all may.
        """
        return self.logits(x, mask)

    # What the benchmark calls.

    def check_exam(self, *, kind: str, shape: tuple[int, ...], num_classes: int) -> str:
        """Reject labels that no class index answers, where `predict` is not a method's own; and see NetworkHolder."""
        method = type(self)
        of_pixels = kind == "segmentation" and method.build_network is not NetworkHolder.build_network
        if method.predict is Answering.predict and kind in installed(_DATA_TYPES) and not (kind == _OWN or of_pixels):
            raise PluginError(
                f"{method.__name__} answers one class for each sample, but this exam is one of {kind}. Take a "
                "method for that (`ianvs list algorithms`), or override predict().",
                code="refused-arguments",
            )
        return super().check_exam(kind=kind, shape=shape, num_classes=num_classes)

    def predict(self, data: TestData, **context: Any) -> NDArray[np.int64]:
        """(N,) the most probable of the task's classes, if the exam gives them, or else of the classes seen so far;
        of all classes if the model is untrained."""
        return self.answer_logits(data, **context).argmax(1).cpu().numpy()

    def probabilities(self, data: TestData, **context: Any) -> NDArray[np.float32]:
        """(N, num_classes) the softmax over the classes among which `predict` chooses; 0 for the others."""
        return self.answer_logits(data, **context).softmax(1).cpu().numpy()

    def scores(self, data: TestData, **context: Any) -> NDArray[np.float32]:
        """(N, num_classes) the logits, for `task_scores: true`, including those of classes not taught yet, so that a
        caller who knows the task can compare its classes. If the exam gives the task's classes, -inf for all others."""
        return self.answer_logits(data, **{**context, "classes_seen": ()}).cpu().numpy()

    def features(
        self, data: TestData, *, num_classes: int, device: str = "cpu", seed: int = 0, **context: object
    ) -> NDArray[np.float32]:
        """(N, D) input of the head: the representation of each sample."""
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
        """(N, num_classes) scores from which classes are predicted, -inf for classes that may not be."""
        allowed = tuple(classes_seen) if task_classes is None else tuple(task_classes)
        mask = output_mask(allowed, num_classes, torch.device(device))
        x = data.tensors("cpu")
        self._ready(x, num_classes, device, seed)
        return self.each(x, lambda part: self.answers(part, mask))
