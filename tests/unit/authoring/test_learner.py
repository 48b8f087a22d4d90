"""The loop that TorchLearner owns: what it hands to a method, reports, and leaves alone."""

import numpy as np
import pytest
import torch
from torch import nn

from ianvs.authoring import TorchLearner
from ianvs.authoring.training_loop import loss_stagnated
from tests.errors import errors_of


class Vectors:
    """Two classes of points in the plane."""

    def __init__(self, n=40, labelled=True, dtype=np.float32, shape=(2,)):
        draw = np.random.default_rng(0)
        self.y = np.arange(n) % 2
        x = draw.normal(size=(n, *shape)) + self.y.reshape(-1, *[1] * len(shape)) * 3
        self.x = (x * 20 + 100).clip(0, 255).astype(dtype) if dtype == np.uint8 else x.astype(dtype)
        self.labelled = labelled

    def __len__(self):
        return len(self.x)

    def tensors(self, device="cpu"):
        x = torch.from_numpy(self.x).to(device)
        return (x, torch.from_numpy(self.y).to(device)) if self.labelled else x


CONTEXT = {"num_classes": 2, "classes_seen": (0, 1), "seed": 3}


def taught(learner, data=None, **changes):
    learner.train(data or Vectors(), None, **{**CONTEXT, **changes})
    return learner


def flat(learner):
    return torch.cat([w.flatten().float() for w in learner.network.state_dict().values()])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": "adam", "learning_rate": 0.01},
        {"hidden": 16, "momentum": 0.0},
        {"hidden": [8, 8]},
        {"amp": True},
    ],
)
def test_it_learns(options):
    learner = taught(TorchLearner(**options))
    answers = learner.predict(Vectors(labelled=False), **CONTEXT)
    assert answers.dtype == np.int64
    assert (answers == Vectors().y).mean() > 0.9


def test_it_learns_pictures_of_bytes_on_both_networks():
    data = Vectors(dtype=np.uint8, shape=(3, 8, 8))
    for network in ("mlp", "resnet"):
        learner = taught(TorchLearner(network=network, widths=(4, 8), learning_rate=0.01), data)
        answers = learner.predict(Vectors(labelled=False, dtype=np.uint8, shape=(3, 8, 8)), **CONTEXT)
        assert (answers == data.y).mean() > 0.9


def test_bytes_become_numbers_from_minus_one_to_one():
    prepared = TorchLearner().prepare(torch.tensor([[0, 255]], dtype=torch.uint8))
    assert prepared.tolist() == [[-1.0, 1.0]]


def test_progress_is_reported_once_per_epoch_and_ends_at_one():
    shares = []
    taught(TorchLearner(epochs=4), progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_hooks_come_in_order_and_every_sample_once_per_epoch():
    class Observed(TorchLearner):
        def __init__(self, **training):
            super().__init__(**training)
            self.log = []

        def before_round(self, data):
            self.log.append(("before", len(data), data.round, data.classes_seen, data.mask.tolist()))

        def loss(self, batch):
            assert batch.x.shape[0] == batch.y.shape[0] == batch.logits.shape[0]
            assert bool((batch.logits[:, 2] == -torch.inf).all())
            self.log.append(len(batch.y))
            return super().loss(batch)

        def after_round(self, data):
            self.log.append("after")

    learner = taught(Observed(epochs=2, batch_size=16), num_classes=3, round=4)
    before = ("before", 40, 4, (0, 1), [0.0, 0.0, -torch.inf])
    assert learner.log == [before, 16, 16, 8, 16, 16, 8, "after"]


def test_the_first_weights_depend_on_the_seed_and_not_on_what_torch_drew_before():
    torch.manual_seed(0)
    a = taught(TorchLearner(epochs=1))
    torch.rand(7)
    b = taught(TorchLearner(epochs=1))
    assert torch.equal(flat(a), flat(b))
    assert not torch.equal(flat(a), flat(taught(TorchLearner(epochs=1), seed=4)))


def test_training_predicting_and_loading_leave_torchs_own_generator_alone(tmp_path):
    state = torch.get_rng_state()
    learner = taught(TorchLearner(epochs=1))
    learner.predict(Vectors(labelled=False), **CONTEXT)
    learner.load(learner.save(tmp_path / "model"))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["detection", "multilabel", "regression", "segmentation", "text"])
def test_labels_that_are_no_classes_are_refused_where_answers_are_classes(kind):
    facts = {"kind": kind, "shape": (8, 8, 3), "num_classes": 4}

    class Own(TorchLearner):
        def predict(self, data, **context):
            return []

    assert errors_of(lambda: TorchLearner().check_exam(**facts)) == [("refused-arguments", "")]
    Own().check_exam(**facts)
    TorchLearner().check_exam(**facts | {"kind": "an author's own"})


class Dropping(TorchLearner):
    """A network of its own, with randomness of its own."""

    def build_network(self, input_shape, num_classes):
        return nn.Sequential(nn.Linear(*input_shape, 16), nn.Dropout(0.5), nn.Linear(16, num_classes))


def test_a_network_with_dropout_goes_on_bit_for_bit_after_loading(tmp_path):
    straight, cut = taught(Dropping(epochs=2)), taught(Dropping(epochs=2))
    cut.save(tmp_path / "model")
    resumed = Dropping(epochs=2)
    resumed.load(tmp_path / "model.pt")
    torch.rand(3)
    for learner in (straight, resumed):
        taught(learner, round=2)
    assert torch.equal(flat(straight), flat(resumed))


