"""Methods that train a part of a pretrained body under a head that is discarded afterwards."""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import dropout, linear, normalize

from ianvs.authoring import ClosedFormLearner, FrozenBody, TorchLearner, body_and_head, own_classes_mask, transformer_of
from ianvs.base.errors import PluginError, require_known

TUNINGS = ("none", "finetune", "adapter")


class CosineHead(nn.Linear):
    """(N, D) -> (N, C): eta cos(w_c, f); eta, 1 at first, is learned."""

    def __init__(self, features, classes):
        super().__init__(features, classes, bias=False)
        self.eta = nn.Parameter(torch.ones(1))

    def forward(self, f):
        return self.eta * linear(normalize(f), normalize(self.weight))


class Adapter(nn.Module):
    """(..., D) -> (..., D): scale up(relu(down(h))), parallel to a block's MLP (AdaptFormer; Chen et al. 2022, eq. 3).

    It begins at 0, `up` being 0. In training a tenth of what is between is dropped. LAMDA-PILOT's has no norm.
    """

    def __init__(self, width, bottleneck, scale=0.1):
        super().__init__()
        self.down, self.up, self.scale = nn.Linear(width, bottleneck), nn.Linear(bottleneck, width), scale
        nn.init.kaiming_uniform_(self.down.weight, a=5**0.5)
        for rest in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(rest)

    def forward(self, h):
        return self.scale * self.up(dropout(self.down(h).relu(), 0.1, self.training))


class Adapted(nn.Module):
    """(N, C, H, W) -> (N, F): a frozen transformer with an adapter in each block."""

    def __init__(self, frozen, bottleneck):
        super().__init__()
        transformer = frozen.body
        self.frozen = frozen
        self.adapters = nn.ModuleList(Adapter(transformer.width, bottleneck) for _ in transformer.blocks)

    def forward(self, x):
        return self.frozen.body(x, adapters=dict(enumerate(self.adapters)))


class BodyTuner(TorchLearner):
    """A learner that can train a part of its network beside a head that serves for nothing else."""

    def tune(self, data, body, features):
        """Train `body`, (N, ...) -> (N, `features`), under a new cosine head, by the learner's options.

        The loss is the cross-entropy among the round's own classes. Samples without a label are left out.
        """
        whole, classes = self.network, self.network[-1].out_features
        self.class_mask = own_classes_mask(data, classes)
        self.network = nn.Sequential(body, CosineHead(features, classes)).to(data.device)
        try:
            self.study(data.labelled())
        finally:
            self.network = whole

    def loss(self, batch):
        return super().loss(replace(batch, logits=batch.logits + self.class_mask))


class FirstRoundTuner(BodyTuner, ClosedFormLearner):
    """A head in closed form on a body that learns in the first round with labels, and never again.

    tuning: "none"; "finetune", all of the body; "adapter", adapters of `bottleneck` units in a frozen transformer.
    """

    def __init__(self, *, tuning: str = "none", bottleneck: int = 64, **training):
        require_known("tuning", tuning, TUNINGS)
        if tuning != "none" and training.get("frozen"):
            raise PluginError(
                f"tuning '{tuning}' trains the body in the first round. Leave out `frozen`.", code="conflicting-keys"
            )
        theirs = {"learning_rate": 0.01, "weight_decay": 5e-4, "epochs": 20, "batch_size": 48, "decay": "cosine"}
        super().__init__(**{"frozen": tuning == "none", **theirs, **training})
        self.tuning, self.bottleneck = tuning, bottleneck
        self.tuned = False  # whether the first round was

    def build_network(self, input_shape, num_classes):
        network = super().build_network(input_shape, num_classes)
        if self.tuning == "none":
            return network
        if self.tuning == "adapter":
            transformer, head = transformer_of(network)
            plain = FrozenBody(transformer)
            self.tunable = Adapted(plain, self.bottleneck)
        else:
            body, head = body_and_head(network)
            if not list(body.parameters()):
                raise PluginError(
                    f"tuning 'finetune' needs a body; network '{self.architecture}' is a head alone.",
                    code="refused-arguments",
                )
            self.tunable = deepcopy(body)  # the body itself can stay outside of what is stored
            plain = FrozenBody(body)
        self.width_of_features = head.in_features
        return self.joined(plain, head)

    def joined(self, plain, head):
        """Return the network, made of `self.tunable` and, if the method needs it, `plain`, the pretrained body."""
        return nn.Sequential(self.tunable, head)

    def training_data(self, data):
        if self.tuning != "none" and not self.tuned and not data.pretraining and len(data.labelled()):
            self.tune(data, self.tunable, self.width_of_features)
            self.tuned = True
        return super().training_data(data)

    def state(self):
        return {**super().state(), "tuned": self.tuned}

    def restore(self, state):
        super().restore(state)
        self.tuned = state["tuned"]
