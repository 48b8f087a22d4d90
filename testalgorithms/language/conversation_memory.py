"""A memory of old conversations with a budget, and the gradient of the loss on its content."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ianvs.authoring.projection import flat_gradient
from ianvs.base.errors import PluginError
from ianvs.base.lazy_images import Picture
from ianvs.testalgorithms.language.batches import split_by_tokens
from ianvs.testalgorithms.language.conversation import Conversation, Encoded, texts_of
from ianvs.testalgorithms.language.language_learner import LanguageLearner


class ConversationMemory:
    """At most `capacity` conversations, at any time a uniform random subset of all that were ever added.

    Each conversation draws one uniform key when it arrives, and those with the largest keys stay: equivalent to
    reservoir sampling (Vitter 1985, algorithm R). They stay in the order of arrival.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise PluginError(
                f"the capacity of a memory is a number of conversations, 0 or more, not {capacity}.",
                code="out-of-range",
            )
        self.capacity = int(capacity)
        self.conversations: list[Conversation] = []
        self._keys: list[float] = []

    def __len__(self) -> int:
        return len(self.conversations)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored text, and of the pixels of the stored images."""
        sizes = [
            Picture.from_value(picture).size for conversation in self.conversations for picture in conversation.pictures
        ]
        pixels = sum(3 * height * width for height, width in sizes)
        return sum(len(text.encode()) for text in texts_of(self.conversations)) + pixels

    def add(self, conversations: Sequence[Conversation], generator: torch.Generator) -> None:
        """Offer conversations; `generator` draws their keys."""
        drawn = torch.rand(len(conversations), dtype=torch.float64, generator=generator).tolist()
        keys, everything = [*self._keys, *drawn], [*self.conversations, *conversations]
        rows = sorted(sorted(range(len(keys)), key=lambda i: -keys[i])[: self.capacity])
        self._keys, self.conversations = [keys[i] for i in rows], [_apart(everything[i]) for i in rows]

    def state(self) -> dict[str, Any]:
        """Return the whole state, for `torch.save`."""
        held = [
            [list(c.user), list(c.replies), c.system, *map(list, (c.unlearnt, c.pictures))] for c in self.conversations
        ]
        return {"keys": list(self._keys), "conversations": held}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self._keys = list(state["keys"])
        self.conversations = [
            Conversation(tuple(user), tuple(replies), system, *map(tuple, more))
            for user, replies, system, *more in state["conversations"]
        ]


def _apart(conversation: Conversation) -> Conversation:
    """Return a copy whose images do not keep the other data of the round in memory."""
    return replace(
        conversation, pictures=tuple(Picture.from_value(picture).apart() for picture in conversation.pictures)
    )


def memory_gradient(learner: LanguageLearner, conversations: Sequence[Encoded]) -> Tensor:
    """Return (P,) the gradient of the mean loss over all learnt tokens of `conversations`; `.grad` of weights is left
    alone.

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
