"""The conversations of a round, and padded batches of similar length."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ianvs.authoring.randomness import torch_generator
from ianvs.authoring.round_data import to_device
from ianvs.testalgorithms.language.conversation import Conversation, Encoded
from ianvs.testalgorithms.language.sight import Sight

POOL = 8  # batches among which conversations are sorted by length


@dataclass(frozen=True)
class Batch:
    """tokens, seen: (B, L) int64, padded on the right where seen is 0. learnt: (B, L) bool, what the assistant says.

    pictures: what the network is called with of the images of all rows (`Sight.inputs`).
    before: (N,) places in the flat (B, L) of the tokens right before those that are learnt. They are counted on the
    host: a GPU that has to say how many there are is waited for. columns: (K,) those of (B, L) that hold any of them,
    which are all that logits are needed of; within: (N,) places of `before` in the flat (B, K). positions: (1, L) where
    conversations lie one behind the other in one row, each counted from 0.
    """

    tokens: Tensor
    seen: Tensor
    learnt: Tensor
    before: Tensor
    columns: Tensor
    within: Tensor
    positions: Tensor | None = None
    pictures: Mapping[str, Tensor] = field(default_factory=dict)

    def inputs(self, network: Any) -> dict[str, Any]:
        """Return the arguments of the network.

        With packing, restarting positions separate the conversations, instead of a mask.
        """
        masks = {"attention_mask": self.seen} if self.positions is None else {"position_ids": self.positions}
        columns = only_at(network, self.columns)
        return {"input_ids": self.tokens, **masks, **self.pictures, "use_cache": False, **columns}

    @property
    def targets(self) -> Tensor:
        """(N,) the tokens to learn, conversation by conversation, as in `of_learnt`."""
        return self.tokens.flatten()[self.before + 1]

    def of_learnt(self, logits: Tensor) -> Tensor:
        """Return (N, V) float32: the rows of (B, L or K, V) logits that predict `targets`, each from the tokens before
        it.
        """
        whole = logits.shape[1] == self.tokens.shape[1]  # K is less: the last token has nothing to predict
        return logits.flatten(0, 1)[self.before if whole else self.within].float()


def only_at(network: Any, columns: Tensor) -> dict[str, Any]:
    """Return arguments that request logits, which are large, only at these columns.

    Nothing if the network can't do that.
    """
    base = network.get_base_model() if hasattr(network, "get_base_model") else network
    return {"logits_to_keep": columns} if "logits_to_keep" in signature(base.forward).parameters else {}


def collate(
    conversations: Sequence[Encoded],
    pad: int,
    device: torch.device,
    packed: bool = False,
    sight: Sight | None = None,
) -> Batch:
    """Return a batch of these conversations, in this order.

    packed: without padding, in one row. sight: the vision of the model, if it has one.
    """
    if sight is not None:
        batch = collate(conversations, pad, device, packed)
        rows = [c.pictures for c in conversations]
        shown = sight.inputs([[picture for row in rows for picture in row]] if packed else rows, batch.tokens)
        return replace(batch, pictures={name: to_device(value, device) for name, value in shown.items()})
    if packed:
        joined = tuple(token for c in conversations for token in c.tokens)
        flags = tuple(at > 0 and learnt for c in conversations for at, learnt in enumerate(c.learnt))
        places = torch.tensor([[at for c in conversations for at in range(len(c))]])
        return replace(collate([Encoded(joined, flags)], pad, device), positions=to_device(places, device))
    length = max(map(len, conversations))
    free = [length - len(c) for c in conversations]
    tokens = torch.tensor([[*c.tokens, *[pad] * n] for c, n in zip(conversations, free, strict=True)])
    seen = torch.tensor([[1] * (length - n) + [0] * n for n in free])
    learnt = torch.tensor([[*c.learnt, *[False] * n] for c, n in zip(conversations, free, strict=True)])
    before = learnt[:, 1:].flatten().nonzero()[:, 0]
    before += before // max(1, length - 1)  # a row has one token more than places before another
    columns, at = (before % length).unique(return_inverse=True)
    within = before // length * len(columns) + at
    return Batch(*(to_device(tensor, device) for tensor in (tokens, seen, learnt, before, columns, within)))


def grouped_by_length(lengths: Sequence[int], batch_size: int, draw: torch.Generator) -> Iterator[list[int]]:
    """Yield all positions once in batches of similar length, in random order.

    The order is drawn, cut into pools of a few batches, sorted by length within each, and the batches of all pools are
    shuffled: little padding, and neither the members of a batch nor the order of batches is the same in every pass.
    """
    order = torch.randperm(len(lengths), generator=draw).tolist()
    batches: list[list[int]] = []
    for start in range(0, len(order), POOL * batch_size):
        pool = sorted(order[start : start + POOL * batch_size], key=lambda i: lengths[i])
        batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
    for i in torch.randperm(len(batches), generator=draw).tolist():
        yield batches[i]


def split_by_tokens(conversations: Sequence[Encoded], tokens: int) -> Iterator[list[Encoded]]:
    """Yield the conversations in their order, in batches of at most `tokens` with their padding, of one at least."""
    part: list[Encoded] = []
    for conversation in conversations:
        longest = max(map(len, [*part, conversation]))
        if part and longest * (len(part) + 1) > tokens:
            yield part
            part = []
        part.append(conversation)
    if part:
        yield part


@dataclass(frozen=True)
class RoundOfTalk:
    """The data of a round for the hooks of a method. `encoded[i]` is conversation i, cut to `max_length` tokens."""

    conversations: Sequence[Conversation]
    encoded: Sequence[Encoded]
    round: int
    seed: int
    folder: Path | None = None

    def __len__(self) -> int:
        return len(self.encoded)

    def generator(self, purpose: str) -> torch.Generator:
        """Return the random stream of this seed, this round and `purpose`."""
        return torch_generator(self.seed, self.round, purpose)
