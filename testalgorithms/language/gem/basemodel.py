"""GEM: no step that makes the conversations of any earlier round worse."""

from math import inf

import torch

from ianvs.authoring.projection import flat_gradients, gem_projection, set_flat_gradients
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory, memory_gradient
from ianvs.testalgorithms.language.numbers import at_least, within


class GEM(LanguageLearner):
    """Gradient episodic memory (Lopez-Paz & Ranzato 2017, eq. 8 to 11).

    g~ is the vector nearest to g with g~.g_k >= 0 for every earlier round k, g_k the gradient of the loss on what is
    kept of it: g~ = g + G'v, v solves min 1/2 v'GG'v + g'G'v over v >= margin. One constraint per round, and exactly.

    per_round: conversations that are kept of each round. margin: "memory strength" of the paper.
    """

    def __init__(self, *, per_round=20, margin=0.5, **tuning):
        super().__init__(**tuning)
        at_least(1, per_round=per_round)
        within(0, inf, margin=margin)
        self.per_round, self.margin, self.memories = per_round, margin, []

    @property
    def memory(self):
        """All that is kept, as the benchmark measures it."""
        together = ConversationMemory(self.per_round * max(len(self.memories), 1))
        together.conversations = [conversation for part in self.memories for conversation in part.conversations]
        return together

    def before_round(self, data):
        self.old = [self.encode(part.conversations) for part in self.memories]

    def before_step(self):
        if not self.old:
            return
        weights = list(self.weights.values())
        references = torch.stack([memory_gradient(self, conversations) for conversations in self.old])
        set_flat_gradients(weights, gem_projection(flat_gradients(weights), references, self.margin))

    def after_round(self, data):
        self.old = []
        part = ConversationMemory(self.per_round)
        part.add(data.conversations, data.generator("memory"))
        self.memories.append(part)

    def state(self):
        return {"kept": [part.state() for part in self.memories]}

    def restore(self, state):
        self.memories = [ConversationMemory(self.per_round) for _ in state["kept"]]
        for part, held in zip(self.memories, state["kept"], strict=True):
            part.restore(held)
