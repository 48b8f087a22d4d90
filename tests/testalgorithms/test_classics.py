"""What sets the classics of 2018 to 2022 apart, each against its equations written out again or worked by hand."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from ianvs.errors import PluginError
from ianvs.testalgorithms.er_ace.basemodel import ERACE
from ianvs.testalgorithms.icarl.basemodel import ICaRL
from ianvs.testalgorithms.lucir.basemodel import LUCIR
from ianvs.testalgorithms.mas.basemodel import MAS
from ianvs.testalgorithms.mir.basemodel import MIR
from ianvs.testalgorithms.replay.basemodel import Replay
from ianvs.testalgorithms.rwalk.basemodel import RWalk
from ianvs.testalgorithms.wa.basemodel import WA
from tests.testalgorithms.exam_of_arrays import Data, Exam, digits, examine, pictures, teach

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}


def weights(learner):
    return torch.cat([w.detach().flatten() for w in learner.network.state_dict().values()])


def noted(learner, exam, k, expected):
    """Teach round k; [(the learner's loss, `expected` of the batch)] of its steps. Both see the same weights."""
    pairs, plain = [], learner.loss

    def watched(batch):
        loss, wanted = plain(batch), expected(batch)
        pairs.append((loss.item(), wanted.item() if torch.is_tensor(wanted) else wanted))
        return loss

    learner.loss = watched
    teach(learner, exam, k, seed=0)
    del learner.loss
    return pairs


def all_equal(pairs, n=10):
    assert len(pairs) >= n
    for ours, naive in pairs:
        assert ours == pytest.approx(naive, rel=2e-4, abs=1e-5)


# ER-ACE.


def test_er_ace_holds_new_samples_against_classes_of_their_batch_and_old_ones_against_all():
    exam, drawn = digits(), []
    learner = ERACE(capacity=40, **SHORT)
    teach(learner, exam, 1, seed=0)
    recall = learner.recall
    learner.recall = lambda n: drawn.append(recall(n)) or drawn[-1]

    def equation(batch):
        z = learner.network(batch.x)
        total = 0.0
        for row, label in zip(z, batch.y.tolist(), strict=True):
            present = sorted(set(batch.y.tolist()))
            total = total - (row[label] - row[present].logsumexp(0)) / len(z)
        x, y = drawn[-1]
        for row, label in zip(learner.network(x), y.tolist(), strict=True):
            total = total - (row[label] - row[:4].logsumexp(0)) / len(y)
        return total

    all_equal(noted(learner, exam, 2, equation))
    assert {c for _, y in drawn for c in y.tolist()} == {0, 1, 2, 3}  # new samples come back as well


def test_er_ace_moves_no_output_of_an_old_class_by_new_samples():
    exam = digits()
    learner = ERACE(capacity=0, **SHORT)  # nothing is replayed
    teach(learner, exam, 1, seed=0)
    before = learner.network[-1].weight.detach().clone()
    teach(learner, exam, 2, seed=0)
    moved = (learner.network[-1].weight - before).abs().amax(1)
    assert bool((moved[:2] == 0).all())
    assert bool((moved[2:4] > 0).all())


# MIR.


def test_mir_replays_what_the_step_would_harm_most():
    exam, chosen, drawn = digits(), [], []
    learner = MIR(capacity=80, candidates=40, replay_batch=6, **SHORT)
    teach(learner, exam, 1, seed=0)
    extend, recall = learner.extend, learner.recall
    learner.recall = lambda n: drawn.append(recall(n)) or drawn[-1]

    def watched(x, y):
        theta = copy.deepcopy(learner.network)
        joined = extend(x, y)
        chosen.append((x, y, theta, joined))
        return joined

    learner.extend = watched
    teach(learner, exam, 2, seed=0)
    for (x, y, network, (all_x, all_y)), (old_x, old_y) in zip(chosen, drawn, strict=True):
        assert len(old_y) == 40
        before = [
            cross_entropy(network(one[None])[:, :4], label[None]) for one, label in zip(old_x, old_y, strict=True)
        ]
        step = torch.optim.SGD(network.parameters(), 0.05)
        cross_entropy(network(x)[:, :4], y).backward()
        step.step()
        after = [cross_entropy(network(one[None])[:, :4], label[None]) for one, label in zip(old_x, old_y, strict=True)]
        harm = torch.stack([a - b for a, b in zip(after, before, strict=True)]).tolist()
        assert torch.equal(all_x[: len(y)], x)
        found = {tuple(row.flatten().tolist()) for row in all_x[len(y) :]}
        least = min(h for h, row in zip(harm, old_x, strict=True) if tuple(row.flatten().tolist()) in found)
        assert len(all_y) == len(y) + 6
        assert sum(h > least + 1e-5 for h in harm) < 6


def test_mir_with_nothing_to_choose_from_is_replay():
    exam = digits()
    choosy, plain = MIR(capacity=10, candidates=10, **SHORT), Replay(capacity=10, **SHORT)
    for learner in (choosy, plain):
        teach(learner, exam, 1, seed=0)
        teach(learner, exam, 2, seed=0)
    torch.testing.assert_close(weights(choosy), weights(plain), rtol=1e-3, atol=1e-4)  # the order of a batch differs


def test_looking_ahead_leaves_the_network_and_its_normalisation_alone():
    exam = pictures()
    learner = MIR(capacity=20, network="resnet", widths=(4, 8), **SHORT)
    teach(learner, exam, 1, seed=0)
    extend, unchanged = learner.extend, []

    def watched(x, y):
        before = weights(learner).clone()
        joined = extend(x, y)
        unchanged.append(torch.equal(before, weights(learner)))
        return joined

    learner.extend = watched
    teach(learner, exam, 2, seed=0)
    assert unchanged
    assert all(unchanged)


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
    noted(learner, exam, 2, lambda batch: sorts.append((learner.known, learner.new, learner.old)) or 0.0)
    assert sorts[0] == ([0, 1], [2, 3], [0])
    assert learner.known == [0, 1, 2, 3]


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


@pytest.mark.parametrize("network", ["mlp", "resnet"])
@pytest.mark.parametrize("cls", [ICaRL, WA, LUCIR])
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


def test_a_stream_that_fills_the_memory_during_a_round_is_no_place_for_exemplars():
    with pytest.raises(PluginError, match="chosen after a round"):
        ICaRL(selection="reservoir", fill="during_round")


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


@pytest.mark.parametrize("cls", [MAS, RWalk])
def test_importance_keeps_what_fine_tuning_forgets(cls):
    longer = {**SHORT, "epochs": 5}
    held = examine(cls(**longer), permuted(), seed=0)[0]
    free = examine(cls(strength=0.0, **longer), permuted(), seed=0)[0]
    assert held[-1].mean() > free[-1].mean() + 0.1
    assert held[-1][0] > free[-1][0] + 0.15


# All with a memory.


@pytest.mark.parametrize("cls", [ERACE, MIR, ICaRL, WA, LUCIR])
def test_methods_with_a_memory_forget_far_less_than_fine_tuning(cls):
    learner = cls(capacity=200, **{**SHORT, "epochs": 8})
    assert examine(learner, digits(), seed=0)[0][-1].mean() > 0.8  # fine-tuning ends at 0.2
