"""Streaming linear discriminant analysis."""

import torch

from ianvs.authoring import ClosedFormLearner


class SLDA(ClosedFormLearner):
    """Deep streaming LDA (Hayes & Kanan 2020, arXiv 1909.01520, eq. 1 to 3).

    w_c = L m_c, b_c = -m_c.L m_c / 2, with L = ((1 - e) S + e I)^-1, the classes' means m_c, and their common
    covariance S = (sum f f' - sum_c n_c m_c m_c') / n. Sums give S exactly and in any order of the samples; the paper's
    update of S after each sample has the same limit. There, S may begin with that of a base set; here it doesn't.

    shrinkage: e, 0 to 1.
    """

    second_moment = True

    def __init__(self, *, shrinkage: float = 1e-4, **training):
        super().__init__(**training)
        self.shrinkage = shrinkage

    def solve(self):
        n, s = self.taught
        m = s / n
        S = (self.moment - m.T @ s) / n.sum()
        shrunk = (1 - self.shrinkage) * S + self.shrinkage * torch.eye(len(S), dtype=S.dtype)
        w = torch.linalg.solve(shrunk, m.T).T
        return w, -(w * m).sum(1) / 2
