"""Dark experience replay."""

from ianvs.authoring import ReplayLearner, TorchLearner


class DER(ReplayLearner):
    """Dark experience replay (Buzzega et al. 2020, eq. 4).

    L(theta) = L_new(theta) + alpha * mean |z' - h(x'; theta)|^2, where (x', z') is a draw from the memory, h are
    outputs before any mask, the mean is over samples and classes. z is what the network said when the sample was
    stored: after its round, or with `fill: during_round` at the step that brought it, as in the paper.
    Use it with `mask_unseen: false`: under the mask, stored outputs of classes to come are noise.
    """

    def __init__(self, *, alpha: float = 0.5, **options):
        super().__init__(**options)
        self.alpha, self.said = alpha, None

    def loss_of_samples(self, batch):
        """L."""
        return TorchLearner.loss(self, batch)

    def loss(self, batch):
        self.said = batch.outputs.detach()  # of this step, to be stored
        loss = self.loss_of_samples(batch)
        if not len(self.memory):
            return loss
        x, _, z = self.recall(len(batch.y))
        return loss + self.alpha * (z - self.logits(self.augmented(x))).square().mean()

    def columns(self, x, y):
        return (self.said if self.network.training else self.logits(self.inputs(x)),)

    def after_round(self, data):
        super().after_round(data)
        self.said = None  # it ends with the round
