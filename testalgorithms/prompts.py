"""The common parts of methods that learn prompts of a frozen transformer."""

from dataclasses import replace

import torch
from torch import nn

from ianvs.authoring import FrozenBody, TorchLearner, own_classes_mask, transformer_of
from ianvs.base.errors import PluginError


class Prompted(nn.Module):
    """(N, C, H, W) -> (N, F): a frozen transformer that is given prompts.

    cost: what the prompts of the samples seen last add to the loss, a scalar.
    """

    def __init__(self, body):
        super().__init__()
        self.frozen = FrozenBody(body)

    def query(self, x):
        """Return the features of the transformer without prompts, (N, F)."""
        with torch.no_grad():
            return self.frozen(x)

    def begin(self, number):
        """Start round `number`. Returns a note for the report, or ""."""
        return ""


class PromptsOfRounds(Prompted):
    """Each round learns prompts of its own, and those of earlier rounds stay; after `rounds`, the last ones go on.

    A parameter X (n,) has the present round's values; the buffer X_of_rounds (rounds, n) has those of rounds that are
    over, and the first ones of rounds to come. count: rounds so far. latest: the number of the last of them.
    """

    def __init__(self, body, rounds):
        super().__init__(body)
        if rounds < 1:
            raise PluginError(f"rounds is 1 or more; it can't be {rounds}.", code="out-of-range")
        self.rounds, self.shapes = rounds, {}
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("latest", torch.tensor(0))

    def add(self, name, values):
        """Add prompts or keys with the initial values `values` (rounds, ...)."""
        self.shapes[name] = values.shape[1:]  # stored flat: torch can't put five dimensions into channels_last
        self.register_buffer(f"{name}_of_rounds", values.flatten(1))
        self.register_parameter(name, nn.Parameter(values[0].flatten().clone()))

    @property
    def place(self):
        """The present round's position (1,), counted from 0."""
        return self.count.clamp(1, self.rounds)[None] - 1

    def every(self, name):
        """Return the values of all rounds (rounds, ...); a step only changes those of the present round."""
        values = getattr(self, f"{name}_of_rounds").index_copy(0, self.place, getattr(self, name)[None])
        return values.unflatten(1, self.shapes[name])

    @torch.no_grad()
    def begin(self, number):
        if number != int(self.latest):  # a round may be taught in several parts
            for name in self.shapes:
                getattr(self, f"{name}_of_rounds").copy_(self.every(name).flatten(1))
            self.latest.fill_(number)
            self.count += 1
            if 1 < int(self.count) <= self.rounds:
                self.start(int(self.count) - 1)
        over = int(self.count) > self.rounds
        return f"it has prompts for {self.rounds} rounds; later rounds trained the last ones on" if over else ""

    def start(self, place):
        """Set the parameters to the initial values of a round, counted from 0."""
        raise NotImplementedError


class PromptLearner(TorchLearner):
    """Trains prompts of a frozen transformer and a head, on a round's own classes alone.

    price: the factor of `cost` in the loss. head_from_zero: whether the head begins at 0 and is not drawn: what
    the rows of a round have in common is never trained, and decides between rounds.
    """

    memory = ()  # it keeps no samples
    price = 1.0
    head_from_zero = False

    def __init__(self, **training):
        super().__init__(**{"network": "vit", "optimizer": "adam", **training})
        if training.get("frozen") or training.get("lora_rank"):
            raise PluginError(
                f"{type(self).__name__} trains prompts of a frozen network: omit `frozen` and `lora_rank`.",
                code="conflicting-keys",
            )

    def prompted(self, body, features):
        """Return a `Prompted` for the `Transformer` body with `features` features."""
        raise NotImplementedError

    def build_network(self, input_shape, num_classes):
        body, head = transformer_of(super().build_network(input_shape, num_classes))
        if self.head_from_zero:
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
        return nn.Sequential(self.prompted(body, head.in_features), head)

    def before_round(self, data):
        self.class_mask = own_classes_mask(data, self.network[-1].out_features)
        note = self.network[0].begin(data.round)
        if note not in self.remark:
            self.remark = "; ".join(filter(None, (self.remark, note)))

    def loss(self, batch):
        loss = super().loss(replace(batch, logits=batch.logits + self.class_mask))
        return loss + self.price * self.network[0].cost if loss.requires_grad else loss


def blocks_of(body, chosen, default):
    """Return indices, from 0, of the `chosen` blocks, which are counted from 1.

    None: those `default` ones that exist.
    """
    depth = len(body.blocks)
    numbers = [number for number in default if number <= depth] if chosen is None else list(chosen)
    if any(not 1 <= number <= depth for number in numbers):
        raise PluginError(
            f"this transformer has the blocks 1 to {depth}; prompts can't be in {list(chosen)}.",
            code="refused-arguments",
        )
    return [number - 1 for number in numbers]
