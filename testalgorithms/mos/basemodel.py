"""Model surgery."""

from contextlib import contextmanager
from copy import deepcopy

import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax, normalize

from ianvs.authoring import FrozenBody, own_classes_mask, transformer_of
from ianvs.base.errors import require_known
from ianvs.testalgorithms.body_tuning import Adapted
from ianvs.testalgorithms.growing import Growing
from ianvs.testalgorithms.slca.basemodel import SLCA

CLOSE = 0.8  # temperature of the loss that separates features, as in the authors' code
NEVER = -1e9  # added to the outputs of classes that were not taught
LOOKS = 4  # maximum number of adapter sets that are tried for a sample


class Merged(Adapted):
    """(N, C, H, W) -> (N, F): a frozen transformer with adapters that learn, beside `round_adapters` of rounds before.

    last_features: (N, F), of the samples seen last. merging: share of the mean of earlier rounds that adapters take
    over before every layer; 0 for never.
    """

    def __init__(self, frozen, bottleneck, rounds, merging=0.0):
        super().__init__(frozen, bottleneck)
        self.round_adapters = nn.ModuleList(deepcopy(self.adapters).requires_grad_(False) for _ in range(rounds))
        self.merging, self.ended = merging, []

    def forward(self, x):
        self.last_features = self.encoded(self.adapters, len(self.ended), x)
        return self.last_features

    def by_round(self, x):
        """Return features with the adapters of each round, (N, T, F)."""
        return torch.stack([self.encoded(adapters, index, x) for index, adapters in enumerate(self.round_adapters)], 1)

    def encoded(self, adapters, earlier, x):
        """Return features with `adapters` (N, F), those of a round with `earlier` rounds before it."""
        transformer, tokens = self.frozen.body, self.frozen.body.tokens(x)
        if not (self.merging and earlier):
            return transformer.pooled(transformer.encode(tokens, adapters=dict(enumerate(adapters))))
        with torch.inference_mode(False), torch.no_grad():
            mean = [torch.stack(same).mean(0) for same in zip(*self.ended[:earlier], strict=True)]

        def merged(layer):
            def call(h):
                with torch.inference_mode(False), torch.no_grad():  # steps of a later round continue from these values
                    for p, m in zip(adapters.parameters(), mean, strict=True):
                        p.data = torch.lerp(p.data, m, self.merging)
                return adapters[layer](h)

            return call

        layers = {layer: merged(layer) for layer in range(len(adapters))}
        return transformer.pooled(transformer.encode(tokens, adapters=layers))

    def remember(self):
        """Store the current adapters of earlier rounds, for merging."""
        with torch.inference_mode(False):
            self.ended = [[p.detach().clone() for p in adapters.parameters()] for adapters in self.round_adapters]

    @contextmanager
    def unchanged(self):
        """Undo merging at the end of this context, so examinations do not change the learner."""
        ended = self.ended
        self.remember()
        before = [(p, p.data) for adapters in (self.adapters, self.round_adapters) for p in adapters.parameters()]
        try:
            yield
        finally:
            self.ended = ended
            for p, values in before:
                p.data = values


