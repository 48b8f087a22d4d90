"""How many samples a network predicts at once, by the size of its activations."""

from collections.abc import Callable
from contextlib import ExitStack

import torch
from torch import Tensor, nn

FEWEST, MOST = 16, 1024  # limits of the batch size in evaluation
NUMBERS = {"cpu": 2**21, "cuda": 2**27}  # size of the widest activation: 8 MiB fit a CPU's cache


def widest_activation(network: nn.Module, ask: Callable[[], Tensor]) -> tuple[Tensor, int]:
    """Return the result of `ask`, and the size of the largest layer output of `network` during the call."""
    widest = 0

    def note(layer: nn.Module, given: object, answer: object) -> None:
        nonlocal widest
        if isinstance(answer, Tensor):
            widest = max(widest, answer.numel())

    with ExitStack() as stack:
        for layer in network.modules():
            stack.callback(layer.register_forward_hook(note).remove)
        answer = ask()
    return answer, widest


def samples_at_once(widest: int, device: torch.device) -> int:
    """Batch size for evaluation, 16 to 1024: as many samples as keep the widest activation (numbers) small.

    On a processor a convolutional network is twice as fast when its activations stay in the cache.
    """
    return max(FEWEST, min(MOST, NUMBERS.get(device.type, NUMBERS["cuda"]) // max(1, widest)))
