"""Replay of stored conversations."""

from math import inf

import torch

from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory
from ianvs.testalgorithms.language.numbers import within


class Replay(LanguageLearner):
    """Each batch is joined by old conversations (Chaudhry et al. 2019, arXiv 1902.10486, algorithm 1).

    Step on the mean of -log p over what the assistant says in B_new + B_memory. The memory is filled after the round.

    capacity: conversations that are kept, a uniform random subset of all that were seen (Vitter 1985).
    replay_ratio: |B_memory| / |B_new|.
    """

    def __init__(self, *, capacity=80, replay_ratio=1.0, **tuning):
        super().__init__(**tuning)
        within(0, inf, replay_ratio=replay_ratio)
        self.memory, self.replay_ratio = ConversationMemory(capacity), replay_ratio

    def before_round(self, data):
        self.draws = data.generator("replay")
        self.old = self.encode(self.memory.conversations)

    def extend(self, conversations):
        drawn = torch.randperm(len(self.old), generator=self.draws)[: round(self.replay_ratio * len(conversations))]
        return conversations + [self.old[i] for i in drawn.tolist()]

    def after_round(self, data):
        self.old = []
        self.memory.add(data.conversations, data.generator("memory"))

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
