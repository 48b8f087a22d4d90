"""Distance to the means of the classes."""

import torch

from ianvs.authoring import body_and_head
from ianvs.testalgorithms.open_world.unseen_learner import UnseenLearner


class ClassMeans(UnseenLearner):
    """A sample is strange if its features are far from the mean of every class.

    a(x) = min_c |f(x) / |f(x)| - m_c|, f the features behind the head, m_c the mean of f / |f| over what is at hand of
    class c: the round's samples and the memory (the prototypes of iCaRL, Rebuffi et al. 2017, eq. 2; as a rule of
    rejection Bendale & Boult 2015, nearest non-outlier).
    """

    def __init__(self, **training):
        super().__init__(**training)
        self.means = None  # (classes, features)

    def strangeness(self, x, mask):
        return torch.cdist(self.unit_features(x), self.means.to(x.device)).amin(1)

    def unit_features(self, x):
        """(B, D) features of unit length of prepared samples."""
        body, _ = body_and_head(self.network)
        return torch.nn.functional.normalize(self.logits(x, network=body))

    def after_round(self, data):
        taught = self.training_data(data).labelled()
        x, y = torch.cat([taught.x.cpu(), *self.old("x")]), torch.cat([taught.y.cpu(), *self.old("y")])
        if len(y):
            features = self.each(x, self.unit_features).cpu()
            self.means = torch.stack([features[y == c].mean(0) for c in y.unique()])
        super().after_round(data)

    def old(self, column):
        """The memory's, where there is something in it."""
        return [getattr(self.replayed, column).cpu()] if len(self.replayed) else []

    def detector_state(self):
        return {"means": self.means}

    def restore(self, state):
        super().restore(state)
        self.means = state["means"]
