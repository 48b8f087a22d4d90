"""What sets the classics of 2018 to 2022 apart, each against its equations written out again or worked by hand."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import Batch
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
from tests.testalgorithms.test_new_equations import bowl

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


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def test_icarl_learns_new_classes_from_labels_and_old_ones_from_what_it_said_before():
    exam = digits()
    learner = ICaRL(capacity=40, **SHORT)
    teach(learner, exam, 1, seed=0)
    before = copy.deepcopy(learner.network)

    def equation(batch):
        z, q = (sigmoid(net(batch.x).detach().double().numpy()) for net in (learner.network, before))
        total = 0.0
        for i, label in enumerate(batch.y.tolist()):
            for c in range(4):
                target = q[i, c] if c in (0, 1) else float(c == label)
                total -= target * np.log(z[i, c]) + (1 - target) * np.log(1 - z[i, c])
        return total / len(z)

    all_equal(noted(learner, exam, 2, equation))


def test_icarl_answers_with_the_nearest_mean_of_its_exemplars():
    exam = digits()
    learner = ICaRL(capacity=40, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    body = learner.network[:-1].eval()

    def feature(x):
        f = body(x[None])[0].detach().numpy()
        return f / np.linalg.norm(f)

    means = {}
    for c in range(4):
        mean = np.mean([feature(x) for x in learner.memory.x[learner.memory.y == c]], axis=0)
        means[c] = mean / np.linalg.norm(mean)
    x = exam.tests[1][0]
    samples = torch.from_numpy(x).permute(0, 3, 1, 2)
    distances = [{c: np.linalg.norm(feature(one) - mean) for c, mean in means.items()} for one in samples]
    naive = [min(each, key=each.get) for each in distances]
    asked = {"num_classes": 10, "classes_seen": (0, 1, 2, 3), "seed": 0}
    found = learner.predict(Data(x), **asked)
    assert np.mean(found == naive) > 0.99  # all but ties in the last bits
    shares = learner.probabilities(Data(x), **asked)
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


def test_a_round_is_learned_together_with_the_exemplars():
    exam = digits()
    learner, shown = ICaRL(capacity=40, **{**SHORT, "epochs": 1}), []
    teach(learner, exam, 1, seed=0)
    exemplars = sorted(learner.memory.y.tolist())
    noted(learner, exam, 2, lambda batch: shown.extend(batch.y.tolist()) or 0.0)
    assert sorted(shown) == exemplars + sorted(exam.rounds[1][1].tolist())


def test_wa_weighs_what_it_said_before_by_the_share_of_old_classes():
    exam = digits()
    learner = WA(capacity=40, temperature=3.0, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    before = copy.deepcopy(learner.network)

    def equation(batch):
        z, q = learner.network(batch.x), before(batch.x)[:, :4]
        p_old, p = (q / 3).softmax(1), (z[:, :4] / 3).softmax(1)
        told = 9 * (p_old * (p_old.log() - p.log())).sum(1).mean()
        return 4 / 6 * told + 2 / 6 * cross_entropy(z[:, :6], batch.y)

    all_equal(noted(learner, exam, 3, equation))


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


def test_lucir_loss_is_its_three_terms():
    exam = digits()
    learner = LUCIR(capacity=40, less_forget=3.0, margin=0.4, rivals=1, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    before = copy.deepcopy(learner.network)
    hinged = []

    def equation(batch):
        f, f_old = learner.network[:-2](batch.x), before[:-2](batch.x)
        eta, w = learner.network[-2].scale, learner.network[-1].weight
        cosines = torch.stack([(f @ row) / f.norm(dim=1) / row.norm() for row in w], dim=1)
        loss = cross_entropy(eta * cosines[:, :6], batch.y)
        apart = 1 - (f * f_old).sum(1) / f.norm(dim=1) / f_old.norm(dim=1)
        loss = loss + 3.0 * (4 / 2) ** 0.5 * apart.mean()
        hinges = [
            max(0.0, 0.4 - row[label] + max(row[4:6]))
            for row, label in zip(cosines.tolist(), batch.y.tolist(), strict=True)
            if label < 4
        ]
        hinged.append(sum(h > 0 for h in hinges))
        return loss + (sum(hinges) / len(hinges) if hinges else 0.0)

    all_equal(noted(learner, exam, 3, equation))
    assert sum(hinged) > 0


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


def test_lucir_begins_new_vectors_at_the_mean_direction_of_their_features():
    exam = digits()
    learner = LUCIR(capacity=40, **SHORT)
    teach(learner, exam, 1, seed=0)
    body, begun = learner.network[:-2].eval(), []
    x, y = exam.rounds[1]
    f = body(torch.from_numpy(x[y == 3]).permute(0, 3, 1, 2)).detach()
    noted(learner, exam, 2, lambda batch: begun.append(learner.network[-1].weight[3].detach().clone()) or 0.0)
    mean = (f / f.norm(dim=1, keepdim=True)).mean(0)
    torch.testing.assert_close(begun[0], mean / mean.norm(), rtol=1e-4, atol=1e-5)


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


def test_mas_importance_is_the_mean_absolute_slope_of_the_squared_length_of_the_outputs():
    exam = digits()
    learner = MAS(strength=0.0, **SHORT)
    omega = torch.zeros(())
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
        x = torch.from_numpy(exam.rounds[k - 1][0]).permute(0, 3, 1, 2)
        total = torch.zeros_like(learner.anchor.fisher)
        for one in x:
            learner.network.zero_grad()
            learner.network(one[None])[0, : 2 * k].square().sum().backward()
            total += torch.cat([p.grad.flatten() for p in learner.network.parameters()]).abs()
        omega = omega + total / len(x)
    torch.testing.assert_close(learner.anchor.fisher, omega, rtol=1e-3, atol=1e-5)


def test_mas_holds_back_by_the_gradient_of_its_penalty():
    exam = digits()
    learner = MAS(strength=0.3, **SHORT)
    teach(learner, exam, 1, seed=0)
    with torch.no_grad():
        for p in learner.network.parameters():
            p += 0.1
    x, y = torch.rand(8, 1, 8, 8), torch.arange(8) % 2
    outputs = learner.network(x)
    loss = learner.loss(Batch(x, y, outputs, outputs)) - cross_entropy(outputs, y)
    found = torch.autograd.grad(loss, list(learner.network.parameters()))
    expected = 2 * 0.3 * learner.anchor.fisher * 0.1
    torch.testing.assert_close(torch.cat([g.flatten() for g in found]), expected, rtol=1e-3, atol=1e-5)


def test_mas_needs_no_label():
    exam = digits()
    learner = MAS(strength=0.3, **SHORT)
    x, y = exam.rounds[0]
    learner.train(Data(x, np.full_like(y, -1)), None, round=1, num_classes=10, classes_seen=(0, 1), seed=0)
    assert float(learner.anchor.fisher.max()) > 0


Bowl = bowl(RWalk)


def one_step_an_epoch(learner):
    exam = Exam([(np.zeros((1, 1), np.float32), np.zeros(1, np.int64))], [], [(0,)], 2)
    teach(learner, exam, 1, seed=0)


BOWL = {"epochs": 3, "learning_rate": 0.1, "momentum": 0.0, "rate": 0.5, "interval": 2, "epsilon": 0.1}


def walk(theta, a, b, pull=0.0, star=0.0, fisher=0.0):
    """Three steps of rate 0.1 in one weight, stretches of two steps: (theta, F, s of the round)."""
    score, start, gain = 0.0, theta, 0.0
    for step in (1, 2, 3):
        g = a * (theta - b)
        fisher = 0.5 * g**2 + 0.5 * fisher
        new = theta - 0.1 * (g + 2 * pull * (theta - star))
        gain += -g * (new - theta)
        theta = new
        if step in (2, 3):
            score += max(0.0, gain) / (0.5 * fisher * (theta - start) ** 2 + 0.1)
            start, gain = theta, 0.0
    return theta, fisher, score


def test_rwalk_on_a_quadratic_by_hand():
    # Weight 0: a = 4, b = 1, from 0, rate 0.1. Gradients -4, -2.4, -1.44: to 0.4, 0.64, 0.784.
    # F = 8, then 0.5 * 5.76 + 4 = 6.88, then 0.5 * 2.0736 + 3.44 = 4.4768.
    # First stretch: gain 4 * 0.4 + 2.4 * 0.24 = 2.176, over 0.5 * 6.88 * 0.64^2 + 0.1 = 1.509024.
    # Second: gain 1.44 * 0.144 = 0.20736, over 0.5 * 4.4768 * 0.144^2 + 0.1 = 0.146415...
    learner = Bowl([4.0, 0.0], [1.0, 9.0], **BOWL)
    one_step_an_epoch(learner)
    second = 0.20736 / (0.5 * 4.4768 * 0.144**2 + 0.1)
    torch.testing.assert_close(learner.star, torch.tensor([0.784, 0.0]))
    torch.testing.assert_close(learner.fisher, torch.tensor([4.4768, 0.0]))
    torch.testing.assert_close(learner.score, torch.tensor([2.176 / 1.509024 + second, 0.0]))


def test_rwalk_pulls_back_by_fisher_and_score_scaled_to_1_and_averages_scores():
    learner = Bowl([4.0, 1.0], [1.0, 1.0], strength=2.0, **BOWL)
    one_step_an_epoch(learner)
    first = [walk(0.0, a, 1.0) for a in (4.0, 1.0)]
    fishers, scores = [f for _, f, _ in first], [s for _, _, s in first]
    pulls = [2.0 * (f / max(fishers) + s / max(scores)) for f, s in zip(fishers, scores, strict=True)]
    learner.b = torch.tensor([0.0, 0.0])  # the next round wants both back at 0
    one_step_an_epoch(learner)
    second = [
        walk(theta, a, 0.0, pull, theta, fisher)
        for (theta, fisher, _), a, pull in zip(first, (4.0, 1.0), pulls, strict=True)
    ]
    torch.testing.assert_close(learner.star, torch.tensor([theta for theta, _, _ in second]))
    torch.testing.assert_close(learner.fisher, torch.tensor([fisher for _, fisher, _ in second]))
    averaged = [(a + b) / 2 for a, (_, _, b) in zip(scores, second, strict=True)]
    torch.testing.assert_close(learner.score, torch.tensor(averaged), rtol=1e-4, atol=1e-6)


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
