"""What methods for boxes and for several labels share: in both a label may be of several classes."""

import torch

from ianvs.authoring import ReplayLearner, TorchLearner
from ianvs.base.errors import require_known


class OpenClasses(TorchLearner):
    """Knows which classes a mask on outputs leaves."""

    _opened = None, None  # the last mask, and what it leaves: a card is asked once a round, not in every step

    def allowed(self, mask, count):
        """(n,) class indices that a mask (count,) leaves; all for None."""
        if mask is None:
            return torch.arange(count, device=next(self.network.parameters()).device)
        if self._opened[0] is not mask:
            self._opened = mask, (mask == 0).nonzero()[:, 0]
        return self._opened[1]


class LabelSetReplay(ReplayLearner):
    """Each step's samples are joined by as many old ones, or `replay_batch`, with the labels that they came with."""

    def __init__(self, *, selection="reservoir", **options):
        require_known(f"selection of {type(self).__name__}", selection, ("reservoir", "per_round"))
        super().__init__(selection=selection, **options)

    def extend(self, x, y):
        if not len(self.memory):
            return x, y
        old_x, old_y = self.recall(len(y))
        return torch.cat([x, old_x]), torch.cat([y, old_y])


class KnownClasses(TorchLearner):
    """Knows by `known`, class indices ascending, what earlier rounds have taught."""

    memory = ()  # it keeps no samples

    def __init__(self, **training):
        super().__init__(**training)
        self.known = []

    def taught(self, data):
        """Class indices among the labels of a round's data."""
        raise NotImplementedError

    def after_round(self, data):
        self.known = sorted({*self.known, *self.taught(data)})

    def state(self):
        return {"known": self.known}

    def restore(self, state):
        self.known = list(state["known"])
