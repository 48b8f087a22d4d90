"""Averaged gradient episodic memory."""

from ianvs.authoring import ReservoirMemory, TorchLearner, agem_projection, flat_gradients, set_flat_gradients


class AGEM(TorchLearner):
    """Averaged gradient episodic memory (Chaudhry et al. 2019, arXiv 1812.00420, eq. 11).

    A step goes along g - (g.m / m.m) m if g.m < 0, else along g: the loss on the memory does not grow, to first order.
    g is the gradient of the round's batch, m that of as many samples drawn from the memory.

    Momentum carries on what a projection took away; the paper takes plain steps (momentum 0).

    capacity: samples that are kept, a uniform random subset of all of earlier rounds.
    """

    def __init__(self, *, capacity: int = 200, **training):
        super().__init__(**training)
        self.memory = ReservoirMemory(capacity)

    def before_round(self, data):
        self.draws = data.generator("replay")

    def adjust_gradients(self, data):
        if len(self.memory):
            gradient = flat_gradients(self.network.parameters())
            reference = self.gradient(data, *self.memory.sample(self.batch_size, self.draws))
            set_flat_gradients(self.network.parameters(), agem_projection(gradient, reference))

    def after_round(self, data):
        kept = data.worth_keeping()
        self.memory.add(kept.x, kept.y, data.generator("memory"))

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
