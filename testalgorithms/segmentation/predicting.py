"""Predictions of a network for many images, in parts that fit into memory."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ianvs.testalgorithms.segmentation.data import DomainData, prepare

PIXELS = {"cpu": 2**16}  # images per forward pass: few on a CPU, so they fit into its cache
MANY_PIXELS = 2**22


def answers(
    logits: Callable[[Tensor], Tensor],
    pictures: Tensor,
    outputs: int,
    layout: torch.memory_format,
    device: torch.device,
) -> Iterator[Tensor]:
    """Yield the most likely of the first `outputs` outputs for each pixel, (n, H, W) int64, for n images at a time.

    logits: the network's function of (n, 3, H, W) numbers in 0..1. pictures: (N, 3, H, W) uint8, on any device.
    """
    room = PIXELS.get(device.type, MANY_PIXELS)
    for part in torch.split(pictures, max(1, room // (pictures.shape[2] * pictures.shape[3]))):
        with torch.inference_mode():
            # With the outputs last in memory, the maximum is three times as fast.
            rows = logits(prepare(part.to(device), layout)).permute(0, 2, 3, 1)
            yield rows[..., :outputs].argmax(-1)


def mean_iou(logits: Callable[[Tensor], Tensor], data: DomainData, layout: torch.memory_format) -> float:
    """Return the mean IoU over all classes of the domain (Garg et al. 2022): a class that occurs nowhere counts 0.

    "ignore" may be predicted, and is a miss.
    """
    size = data.labels.outputs
    pairs = torch.zeros(size * size, dtype=torch.int64, device=data.device)
    done = 0
    for answered in answers(logits, data.x, size, layout, data.device):
        truth = data.y[done : done + len(answered)].to(data.device)
        pairs += torch.bincount((truth.long() * size + answered).flatten(), minlength=size * size)
        done += len(answered)
    table = pairs.view(size, size)[:-1].double()  # without the pixels to ignore
    hits = table.diagonal()
    union = table.sum(0)[:-1] + table.sum(1) - hits
    return float((hits / union.clamp_min(1.0)).mean())
