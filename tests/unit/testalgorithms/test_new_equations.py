"""When GDumb learns, and where a linear probe takes its features from."""

import numpy as np
import torch

from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from ianvs.testalgorithms.linear_probe.basemodel import LinearProbe
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_arrays import Data, digits, examine, pictures, teach

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}


def weights(learner):
    return torch.cat([w.detach().flatten() for w in learner.network.state_dict().values()])


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
    assert errors_of(teach, learner, exam, 1, seed=0) == [("refused-arguments", "")]
