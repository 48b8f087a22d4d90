"""Expandable subspace ensemble."""

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, linear, normalize

from ianvs.authoring import FrozenBody, transformer_of
from ianvs.testalgorithms.body_tuning import Adapted, BodyTuner
from ianvs.testalgorithms.growing import Growing

NEVER = -1e9  # the bias of a class that was not taught


class Subspaces(nn.Module):
    """(N, C, H, W) -> (N, T F): features with each of T sets of adapters, one after the other; without any, plain."""

    def __init__(self, frozen):
        super().__init__()
        self.frozen, self.sets = frozen, nn.ModuleList()

    def forward(self, x):
        transformer = self.frozen.body
        tokens = transformer.tokens(x)
        encoded = [transformer.encode(tokens, adapters=dict(enumerate(adapters))) for adapters in self.sets or [()]]
        return torch.cat([transformer.pooled(h) for h in encoded], 1)


class SubspaceHead(nn.Linear):
    """(N, T F) -> (N, classes): linear in features that have length 1 in each subspace of `width` numbers."""

    def __init__(self, subspaces, width, classes):
        super().__init__(subspaces * width, classes)
        self.width = width

    def forward(self, f):
        return linear(normalize(f.unflatten(1, (-1, self.width)), dim=2).flatten(1), self.weight, self.bias)


class EASE(Growing, BodyTuner):
    """Expandable subspace ensemble (EASE; Zhou et al. 2024, arXiv 2403.12030).

    Each round trains adapters of its own, under a cosine head that is then dropped: a subspace i, phi_i. Class c has a
    prototype p_ci, its mean feature, in all subspaces up to that of its round t; in a later one i it is sum_j a_j p_ji,
    a the softmax of cos(p_ct, p_jt) over the classes j taught since round i. The answer is argmax_c of
    cos(phi_t(x), p_ct) + alpha / (T - 1) sum_(i != t) cos(phi_i(x), p_ci).

    bottleneck: units of an adapter. A class that comes again adds to its means, and keeps its first round as t.
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, bottleneck: int = 64, alpha: float = 0.1, **training):
        theirs = {"learning_rate": 0.025, "weight_decay": 5e-4, "epochs": 20, "batch_size": 48, "decay": "cosine"}
        super().__init__(**{"network": "vit", **theirs, **training})
        self.bottleneck, self.alpha = bottleneck, alpha
        self.sums, self.counts, self.first = None, None, None  # (C, T, F), (C, T) of samples, (C,) t, -1: untaught

    def build_network(self, input_shape, num_classes):
        transformer, head = transformer_of(super().build_network(input_shape, num_classes))
        body = Subspaces(FrozenBody(transformer))
        body.sets.extend(Adapted(body.frozen, self.bottleneck).adapters for _ in range(self.grown))
        return nn.Sequential(body, SubspaceHead(max(1, self.grown), head.in_features, num_classes))

    def training_data(self, data):
        labelled = data.nothing() if data.pretraining else data.labelled()
        if len(labelled):
            body, head = self.network
            new = Adapted(body.frozen, self.bottleneck)
            self.tune(labelled, new, head.width)
            body.sets.append(new.adapters)
            self.grown += 1
            self.take_up(labelled, head.width, head.out_features)
            self.network[-1] = SubspaceHead(self.grown, head.width, head.out_features).to(data.device)
            self.write(self.network[-1])
        return data.nothing()

    def take_up(self, labelled, width, classes):
        """Add a round's features to the sums."""
        if self.first is None:
            self.sums, self.counts = torch.zeros(classes, 0, width), torch.zeros(classes, 0)
            self.first = torch.full((classes,), -1)
        self.sums = torch.cat([self.sums.double(), torch.zeros(classes, 1, width)], 1)
        self.counts = torch.cat([self.counts, torch.zeros(classes, 1)], 1)
        f, y = self._features(labelled.x).double().cpu().unflatten(1, (-1, width)), labelled.y.cpu()
        self.sums.index_add_(0, y, f)
        self.counts += torch.bincount(y, minlength=classes)[:, None]
        self.first[(self.counts.sum(1) > 0) & (self.first < 0)] = self.grown - 1

    def prototypes(self):
        """(C, T, F)."""
        p = self.sums / self.counts.clamp_min(1)[:, :, None]
        for c, i in ((self.counts == 0) & (self.first >= 0)[:, None]).nonzero().tolist():
            t, later = self.first[c], self.counts[:, i] > 0
            p[c, i] = cosine_similarity(p[c, t], p[later, t]).softmax(0) @ p[later, i]
        return p

    @torch.no_grad()
    def write(self, head):
        """The head, out of prototypes."""
        weights = torch.full(self.counts.shape, self.alpha / max(1, self.grown - 1), dtype=torch.float64)
        taught = self.first >= 0
        weights[taught, self.first[taught]] = 1
        weighted = weights[:, :, None] * normalize(self.prototypes(), dim=2)
        head.weight.copy_(weighted.flatten(1))
        head.bias.copy_(torch.where(taught, 0.0, NEVER))

    def state(self):
        return {**super().state(), "sums": self.sums, "counts": self.counts, "first": self.first}

    def restore(self, state):
        super().restore(state)
        self.sums, self.counts, self.first = state["sums"], state["counts"], state["first"]
