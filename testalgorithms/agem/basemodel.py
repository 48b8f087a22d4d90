"""Averaged gradient episodic memory."""

from ianvs.authoring import ReplayLearner, agem_projection, flat_gradients, set_flat_gradients


class AGEM(ReplayLearner):
    """Averaged gradient episodic memory (Chaudhry et al. 2019, arXiv 1812.00420, eq. 11).

    A step goes along g - (g.m / m.m) m if g.m < 0, else along g: the loss on the memory does not grow, to first order.
    g is the gradient of the round's batch, m that of `replay_batch` samples drawn from the memory (256 in the paper's
    code, or all where there are fewer).

    Momentum carries on what a projection took away; the paper takes plain steps (momentum 0).
    """

    def __init__(self, *, replay_batch: int = 256, **options):
        super().__init__(replay_batch=replay_batch, **options)

    def adjust_gradients(self, data):
        if len(self.memory):
            gradient = flat_gradients(self.network.parameters())
            reference = self.gradient(self.recall_batch(self.batch_size))
            set_flat_gradients(self.network.parameters(), agem_projection(gradient, reference))
