"""Dark experience replay ++."""

from ianvs.testalgorithms.der.basemodel import DER


class DERpp(DER):
    """Dark experience replay ++ (Buzzega et al. 2020, eq. 6).

    L(theta) = L_new(theta) + alpha * mean |z' - h(x'; theta)|^2 + beta * L(x'', y''; theta), where (x', z') and
    (x'', y'') are two draws from the memory; the rest is as in DER.
    """

    def __init__(self, *, beta: float = 0.5, **options):
        super().__init__(**options)
        self.beta = beta

    def loss(self, batch):
        loss = super().loss(batch)
        if not len(self.memory):
            return loss
        return loss + self.beta * self.loss_of_samples(self.recall_batch(len(batch.y)))
