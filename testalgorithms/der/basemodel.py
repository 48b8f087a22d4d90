"""Dark experience replay."""

from ianvs.authoring import ReplayLearner, TorchLearner


class DER(ReplayLearner):
    """Dark experience replay (Buzzega et al. 2020, eq. 4).

    L(theta) = L_new(theta) + alpha * mean |z' - h(x'; theta)|^2, where (x', z') is a draw from the memory, h are
    outputs before any mask, the mean is over samples and classes. Each step of each epoch offers its samples to the
    reservoir with what the network said of them in that step: z' (algorithm 1).
    Outputs of classes to come are trained, too (`mask_unseen: false`): under a mask, stored ones would be noise.
    """

    def __init__(self, *, alpha: float = 0.5, fill: str = "every_step", mask_unseen: bool = False, **options):
        super().__init__(fill=fill, mask_unseen=mask_unseen, **options)
        self.alpha, self.outputs = alpha, None

    def loss_of_samples(self, batch):
        """L."""
        return TorchLearner.loss(self, batch)

    def loss(self, batch):
        self.outputs = batch.outputs.detach()  # of this step, to be stored
        loss = self.loss_of_samples(batch)
        if not len(self.memory):
            return loss
        x, _, z = self.recall(len(batch.y))
        return loss + self.alpha * (z - self.logits(self.augmented(x))).square().mean()

    def stored_with(self, x, y):
        return (self.outputs if self.network.training else self.logits(self.inputs(x)),)

    def after_round(self, data):
        super().after_round(data)
        self.outputs = None  # it ends with the round
