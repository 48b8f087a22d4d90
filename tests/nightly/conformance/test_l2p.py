"""L2P as Wang et al. 2022 state it (arXiv 2112.08654, eq. 1 to 5).

min over P, K and the head of L(g(f(x_p)), y) + pull sum_s d(q(x), k_s), d = 1 - cosine, q the frozen network's class
token, g on the mean of what the network says at the prompts.

Left open by the paper or other than it, taken from the authors' code (google-research/l2p 8cfb210, the release of L2P;
dd8836e has DualPrompt in it, too) and its port (JH-LEE-KR/l2p-pytorch f7bc994):
- in a step all samples get the `chosen` prompts that most of them pick, of equals the first: models/prompt.py:211-216
  of dd8836e, the port's prompt.py:63-75. Both do so in testing, too, where an answer then depends on what else is in
  the batch; ours looks at each sample alone there, as the paper does;
- prompts stand behind the class token and have its position: 8cfb210 models/vit.py:289-313 and libml/utils_vit.py:
  183; the port's vision_transformer.py:470-478 and 670-671. In dd8836e they stand before it and have none;
- prompts and keys begin uniform on [0, 0.01) (flax's `uniform()`, dd8836e models/vit.py:381, models/prompt.py:198), in
  the port, and ours, on [-1, 1) (prompt.py:25, 34): `between`;
- outputs of classes of other rounds are masked in training; Adam is new in each round, gradients are shortened to 1:
  train_continual.py:270-296, 537; configs/cifar100_l2p.py:34-41. Their rate is 0.03 for 256 samples.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from ianvs.testalgorithms.l2p.basemodel import L2P
from ianvs.testalgorithms.l2p.prompted import PromptPool
from ianvs.testalgorithms.prompts import PromptLearner
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import Pictures, body_weights, encode, pictures, tokens


def naive(exam, *, pool, length, chosen, pull, choice="batch", between=(-1.0, 1.0), clip_norm=1.0):
    net = exam.network()
    w, head = body_weights(net), net[-1]
    for p in head.parameters():
        p.data.zero_()  # as the authors' code begins, models/vit.py:475
    width = head.in_features
    prompts = nn.Parameter(torch.empty(pool, length, width).uniform_(*between))
    keys = nn.Parameter(torch.empty(pool, width).uniform_(*between))
    trained = [prompts, keys, *head.parameters()]

    def prompted(x, together):
        t = tokens(w, x)
        q = encode(w, t)[0][:, 0]
        cosines = [[one @ key / one.norm() / key.norm() for key in keys] for one in q]
        picked = [sorted(range(pool), key=lambda s, row=row: -row[s].item())[:chosen] for row in cosines]
        if together:
            votes = [sum(s in some for some in picked) for s in range(pool)]
            picked = [sorted(range(pool), key=lambda s: -votes[s])[:chosen]] * len(x)
        d = sum(sum(1 - cosines[i][s] for s in some) for i, some in enumerate(picked)) / len(x)
        put = torch.stack([torch.cat([prompts[s] for s in some]) for some in picked]) + w["position"][0, 0]
        said = encode(w, torch.cat([t[:, :1], put, t[:, 1:]], 1))[0]
        return head(said[:, 1 : 1 + chosen * length].mean(1)), d

    for k in exam.rounds:
        x, y = exam.data(k)
        group = exam.group(k)
        optimizer = torch.optim.Adam(trained, exam.learning_rate)
        for _, some in exam.batches(k, len(y)):
            z, d = prompted(x[some], choice == "batch")
            loss = cross_entropy(z[:, group], y[some] - group[0]) + pull * d
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(trained, clip_norm)
            optimizer.step()
        with torch.no_grad():
            answers = (prompted(exam.test, False)[0] + exam.mask(k)).argmax(1).numpy()
        yield After([one.detach().clone() for one in trained], [], answers)


def seen(learner):
    prompted, head = learner.network
    return [prompted.prompts, prompted.keys, *head.parameters()]


SLIPS = [
    Mutant("mask", "logits=batch.logits + self.class_mask", "logits=batch.logits", PromptLearner),
    Mutant("sign", "loss + self.price", "loss - self.price", PromptLearner),
    Mutant("factor", ".sum(1).mean()", ".mean()", PromptPool),
    Mutant("a detach too many", "normalize(self.keys).T", "normalize(self.keys).T.detach()", PromptPool),
    Mutant("position", " + body.class_position()", "", PromptPool),
    Mutant(
        "order of tokens",
        "[tokens[:, : body.special], prompts, tokens[:, body.special :]]",
        "[prompts, tokens]",
        PromptPool,
    ),
    Mutant("sign", "normalize(self.query(x))", "-normalize(self.query(x))", PromptPool),
    Mutant("factor", '"clip_norm": 1.0', '"clip_norm": None'),
]
EXAM = Pictures(learning_rate=0.003)
WHY = "Adam divides a gradient by its size, which is that of rounding where there is hardly any (float64: 1e-15)"
CHECKS = [
    pictures(L2P, naive, SLIPS, seen, exam=EXAM, tolerance=4e-6, why=WHY, pool=5, length=2, chosen=2, pull=0.5),
    pictures(
        L2P,
        naive,
        SLIPS,
        seen,
        exam=EXAM,
        title="L2P by sample, as its authors' begins",
        pool=5,
        length=2,
        chosen=2,
        pull=0.5,
        choice="sample",
        between=(0.0, 0.01),
    ),
]


def test_l2p_picks_pulls_and_learns_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
