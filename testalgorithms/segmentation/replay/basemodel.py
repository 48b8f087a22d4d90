"""Experience replay of images."""

from ianvs.authoring.round_data import to_device
from ianvs.testalgorithms.segmentation import Batch, SegmentationLearner
from ianvs.testalgorithms.segmentation.data import prepare
from ianvs.testalgorithms.segmentation.picture_memory import DomainMemory


class Replay(SegmentationLearner):
    """Every step's batch is joined by one of an earlier domain from memory (after Chaudhry et al. 2019, algorithm 1).

    L = L_CE(new) + L_CE(old), each in its own branch; the earlier domains take turns.

    capacity: images that are kept, with their labels, as many of each domain.
    """

    trains_old_branches = True

    def __init__(self, *, capacity=30, **training):
        super().__init__(**training)
        self.memory = DomainMemory(capacity)

    def before_round(self, data):
        self.weights |= {d: w.to(data.device) for d, w in self.memory.weights.items() if d != data.domain}
        self.turns = [d for d, part in self.memory.parts.items() if d != data.domain and len(part)]

    def step(self, batch):
        self.descend(self.losses(batch))

    def losses(self, batch):
        yield self.cross_entropy(batch)
        if self.turns:
            self.turns.append(domain := self.turns.pop(0))
            yield self.cross_entropy(self.remembered(domain, len(batch.y)))

    def remembered(self, domain, count):
        """Return a batch from the memory, augmented like any other."""
        x, y = self.memory.parts[domain].sample(count, self.draws)
        x, y = to_device(x, self.device), to_device(y, self.device)
        moves = self.augmentation.draw(len(y), self.moves)
        labels = list(self.domains.values())[domain]
        x, y = self.augmentation.apply(x, y, moves, labels.ignore)
        return Batch(prepare(x, self.layout), y, domain)

    def after_round(self, data):
        self.memory.add(data.domain, data.x, data.y, data.weights, self.draws)

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
