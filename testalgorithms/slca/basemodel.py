"""Slow learner with classifier alignment."""

import math
from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import TorchLearner, own_classes_mask


class SLCA(TorchLearner):
    """Slow learner with classifier alignment (SLCA; Zhang et al. 2023, arXiv 2303.05118).

    The body learns at a hundredth of the head's rate, from the round's own classes alone. After the round, features of
    every class c of T rounds are drawn from N(s m_c, S_c), m_c and S_c those of c's own round, and a copy of the head
    learns them all, with the loss -log softmax(z / (temperature mean_t |z_t|))_y, z_t the logits of the classes of
    round t. The next round goes on from the head as it was before. s = 1 - drift (1 - t / T), as in the authors' code.

    learning_rate, head_learning_rate: of the body, of the head and its alignment. alignment_epochs, alignment_samples:
    of the latter, and how many of each class are drawn for each, also the size of its batches. temperature: None leaves
    the logits as they are.
    """

    memory = ()  # it keeps no samples, but means and covariances of features

    def __init__(
        self,
        *,
        head_learning_rate: float = 0.01,
        alignment_epochs: int = 5,
        alignment_samples: int = 256,
        temperature: float | None = 0.1,
        drift: float = 0.1,
        **training,
    ):
        theirs = {"learning_rate": 1e-4, "weight_decay": 5e-4, "epochs": 20, "batch_size": 128, "milestones": (18,)}
        super().__init__(head_learning_rate=head_learning_rate, **{**theirs, **training})
        self.alignment_epochs, self.alignment_samples = alignment_epochs, alignment_samples
        self.alignment_rate = head_learning_rate
        self.temperature, self.drift = temperature, drift
        self.plain = None  # the head without alignment, by names of its parameters
        self.rounds, self.classes = 0, {}  # c: (its round, m_c (D,), Cholesky factor of S_c (D, D))

    def before_round(self, data):
        head = self.network[-1]
        if self.plain is None:
            self.plain = {name: value.detach().cpu().clone() for name, value in head.named_parameters()}
        head.load_state_dict(self.plain)
        self.class_mask = own_classes_mask(data, head.out_features)

    def loss(self, batch):
        return super().loss(replace(batch, logits=batch.logits + self.class_mask))

    def after_round(self, data):
        labelled, head = data.labelled(), self.network[-1]
        classes = labelled.y.unique().tolist()
        for name, value in head.named_parameters():
            self.plain[name][classes] = value.detach().cpu()[classes]  # weight decay has moved the others, too
        head.load_state_dict(self.plain)
        self.take_up(labelled, classes)
        if self.rounds > 1:
            self.align(head, data.generator("alignment"), data.device)

    def take_up(self, labelled, classes):
        """Keep what features are drawn from, of the `classes` that a round's labelled samples are of."""
        self.rounds += bool(classes)
        for c in classes:
            f = self._features(labelled.x[labelled.y == c]).double().cpu()
            S = torch.cov(f.T, correction=min(1, len(f) - 1)) + 1e-4 * torch.eye(f.shape[1], dtype=f.dtype)
            self.classes[c] = self.rounds, f.mean(0).float(), torch.linalg.cholesky(S).float()

    def align(self, head, generator, device):
        classes, n, rate = sorted(self.classes), self.alignment_samples, self.alignment_rate
        momentum, decay = self.schedule.momentum, self.schedule.weight_decay
        optimizer = torch.optim.SGD(head.parameters(), rate, momentum=momentum, weight_decay=decay)
        rounds = torch.tensor([self.classes[c][0] for c in classes], device=device)  # their rounds
        groups = [(rounds == t).nonzero()[:, 0] for t in rounds.unique()]
        for epoch in range(self.alignment_epochs):
            optimizer.param_groups[0]["lr"] = rate / 2 * (1 + math.cos(math.pi * epoch / self.alignment_epochs))
            drawn = []
            for c in classes:
                t, m, L = self.classes[c]
                noise = torch.randn(n, len(m), generator=generator)
                drawn.append((1 - self.drift * (1 - t / self.rounds)) * m + noise @ L.T)
            order = torch.randperm(n * len(classes), generator=generator)
            f, y = torch.cat(drawn)[order].to(device), (order // n).to(device)
            for some, label in zip(f.split(n), y.split(n), strict=True):
                z = head(some)[:, classes]
                if self.temperature is not None:
                    lengths = torch.stack([z[:, group].norm(dim=1) + 1e-7 for group in groups], 1)
                    z = z / lengths.mean(1, keepdim=True) / self.temperature
                optimizer.zero_grad()
                cross_entropy(z, label).backward()
                optimizer.step()

    def state(self):
        return {"plain": self.plain, "rounds": self.rounds, "classes": self.classes}

    def restore(self, state):
        self.plain, self.rounds, self.classes = state["plain"], state["rounds"], state["classes"]
