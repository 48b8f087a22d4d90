"""Feature boosting and compression."""

from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import cross_entropy, softmax

from ianvs.authoring import distillation_loss
from ianvs.authoring.training_loop import fit
from ianvs.base.errors import PluginError
from ianvs.testalgorithms.side_by_side import GrowingLearner


class FOSTER(GrowingLearner):
    """Feature boosting and compression (Wang et al. 2022, arXiv 2204.04662, sections 4.2 to 4.4).

    Boosting: a round with new classes fixes the body and adds a copy, f_2, under a wider head z = H(f_1, f_2).
    L = L_CE(z / w, y) + L_CE(H_f(f_2), y) + distillation * KL(softmax(z_old / T) || softmax(z / T)) over the round's
    samples and the exemplars; the last one over classes of earlier rounds, z_old of the network of before the round;
    H_f ends with the round. w_c ~ (1 - beta) / (1 - beta^n_c), n_c samples of class c, 1 on average (Cui et al. 2019).
    Compression: a single body, which begins as the old one, learns from all that the two bodies say:
    L = -sum_c q_c log softmax(s / T)_c, q ~ w' softmax(z / T), w' as w with compression_beta. It answers.
    Exemplars are chosen by the features of both bodies, before the compression.

    temperature: T. compression_epochs: None for 130/170 of `epochs`, as in the authors' settings; with 0, and where
    an exam allows one pass only, nothing is compressed and all bodies stay.
    """

    def __init__(
        self,
        *,
        beta: float = 0.96,
        compression_beta: float = 0.97,
        distillation: float = 1.0,
        temperature: float = 2.0,
        compression_epochs: int | None = None,
        **options,
    ):
        super().__init__(**options)
        if not (0 <= beta < 1 and 0 <= compression_beta < 1):
            raise PluginError(
                f"beta and compression_beta are 0 to below 1; not {beta:g} and {compression_beta:g}.",
                code="out-of-range",
            )
        self.beta, self.compression_beta = beta, compression_beta
        self.distillation, self.temperature = distillation, temperature
        epochs = round(self.schedule.epochs * 130 / 170) if compression_epochs is None else compression_epochs
        self.compression = self.schedule.for_stage(epochs, weight_decay=0.0)

    def before_round(self, data):
        super().before_round(data)
        if self.grows:
            self.grow()
            head, bodies = self.network[-1], len(self.network[0].parts)
            self.second_head = self.new_head(head.in_features // bodies, head.out_features, "second head")

    def training_data(self, data):
        shown = super().training_data(data)
        if not self.grows:
            return shown
        self.weights = self.class_weights(shown, self.beta)
        return self.later_stage(shown, self.compression.epochs)

    def class_weights(self, shown, beta):
        """(num_classes,) w; 1 for classes without a sample."""
        n = torch.bincount(shown.y, minlength=self.network[-1].out_features).double()
        w = torch.where(n > 0, (1 - beta) / (1 - beta ** n.clamp_min(1)), 0)
        w = w / w.sum() * (n > 0).sum()
        return torch.where(n > 0, w, 1).float().to(shown.device)

    def loss(self, batch):
        if self.second_head is None:
            return super().loss(batch)
        width = self.second_head.in_features
        loss = cross_entropy(batch.logits / self.weights, batch.y)
        boosted = cross_entropy(self.data.masked(self.second_head(self.f[:, -width:]), batch.y), batch.y)
        with torch.no_grad():
            teacher = self.teacher[-1](self.f[:, :-width])[:, self.known_index]
        distilled = (
            distillation_loss(batch.outputs[:, self.known_index], teacher, self.temperature) / self.temperature**2
        )
        return loss + boosted + self.distillation * distilled

    def after_round(self, data):
        shown, student = self.shown, None
        if self.grows and self.compression.steps(len(shown), self.later_passes):
            body, head = self.teacher
            body.parts[-1].requires_grad_(True)
            student = nn.Sequential(body, self.new_head(head.in_features, head.out_features, "student", like=head))
        super().after_round(data)
        if student is not None:
            self.compress(student, shown)

    def compress(self, student, shown):
        boosted, weights = self.network.eval(), self.class_weights(shown, self.compression_beta)
        classes = torch.tensor(self.known_classes, device=shown.device)  # those of this round, too
        self.network, self._optimizer = student.train(), None

        def loss_of(x, y):
            x = self.augmented(x)
            with torch.no_grad():
                z = self.logits(x, network=boosted)[:, classes]
                q = softmax(z / self.temperature, 1) * weights[classes]
            log_p = (self.logits(x)[:, classes] / self.temperature).log_softmax(1)
            return -(q / q.sum(1, keepdim=True) * log_p).sum(1).mean()

        fit(self._rates(shown), replace(shown, passes=self.later_passes), self.compression, loss_of)
