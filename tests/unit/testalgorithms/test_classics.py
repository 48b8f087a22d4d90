"""What the classics of 2018 to 2022 promise besides their equations, which tests/nightly/conformance checks."""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.er_ace.basemodel import ERACE
from ianvs.testalgorithms.icarl.basemodel import ICaRL
from ianvs.testalgorithms.lucir.basemodel import LUCIR
from ianvs.testalgorithms.mas.basemodel import MAS
from ianvs.testalgorithms.mir.basemodel import MIR
from ianvs.testalgorithms.rwalk.basemodel import RWalk
from ianvs.testalgorithms.wa.basemodel import WA
from tests.marks import slow
from tests.unit.testalgorithms.exam_of_arrays import Data, Exam, digits, examine, pictures, teach

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}


# iCaRL, WA, LUCIR.


def test_icarl_shares_what_it_says_among_classes_seen():
    exam = digits()
    learner = ICaRL(capacity=40, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    shares = learner.probabilities(Data(exam.tests[1][0]), num_classes=10, classes_seen=(0, 1, 2, 3), seed=0)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    assert shares[:, 4:].max() == 0


def test_icarl_answers_of_a_task_are_among_its_classes():
    exam = digits()
    learner = ICaRL(capacity=40, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    found = learner.predict(Data(exam.tests[0][0]), num_classes=10, seed=0, task_classes=(2, 3))
    assert set(found) <= {2, 3}


def again():
    """Class 1 of round 1 comes back in round 2."""
    exam = digits()
    (x, y), (more, labels) = exam.rounds[:2]
    back = (y == 1).nonzero()[0][:40]
    exam.rounds[1] = (np.concatenate([more, x[back]]), np.concatenate([labels, y[back]]))
    return exam


def test_a_class_that_comes_back_is_neither_new_nor_old():
    exam = again()
    learner, sorts = ICaRL(capacity=40, **SHORT), []
    teach(learner, exam, 1, seed=0)
    training_data = learner.training_data  # asked for in the middle of a round
    learner.training_data = lambda data: (
        sorts.append((learner.known_classes, learner.new_classes, learner.absent_classes)) or training_data(data)
    )
    teach(learner, exam, 2, seed=0)
    assert sorts[0] == ([0, 1], [2, 3], [0])
    assert learner.known_classes == [0, 1, 2, 3]


def test_wa_brings_new_vectors_to_the_mean_length_of_old_ones():
    exam = again()
    learner = WA(capacity=40, **SHORT)
    teach(learner, exam, 1, seed=0)
    after_round, found = learner.after_round, []
    learner.after_round = lambda data: found.append(learner.network[-1].weight.detach().clone()) or after_round(data)
    teach(learner, exam, 2, seed=0)
    (trained,), aligned = found, learner.network[-1].weight.detach()
    gamma = trained[:2].norm(dim=1).mean() / trained[2:4].norm(dim=1).mean()
    assert abs(float(gamma) - 1) > 0.01
    torch.testing.assert_close(aligned[2:4], trained[2:4] * gamma)
    untouched = [0, 1, 4, 5, 6, 7, 8, 9]
    assert torch.equal(aligned[untouched], trained[untouched])
    assert float(trained[:4].min()) == 0.0  # positive


def test_lucir_keeps_vectors_at_length_1_and_those_of_old_classes_in_place():
    exam = again()
    learner = LUCIR(capacity=40, weight_decay=0.01, **SHORT)
    teach(learner, exam, 1, seed=0)
    before = learner.network[-1].weight.detach().clone()
    teach(learner, exam, 2, seed=0)
    after = learner.network[-1].weight.detach()
    torch.testing.assert_close(after.norm(dim=1), torch.ones(10))
    torch.testing.assert_close(after[0], before[0], rtol=1e-5, atol=1e-7)
    assert all(float((after[c] - before[c]).abs().max()) > 1e-3 for c in (1, 2, 3))


@pytest.mark.parametrize(
    ("cls", "network"),
    [(ICaRL, "mlp"), (WA, "mlp"), (LUCIR, "mlp"), (ICaRL, "resnet"), slow(WA, "resnet"), slow(LUCIR, "resnet")],
)
def test_methods_with_exemplars_work_on_either_network_when_classes_come_back(cls, network):
    exam = pictures()
    learner = cls(capacity=9, network=network, widths=(4, 8), **SHORT)
    rounds = [exam.rounds[0], exam.rounds[1], exam.rounds[0], exam.rounds[1]]
    for k, (x, y) in enumerate(rounds, start=1):
        seen = exam.seen(min(k, 2))
        learner.train(Data(x, y), None, round=k, num_classes=4, classes_seen=seen, seed=0)
    found = learner.predict(Data(exam.tests[0][0]), num_classes=4, classes_seen=(0, 1, 2, 3), seed=0)
    assert set(found) <= {0, 1, 2, 3}
    assert learner.memory.y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


# MAS, RWalk.


def test_mas_needs_no_label():
    exam = digits()
    learner = MAS(strength=0.3, **SHORT)
    x, y = exam.rounds[0]
    learner.train(Data(x, np.full_like(y, -1)), None, round=1, num_classes=10, classes_seen=(0, 1), seed=0)
    assert float(learner.anchor.fisher.max()) > 0


def permuted():
    """Three rounds of all digits, the pixels of each in another order."""
    whole = digits()
    train, test = (tuple(map(np.concatenate, zip(*parts, strict=True))) for parts in (whole.rounds, whole.tests))
    orders = [np.random.default_rng(k).permutation(64) for k in range(3)]

    def shuffled(part):
        return [(part[0].reshape(-1, 64)[:, order].reshape(-1, 8, 8, 1), part[1]) for order in orders]

    return Exam(shuffled(train), shuffled(test), [tuple(range(10))] * 3, 10)


@pytest.mark.parametrize("cls", [MAS, slow(RWalk)])
def test_importance_keeps_what_fine_tuning_forgets(cls):
    longer = {**SHORT, "epochs": 5}
    held = examine(cls(**longer), permuted(), seed=0)[0]
    free = examine(cls(strength=0.0, **longer), permuted(), seed=0)[0]
    assert held[-1].mean() > free[-1].mean() + 0.1
    assert held[-1][0] > free[-1][0] + 0.15


# All with a memory.


@pytest.mark.parametrize("cls", [ERACE, *map(slow, (MIR, ICaRL, WA, LUCIR))])
def test_methods_with_a_memory_forget_far_less_than_fine_tuning(cls):
    learner = cls(capacity=200, **{**SHORT, "epochs": 8})
    assert examine(learner, digits(), seed=0)[0][-1].mean() > 0.8  # fine-tuning ends at 0.2
