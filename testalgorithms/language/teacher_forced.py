"""Predictions of a language model on true replies: which tokens it would have chosen, and their likelihood."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.language.batches import only_at
from ianvs.testalgorithms.language.chat_template import ChatTemplate
from ianvs.testalgorithms.language.conversation import Conversation, Encoded
from ianvs.testalgorithms.language.sight import Sight
from ianvs.testalgorithms.language.source_target import pairs


def teacher_forced(
    network: Any, conversations: Sequence[Encoded], window: int | None = None, sight: Sight | None = None
) -> list[list[float]]:
    """[right tokens, learnt tokens, sum of log p(token | tokens before)] of each conversation.

    Each goes through the network by itself: no padding, no neighbours, so that its numbers are the same whatever else
    is asked. Log-probabilities are float32, and summed in float64. window: tokens that the model can look at. What is
    learnt beyond it can't be asked for: such a token counts as wrong, and as one of the vocabulary drawn at random.
    sight: of a model that sees.
    """
    return [
        _of_one(network, conversation, conversation.cut(window or len(conversation)), sight)
        for conversation in conversations
    ]


def of_whole(
    network: Any, template: ChatTemplate, conversations: Sequence[Conversation], window: int | None
) -> list[list[float]]:
    """Return the same of whole conversations, also where the template has each turn learnt by itself."""
    parts = [[encoded for _, encoded in template.learnable(conversation)] for conversation in conversations]
    by_part = [teacher_forced(network, part, window, template.sight) for part in parts]
    return [[sum(numbers) for numbers in zip(*sums, strict=True)] for sums in by_part]


@torch.no_grad()
def mean_surprise(network: Any, logits: Callable[[Any], Tensor], batches: Iterable[Any]) -> float:
    """Return the mean of -log p over the learnt tokens of batches; the network stays in the mode in which it is."""
    training, total, tokens = network.training, 0.0, 0
    network.eval()
    for batch in batches:
        total += float(cross_entropy(logits(batch), batch.targets, reduction="sum"))
        tokens += len(batch.targets)
    network.train(training)
    return total / tokens


def _of_one(network: Any, conversation: Encoded, within: Encoded, sight: Sight | None) -> list[float]:
    device = next(network.parameters()).device
    beyond = sum(conversation.learnt[1:]) - sum(within.learnt[1:])
    if network.config.is_encoder_decoder:
        batch = pairs([within], 0, network.config.eos_token_id, device)
        logits = batch.of_learnt(network(**batch.inputs(network)).logits)
        return _numbers(logits, batch.targets, beyond)
    # The first token has nothing before it.
    before = torch.tensor([at for at, learnt in enumerate(within.learnt[1:]) if learnt], device=device)
    seen = torch.tensor([within.tokens], device=device)
    shown = sight.inputs([within.pictures], seen) if sight is not None else {}
    pictures = {name: value.to(device) for name, value in shown.items()}
    logits = network(input_ids=seen, use_cache=False, **pictures, **only_at(network, before)).logits[0]
    logits = (logits[before] if len(logits) == seen.shape[1] else logits).float()
    targets = seen[0, 1:][before]
    return _numbers(logits, targets, beyond)


def _numbers(logits: Tensor, targets: Tensor, beyond: int) -> list[float]:
    likelihoods = logits.log_softmax(-1).gather(1, targets[:, None]).double()
    return [
        float((logits.argmax(-1) == targets).sum()),
        float(len(targets) + beyond),
        float(likelihoods.sum()) - beyond * math.log(logits.shape[-1]),
    ]
