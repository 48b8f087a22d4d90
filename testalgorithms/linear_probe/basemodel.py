"""A linear head on features that are never trained."""

from dataclasses import replace

import torch
from torch import nn

from ianvs.authoring import TorchLearner, body_and_head
from ianvs.base.errors import PluginError


class LinearProbe(TorchLearner):
    """A linear layer on frozen features (the baseline of CLEAR; Lin et al. 2021).

    min over W, b of the mean of -log softmax(W f(x) + b)_y, over the samples of the round, from the W, b of before.

    f: nothing with network "linear", else the network without its head. Its weights are random, or those of the file
    that `initial_model_url` names: what another learner has saved, or the state_dict of a torchvision network.
    """

    reference = "ianvs.testalgorithms.linear_probe.basemodel:LinearProbe"  # its own network

    def __init__(self, *, network: str = "linear", **training):
        super().__init__(network=network, **training)
        self.backbone, self.start = None, None  # start: weights from elsewhere, in the order of the backbone's

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        if self.start is not None:
            try:
                body.load_state_dict(dict(zip(body.state_dict(), self.start, strict=True)))
            except (RuntimeError, ValueError) as error:
                raise PluginError(
                    f"the initial model does not fit network '{self.architecture}': {error}", code="refused-arguments"
                ) from error
        self.backbone = body.eval().requires_grad_(False)
        return nn.Sequential(head)

    def prepare(self, x):
        with torch.no_grad():
            return self.backbone.to(x.device)(super().prepare(x))

    def training_data(self, data):
        if data.pretraining:  # there is nothing that could learn without labels
            return data.nothing()
        x = torch.cat([self.prepare(part.to(data.device)) for part in torch.split(data.x, 1024)])
        return replace(data, x=x, y=data.y.to(data.device), prepare=lambda features: features, views=None)

    def load(self, path):
        saved = self.read(path)
        if "backbone" in saved.get("method", {}):
            super().load(path)
        else:
            self.start = list(saved.get("network", saved).values())[:-2]  # a head is the last layer

    def state(self):
        return {"backbone": None if self.backbone is None else self.backbone.state_dict()}

    def restore(self, state):
        if state["backbone"] is not None:
            self.backbone.load_state_dict(state["backbone"])
