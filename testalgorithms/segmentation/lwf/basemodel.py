"""Learning without forgetting, through the decoders of earlier domains."""

from ianvs.testalgorithms.mdil_ss.losses import old_domain_losses
from ianvs.testalgorithms.mdil_ss.protocol import frozen_copy
from ianvs.testalgorithms.segmentation import SegmentationLearner


class LwF(SegmentationLearner):
    """Learning without forgetting (Li & Hoiem 2017, fig. 3), with a shared encoder and a decoder for each domain.

    L = L_CE(new) + alpha sum over earlier domains j of T^2 KL(softmax(z_j,old / T) || softmax(z_j / T)), mean over
    pixels; z_j,old is what the network from before the round says of the new images. Encoder and all decoders learn.

    alpha: weight of what was known. temperature: T, higher looks more at improbable classes.
    """

    trains_old_branches = True

    def __init__(self, *, alpha=1.0, temperature=2.0, **training):
        super().__init__(**training)
        self.alpha, self.temperature = alpha, temperature

    def before_round(self, data):
        self.teacher = self.as_called(frozen_copy(self.network))

    def step(self, batch):
        self.descend(self.losses(batch))

    def losses(self, batch):
        yield self.cross_entropy(batch)
        old = [domain for domain in range(len(self.domains)) if domain != batch.domain]
        for loss in old_domain_losses(self.logits, self.teacher_logits, batch.x, old, temperature=self.temperature):
            yield self.alpha * loss

    def teacher_logits(self, x, domain):
        return self.logits(x, domain, self.teacher)

    def after_round(self, data):
        del self.teacher
