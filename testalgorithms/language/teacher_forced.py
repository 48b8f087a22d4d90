"""What a language model makes of true replies: which of their tokens it would have said, and how likely they were."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ianvs.testalgorithms.language.batches import only_at
from ianvs.testalgorithms.language.conversation import Encoded
from ianvs.testalgorithms.language.sight import Sight


def teacher_forced(
    network: Any, conversations: Sequence[Encoded], window: int | None = None, sight: Sight | None = None
) -> list[list[float]]:
    """[right tokens, learnt tokens, sum of log p(token | tokens before)] of each conversation.

    Each goes through the network by itself: no padding, no neighbours, so that its numbers are the same whatever else
    is asked. Log-probabilities are float32, and summed in float64. window: tokens that the model can look at. What is
    learnt beyond it can't be asked for: such a token counts as wrong, and as one of the vocabulary drawn at random.
    sight: of a model that sees.
    """
    return [_of_one(network, one, one.cut(window or len(one)), sight) for one in conversations]


def _of_one(network: Any, conversation: Encoded, within: Encoded, sight: Sight | None) -> list[float]:
    device = next(network.parameters()).device
    # The first token has nothing before it.
    before = torch.tensor([at for at, learnt in enumerate(within.learnt[1:]) if learnt], device=device)
    seen = torch.tensor([within.tokens], device=device)
    shown = {"pixel_values": sight.pixels(within.pictures).to(device)} if sight and within.pictures else {}
    logits: Tensor = network(input_ids=seen, use_cache=False, **shown, **only_at(network, before)).logits[0]
    logits = (logits[before] if len(logits) == seen.shape[1] else logits).float()
    targets = seen[0, 1:][before]
    likelihoods = logits.log_softmax(-1).gather(1, targets[:, None]).double()
    beyond = sum(conversation.learnt[1:]) - len(targets)
    return [
        float((logits.argmax(-1) == targets).sum()),
        float(len(targets) + beyond),
        float(likelihoods.sum()) - beyond * math.log(logits.shape[-1]),
    ]
