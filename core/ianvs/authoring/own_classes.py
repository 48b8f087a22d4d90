"""Training among the classes of a round alone."""

from __future__ import annotations

import torch
from torch import Tensor

from ianvs.authoring.round_data import RoundData, sent

__all__ = ["own_classes_mask"]


def own_classes_mask(data: RoundData, num_classes: int) -> Tensor:
    """(num_classes,) to be added to logits: -inf for classes that no label of the round names; 0 if there is no label.

    A head that is trained so does not learn that old classes have gone: what methods on trained networks do.
    """
    own = torch.unique(data.labelled().y)
    mask = torch.full((num_classes,), -torch.inf if len(own) else 0.0, device=data.device)
    mask[sent(own, data.device)] = 0.0
    return mask
