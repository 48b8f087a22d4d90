"""A-GEM: no step that makes old conversations worse on average."""

import torch

from ianvs.authoring.projection import agem_projection, flat_gradients, set_flat_gradients
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory, memory_gradient
from ianvs.testalgorithms.language.numbers import at_least


class AGEM(LanguageLearner):
    """Averaged gradient episodic memory (Chaudhry et al. 2019, arXiv 1812.00420, eq. 11).

    g~ = g - (g.m / m.m) m if g.m < 0, else g; m is the gradient of the loss on conversations drawn from memory. A
    constraint, not a mixture: the memory's gradient is never added.

    capacity: conversations that are kept. memory_batch: of them, those that a step asks.
    """

    def __init__(self, *, capacity=80, memory_batch=16, **tuning):
        super().__init__(**tuning)
        at_least(1, memory_batch=memory_batch)
        self.memory, self.memory_batch = ConversationMemory(capacity), memory_batch

    def before_round(self, data):
        self.draws = data.generator("replay")
        self.old = self.encode(self.memory.conversations)

    def before_step(self):
        if not self.old:
            return
        weights = list(self.weights.values())
        drawn = torch.randperm(len(self.old), generator=self.draws)[: self.memory_batch].tolist()
        reference = memory_gradient(self, [self.old[i] for i in drawn])
        set_flat_gradients(weights, agem_projection(flat_gradients(weights), reference))

    def after_round(self, data):
        self.old = []
        self.memory.add(data.conversations, data.generator("memory"))

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