class MOS(Growing, SLCA):
    """Model surgery (MOS; Sun et al. 2025, arXiv 2412.09441).

    A set of adapters A and a head learn each round, from where the round before ended, by the cross-entropy of the
    round's own classes; after each step A <- (1 - merging) A + merging mean(A_1, ..., A_t-1). Then A_t is A, and the
    head is aligned as in SLCA, by features of all classes. A sample's first A_i is that of the round of the class whose
    mean feature with A_1 is nearest by cosine; the class that the head then answers says the next i, until it stays.
    The answer is the largest of softmax(z_i) + softmax(T cos).

    merge: "step", as above and as in the paper; or "layer", as in the released code, which also merges in place before
    every layer of every forward pass, A_i <- (1 - merging) A_i + merging mean(A_1, ..., A_i-1): what learns in
    training, and each kept set in testing, which after some batches is that mean. Here every call of predict begins
    with the sets that the round left.
    bottleneck: units of an adapter. contrast: weight of -log softmax(M M' / .8)_jj, mean over j, M the batch's features
    below the means of earlier classes, as in the authors' code. alignment_learning_rate: the head goes on from there.
    """

    def __init__(
        self,
        *,
        bottleneck: int = 16,
        merging: float = 0.1,
        merge: str = "step",
        contrast: float = 0.1,
        head_learning_rate: float = 0.003,
        alignment_learning_rate: float = 0.005,
        alignment_epochs: int = 30,
        alignment_samples: int = 240,
        **training,
    ):
        theirs = {"learning_rate": 0.03, "epochs": 20, "batch_size": 48, "decay": "cosine", "milestones": ()}
        alignment = {"alignment_epochs": alignment_epochs, "alignment_samples": alignment_samples}
        rates = {"head_learning_rate": head_learning_rate, "temperature": None, "drift": 0.0}
        super().__init__(**{"network": "vit", **theirs, **alignment, **rates, **training})
        require_known("merge", merge, ("step", "layer"))
        self.by_layer = merge == "layer"
        self.alignment_rate = alignment_learning_rate
        self.bottleneck, self.merging, self.contrast = bottleneck, merging, contrast
        self.prototypes = {}  # c: (F,), its mean feature with A_1

    def build_network(self, input_shape, num_classes):
        transformer, head = transformer_of(super().build_network(input_shape, num_classes))
        merging = self.merging if self.by_layer else 0.0
        return nn.Sequential(Merged(FrozenBody(transformer), self.bottleneck, self.grown, merging), head)

    def before_round(self, data):
        body, head = self.network
        self.class_mask = own_classes_mask(data, head.out_features)
        body.remember()
        earlier = [adapters.parameters() for adapters in body.round_adapters]
        together = zip(body.adapters.parameters(), *earlier, strict=True)
        self.merged = [(p, torch.stack(same).mean(0)) for p, *same in together if same]
        means = [torch.zeros(0, head.in_features), *(self.classes[c][1][None] for c in sorted(self.classes))]
        self.means = torch.cat(means).to(data.device)

    def loss(self, batch):
        loss = super().loss(batch)
        if not loss.requires_grad or batch.pretraining:
            return loss
        f = self.network[0].last_features
        M = torch.cat([self.means.to(f), f])
        return loss + self.contrast * cross_entropy(M @ M.T / CLOSE, torch.arange(len(M), device=M.device))

    @torch.no_grad()
    def after_step(self, x, y, epoch, step):
        for p, mean in self.merged:
            p.lerp_(mean, self.merging)

    def after_round(self, data):
        labelled, body = data.labelled(), self.network[0]
        classes = labelled.y.unique().tolist()
        if classes:
            body.round_adapters.append(deepcopy(body.adapters).requires_grad_(False))
            self.grown += 1
            self.take_up(labelled, classes)
            for c in classes:
                first = self.each(labelled.x[labelled.y == c], lambda x: body.encoded(body.round_adapters[0], 0, x))
                self.prototypes[c] = first.double().mean(0).float().cpu()
        if self.rounds > 1:
            self.align(self.network[-1], data.generator("alignment"), data.device)

    def answer_logits(self, data, **context):
        if not self.prototypes:
            return super().answer_logits(data, **context)
        with self.network[0].unchanged():
            return super().answer_logits(data, **context)

    def features(self, data, **context):
        if not self.prototypes:
            return super().features(data, **context)
        with self.network[0].unchanged():
            return super().features(data, **context)

    def answers(self, x, mask):
        body, head = self.network
        if not self.prototypes:
            return super().answers(x, mask)
        classes = sorted(self.prototypes)
        f = body.by_round(x)
        taught, round_of = torch.full((head.out_features,), NEVER), torch.zeros(head.out_features, dtype=torch.long)
        taught[classes], round_of[classes] = 0.0, torch.tensor([self.classes[c][0] - 1 for c in classes])
        p = torch.zeros(head.weight.shape)
        p[classes] = torch.stack([self.prototypes[c] for c in classes])
        taught, round_of, p = taught.to(f), round_of.to(f.device), p.to(f)
        allowed = taught if mask is None else taught + mask
        near, z = self.grown * normalize(f[:, 0]) @ normalize(p).T + allowed, head(f) + allowed
        rows, i = torch.arange(len(x), device=f.device), round_of[near.argmax(1)]
        for _ in range(LOOKS - 1):
            i = round_of[z[rows, i].argmax(1)]
        return torch.logaddexp(log_softmax(z[rows, i], 1), log_softmax(near, 1))

    def state(self):
        return {**super().state(), "prototypes": self.prototypes}

    def restore(self, state):
        super().restore(state)
        self.prototypes = state["prototypes"]
