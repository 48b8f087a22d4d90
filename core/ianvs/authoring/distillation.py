"""Learning from what another network says."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, softmax


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """T^2 KL(softmax(teacher / T) || softmax(student / T)), mean over the batch (Hinton et al. 2015, section 2).

    student, teacher: (B, ..., C) logits over the same classes, all finite; the losses of one sample are summed.
    Returns a scalar, in nats. T^2 keeps the size of the gradient the same whatever the temperature.
    """
    told = softmax(teacher / temperature, dim=-1)
    said = log_softmax(student / temperature, dim=-1)
    return kl_div(said, told, reduction="batchmean") * temperature**2
