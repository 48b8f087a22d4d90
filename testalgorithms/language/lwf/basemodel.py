"""Learning without forgetting."""

from math import inf

from torch.nn.functional import cross_entropy

from ianvs.authoring import distillation_loss
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.numbers import above, within


class LwF(LanguageLearner):
    """Learning without forgetting (Li & Hoiem 2017, eq. 2 and 3, fig. 3), token by token.

    L = L_new + alpha T^2 KL(softmax(z_old / T) || softmax(z / T)), mean over the learnt tokens of the new
    conversations; z_old is what the weights from before the round say at the very same positions.

    alpha: weight of what was known. temperature: T, higher looks more at improbable tokens.
    """

    def __init__(self, *, alpha=1.0, temperature=2.0, **tuning):
        super().__init__(**tuning)
        within(0, inf, alpha=alpha)
        above(0, temperature=temperature)
        self.alpha, self.temperature, self.learnt_before = alpha, temperature, False

    def before_round(self, data):
        current = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.teacher = current if self.learnt_before else None

    def loss(self, batch):
        logits = self.logits(batch)
        loss = cross_entropy(logits, batch.targets)
        if self.teacher is None:
            return loss
        return loss + self.alpha * distillation_loss(logits, self.logits(batch, self.teacher), self.temperature)

    def after_round(self, data):
        self.teacher, self.learnt_before = None, True

    def state(self):
        return {"learnt_before": self.learnt_before}

    def restore(self, state):
        self.learnt_before = state["learnt_before"]
