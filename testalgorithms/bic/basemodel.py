"""Bias correction."""

from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import ExemplarLearner, distillation_loss, some_of_each
from ianvs.authoring.training_loop import fit
from ianvs.base.errors import PluginError

DROPS = (0.3, 0.6, 0.8, 0.9)  # of the epochs of stage 2: where the authors divide the rate by 10
OF_BETA = 0.05  # penalty on beta^2, as in the authors' code; alpha has none


class BiC(ExemplarLearner):
    """Bias correction (Wu et al. 2019, arXiv 1905.13260, sections 3 to 5).

    Stage 1, on the round's samples and the exemplars, except for held-out ones: L = lambda L_d + (1 - lambda) L_c,
    lambda = C_old / C_seen, L_d = KL(softmax(q_old / T) || softmax(z / T)) over classes of earlier rounds, q_old what
    the network answered before the round. Stage 2, on the held-out samples, as many of each class: the network stays,
    and alpha, beta minimise the cross-entropy of q, q_c = alpha z_c + beta for the round's new classes, else z_c.
    An answer is the largest q_c. The next round learns on z; q is its teacher's.

    held_out: share of the exemplars, at most half of a class. correction_epochs: of stage 2, over outputs that are
    computed once. A round without a new class only replays, and corrects nothing.
    """

    def __init__(self, *, held_out: float = 0.1, correction_epochs: int = 200, temperature: float = 2.0, **options):
        super().__init__(**options)
        if not 0 < held_out < 1:
            raise PluginError(
                f"held_out is a share of the exemplars, between 0 and 1; it can't be {held_out:g}.", code="out-of-range"
            )
        self.held_out, self.correction_epochs, self.temperature = held_out, correction_epochs, temperature
        self.pair, self.corrected = torch.tensor([1.0, 0.0]), []  # alpha and beta, and the classes that they are for
        self.held = None  # samples of this round's stage 2

    def q(self, z, pair, which):
        """(B, C) outputs z, those of the classes `which`, (C,) bool, corrected."""
        return torch.where(which, pair[0] * z + pair[1], z)

    def marked(self, classes, device):
        """(C,) bool, which of all classes these are: made once, since a GPU would be waited for in every step."""
        which = torch.zeros(self.network[-1].out_features, dtype=torch.bool)
        which[classes] = True
        return which.to(device)

    def answers(self, x, mask):
        q = self.q(self.logits(x), self.pair.to(x.device), self.marked(self.corrected, x.device))
        return q if mask is None else q + mask

    def before_round(self, data):
        super().before_round(data)
        self.taught = self.pair.to(data.device), self.marked(self.corrected, data.device)  # the teacher's

    def teacher_logits(self, x):
        return self.q(super().teacher_logits(x), *self.taught)

    def training_data(self, data):
        shown, self.held = super().training_data(data), None
        if not (self.known_classes and self.new_classes):
            return shown
        most = int(torch.unique(shown.y, return_counts=True)[1].min()) // 2
        n = min(most, max(1, int(self.held_out * self.memory.share(len(self.known_classes)))))
        if n == 0:  # a class with a single exemplar
            return shown
        held = some_of_each(shown.y, n, data.generator("held out"))
        rest = torch.ones(len(shown), dtype=torch.bool, device=held.device).index_fill(0, held, False)
        self.held = replace(shown, x=shown.x[held.to(shown.x.device)], y=shown.y[held])
        return replace(shown, x=shown.x[rest.to(shown.x.device)], y=shown.y[rest])

    def loss(self, batch):
        loss = super().loss(batch)
        if self.teacher is None or not self.new_classes:
            return loss
        share = len(self.known_classes) / (len(self.known_classes) + len(self.new_classes))
        teacher, student = self.teacher_logits(batch.x)[:, self.known_index], batch.outputs[:, self.known_index]
        return share * distillation_loss(student, teacher, self.temperature) / self.temperature**2 + (1 - share) * loss

    def after_round(self, data):
        self.pair, self.corrected = torch.tensor([1.0, 0.0]), []
        if self.held is not None:
            self.correct(self.held)
        self.held = None
        super().after_round(data)

    def correct(self, held):
        pair = nn.Parameter(self.pair.to(held.device))
        outputs = replace(held, x=self.each(held.x, self.logits).clone(), prepare=lambda z: z, views=None)
        new = self.marked(self.new_classes, held.device)

        def loss_of(z, y):
            return cross_entropy(held.masked(self.q(z, pair, new), y), y) + OF_BETA * pair[1].square()

        drops = tuple(round(share * self.correction_epochs) for share in DROPS)
        schedule = self.schedule.for_stage(self.correction_epochs, weight_decay=0.0, step_every=None, milestones=drops)
        fit([([pair], self.schedule.learning_rate)], outputs, schedule, loss_of)
        self.pair, self.corrected = pair.detach().cpu(), [*self.new_classes]

    def state(self):
        return {**super().state(), "pair": self.pair, "corrected": self.corrected}

    def restore(self, state):
        super().restore(state)
        self.pair, self.corrected = state["pair"], [*state["corrected"]]
