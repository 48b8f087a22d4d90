"""How many samples a network predicts at once, by the size of its activations."""

from collections.abc import Callable
from contextlib import ExitStack

import torch
from torch import Tensor, nn

FEWEST, MOST = 16, 1024  # samples that are predicted at once
NUMBERS = {"cpu": 2**21, "cuda": 2**27}  # of the widest activation: 8 MiB stay in the cache, a GPU takes more


def widest_activation(network: nn.Module, ask: Callable[[], Tensor]) -> tuple[Tensor, int]:
    """The result of `ask`, and the size of the largest output of a layer of `network` during it."""
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
