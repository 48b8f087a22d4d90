"""Nearest class mean."""

from torch.nn.functional import normalize

from ianvs.authoring import ClosedFormLearner
from ianvs.base.errors import require_known


class NCM(ClosedFormLearner):
    """A sample gets the class whose mean feature is nearest (Mensink et al. 2013, eq. 1; in continual learning iCaRL,
    Rebuffi et al. 2017, eq. 2, and SimpleCIL, Zhou et al. 2023, eq. 5).

    "euclidean": argmin_c |f - m_c|^2 = argmax_c m_c.f - |m_c|^2 / 2. "cosine": argmax_c m_c.f / |m_c|.
    Both are linear in f, so that the head holds them: weight and bias per class.

    distance: "euclidean" or "cosine".
    """

    def __init__(self, *, distance: str = "euclidean", **training):
        super().__init__(**training)
        require_known("distance", distance, ("euclidean", "cosine"))
        self.distance = distance

    def solve(self):
        n, s = self.taught
        m = s / n
        if self.distance == "cosine":
            return normalize(m), m.new_zeros(len(m))
        return m, -m.square().sum(1) / 2
