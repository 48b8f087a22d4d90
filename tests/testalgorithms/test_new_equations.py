"""What sets the later methods apart, each against its equations written out a second time or worked by hand."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import RoundData, mlp
from ianvs.errors import PluginError
from ianvs.testalgorithms.agem.basemodel import AGEM
from ianvs.testalgorithms.biased_reservoir.basemodel import BiasedReservoir
from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from ianvs.testalgorithms.gem.basemodel import GEM
from ianvs.testalgorithms.linear_probe.basemodel import LinearProbe
from tests.testalgorithms.exam_of_arrays import Data, digits, examine, pictures, teach

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}


def weights(learner):
    return torch.cat([w.detach().flatten() for w in learner.network.state_dict().values()])


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
