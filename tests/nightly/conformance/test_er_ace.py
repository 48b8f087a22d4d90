"""ER-ACE as Caccia et al. 2022 (arXiv 2104.05025) state it: L(B_memory; C_old and C_new) + L(B_new; C_new), C_new the
classes of the new batch, L(B; C) the mean cross-entropy with a softmax over C.

The authors' code (AML 7c92936, methods/er_ace.py:36-49; Mammoth e75a491, models/er_ace.py:59-91) differs: classes that
no batch has brought yet, those from the highest class seen on, stay in the softmax of the new batch, too, and that of
the memory is over all outputs (methods/er.py:32-39). Here the paper's rule is the default and mask_unseen=False is
theirs; a class counts as seen from the round on that brings it. From the code: two forward passes, the new batch first,
and the sum of two means (methods/er.py:61-75); the memory comes back from the second step of the first round on
(:65-73, with methods/er_ace.py:17-20); a step offers its samples after it (:77-78). Mammoth has neither a mask nor a
memory in the first task (models/er_ace.py:70, :77).
Left open, as there is one pass: ours offers a sample in the first epoch alone; with `fill: every_step`, in each.
"""

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import ReplayLearner
from ianvs.testalgorithms.er_ace.basemodel import ERACE
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Reservoir
from tests.nightly.conformance.vision import vision


def naive(exam, *, capacity, mask_unseen=True, fill="during_round"):
    net, memory = exam.network(), Reservoir(capacity, in_place=True)
    for k in exam.rounds:
        x, y = exam.data(k)
        optimizer, old, keys = exam.sgd(net.parameters()), exam.draws(k, "replay"), exam.draws(k, "memory")
        for epoch, some in exam.batches(k, len(y)):
            to_come = [] if mask_unseen else [c for c in range(exam.classes) if c not in exam.seen(k)]
            among = sorted({*y[some].tolist(), *to_come})
            loss = -(net(x[some])[:, among].log_softmax(1)[torch.arange(len(some)), place(among, y[some])]).mean()
            if len(memory):
                old_x, old_y = memory.drawn(len(some), old)
                z = net(old_x)
                loss = loss + cross_entropy(z[:, : 2 * k] if mask_unseen else z, old_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if epoch == 0 or fill == "every_step":
                memory.offer(keys, x[some], y[some])
        yield exam.after(net, k, memory.columns)


def place(among, y):
    return torch.tensor([among.index(label) for label in y.tolist()])


SLIPS = [
    Mutant("mask", "batch.y % len(self.absent)", "torch.tensor(list(self.data.classes_seen))"),
    Mutant("sign", "return loss + super()", "return loss - super()"),
    Mutant("factor", "return loss + super()", "return 0.5 * loss + 0.5 * super()"),
    Mutant("memory before or after the step", "self.recall_batch(len(batch.y))", "batch"),
    Mutant("order of rounds", 'data.generator("replay"), data', "torch.Generator(), data", ReplayLearner),
]
FIRST = Mutant("first epoch only", " and epoch == 0", "", ReplayLearner)
MASK = Mutant("mask", "(classes + 1,), self.mask_unseen", "(classes + 1,), True")
CHECKS = [
    vision(ERACE, naive, [*SLIPS, FIRST], capacity=20),
    vision(ERACE, naive, [*SLIPS, MASK], title="ER-ACE, classes to come left in", capacity=20, mask_unseen=False,
           fill="every_step"),
]  # fmt: skip


def test_er_ace_holds_new_samples_against_their_batch_and_old_ones_against_all():
    for check in CHECKS:
        check.conforms()
