"""Batches of an encoder-decoder: what leads to a reply is read by the encoder, the reply is learnt by the decoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from ianvs.testalgorithms.language.conversation import Encoded


@dataclass(frozen=True)
class PairBatch:
    """A row for each reply of each conversation.

    Attributes:
        tokens: (R, S) what stands before the reply, with an end mark.
        seen: (R, S) 0 where it is padded.
        replies: (R, L) the reply, padded on the right.
        learnt: (R, L) bool, where it is not.
    """

    tokens: Tensor
    seen: Tensor
    replies: Tensor
    learnt: Tensor

    def inputs(self, network: Any) -> dict[str, Any]:
        """What the network is called with: the decoder sees the tokens before each that it is to say."""
        begin = torch.full_like(self.replies[:, :1], network.config.decoder_start_token_id)
        before = torch.cat([begin, self.replies[:, :-1]], dim=1)
        return {"input_ids": self.tokens, "attention_mask": self.seen, "decoder_input_ids": before, "use_cache": False}

    @property
    def targets(self) -> Tensor:
        """(N,) the tokens that are learnt, conversation by conversation."""
        return self.replies[self.learnt]

    def of_learnt(self, logits: Tensor) -> Tensor:
        """Return (N, V) float32: the rows of (R, L, V) logits that predict `targets`."""
        return logits[self.learnt].float()


def with_end(tokens: Sequence[int], end: int | None) -> tuple[int, ...]:
    """What an encoder reads: the tokens with an end mark, as it was trained with."""
    return (*tokens, *(() if end is None or tokens[-1:] == (end,) else (end,)))


def pairs(conversations: Sequence[Encoded], pad: int, end: int | None, device: torch.device) -> PairBatch:
    """Return a batch of the replies in these conversations.

    Args:
        conversations: Each with something learnt after its first token.
        pad: Fills shorter rows.
        end: The tokenizer's end of text.
        device: Where the network is.
    """
    rows = [row for conversation in conversations for row in _rows(conversation, end)]
    width, length = max(len(source) for source, _ in rows), max(len(reply) for _, reply in rows)
    tokens = [[*source, *[pad] * (width - len(source))] for source, _ in rows]
    seen = [[1] * len(source) + [0] * (width - len(source)) for source, _ in rows]
    replies = [[*reply, *[pad] * (length - len(reply))] for _, reply in rows]
    learnt = [[True] * len(reply) + [False] * (length - len(reply)) for _, reply in rows]
    return PairBatch(*(torch.tensor(column, device=device) for column in (tokens, seen, replies, learnt)))


def _rows(conversation: Encoded, end: int | None) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return (what comes before a reply, the reply) of each; the first token has nothing before it."""
    rows = []
    places = [at for at, learnt in enumerate(conversation.learnt) if learnt and at]
    for _, run in groupby(enumerate(places), key=lambda item: item[1] - item[0]):
        ats = [at for _, at in run]
        rows.append((with_end(conversation.tokens[: ats[0]], end), conversation.tokens[ats[0] : ats[-1] + 1]))
    return rows
