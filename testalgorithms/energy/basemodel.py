"""Free energy of the logits."""

from ianvs.testalgorithms.open_world.unseen_learner import UnseenLearner


class Energy(UnseenLearner):
    """A sample is strange if all logits are small (Liu et al. 2020, arXiv 2010.03759, eq. 4).

    a(x) = E(x) = -T log sum_c exp(z_c / T), over the classes that were taught.

    temperature: T.
    """

    def __init__(self, *, temperature: float = 1.0, **training):
        super().__init__(**training)
        self.temperature = temperature

    def strangeness(self, x, mask):
        return -self.temperature * (self.logits(x, mask) / self.temperature).logsumexp(1)
