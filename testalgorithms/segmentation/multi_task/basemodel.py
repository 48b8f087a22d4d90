"""Multi-task training: the upper bound that continual learners are held against."""

from ianvs.base.errors import require_known
from ianvs.testalgorithms.segmentation import SegmentationLearner


class MultiTask(SegmentationLearner):
    """Trains on all domains so far in each round, with a shared encoder and a decoder for each domain.

    As in Garg et al. 2022: every iteration visits every domain with a step of its own; the encoder, which T domains
    step, learns at learning_rate / T.

    epoch_length: "shortest", an epoch ends with the smallest domain, as in the authors' code; or "longest", the smaller
    ones begin again until the largest ends.
    adapters: the network of MDIL-SS, where each domain has adapters and batch normalisations of its own in the encoder.
    Without, statistics of batches that are of one domain each are averaged over all, which far domains don't stand.
    warm_start: False trains a fresh network in each round, as long as any other; True goes on from the round before.
    """

    sees_past_rounds = True
    trains_old_branches = True

    def __init__(self, *, epoch_length="shortest", adapters=False, warm_start=False, **training):
        super().__init__(**training)
        require_known("epoch_length", epoch_length, ("shortest", "longest"))
        self.epoch_length, self.adapters, self.warm_start = epoch_length, adapters, warm_start

    def train(self, train_data, valid_data=None, *, train_rounds, **context):
        self.rounds = train_rounds
        super().train(train_data, valid_data, **context)
        del self.rounds

    def begin(self, task, labels, seed):
        if self.warm_start:
            super().begin(task, labels, seed)
            return
        labels_of, self.domains = {**self.domains, task: labels}, {}
        for each, its_labels in labels_of.items():
            super().begin(each, its_labels, seed)

    def start_domain(self, domain):
        if self.warm_start:
            super().start_domain(domain)

    def rates(self, domain):
        return self.learning_rate / len(self.domains), self.learning_rate

    def before_round(self, data):
        self.parts = [self.data_of(part, task) for part, task in zip(self.rounds, self.domains, strict=True)]
        self.weights = {part.domain: part.weights for part in self.parts}

    def epoch(self, data):
        ends = min if self.epoch_length == "shortest" else max
        iterations = ends(-(-len(part) // self.batch_size) for part in self.parts)
        streams = [self.endless(part) for part in self.parts]
        for _ in range(iterations):
            yield from map(next, streams)

    def endless(self, part):
        while True:
            yield from self.pass_over(part)

    def after_round(self, data):
        del self.parts
