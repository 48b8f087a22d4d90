"""Options of the learner that are not a method: schedules, augmentation, features, probes, networks."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import TorchLearner, body_and_head, linear, mlp
from ianvs.authoring.augmentation import crop_flip
from ianvs.authoring.networks import TORCHVISION, build_network
from ianvs.authoring.pretraining import PROBE_WEIGHT_DECAY, denoising_loss, fit_probe, new_decoder
from ianvs.authoring.round_data import TaskMasks
from tests.errors import errors_of
from tests.unit.authoring.test_learner import CONTEXT, Vectors, flat, taught


def generator(seed):
    return torch.Generator().manual_seed(seed)


# Learning rate.


def plain_steps(rates, network, data):
    """Full-batch gradient descent, a rate per epoch, in plain PyTorch. One batch: the order does not matter."""
    x, y = data.tensors()
    for rate in rates:
        network.zero_grad()
        cross_entropy(network(x), y).backward()
        with torch.no_grad():
            for p in network.parameters():
                p -= rate * p.grad
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_the_learning_rate_falls_every_so_many_epochs_and_starts_again_in_each_round():
    options = {"hidden": (), "momentum": 0.0, "batch_size": 40, "learning_rate": 0.2, "epochs": 5}
    learner = TorchLearner(step_every=2, step_gamma=0.5, **options)
    learner.predict(Vectors(labelled=False), **CONTEXT)  # the first weights
    network = mlp((2,), 2, hidden=())
    network.load_state_dict(learner.network.state_dict())
    rates = [0.2, 0.2, 0.1, 0.1, 0.05]
    for k in (1, 2):
        taught(learner, round=k)
        torch.testing.assert_close(flat(learner), plain_steps(rates, network, Vectors()), rtol=1e-4, atol=1e-5)


def test_without_a_schedule_the_rate_stays():
    a, b = (taught(TorchLearner(epochs=4, **more)) for more in ({}, {"step_every": 4}))
    assert torch.equal(flat(a), flat(b))


# Augmentation.


def test_a_crop_is_a_window_of_the_padded_picture_or_its_mirror():
    x = torch.arange(2 * 3 * 8 * 9).float().view(2, 3, 8, 9)
    padded = nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
    seen = set()
    for seed in range(60):
        for picture, whole in zip(crop_flip(x, generator(seed)), padded, strict=True):
            windows = {(i, j, f) for i in range(3) for j in range(3) for f in (0, 1)}
            found = [
                (i, j, f)
                for i, j, f in windows
                if torch.equal(
                    picture, whole[:, i : i + 8, j : j + 9].flip(-1) if f else whole[:, i : i + 8, j : j + 9]
                )
            ]
            assert len(found) == 1
            seen |= set(found)
    assert len(seen) == 18  # all of them come up


def test_augmentation_draws_from_a_stream_of_its_own_and_changes_training_only():
    data = Vectors(dtype=np.uint8, shape=(3, 8, 8))
    options = {"network": "resnet", "widths": (4,), "epochs": 1}
    with_it, again = (taught(TorchLearner(augment="crop_flip", **options), data) for _ in range(2))
    assert torch.equal(flat(with_it), flat(again))
    assert not torch.equal(flat(with_it), flat(taught(TorchLearner(**options), data)))
    test = Vectors(dtype=np.uint8, shape=(3, 8, 8), labelled=False)
    np.testing.assert_array_equal(with_it.predict(test, **CONTEXT), with_it.predict(test, **CONTEXT))


def test_what_can_not_be_augmented_or_is_not_known_is_refused():
    assert errors_of(taught, TorchLearner(augment="crop_flip")) == [("refused-arguments", "")]
    assert errors_of(TorchLearner, augment="crop_flop") == [("invalid-choice", "")]
    assert errors_of(TorchLearner, adaptation="prob") == [("invalid-choice", "")]


# Features and probes.


def test_features_are_what_the_head_is_given():
    learner = taught(TorchLearner(epochs=1, hidden=(8, 5)))
    features = learner.features(Vectors(n=1500, labelled=False), **CONTEXT)
    assert features.shape == (1500, 5)
    assert features.dtype == np.float32
    logits = learner.network[-1](torch.from_numpy(features))
    np.testing.assert_array_equal(logits.argmax(1), learner.predict(Vectors(n=1500, labelled=False), **CONTEXT))


def test_a_network_whose_features_are_not_known_says_what_to_do():
    class Odd(TorchLearner):
        def build_network(self, input_shape, num_classes):
            return nn.Sequential(linear(input_shape, num_classes), nn.Identity())

    assert errors_of(lambda: taught(Odd(epochs=1)).features(Vectors(labelled=False), **CONTEXT)) == [
        ("refused-arguments", "")
    ]


def test_a_probe_is_the_optimum_of_logistic_regression():
    sklearn = pytest.importorskip("sklearn.linear_model")
    torch.manual_seed(0)
    x, y = torch.randn(120, 4) * torch.tensor([1.0, 3.0, 0.2, 1.0]) + 1, torch.randint(0, 3, (120,))
    x[:, 0] += y
    head = nn.Linear(4, 3)
    fit_probe(head, x, y)
    standard = ((x - x.mean(0)) / x.std(0)).numpy()
    theirs = sklearn.LogisticRegression(C=1 / (PROBE_WEIGHT_DECAY * len(y)), max_iter=1000, tol=1e-8).fit(standard, y)
    with torch.no_grad():
        ours = head(x).softmax(1).numpy()
    np.testing.assert_allclose(ours, theirs.predict_proba(standard), atol=2e-3)


def test_a_probe_is_the_same_whatever_the_head_was_before_and_uses_only_what_the_mask_allows():
    torch.manual_seed(0)
    x, y = torch.randn(40, 3), torch.arange(40) % 2
    heads = [nn.Linear(3, 4), nn.Linear(3, 4)]
    mask = torch.tensor([0.0, 0.0, -torch.inf, -torch.inf])
    for head in heads:
        fit_probe(head, x, y, mask)
    assert torch.equal(heads[0].weight, heads[1].weight)
    assert torch.equal(heads[0].weight[2:], torch.zeros(2, 3))


def test_a_probe_of_a_head_without_bias_leaves_it_without():
    head = nn.Linear(3, 2, bias=False)
    x = torch.randn(40, 3) + 2
    fit_probe(head, x, (x[:, 0] > x[:, 1]).long())
    assert ((head(x).argmax(1) == 1) == (x[:, 0] > x[:, 1])).float().mean() > 0.95


def test_the_error_of_a_denoising_autoencoder_is_in_units_of_the_variance():
    network = mlp((1, 4, 4), 3, hidden=(6,))
    decoder = new_decoder(network, (1, 4, 4))
    assert (decoder.in_features, decoder.out_features) == (6, 16)
    x = torch.randn(50, 1, 4, 4)
    with torch.no_grad():
        decoder.weight.zero_()
        decoder.bias.fill_(x.mean())
    assert denoising_loss(network, decoder, x).item() == pytest.approx(1.0, rel=0.01)
    with torch.no_grad():
        decoder.bias.fill_(100 * x.mean())
    assert denoising_loss(network, decoder, 100 * x).item() == pytest.approx(1.0, rel=0.01)


# Networks and masks.


def test_networks_of_torchvision_come_as_body_and_head_and_say_the_same():
    from torchvision.models import resnet18

    torch.manual_seed(0)
    ours = build_network("resnet18", (3, 32, 32), 7).eval()
    theirs = resnet18(num_classes=7).eval()
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values(), strict=True)))
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x))
    body, head = body_and_head(ours)
    assert body(x).shape == (2, 512)
    assert head is ours[-1]
    assert build_network("resnet18", (1, 32, 32), 7)(torch.zeros(2, 1, 32, 32)).shape == (2, 7)
    assert "resnet50" in TORCHVISION


def test_a_linear_network_is_one_layer():
    assert [tuple(p.shape) for p in linear((1, 4, 4), 3).parameters()] == [(3, 16), (3,)]


def test_task_masks_hold_each_class_to_the_task_that_taught_it():
    masks = TaskMasks()
    cpu = torch.device("cpu")
    masks.teach((0, 2), 5, cpu)
    rows = masks.teach((1, 3), 5, cpu)
    allowed = [row.isfinite().nonzero()[:, 0].tolist() for row in rows]
    assert allowed == [[0, 2], [1, 3], [0, 2], [1, 3], [0, 1, 2, 3, 4], [1, 3]]
    assert TaskMasks(masks.allowed).teach((4,), 5, cpu)[2].tolist() == rows[2].tolist()


def test_the_class_that_trains_the_same_network_plainly_is_named():
    module, name = TorchLearner.reference.split(":")
    assert getattr(__import__(module, fromlist=[name]), name) is TorchLearner
