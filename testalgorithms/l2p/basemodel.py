"""Learning to prompt."""

from collections.abc import Sequence

from ianvs.base.errors import require_known
from ianvs.testalgorithms.l2p.prompted import PromptPool
from ianvs.testalgorithms.prompts import PromptLearner

CHOICES = ("batch", "sample")


class L2P(PromptLearner):
    """Learning to prompt (L2P; Wang et al. 2022, arXiv 2112.08654, eq. 3 to 5).

    min over prompts P, keys k and the head of L(g(f(P_s; x)), y) + pull sum_s d(q(x), k_s): a sample's query q(x), the
    frozen network's feature, picks the `chosen` keys with the least cosine distance d; their prompts are put before the
    patches. L looks at the round's own classes alone, as the authors' code does.

    pool, length, chosen: prompts, tokens in each, prompts for a sample (paper: 10, 5, 5). pull: lambda (paper: 0.5).
    choice: in training, "batch", all samples of a step get the prompts that most of them pick, as in the authors' code,
    or "sample"; in testing each sample has its own. between: bounds of the first prompts and keys (the authors' begin
    within 0 and 0.01, their code's port as here).
    """

    head_from_zero = True  # as in the authors' code, models/vit.py

    def __init__(
        self,
        *,
        pool: int = 10,
        length: int = 5,
        chosen: int = 5,
        pull: float = 0.5,
        choice: str = "batch",
        between: Sequence[float] = (-1.0, 1.0),
        **training,
    ):
        require_known("choice", choice, CHOICES)
        super().__init__(**{"learning_rate": 0.004, "clip_norm": 1.0, **training})
        self.price, self.sizes = pull, (pool, length, chosen, choice, between)

    def prompted(self, body, features):
        return PromptPool(body, features, *self.sizes)
