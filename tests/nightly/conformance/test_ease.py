"""EASE as Zhou et al. 2024 state it (arXiv 2403.12030), beside LAMDA-PILOT 2647455.

Left open by the paper, or other than it, taken from there, where its authors keep it:
- adapters are those of APER, new ones in each round, trained under a cosine classifier of the round's classes with a
  factor that begins at 1; SGD, rate 0.025, decay 5e-4, 20 epochs of 48, half a cosine: backbone/vit_ease.py,
  utils/inc_net.py:998-1010, exps/ease.json. Theirs falls after each epoch, ours after each step;
- prototypes of old classes in subspace i are mixed of all classes taught since round i, and anew after each round, by
  the softmax of cosines without a temperature: models/ease.py:167-213 (`recalc_sim`);
- what is added of other subspaces has the weight 0.1 / (T - 1): backbone/linears.py:137-176.
"""

import torch

from ianvs.testalgorithms.body_tuning import Adapter, BodyTuner, CosineHead
from ianvs.testalgorithms.ease.basemodel import EASE, SubspaceHead
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import WIDTH, Pictures, body_weights, pictures
from tests.nightly.conformance.test_aper import Naive, cosines, learn


def naive(exam, *, bottleneck, alpha=0.1):
    net = exam.network()
    w = body_weights(net)
    spaces, prototype = [], {}  # (class, subspace): (D,)
    for k in exam.rounds:
        x, y = exam.data(k)
        new = learn(exam, k, lambda: Naive(w, bottleneck), WIDTH, exam.group(k))
        spaces.append(new)
        with torch.no_grad():
            for i, space in enumerate(spaces, start=1):
                f = space(x).double()
                for c in exam.group(k):
                    prototype[c, i] = f[y == c].mean(0)
            for t in range(1, k):
                for i in range(t + 1, k + 1):
                    later = [c for s in range(i, k + 1) for c in exam.group(s)]
                    for c in exam.group(t):
                        near = torch.stack([cosine(prototype[c, t], prototype[j, t]) for j in later])
                        share = near.exp() / near.exp().sum()
                        prototype[c, i] = sum(a * prototype[j, i] for a, j in zip(share, later, strict=True))
            z = torch.zeros(len(exam.test), 2 * k, dtype=torch.float64)
            for i, space in enumerate(spaces, start=1):
                f = space(exam.test).double()
                for c in exam.seen(k):
                    own = c in exam.group(i)
                    z[:, c] += (1.0 if own else alpha / (k - 1)) * cosines(f, prototype[c, i][None])[:, 0]
        table = torch.stack([torch.stack([prototype[c, i] for i in range(1, k + 1)]) for c in exam.seen(k)])
        parts = [p for space in spaces for p in space.parameters()]
        yield After([p.detach().clone() for p in (*parts, table, z)], [], z.argmax(1).numpy())


def cosine(a, b):
    return a @ b / a.norm() / b.norm()


def seen(learner):
    parts = []
    for adapters in learner.network[0].sets:
        parts += [a.down.weight for a in adapters] + [a.up.weight for a in adapters]
        parts += [a.down.bias for a in adapters] + [a.up.bias for a in adapters]
    logits = learner.each(EXAM.test, learner.logits)
    return [*parts, learner.prototypes()[learner.first >= 0], logits[:, learner.first >= 0]]


SLIPS = [
    Mutant("order of rounds", "body.sets.append(new.adapters)", "body.sets.insert(0, new.adapters)"),
    Mutant("order of rounds", "later = self.first[c], self.counts[:, i] > 0", "later = self.first[c], self.first >= 0"),
    Mutant("sign", ".softmax(0) @", ".neg().softmax(0) @"),
    Mutant("factor", "self.alpha / max(1, self.grown - 1)", "self.alpha * 9"),
    Mutant("factor", "weights[taught, self.first[taught]] = 1", "weights[taught, 0] = 1"),
    Mutant("factor", '"decay": "cosine"', '"decay": "none"'),
    Mutant("factor", '"weight_decay": 5e-4', '"weight_decay": 0.0'),
    Mutant("length", "normalize(f.unflatten(1, (-1, self.width)), dim=2).flatten(1)", "f", SubspaceHead),
    Mutant("length", "self.eta * linear(normalize(f)", "self.eta * linear(f", CosineHead),
    Mutant("factor", "scale=0.1", "scale=0.2", Adapter),
    Mutant("factor", "logits=batch.logits + self.class_mask", "logits=batch.logits * 2", BodyTuner),
]
EXAM = Pictures(learning_rate=1.0)
CHECKS = [pictures(EASE, naive, SLIPS, seen, exam=EXAM, bottleneck=5)]


def test_ease_adds_subspaces_and_mixes_prototypes_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