def test_predicting_does_not_change_the_model():
    learner = taught(TorchLearner(network="resnet", widths=(4,), epochs=1), Vectors(shape=(1, 4, 4)))
    before = flat(learner)
    learner.predict(Vectors(labelled=False, shape=(1, 4, 4)), **CONTEXT)
    assert torch.equal(before, flat(learner))


def test_many_samples_are_predicted_in_parts_that_do_not_show():
    learner = taught(TorchLearner(epochs=1))
    answers = learner.predict(Vectors(n=2500, labelled=False), **CONTEXT)
    assert answers.shape == (2500,)
    with torch.no_grad():
        expected = learner.network(Vectors(n=2500, labelled=False).tensors()).argmax(1).numpy()
    np.testing.assert_array_equal(answers, expected)


def test_what_save_writes_is_where_it_says_and_one_file(tmp_path):
    written = taught(TorchLearner(epochs=1)).save(tmp_path / "round-1")
    assert written == tmp_path / "round-1.pt"
    assert list(tmp_path.iterdir()) == [written]


def test_weights_that_run_away_in_a_stream_are_an_error_where_they_are_saved(tmp_path):
    learner = TorchLearner(learning_rate=1e20, epochs=1, batch_size=40)
    for chunk in range(1, 5):
        taught(learner, round=chunk)  # a step each
    assert errors_of(learner.save, tmp_path / "model") == [("refused-arguments", "")]
    taught(learner := TorchLearner(epochs=1, batch_size=40), round=1).save(tmp_path / "model")
    assert (tmp_path / "model.pt").exists()


def test_weights_that_run_away_are_an_error_that_says_what_to_do():
    assert errors_of(taught, TorchLearner(learning_rate=1e6, epochs=20, hidden=(64, 64)), round=2) == [
        ("refused-arguments", "")
    ]


def pictures(n):
    """Pictures whose maps are 1x1 in the last layers of `NORMALISED`."""
    return Vectors(n, dtype=np.uint8, shape=(3, 4, 4))


NORMALISED = {"network": "resnet", "widths": [8, 8, 8], "epochs": 2, "batch_size": 4}


def same(one, other):
    """Whether two networks have the same weights and statistics, bit for bit."""
    return torch.equal(flat(one), flat(other))


def test_a_remainder_of_one_sample_takes_no_step_where_its_layers_need_several():
    steps = []

    class Counted(TorchLearner):
        def after_step(self, x, y, epoch, step):
            steps.append(len(y))

        def adjust_gradients(self, data):
            steps.append("gradient")

    taught(Counted(**NORMALISED), pictures(9))
    assert steps == ["gradient", 4, "gradient", 4, 1] * 2  # what a memory takes in stays complete


@pytest.mark.parametrize(
    "options", [{"widths": [8]}, {"network": "mlp", "batch_norm": False}, {"network": "linear"}], ids=str
)
def test_a_remainder_of_one_sample_is_learned_where_it_does_no_harm(options):
    gradients = []

    class Counted(TorchLearner):
        def adjust_gradients(self, data):
            gradients.append(1)

    taught(Counted(**NORMALISED | options), pictures(9))
    assert len(gradients) == 6


@pytest.mark.parametrize("options", [{}, {"network": "mlp", "batch_norm": True}], ids=str)
def test_a_learner_that_only_ever_gets_single_samples_learns_by_running_statistics(options):
    learner = TorchLearner(**NORMALISED | options | {"batch_size": 1})
    before = flat(taught(learner, pictures(1)))
    after = flat(taught(learner, pictures(1), round=2))
    assert not torch.equal(before, after)
    assert after.isfinite().all()
    assert all(layer.training for layer in learner.network.modules())


def test_a_single_sample_after_larger_batches_changes_no_weight():
    learner = taught(TorchLearner(**NORMALISED | {"network": "mlp", "batch_norm": True}), pictures(8))
    before = flat(learner)
    assert torch.equal(flat(taught(learner, pictures(1), round=2)), before)


@pytest.mark.parametrize("n", [8, 9])
def test_what_is_saved_goes_on_bit_for_bit_with_remainders_of_one(tmp_path, n):
    learner = taught(TorchLearner(**NORMALISED), pictures(n))
    learner.save(tmp_path / "model")
    other = TorchLearner(**NORMALISED)
    other.load(tmp_path / "model")
    assert same(taught(learner, pictures(1), round=2), taught(other, pictures(1), round=2))
    assert same(taught(learner, pictures(n), round=3), taught(other, pictures(n), round=3))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_networks_of_torchvision_train_with_a_remainder_of_one(name):
    learner = taught(TorchLearner(network=name, epochs=1, batch_size=2), pictures(3))
    assert flat(learner).isfinite().all()


def test_a_loss_that_does_not_fall_is_said_once_of_the_learner():
    class Offset(TorchLearner):
        def loss(self, batch):
            return super().loss(batch) + 1.0

    assert not taught(TorchLearner(batch_size=8)).remark
    learner = taught(Offset(learning_rate=0.0, epochs=3, batch_size=40))
    remark = learner.remark
    assert remark
    assert taught(learner).remark == remark


@pytest.mark.parametrize(
    ("losses", "noted"),
    [([8.0, 5.0, 8.5], True), ([4.7, 3.0, 1.6], False), ([0.01, 0.02, 0.012], False), ([2.0, 3.0], False), ([], False)],
)
def test_a_loss_did_not_fall_if_it_ends_where_it_began_and_is_large(losses, noted):
    assert loss_stagnated([torch.tensor(value) for value in losses]) is noted
