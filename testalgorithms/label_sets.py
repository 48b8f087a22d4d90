"""Base classes of methods for detection and multi-label classification, where a sample has several labels."""

import torch

from ianvs.authoring import ReplayLearner, TorchLearner
from ianvs.base.errors import require_known


class MultiLabelMasking(TorchLearner):
    """Converts a mask on outputs to class indices."""

    _last_mask = None, None  # (mask, its classes), cached so that the GPU is read once a round

    def allowed(self, mask, count):
        """Return (n,) class indices that a mask (count,) allows; all for None."""
        if mask is None:
            return torch.arange(count, device=next(self.network.parameters()).device)
        if self._last_mask[0] is not mask:
            self._last_mask = mask, (mask == 0).nonzero()[:, 0]
        return self._last_mask[1]


class LabelSetReplay(ReplayLearner):
    """Adds as many stored samples as new ones to each batch, or `replay_batch`, with their original labels."""

    def __init__(self, *, selection="reservoir", **options):
        require_known(f"selection of {type(self).__name__}", selection, ("reservoir", "per_round"))
        super().__init__(selection=selection, **options)

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        return torch.cat([x, old_x]), torch.cat([y, old_y])


class KnownClasses(TorchLearner):
    """Keeps the class indices of earlier rounds in `known_classes`, ascending."""

    memory = ()  # no samples are stored

    def __init__(self, **training):
        super().__init__(**training)
        self.known_classes = []

    def taught(self, data):
        """Return the class indices among the labels of a round's data."""
        raise NotImplementedError

    def after_round(self, data):
        self.known_classes = sorted({*self.known_classes, *self.taught(data)})

    def state(self):
        return {"known": self.known_classes}

    def restore(self, state):
        self.known_classes = list(state["known"])
