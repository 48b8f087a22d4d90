"""What sets the later methods apart, each against its equations written out a second time or worked by hand."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import Batch, RoundData, mlp
from ianvs.errors import PluginError
from ianvs.testalgorithms.agem.basemodel import AGEM
from ianvs.testalgorithms.biased_reservoir.basemodel import BiasedReservoir
from ianvs.testalgorithms.cwr_star.basemodel import CWRStar
from ianvs.testalgorithms.derpp.basemodel import DERpp
from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from ianvs.testalgorithms.gem.basemodel import GEM
from ianvs.testalgorithms.linear_probe.basemodel import LinearProbe
from ianvs.testalgorithms.si.basemodel import SI
from tests.testalgorithms.exam_of_arrays import Data, Exam, digits, examine, pictures, teach

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}


def weights(learner):
    return torch.cat([w.detach().flatten() for w in learner.network.state_dict().values()])


def bowl(method):
    """`method` on L(theta) = 1/2 sum_i a_i (theta_i - b_i)^2 in two weights, whatever the data."""

    class Bowl(method):
        def __init__(self, a, b, **training):
            super().__init__(**training)
            self.a, self.b = torch.tensor(a), torch.tensor(b)

        def build_network(self, input_shape, num_classes):
            network = nn.Linear(1, 2, bias=False)
            nn.init.zeros_(network.weight)
            return network

        def loss(self, batch):
            return 0.5 * (self.a * (self.network.weight[:, 0] - self.b).square()).sum()

    return Bowl


Bowl = bowl(SI)  # worked by hand below


def one_step_a_round(learner, rounds):
    exam = Exam([(np.zeros((1, 1), np.float32), np.zeros(1, np.int64))] * rounds, [], [(0,)] * rounds, 2)
    for k in range(1, rounds + 1):
        teach(learner, exam, k, seed=0)


def test_si_on_a_quadratic_by_hand():
    # Weight 0: a = 4, b = 1, from 0, rate 0.1, two steps. Gradient -4: to 0.4. Gradient -2.4: to 0.64.
    # omega = 4 * 0.4 + 2.4 * 0.24 = 2.176, Delta = 0.64. Weight 1: a = 0 has no slope and does not move.
    learner = Bowl([4.0, 0.0], [1.0, 9.0], strength=0.5, xi=0.1, epochs=2, learning_rate=0.1, momentum=0.0)
    one_step_a_round(learner, 1)
    torch.testing.assert_close(learner.importance, torch.tensor([2.176 / (0.64**2 + 0.1), 0.0]))
    torch.testing.assert_close(learner.star, torch.tensor([0.64, 0.0]))


def test_si_holds_back_by_the_gradient_of_its_penalty_and_does_not_count_it():
    learner = Bowl([4.0, 0.0], [1.0, 9.0], strength=0.5, xi=0.1, epochs=2, learning_rate=0.1, momentum=0.0)
    one_step_a_round(learner, 1)
    importance = float(learner.importance[0])
    learner.b = torch.tensor([0.0, 0.0])  # the next round wants weight 0 back at 0
    one_step_a_round(learner, 1)
    first = 0.64 - 0.1 * 4 * 0.64  # at theta* the penalty has no slope
    second = first - 0.1 * (4 * first + 2 * 0.5 * importance * (first - 0.64))
    assert float(learner.star[0]) == pytest.approx(second, rel=1e-5)
    omega = -(4 * 0.64 * (first - 0.64) + 4 * first * (second - first))
    expected = importance + max(omega, 0) / ((second - 0.64) ** 2 + 0.1)
    assert float(learner.importance[0]) == pytest.approx(expected, rel=1e-5)


def observed_steps(learner, exam, k):
    """[(gradient of the round's batch, what the step used, batch)] of round k."""
    steps = []
    adjust, loss = learner.adjust_gradients, learner.loss
    batches = []

    def observed(data):
        before = [p.grad.clone() for p in learner.network.parameters()]
        theta = [p.detach().clone() for p in learner.network.parameters()]
        batch = batches[-1]
        adjust(data)
        steps.append((before, [p.grad.clone() for p in learner.network.parameters()], theta, batch))

    def noted(batch):
        batches.append(batch)
        return loss(batch)

    # on the class, since a method counts as overriding only there
    cls = type("Observed", (type(learner),), {"adjust_gradients": lambda self, data: observed(data)})
    learner.__class__, learner.loss = cls, noted
    teach(learner, exam, k, seed=0)
    return steps


def flat(tensors):
    return torch.cat([t.flatten() for t in tensors])


def gradient_at(theta, x, y, seen):
    """Of the mean cross-entropy over classes seen, by a plain network with these weights."""
    network = mlp(x.shape[1:], 10)
    for parameter, value in zip(network.parameters(), theta, strict=True):
        parameter.data.copy_(value)
    mask = torch.full((10,), -torch.inf)
    mask[list(seen)] = 0.0
    cross_entropy(network(x) + mask, y).backward()
    return flat([p.grad for p in network.parameters()])


def test_agem_steps_along_its_equation():
    exam = digits()
    learner = AGEM(capacity=20, **{**SHORT, "batch_size": 20})  # so that each draw is the whole memory
    teach(learner, exam, 1, seed=0)
    x, y = learner.memory.x.clone(), learner.memory.y.clone()
    conflicts = 0
    for before, after, theta, _ in observed_steps(learner, exam, 2)[:25]:
        g, used, m = flat(before), flat(after), gradient_at(theta, x, y, (0, 1, 2, 3))
        if g @ m < 0:
            conflicts += 1
            g = g - (g @ m) / (m @ m) * m
        torch.testing.assert_close(used, g, rtol=1e-3, atol=1e-5)
    assert conflicts > 2


def test_gem_steps_harm_no_round_and_are_what_they_would_be_where_nothing_is_harmed():
    exam = digits()
    learner = GEM(samples_per_round=10, margin=0.0, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    assert [len(part) for part in learner.memory.parts] == [10, 10]
    parts = [(part.x.clone(), part.y.clone()) for part in learner.memory.parts]
    conflicts = 0
    for before, after, theta, _ in observed_steps(learner, exam, 3)[:15]:
        g, used = flat(before), flat(after)
        G = torch.stack([gradient_at(theta, x, y, range(6)) for x, y in parts])
        assert float((G @ used).min()) > -1e-4 * float(G.norm() * g.norm())
        if bool((G @ g < 0).any()):
            conflicts += 1
            assert not torch.equal(g, used)
        else:
            assert torch.equal(g, used)
    assert conflicts > 3


def test_der_plus_plus_loss_is_the_equation():
    exam = digits()
    learner = DERpp(capacity=12, alpha=0.3, beta=0.7, **{**SHORT, "batch_size": 12})  # draws are the whole memory
    teach(learner, exam, 1, seed=0)
    x, y, z = learner.memory.sample(12, torch.Generator())
    with torch.no_grad():
        torch.testing.assert_close(z, learner.network(x))  # what it said after the round
    losses, plain = [], learner.loss

    def noted(batch):
        h, mask = learner.network(x), torch.tensor([0.0] * 4 + [-torch.inf] * 6)
        expected = cross_entropy(learner.network(batch.x) + mask, batch.y)
        expected = expected + 0.3 * ((z - h) ** 2).sum() / (12 * 10) + 0.7 * cross_entropy(h + mask, y)
        losses.append((plain(batch), expected, len(batch.y)))
        return losses[-1][0]

    learner.loss = noted
    teach(learner, exam, 2, seed=0)
    whole = [(a, b) for a, b, size in losses if size == 12]  # the last batch of an epoch is smaller: so are its draws
    assert len(whole) > 20
    for a, b in whole:
        assert a.item() == pytest.approx(b.item(), rel=1e-4)


def test_gdumb_learns_from_a_balanced_memory_and_from_nothing_else():
    exam = digits()
    learner = GDumb(capacity=50, **SHORT)
    for k in range(1, 6):
        teach(learner, exam, k, seed=5)
    assert Counter(learner.memory.y.tolist()) == dict.fromkeys(range(10), 5)
    learner.predict(Data(exam.tests[0][0]), num_classes=10, classes_seen=exam.seen(5), seed=5)
    alone = Finetune(**SHORT)
    alone.train(
        Data(learner.memory.x.permute(0, 2, 3, 1).numpy(), learner.memory.y.numpy()),
        None,
        round=5,
        num_classes=10,
        classes_seen=exam.seen(5),
        seed=5,
    )
    assert torch.equal(weights(learner), weights(alone))


def test_gdumb_trains_only_when_it_is_asked_and_once(monkeypatch):
    exam = digits()
    learner, studied = GDumb(capacity=50, **SHORT), []
    study = learner.study
    monkeypatch.setattr(learner, "study", lambda data: studied.append(len(data)) or study(data))
    for k in (1, 2):
        teach(learner, exam, k, seed=5)
    assert studied == []
    for x, _ in exam.tests:
        learner.predict(Data(x), num_classes=10, classes_seen=exam.seen(2), seed=5)
    assert studied == [50]


@pytest.mark.parametrize("formula, kept", [("constant", {4, 5}), ("alpha_over_n", {0, 1, 2, 3, 4, 5})])
def test_a_biased_reservoir_trains_on_what_its_formula_keeps(formula, kept):
    exam = digits()
    learner = BiasedReservoir(capacity=100, formula=formula, alpha=1.0, **SHORT)
    shown = []
    plain = learner.loss
    learner.loss = lambda batch: shown.append(batch.y) or plain(batch)
    for k in (1, 2, 3):
        shown.clear()
        teach(learner, exam, k, seed=0)
    assert set(torch.cat(shown).tolist()) == kept
    assert sum(map(len, shown)) == 2 * 100


def test_a_biased_reservoir_with_reset_knows_nothing_but_its_memory():
    exam = digits()
    learner = BiasedReservoir(capacity=100, formula="constant", alpha=1.0, reset=True, **SHORT)
    late = BiasedReservoir(capacity=100, formula="constant", alpha=1.0, reset=True, **SHORT)
    for k in (1, 2):
        teach(learner, exam, k, seed=0)
    late.memory.restore(learner.memory.state())
    late.training_data = lambda data: RoundData(
        late.memory.x, late.memory.y, 2, 0, (), data.device, data.prepare, data.mask
    )
    teach(late, exam, 2, seed=0)
    assert torch.equal(weights(learner), weights(late))


def plain_round(classes, device="cpu"):
    y = torch.tensor(classes)
    return RoundData(torch.zeros(len(y), 2), y, 1, 0, (), torch.device(device), torch.Tensor.float)


def test_cwr_star_consolidates_by_hand():
    learner = CWRStar(network="linear")
    learner.network = nn.Sequential(nn.Flatten(), nn.Linear(2, 3, bias=False))
    head = learner.network[-1]

    def after(classes, tw):
        learner.before_round(plain_round(classes))
        started_from = head.weight.detach().clone()
        with torch.no_grad():
            for c, row in tw.items():
                head.weight[c] = torch.tensor(row)
        learner.after_round(plain_round(classes))
        return started_from

    # Classes 0 and 1 are new: w = 0, so cw = tw - avg(tw); avg = (1 + 3 + 5 + 7) / 4 = 4.
    assert after([0, 1], {0: [1.0, 3.0], 1: [5.0, 7.0]}).tolist() == [[0, 0]] * 3
    assert learner.cw.tolist() == [[-3, -1], [1, 3], [0, 0]]
    # Class 1 comes back with 4 samples after 1: w = sqrt(1 / 4) = 1/2. avg = (2 + 4 + 0 + 6) / 4 = 3.
    # cw_1 = ((1, 3) / 2 + (2, 4) - 3) / 1.5 = (-0.5, 2.5) / 1.5; cw_2 = (0, 6) - 3.
    started_from = after([1, 1, 1, 1, 2], {1: [2.0, 4.0], 2: [0.0, 6.0]})
    assert started_from.tolist() == [[0, 0], [1, 3], [0, 0]]  # tw starts from cw, absent classes from 0
    torch.testing.assert_close(learner.cw, torch.tensor([[-3, -1], [-1 / 3, 5 / 3], [-3, 3]]))
    assert learner.past.tolist() == [1, 5, 1]
    assert torch.equal(head.weight, learner.cw)


def test_cwr_star_trains_a_round_on_its_own_classes_alone():
    learner = CWRStar(network="linear")
    learner.network = nn.Sequential(nn.Flatten(), nn.Linear(2, 3, bias=False))
    learner.before_round(plain_round([1, 2]))
    outputs = torch.tensor([[5.0, 1.0, 0.0]])
    loss = learner.loss(Batch(torch.zeros(1, 2), torch.tensor([1]), outputs, outputs))
    assert loss.item() == pytest.approx(np.log(1 + np.exp(-1.0)), rel=1e-6)


@pytest.mark.parametrize("network", ["mlp", "resnet"])
def test_cwr_star_freezes_the_body_and_its_normalisation_after_the_first_round(network):
    exam = pictures()
    learner = CWRStar(network=network, widths=(4, 8), **SHORT)
    teach(learner, exam, 1, seed=0)
    body = {k: v.clone() for k, v in learner.network[:-1].state_dict().items()}
    teach(learner, exam, 2, seed=0)
    assert all(torch.equal(v, body[k]) for k, v in learner.network[:-1].state_dict().items())
    assert not torch.equal(learner.network[-1].weight[2:], torch.zeros_like(learner.network[-1].weight[2:]))


def test_a_linear_probe_on_features_is_logistic_regression():
    exam = digits()
    learner = LinearProbe(**SHORT)
    examine(learner, exam, seed=0, rounds=2)
    assert [tuple(p.shape) for p in learner.network.parameters()] == [(10, 64), (10,)]
    plain = Finetune(network="linear", **SHORT)
    examine(plain, exam, seed=0, rounds=2)
    assert torch.equal(weights(learner), weights(plain))


def test_a_linear_probe_starts_from_what_another_learner_has_saved_and_leaves_it(tmp_path):
    exam = pictures()
    source = Finetune(network="resnet", widths=(4, 8), **SHORT)
    teach(source, exam, 1, seed=0)
    path = source.save(tmp_path / "source")
    body = {k: v.clone() for k, v in source.network[:-1].state_dict().items()}
    learner = LinearProbe(network="resnet", widths=(4, 8), **SHORT)
    learner.load(path)
    for k in (1, 2):
        teach(learner, exam, k, seed=3)
    assert all(torch.equal(v, body[k]) for k, v in learner.backbone.state_dict().items())
    x = Data(exam.tests[0][0])
    context = {"num_classes": 4, "seed": 3}
    np.testing.assert_allclose(learner.features(x, **context), source.features(x, **context), atol=1e-5)


def test_a_linear_probe_takes_the_weights_of_a_torchvision_network(tmp_path):
    from torchvision.models import resnet18

    torch.save(resnet18(num_classes=5).state_dict(), tmp_path / "resnet18.pth")
    learner = LinearProbe(network="resnet18", **SHORT)
    learner.load(tmp_path / "resnet18.pth")
    exam = pictures(samples=8, size=32)
    teach(learner, exam, 1, seed=0)
    expected = torch.load(tmp_path / "resnet18.pth")["layer3.1.conv2.weight"]
    assert torch.equal(learner.backbone.state_dict()["6.1.conv2.weight"], expected)


def test_weights_of_another_network_are_refused(tmp_path):
    exam = pictures()
    source = Finetune(network="mlp", **SHORT)
    teach(source, exam, 1, seed=0)
    learner = LinearProbe(network="resnet", widths=(4, 8), **SHORT)
    learner.load(source.save(tmp_path / "source"))
    with pytest.raises(PluginError, match="does not fit network 'resnet'"):
        teach(learner, exam, 1, seed=0)
