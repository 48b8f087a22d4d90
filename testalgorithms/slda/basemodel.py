"""Streaming linear discriminant analysis."""

import torch

from ianvs.authoring import ClosedFormLearner


class SLDA(ClosedFormLearner):
    """Deep streaming LDA (Hayes & Kanan 2020, arXiv 1909.01520, eq. 1 to 4).

    w_c = L m_c, b_c = -m_c.L m_c / 2, with L = ((1 - e) S + e I)^-1 and the classes' means m_c. After sample t, counted
    from 0, S <- (t S + D_t) / (t + 1) with D_t = t d d' / (t + 1), d = f - m_y before the sample; m_y is 0 before the
    class's first. Written out, S is the mean of all D_t. There, S may begin with that of a base set; here it doesn't.

    shrinkage: e, 0 to 1. exact: S is the classes' common covariance in place of that, whatever the order of samples:
    (sum f f' - sum_c n_c m_c m_c') / n. The other comes close to it when there are many.
    """

    def __init__(self, *, shrinkage: float = 1e-4, exact: bool = False, **training):
        super().__init__(**training)
        self.shrinkage, self.second_moment, self.scatter = shrinkage, exact, 0.0  # sum of D_t (D, D)

    def look(self, features, y):
        f, y = features.double().cpu(), y.cpu()
        t = self.counts.sum() - len(y) + torch.arange(len(y))
        for c in [] if self.second_moment else y.unique():
            z = f[y == c]
            n = self.counts[c] - len(z) + torch.arange(len(z))
            d = z - (self.sums[c] - z.sum(0) + z.cumsum(0) - z) / n.clamp_min(1)[:, None]
            self.scatter = self.scatter + (d.T * (t / (t + 1))[y == c]) @ d

    def solve(self):
        n, s = self.taught
        m = s / n
        S = (self.moment - m.T @ s if self.second_moment else self.scatter) / n.sum()
        shrunk = (1 - self.shrinkage) * S + self.shrinkage * torch.eye(len(S), dtype=S.dtype)
        w = torch.linalg.solve(shrunk, m.T).T
        return w, -(w * m).sum(1) / 2

    def state(self):
        return {**super().state(), "scatter": self.scatter}

    def restore(self, state):
        super().restore(state)
        self.scatter = state["scatter"]
