"""Maximum softmax probability."""

from ianvs.testalgorithms.open_world.unseen_learner import UnseenLearner


class MaxSoftmax(UnseenLearner):
    """A sample is strange if no class is probable (Hendrycks & Gimpel 2017, arXiv 1610.02136, section 3).

    a(x) = 1 - max_c p(c | x), over the classes that were taught.
    """

    def strangeness(self, x, mask):
        return 1 - self.logits(x, mask).softmax(1).amax(1)
