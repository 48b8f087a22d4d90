"""Gradients in one vector: of a loss, and of what a memory holds."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from ianvs.testalgorithms.language.batches import split_by_tokens
from ianvs.testalgorithms.language.conversation import Encoded
from ianvs.testalgorithms.language.language_learner import LanguageLearner


def flat_gradient(loss: Tensor, weights: Iterable[nn.Parameter]) -> Tensor:
    """(P,) the gradient of `loss`, 0 for weights that have no part in it, such as experts of which no token asked."""
    found = torch.autograd.grad(loss, list(weights), allow_unused=True, materialize_grads=True)
    return torch.cat([part.reshape(-1) for part in found])


def memory_gradient(learner: LanguageLearner, conversations: Sequence[Encoded]) -> Tensor:
    """(P,) the gradient of the mean loss over all learnt tokens of `conversations`; `.grad` of weights is left alone.

    However many conversations there are, no more tokens are computed at a time than a batch may have.
    """
    tokens = sum(sum(conversation.learnt[1:]) for conversation in conversations)
    most = learner.descent.batch_size * learner.max_length
    weights = list(learner.weights.values())
    total = torch.zeros(sum(weight.numel() for weight in weights), device=learner.device)
    for part in split_by_tokens(conversations, most):
        batch = learner.batch(part)
        total += flat_gradient(len(batch.targets) / tokens * learner.loss(batch), weights)
    return total
