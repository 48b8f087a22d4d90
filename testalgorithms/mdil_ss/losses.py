"""The loss of MDIL-SS (Garg et al., WACV 2022), and its class weights.

For a batch (x, y) of domain t, with the network from before the round as teacher and lambda = 0.1:
L = L_CE(student(x, t), y) + lambda * sum over j < t of L_KLD(student(x, j), teacher(x, j)).

Labels are (B, H, W) class indices; the network's last output is the class "ignore", which weighs 0.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax

from ianvs.base.errors import require_known

DISTILLATIONS = ("kl", "reference_quirk")

Branches = Callable[[Tensor, int], Tensor]  # a network of many domains: (x, domain) -> logits


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """L_CE: sum of w[y] (-ln softmax(logits)[y]) over pixels, divided by the sum of w[y]; 0 if all pixels weigh 0.

    logits: (B, C, H, W). labels: (B, H, W) integers in 0..C-1. weights: (C,), 0 for "ignore". Returns nats.
    """
    # One row per pixel is a view when logits are channels_last, and faster than the library's loss on images, whose
    # mean, besides, is nan when all pixels weigh 0 and is summed in any order on a GPU.
    rows = _full(logits).movedim(1, -1).reshape(-1, logits.shape[1])
    targets = labels.reshape(-1).long()
    weights = weights.to(rows.dtype)
    nats = cross_entropy(rows, targets, weight=weights, reduction="none")
    return nats.sum() / weights.index_select(0, targets).sum().clamp_min(torch.finfo(rows.dtype).tiny)


def distillation(student: Tensor, teacher: Tensor, kind: str = "kl") -> Tensor:
    """L_KLD of one earlier domain (Garg et al. 2022): how far `student` is from `teacher`.

    student, teacher: (B, C, H, W) logits of the same branch; gradients go to `student` only. Returns a scalar.

    "kl": KL(softmax(teacher) || softmax(student)) in nats, summed over classes, mean over pixels. Where both are equal
    it is 0 and so is its gradient, exactly: Adam would make a whole step of what rounding leaves.
    "reference_quirk": what the authors' code computes, softmax where a logarithm of it is due, and the mean over
    classes too: mean of p_T (ln p_T - p_S). It is negative, and pulls to the teacher's likeliest class.
    """
    require_known("distillation", kind, DISTILLATIONS)
    student, teacher = _full(student), _full(teacher.detach())
    if kind == "reference_quirk":
        return kl_div(softmax(student, dim=1), softmax(teacher, dim=1), reduction="sum") / student.numel()
    kl: Tensor = _PixelKL.apply(student, teacher)
    return kl


def _full(logits: Tensor) -> Tensor:
    """Return half-precision logits as float32: half precision is too coarse for logarithms of probabilities and
    their sums.
    """
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


class _PixelKL(torch.autograd.Function):
    """The mean over pixels of KL(softmax(teacher) || softmax(student)); its gradient is (p_S - p_T) / pixels."""

    @staticmethod
    def forward(ctx: Any, student: Tensor, teacher: Tensor) -> Tensor:
        log_student, log_teacher = log_softmax(student, dim=1), log_softmax(teacher, dim=1)
        teacher_p = log_teacher.exp()
        ctx.pixels = student.numel() // student.shape[1]
        ctx.save_for_backward(log_student.exp() - teacher_p)
        kl: Tensor = (teacher_p * (log_teacher - log_student)).sum() / ctx.pixels
        return kl

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (difference,) = ctx.saved_tensors
        return difference * (gradient / ctx.pixels), None


def old_domain_losses(
    student: Branches,
    teacher: Branches,
    x: Tensor,
    domains: Iterable[int],
    kind: str = "kl",
    temperature: float = 1.0,
) -> Iterator[Tensor]:
    """Yield the `distillation` of each of the earlier `domains`, all on images x of the new domain.

    student, teacher: (x, domain) -> logits; the teacher is the frozen network from before the round. A loss can be
    freed after its backward pass, before the next is requested. The authors wrote it out for at most two old domains.
    temperature: T of Hinton et al. 2015, T^2 KL at logits / T.
    """
    for old in domains:
        with torch.no_grad():
            teacher_logits = teacher(x, old)
        student_logits = student(x, old)
        if temperature == 1.0:
            yield distillation(student_logits, teacher_logits, kind)
        else:
            yield temperature**2 * distillation(student_logits / temperature, teacher_logits / temperature, kind)


def class_weights(counts: Tensor, offset: float = 1.1) -> Tensor:
    """Return (C,) float64 weights 1 / ln(offset + p_c), p_c = (n_c + 1) / sum (n + 1), and 0 for the last class,
    "ignore".

    After Paszke et al. 2016 (ENet), as in MDIL-SS: rare classes weigh up to 10.5 with offset 1.1, the authors' choice
    for training with a decoder.
    """
    counts = counts.to(torch.float64) + 1.0
    weights = 1.0 / torch.log(offset + counts / counts.sum())
    weights[-1] = 0.0
    return weights
