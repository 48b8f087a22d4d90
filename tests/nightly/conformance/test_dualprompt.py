"""DualPrompt as Wang et al. 2022 state it (arXiv 2204.04799, eq. 2 to 6), with prefix tuning (eq. 4).

min over g, e_t, k_t and the head of L(f(x; g, e_t), y) + pull (1 - cos(q(x), k_t)), q the frozen network's class token;
in testing e_t is that of the nearest key.

Left open by the paper or other than it, taken from the authors' code (google-research/l2p dd8836e):
- prefixes are not projected, and stand before keys and values: models/prefix_attention.py:131-136. A prompt has
  `length` keys and as many values: models/vit.py:340-341, models/prompt.py:169-171 (the paper halves its length);
- e_t begins as e_{t-1} ended, keys as they were drawn: train_continual.py:550-571, configs/cifar100_dualprompt.py:111;
- a step's samples get the round's own prompt: train_continual.py:237-245;
- the pull is a mean over samples, and lambda 1: models/prompt.py:246-249, configs/cifar100_dualprompt.py:125-126;
- outputs of classes of other rounds are masked in training; Adam is new in each round, gradients are shortened to 1:
  train_continual.py:270-283, 537; configs/cifar100_dualprompt.py:34-42. Their rate is 0.03 for 256 samples.

Not taken over: on CIFAR-100 all samples of a batch get the prompt that most of them want in testing, too
(configs/cifar100_dualprompt.py:113), and keys of rounds to come can be the nearest; here each sample chooses alone,
among keys of rounds so far, as in the paper. The port to PyTorch (JH-LEE-KR/dualprompt-pytorch 7eb457d, prompt.py:118
to 122; also LAMDA-PILOT 2647455, backbone/prompt.py:323) reshapes (blocks, 2, samples, ...) to (blocks, samples, 2,
...) without moving the axis: the first half of a batch gets keys for values, too, the second half values for keys.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from ianvs.testalgorithms.dualprompt.basemodel import DualPrompt
from ianvs.testalgorithms.prompts import PromptLearner
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import WIDTH, Pictures, body_weights, encode, pictures, tokens


def naive(exam, *, general, expert, general_length, length, pull, rounds, between=(-1.0, 1.0), clip_norm=1.0):
    net = exam.network()
    w, head = body_weights(net), net[-1]
    for p in head.parameters():
        p.data.zero_()  # as the authors' code begins, models/vit.py:475
    g = torch.empty(len(general), 2, general_length, WIDTH).uniform_(*between)
    e = torch.empty(rounds, len(expert), 2, length, WIDTH).uniform_(*between)
    k = torch.empty(rounds, WIDTH).uniform_(*between)
    G = [[nn.Parameter(half.clone()) for half in one] for one in g]  # [block][keys, values]
    E, keys = [], []  # of rounds so far: [round][block][keys, values], [round]

    def output(x, which):
        """which: each sample's E-prompt."""
        many = len(x)
        prefixes = {
            block - 1: [half.expand(many, -1, -1) for half in one] for block, one in zip(general, G, strict=True)
        }
        for i, block in enumerate(expert):
            prefixes[block - 1] = [torch.stack([E[t][i][half] for t in which]) for half in (0, 1)]
        return head(encode(w, tokens(w, x), prefixes=prefixes)[0][:, 0])

    def cosine(x, t):
        """(N,) of the samples and the key of round t."""
        q = encode(w, tokens(w, x))[0][:, 0]
        return torch.stack([one @ keys[t] / one.norm() / keys[t].norm() for one in q])

    for number in exam.rounds:
        x, y = exam.data(number)
        group = exam.group(number)
        if number <= rounds:
            first = e[0] if number == 1 else [[half.detach() for half in block] for block in E[-1]]
            E.append([[nn.Parameter(half.clone()) for half in block] for block in first])
            keys.append(nn.Parameter(k[number - 1].clone()))
        trained = [*(half for one in G for half in one), *(half for one in E[-1] for half in one), keys[-1]]
        trained += [*head.parameters()]
        optimizer = torch.optim.Adam(trained, exam.learning_rate)
        for _, some in exam.batches(number, len(y)):
            z = output(x[some], [len(E) - 1] * len(some))
            loss = cross_entropy(z[:, group], y[some] - group[0]) + pull * (1 - cosine(x[some], len(E) - 1)).mean()
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(trained, clip_norm)
            optimizer.step()
        with torch.no_grad():
            nearest = torch.stack([cosine(exam.test, t) for t in range(len(keys))]).argmax(0).tolist()
            answers = (output(exam.test, nearest) + exam.mask(number)).argmax(1).numpy()
        so_far = [torch.stack([half for block in E[t] for half in block]) for t in range(len(E))]
        shared = torch.stack([half for one in G for half in one])
        yield After([one.detach().clone() for one in (shared, *so_far, *keys, *head.parameters())], [], answers)


def seen(learner):
    prompted, head = learner.network
    count = min(int(prompted.count), prompted.rounds)
    prompts = prompted.every("prompts")[:count].flatten(1, 2)
    return [
        prompted.shared.flatten(0, 1).unflatten(1, (-1, WIDTH)),
        *prompts,
        *prompted.every("keys")[:count],
        *head.parameters(),
    ]


SLIPS = [
    Mutant("mask", "logits=batch.logits + self.class_mask", "logits=batch.logits", PromptLearner),
    Mutant("sign", "loss + self.price", "loss - self.price", PromptLearner),
    Mutant("factor", "self.price * ", "", PromptLearner),
    Mutant("order of rounds", "self.count.clamp(1, self.rounds)[None] - 1", "0 * self.count[None]", PromptLearner),
    Mutant("a detach too many", 'normalize(self.every("keys")).T', 'normalize(self.every("keys")).T.detach()'),
    Mutant("order of rounds", "self.keys.copy_(self.keys_of_rounds[place])", "pass"),
    Mutant("sign", "torch.inf).argmax(1)", "torch.inf).argmin(1)"),
    Mutant("keys of rounds to come", "<= self.place", "< self.rounds"),
    Mutant("factor", '"clip_norm": 1.0', '"clip_norm": None'),
    Mutant("keys for values", "block: pair.unbind(1)", "block: pair.flip(1).unbind(1)"),
    Mutant("keys for values", "block: tuple(pair)", "block: tuple(pair.flip(0))"),
]
EXAM = Pictures(learning_rate=0.006)
OPTIONS = {"general": [1, 2], "expert": [3, 4], "general_length": 2, "length": 3, "pull": 0.7, "rounds": 3}
WHY = "beside a head that begins at 0 Adam divides gradients by their size that are near rounding"
CHECKS = [
    pictures(DualPrompt, naive, SLIPS, seen, exam=EXAM, tolerance=1e-5, why=WHY, **OPTIONS),
    pictures(
        DualPrompt,
        naive,
        SLIPS[:3],
        seen,
        exam=EXAM,
        title="DualPrompt whose third round has no prompt of its own",
        tolerance=1e-5,
        why=WHY,
        **{**OPTIONS, "rounds": 2, "between": (0.0, 0.01), "general": [3], "expert": [1]},
    ),
]


def test_dualprompt_prompts_pulls_and_learns_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
