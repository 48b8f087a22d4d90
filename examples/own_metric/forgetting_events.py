"""A metric with state over rounds: it is fed the answers to one test set, round after round."""


class ForgettingEvents:
    """How often a sample that was right after one round was wrong after the next, per sample (Toneva 2019)."""

    higher_is_better = False

    def __init__(self):
        self.right, self.events = None, 0

    def update(self, round, y_true, y_pred):
        right = y_pred == y_true
        if self.right is not None:
            self.events += (self.right & ~right).sum()
        self.right = right

    def compute(self):
        return self.events / len(self.right)
