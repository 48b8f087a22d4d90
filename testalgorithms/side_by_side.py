"""Networks that grow: several bodies side by side under one head."""

import copy
from dataclasses import replace

import torch
from torch import nn

from ianvs.authoring import Batch, ExemplarLearner, FrozenBody, body_and_head
from ianvs.authoring.networks import initialize
from ianvs.authoring.randomness import seeded
from ianvs.base.errors import PluginError
from ianvs.base.seeding import stream_seed


class Bodies(nn.Module):
    """(B, ...) -> (B, n D): features of n bodies, the oldest first; all but the last are fixed."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        return torch.cat([part(x) for part in self.parts], 1)


class GrowingLearner(ExemplarLearner):
    """Base class of methods that add a body in a round that brings new classes to what is known.

    `network` is an nn.Sequential of `Bodies` and the head. Where a round brings no new class, nothing grows: the last
    body learns on. For use in a round: `f`, (B, n D) the features of a step's samples. `shown`: the round's data with
    the exemplars. `second_head`: if a method sets it, it learns with the network.
    """

    def __init__(self, **options):
        super().__init__(**options)
        if options.get("frozen") or options.get("lora_rank") is not None:
            raise PluginError(
                f"{type(self).__name__} trains new bodies: take out `frozen` and `lora_rank`.", code="conflicting-keys"
            )
        self.f = self.shown = self.second_head = None
        self.later_passes = None  # share of a round's passes for its second stage

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        return nn.Sequential(Bodies(body), head)

    @property
    def grows(self):
        """Whether this round brings new classes besides known ones."""
        return bool(self.known_classes and self.new_classes)

    def new_head(self, inputs, outputs, purpose, like=None):
        """Return a linear layer on the network's device, drawn by the round's stream of `purpose`, by the option
        `initialization`.

        like: a head from which it copies the rows of known classes, for the common columns.
        """
        # Outside of a round the weights will be overwritten.
        round_ = (0, 0) if self.data is None else (self.data.seed, self.data.round)
        with seeded(stream_seed(*round_, purpose)), torch.no_grad():
            head = nn.Linear(inputs, outputs)
            initialize(head, self.initialization)
            head = head.to(self.network[-1].weight.device)
            if like is not None:
                head.weight[self.known_classes, : like.in_features] = like.weight[self.known_classes]
                head.bias[self.known_classes] = like.bias[self.known_classes]
        return head

    def grow(self):
        """Fix the last body and add a copy of it.

        The head keeps its weights for known classes, the others are drawn.
        """
        bodies, head = self.network
        *fixed, last = bodies.parts
        bodies = Bodies(*fixed, FrozenBody(last), copy.deepcopy(last))
        inputs = head.in_features * len(bodies.parts) // (len(fixed) + 1)
        wider = self.new_head(inputs, head.out_features, "head", like=head)
        bodies.parts[-1].requires_grad_(True)
        self.network = nn.Sequential(bodies, wider).train()
        self._optimizer = None  # its state belongs to another head

    def grow_to(self, weights):
        bodies = len({name.split(".")[2] for name in weights if name.startswith("0.parts.")})
        while len(self.network[0].parts) < bodies:
            self.grow()

    def later_stage(self, data, epochs):
        """Return the data of a first stage, with fewer passes, so a second one of `epochs` is possible."""
        if data.passes is None:
            self.later_passes = None
            return data
        share = round(data.passes * epochs / max(1, epochs + self.schedule.epochs))
        self.later_passes = max(0, min(share, data.passes - 1))
        return replace(data, passes=data.passes - self.later_passes)

    def batch(self, data, x, y):
        body, head = body_and_head(self.network)
        self.f = self.logits(x, network=body)
        outputs = head(self.f)
        return Batch(x, y, data.masked(outputs, y), outputs, data.complete, data.pretraining)

    def further_parameters(self):
        return [] if self.second_head is None else [*self.second_head.parameters()]

    def training_data(self, data):
        self.shown = super().training_data(data)
        return self.shown

    def after_round(self, data):
        super().after_round(data)
        self.f = self.shown = self.second_head = None
