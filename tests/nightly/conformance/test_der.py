"""DER and DER++ as Buzzega et al. 2020 state them (eq. 4 to 6, algorithms 1 and 2).

Left open by the paper, taken from Mammoth 7ab9db9: the square is a mean over samples and outputs (models/der.py:43,
F.mse_loss); each step of each epoch offers its samples, with the outputs of that step, after it (models/der.py:47,
models/derpp.py:56); no mask on classes to come (models/der.py:36-37).
"""

from torch.nn.functional import cross_entropy

from ianvs.authoring import ReplayLearner
from ianvs.testalgorithms.der.basemodel import DER
from ianvs.testalgorithms.derpp.basemodel import DERpp
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Reservoir
from tests.nightly.conformance.vision import vision


def naive(exam, *, capacity, alpha, beta=None):
    net, memory = exam.network(), Reservoir(capacity, in_place=True)
    for k in exam.rounds:
        x, y = exam.data(k)
        optimizer, old, keys = exam.sgd(net.parameters()), exam.draws(k, "replay"), exam.draws(k, "memory")
        for _, some in exam.batches(k, len(y)):
            outputs = net(x[some])
            loss = cross_entropy(outputs, y[some])
            if len(memory):
                old_x, _, z = memory.drawn(len(some), old)
                loss = loss + alpha * ((z - net(old_x)) ** 2).mean()
                if beta is not None:
                    old_x, old_y, _ = memory.drawn(len(some), old)
                    loss = loss + beta * cross_entropy(net(old_x), old_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            memory.offer(keys, x[some], y[some], outputs.detach())
        yield exam.after(net, k, memory.columns)


SLIPS = [
    Mutant("first epoch only", 'fill: str = "every_step"', 'fill: str = "during_round"', DER),
    Mutant("sign", "loss + self.alpha", "loss - self.alpha", DER),
    Mutant("missing detach", "batch.outputs.detach()", "batch.outputs * 1", DER),
    Mutant("factor", ".square().mean()", ".square().sum(1).mean()", DER),
    Mutant("mask", "mask_unseen: bool = False", "mask_unseen: bool = True", DER),
    Mutant(
        "order of rounds",
        'data.generator("replay"), data',
        "torch.Generator().manual_seed(data.round), data",
        ReplayLearner,
    ),
]
CHECKS = [
    vision(DER, naive, SLIPS, capacity=20, alpha=0.3),
    vision(DERpp, naive, [*SLIPS, Mutant("factor", "self.beta * ", "")], capacity=20, alpha=0.3, beta=0.7),
]


def test_der_and_derpp_go_where_their_papers_algorithms_go():
    for check in CHECKS:
        check.conforms()
