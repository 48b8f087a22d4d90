"""Pseudo-labels: what the old network is sure of counts as true."""

from dataclasses import replace

from ianvs.testalgorithms.label_sets import KnownClasses
from ianvs.testalgorithms.multilabel import MultilabelLearner


class MultilabelPseudoLabels(MultilabelLearner, KnownClasses):
    """Restores labels of earlier classes by the network from before the round (Dong et al. 2023, KRT, section 3.2).

    A class that the round does not teach becomes a label of a sample where its probability is `threshold` at least.
    KRT looks for a threshold of its own in each round; here it is given.
    """

    def __init__(self, *, threshold=0.5, **training):
        super().__init__(**training)
        self.threshold = threshold

    def training_data(self, data):
        old = [c for c in self.known_classes if c not in self.taught(data)]
        if not old:
            return data
        sure = self.each(data.x, self.logits).sigmoid().to(data.y.device) >= self.threshold
        self._set_training()
        y = data.y.clone()
        y[:, old] = sure[:, old].to(y.dtype)
        return replace(data, y=y)

    def taught(self, data):
        return data.y.any(0).nonzero()[:, 0].tolist()
