"""CODA-Prompt as Smith et al. 2023 state it (arXiv 2211.13218, eq. 3 to 9).

p = sum_m alpha_m P_m, alpha_m = cos(q(x) * A_m, K_m), q the frozen network's class token; only the latest components,
with their keys and attentions, and the head are learned; + lambda (|P P' - I|^2 + |K K' - I|^2 + |A A' - I|^2).

Left open by the paper or other than it, taken from the authors' code (GT-RIPL/CODA-Prompt 6417d4f):
- a prompt's first half are keys, its second half values, in front of those of the attention, not projected:
  models/zoo.py:174-176, models/vit.py:68-73; in blocks 1 to 5, with components of its own each: zoo.py:22-38, 46;
- new components, keys and attentions begin as random numbers of length 1 out of which the projections on each earlier
  one, as it was learned, were taken: zoo.py:75-131; so it is their sum, no least squares;
- the penalty is a mean of squares over all components so far, summed over blocks: zoo.py:179-182, 197-198. Its factor
  was 0.1 * 1e-6 (issue 4 there) and now is 0, since new components begin orthogonal (README.md:17, issue 12);
- outputs of classes of other rounds are masked in training; Adam is new in each round: learners/prompt.py:32,
  learners/default.py:81.

The learning rate of the code falls by epoch along a quarter of a cosine (utils/schedulers.py:54), here by step along
half of one, TorchLearner's.
"""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.coda_prompt.basemodel import CODAPrompt
from ianvs.testalgorithms.prompts import PromptLearner, PromptsOfRounds
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import WIDTH, Pictures, body_weights, encode, pictures, tokens


def gram_schmidt(drawn, earlier):
    """drawn, earlier: lists of (D,)."""
    found = []
    for v in drawn:
        before = [*earlier, *found]
        for u in before:
            v = v - (drawn[len(found)] @ u) / (u @ u) * u
        found.append(v / v.norm())
    return found


def naive(exam, *, per_round, length, blocks, orthogonality, rounds, optimizer="adam"):
    net = exam.network()
    w, head = body_weights(net), net[-1]
    depth, half = len(blocks), length // 2
    draws = [torch.randn(rounds, depth, per_round, *shape) for shape in ((2, half, WIDTH), (WIDTH,), (WIDTH,))]
    old = [[[], [], []] for _ in blocks]  # of each block: components, keys, attentions, as vectors
    new = None

    def begin(t):
        made = []
        for i in range(depth):
            own = [gram_schmidt([*draw[t, i].flatten(1)], before) for draw, before in zip(draws, old[i], strict=True)]
            made.append([[nn.Parameter(v.clone()) for v in vectors] for vectors in own])
        return made

    def output(x):
        with torch.no_grad():
            query = encode(w, tokens(w, x))[0][:, 0]
        prefixes = {}
        for i, block in enumerate(blocks):
            P, K, A = ([*before, *now] for before, now in zip(old[i], new[i], strict=True))
            prompts = []
            for q in query:
                alpha = [(q * a) @ k / (q * a).norm() / k.norm() for k, a in zip(K, A, strict=True)]
                prompts.append(sum(a * p for a, p in zip(alpha, P, strict=True)).view(2, half, WIDTH))
            prefixes[block - 1] = [torch.stack([p[j] for p in prompts]) for j in (0, 1)]
        return head(encode(w, tokens(w, x), prefixes=prefixes)[0][:, 0])

    def penalty():
        total = 0
        for i in range(depth):
            for before, now in zip(old[i], new[i], strict=True):
                B = [*before, *now]
                for m, one in enumerate(B):
                    total = total + sum((one @ other - float(m == n)) ** 2 for n, other in enumerate(B)) / len(B) ** 2
        return total

    for k in exam.rounds:
        x, y = exam.data(k)
        group = exam.group(k)
        if k <= rounds:
            if new:
                old = [
                    [[*b, *(v.detach() for v in n)] for b, n in zip(*pair, strict=True)]
                    for pair in zip(old, new, strict=True)
                ]
            new = begin(k - 1)
        trained = [*(v for block in new for vectors in block for v in vectors), *head.parameters()]
        step_of = torch.optim.Adam(trained, exam.learning_rate) if optimizer == "adam" else exam.sgd(trained)
        steps = list(exam.batches(k, len(y)))
        for step, (_, some) in enumerate(steps):
            for rates in step_of.param_groups:
                rates["lr"] = exam.learning_rate * 0.5 * (1 + math.cos(math.pi * step / len(steps)))
            loss = cross_entropy(output(x[some])[:, group], y[some] - group[0]) + orthogonality * penalty()
            step_of.zero_grad()
            loss.backward()
            step_of.step()
        with torch.no_grad():
            answers = (output(exam.test) + exam.mask(k)).argmax(1).numpy()
        so_far = [torch.stack([*b, *n]) for i in range(depth) for b, n in zip(old[i], new[i], strict=True)]
        yield After([one.detach().clone() for one in (*so_far, *head.parameters())], [], answers)


def seen(learner):
    prompted, head = learner.network
    count = min(int(prompted.count), prompted.rounds)
    columns = [prompted.every(name)[:count].transpose(0, 1).flatten(1, 2).flatten(2) for name in prompted.shapes]
    return [*(column[i] for i in range(len(prompted.blocks)) for column in columns), *head.parameters()]


SLIPS = [
    Mutant("mask", "logits=batch.logits + self.class_mask", "logits=batch.logits", PromptLearner),
    Mutant("order of rounds", "self.count.clamp(1, self.rounds)[None] - 1", "0 * self.count[None]", PromptsOfRounds),
    Mutant("order of rounds", "getattr(self, name).copy_(torch.cat(new).flatten())", "pass"),
    Mutant("factor", "q @ (A * normalize(K, dim=-1))", "q @ (A * K)"),
    Mutant("factor", ".sqrt().clamp_min(1e-12)", ""),
    Mutant("components of rounds to come", "cosines * trained", "cosines"),
    Mutant("projections", "@ row / before.square().sum(1)", "@ row"),
    Mutant("projections", "row - (before", "row + (before"),
    Mutant("keys for values", "tuple(pair) for", "tuple(pair.flip(0)) for"),
    Mutant("order of rounds", "*earlier]", "]"),
]
PENALTY = [
    Mutant("sign", "loss + self.price", "loss - self.price", PromptLearner),
    Mutant("factor", " / rows.sum().square()", ""),
    Mutant("sign", "B @ B.mT - rows", "B @ B.mT + rows"),
    Mutant("components of rounds to come", "B = B * rows[:, None]", "pass"),
]
WHY = "Adam divides a gradient by its size, which is that of rounding where there is hardly any"
OPTIONS = {"per_round": 2, "length": 4, "blocks": [1, 2, 4], "orthogonality": 0.0, "rounds": 3}
CHECKS = [
    pictures(CODAPrompt, naive, SLIPS, seen, exam=Pictures(learning_rate=0.003), tolerance=1e-5, why=WHY, **OPTIONS),
    pictures(
        CODAPrompt,
        naive,
        PENALTY,
        seen,
        exam=Pictures(learning_rate=0.1),
        title="CODA-Prompt with its penalty, whose third round has no components of its own",
        **{**OPTIONS, "orthogonality": 5.0, "rounds": 2, "blocks": [2], "per_round": 3, "optimizer": "sgd"},
    ),
]


def test_coda_prompt_weighs_learns_and_keeps_apart_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
