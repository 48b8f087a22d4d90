"""What papers set: rates over a round, optimisers, clipping, first weights, masks, memories filled in a round."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import ReplayLearner, ReservoirMemory, TorchLearner, mlp
from ianvs.authoring.networks import initialize
from ianvs.testalgorithms.der.basemodel import DER
from ianvs.testalgorithms.lwf.basemodel import LwF
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.errors import errors_of
from tests.unit.authoring.test_learner import CONTEXT, Vectors, flat, taught
from tests.unit.authoring.test_memory import numbered

PLAIN = {"hidden": (), "momentum": 0.0, "batch_size": 40, "learning_rate": 0.2}  # one batch: the order does not matter


def oracle(learner, steps, make, schedule=None, clip=None):
    """`steps` full-batch steps of plain torch from the learner's first weights: the weights afterwards."""
    learner.predict(Vectors(labelled=False), **CONTEXT)
    network = mlp((2,), 2, hidden=())
    network.load_state_dict(learner.network.state_dict())
    optimizer = make(network.parameters())
    rates = schedule(optimizer) if schedule else None
    x, y = Vectors().tensors()
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(network(x), y).backward()
        if clip:
            clip(network.parameters())
        optimizer.step()
        if rates:
            rates.step()
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.2)


# Rates over a round.


def test_the_cosine_is_torchs():
    learner = TorchLearner(**PLAIN, epochs=6, decay="cosine")
    expected = oracle(learner, 6, sgd, lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 6))
    close(flat(taught(learner)), expected)


def test_milestones_are_torchs():
    learner = TorchLearner(**PLAIN, epochs=6, milestones=[2, 5], step_gamma=0.2)
    expected = oracle(learner, 6, sgd, lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 5], 0.2))
    close(flat(taught(learner)), expected)


def test_a_warm_up_rises_evenly_and_then_the_rate_stays():
    learner = TorchLearner(**PLAIN, epochs=10, warm_up=0.4)
    shares = [0.2, 0.4, 0.6, 0.8, *[1.0] * 6]
    expected = oracle(learner, 10, sgd, lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: shares[min(k, 9)]))
    close(flat(taught(learner)), expected)


@pytest.mark.parametrize(("passes", "steps"), [(None, 7), (1, 4), (2, 7)])
def test_iterations_count_steps_and_passes_still_hold(passes, steps):
    class Counting(TorchLearner):
        def after_step(self, x, y, epoch, step):
            self.steps.append((epoch, step))

    learner = Counting(iterations=7, batch_size=10, hidden=())
    learner.steps = []
    taught(learner, passes=passes)  # 40 samples: 4 steps in a pass
    assert learner.steps == [(k // 4, k % 4) for k in range(steps)]


@pytest.mark.parametrize(
    ("learner", "options", "code"),
    [
        (TorchLearner, {"decay": "cosin"}, "invalid-choice"),
        (TorchLearner, {"warm_up": 3}, "out-of-range"),
        (TorchLearner, {"iterations": -1}, "out-of-range"),
        (ReplayLearner, {"fill": "in_round"}, "invalid-choice"),
        (ReplayLearner, {"selection": "balance"}, "invalid-choice"),
        (ReplayLearner, {"fill": "during_round", "selection": "per_round"}, "conflicting-keys"),
        (ReplayLearner, {"replay_batch": 0}, "out-of-range"),
    ],
)
def test_settings_that_make_no_sense_are_refused(learner, options, code):
    assert errors_of(learner, **options) == [(code, "")]


def test_an_initialization_that_is_not_known_is_refused():
    assert errors_of(taught, TorchLearner(initialization="xavir")) == [("invalid-choice", "")]


# Optimisers.


def test_adamw_is_torchs():
    learner = TorchLearner(**{**PLAIN, "learning_rate": 0.05}, epochs=5, optimizer="adamw", weight_decay=0.3)
    expected = oracle(learner, 5, lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.3))
    close(flat(taught(learner)), expected)


@pytest.mark.parametrize("saved", [False, True])
def test_a_kept_optimizer_goes_on_where_it_was(saved, tmp_path):
    options = {**PLAIN, "epochs": 3, "optimizer": "adam", "learning_rate": 0.05}
    learner = TorchLearner(**options, keep_optimizer=True)
    expected = oracle(learner, 6, lambda p: torch.optim.Adam(p, lr=0.05))
    taught(learner, round=1)
    if saved:
        learner.save(tmp_path / "model")
        learner = TorchLearner(**options, keep_optimizer=True)
        learner.load(tmp_path / "model")
    close(flat(taught(learner, round=2)), expected)
    anew = taught(taught(TorchLearner(**options), round=1), round=2)
    assert not torch.allclose(flat(anew), expected, atol=1e-3)


def test_a_gradient_is_shortened_or_its_numbers_are_bounded():
    def shorten(p):
        nn.utils.clip_grad_norm_(p, 0.05)

    def bound(p):
        nn.utils.clip_grad_value_(p, 0.01)

    for option, clip in [({"clip_norm": 0.05}, shorten), ({"clip_value": 0.01}, bound)]:
        learner = TorchLearner(**PLAIN, epochs=3, **option)
        close(flat(taught(learner)), oracle(TorchLearner(**PLAIN), 3, sgd, clip=clip))


def test_the_head_has_a_rate_of_its_own():
    learner = TorchLearner(hidden=8, momentum=0.0, epochs=2, learning_rate=0.0, head_learning_rate=0.1)
    learner.predict(Vectors(labelled=False), **CONTEXT)
    before = [p.clone() for p in learner.network.parameters()]
    taught(learner)
    moved = [not torch.equal(a, b) for a, b in zip(before, learner.network.parameters(), strict=True)]
    assert moved == [False, False, True, True]


# Networks.


def test_xavier_has_its_bound_and_variance_and_biases_of_0():
    network = mlp((300,), 100, hidden=(200,))
    initialize(network, "xavier")
    first = network[1]
    assert first.weight.abs().max() <= (6 / 500) ** 0.5
    assert first.weight.detach().var().item() == pytest.approx(2 / 500, rel=0.03)
    assert not first.bias.any()
    initialize(network, "kaiming")
    assert first.weight.detach().var().item() == pytest.approx(2 / 300, rel=0.03)


def test_dropout_is_behind_each_hidden_layer_and_only_in_training():
    learner = taught(TorchLearner(hidden=[8, 8], dropout=0.5, epochs=1))
    assert sum(isinstance(layer, nn.Dropout) for layer in learner.network) == 2
    asked = [learner.probabilities(Vectors(labelled=False), **CONTEXT) for _ in range(2)]
    assert np.array_equal(*asked)


def test_outputs_of_classes_to_come_are_pushed_down_only_where_nothing_masks_them():
    context = {"num_classes": 4, "classes_seen": (0, 1), "seed": 3}
    for mask_unseen in (True, False):
        learner = TorchLearner(**PLAIN, epochs=20, mask_unseen=mask_unseen)
        learner.predict(Vectors(labelled=False), **context)
        before = learner.network[-1].bias.detach().clone()
        learner.train(Vectors(), None, **context)
        moved = (learner.network[-1].bias - before)[2:]
        assert bool((moved < -0.1).all()) if not mask_unseen else not moved.any()


# Hooks.


def test_after_step_brings_every_stored_sample_once_in_a_pass():
    class Seeing(TorchLearner):
        def after_step(self, x, y, epoch, step):
            assert x.dtype == torch.uint8  # before `prepare`
            assert len(x) == len(y)
            assert self.data.round == 1
            self.seen.append((epoch, x, y))

    learner = Seeing(network="resnet", widths=(4,), epochs=2, batch_size=16, augment="crop_flip")
    learner.seen = []
    data = Vectors(dtype=np.uint8, shape=(3, 8, 8))
    taught(learner, data)
    for epoch in range(2):
        parts = [(x, y) for at, x, y in learner.seen if at == epoch]
        brought = {(*x.flatten().tolist(), y.item()) for xs, ys in parts for x, y in zip(xs, ys, strict=True)}
        assert brought == {(*x.flatten().tolist(), int(y)) for x, y in zip(data.x, data.y, strict=True)}
    assert learner.data is None


def test_a_loss_may_ask_for_features_of_stored_samples():
    class Asking(TorchLearner):
        def loss(self, batch):
            x = self.inputs(self.data.x[:5])
            features = self.representation(x)
            assert torch.equal(self.network[-1](features), self.logits(x))
            return super().loss(batch) + 0.0 * features.sum()

    close(flat(taught(Asking(epochs=2))), flat(taught(TorchLearner(epochs=2))))


# Memories.


def test_in_place_the_same_samples_stay_in_other_places():
    plain, in_place = ReservoirMemory(7), ReservoirMemory(7, in_place=True)
    for memory in (plain, in_place):
        draws = torch.Generator().manual_seed(0)
        for start in range(0, 60, 4):
            memory.add(*numbered(start, start + 4), draws, torch.arange(start, start + 4) * 3)
    assert sorted(in_place.y.tolist()) == plain.y.tolist()
    assert torch.equal(in_place.x, torch.stack([in_place.y, 10 * in_place.y], 1).float())
    assert torch.equal(in_place.columns[2], in_place.y * 3)


def test_a_memory_filled_during_a_round_is_a_uniform_subset_of_the_first_pass():
    counts = np.zeros(40)
    for seed in range(60):
        data = Vectors()
        data.x[:, 0] = np.arange(40)
        learner = taught(Replay(hidden=(), epochs=2, batch_size=5, capacity=8, fill="during_round"), data, seed=seed)
        assert len(learner.memory) == 8
        assert learner.memory.seen == 40
        counts[learner.memory.x[:, 0].int().numpy()] += 1
    assert counts.sum() == 60 * 8
    assert chisquare(counts).pvalue > 1e-3


def test_samples_of_the_round_itself_come_back_only_if_the_memory_is_filled_during_it():
    sizes = {}
    for fill in ("after_round", "during_round"):

        class Counting(Replay):
            def loss(self, batch, fill=fill):
                sizes.setdefault(fill, []).append(len(batch.y))
                return super().loss(batch)

        taught(Counting(hidden=(), epochs=1, batch_size=10, replay_batch=4, fill=fill))
    assert sizes == {"after_round": [10, 10, 10, 10], "during_round": [10, 14, 14, 14]}


@pytest.mark.parametrize("fill", ["after_round", "during_round"])
def test_der_stores_what_was_said_when_it_stored(fill):
    said = {}

    class Watching(DER):
        def loss(self, batch):
            for x, z in zip(batch.x, batch.outputs.detach(), strict=True):
                said[tuple(x.tolist())] = z
            return super().loss(batch)

    learner = taught(Watching(hidden=4, epochs=1, batch_size=10, capacity=12, fill=fill))
    x, _, z = learner.memory.columns
    at_the_step = torch.stack([said[tuple(row.tolist())] for row in x])
    afterwards = learner.logits(learner.inputs(x)).detach()
    close(z, at_the_step if fill == "during_round" else afterwards)
    assert not torch.allclose(at_the_step, afterwards, atol=1e-3)


def test_withheld_labels_are_not_kept():
    data = Vectors()
    data.y = np.where(np.arange(40) < 30, -1, data.y)
    for fill in ("after_round", "during_round"):
        learner = taught(DER(hidden=4, epochs=1, batch_size=10, capacity=100, fill=fill), data)
        assert len(learner.memory) == 10
        assert bool((learner.memory.y >= 0).all())


# LwF.


def test_the_head_that_lwf_trains_first_takes_of_the_passes_that_the_exam_allows():
    class Stopping(LwF):
        def loss(self, batch):
            return batch.logits.new_zeros(())  # nothing but the head's own passes changes anything

    learner, data = Stopping(hidden=8, head_epochs=2, epochs=3, learning_rate=0.1), Vectors()
    learner.train(data, None, round=1, classes_seen=(0, 1), num_classes=4, seed=0)
    data.y = data.y + 2
    for passes in (1, 2, None):
        before = learner.network[-1].weight.detach().clone()
        learner.train(data, None, round=2, classes_seen=(0, 1, 2, 3), num_classes=4, seed=0, passes=passes)
        assert torch.equal(before, learner.network[-1].weight) == (passes == 1)  # the one pass is the round's


# Replay.


def test_replay_weighs_rounds_alike():
    class Watching(Replay):
        def loss(self, batch):
            loss = super().loss(batch)
            each = cross_entropy(batch.logits, batch.y, reduction="none")
            self.told.append(
                (loss.item(), each[:10].mean().item(), each[10:].mean().item() if len(each) > 10 else None)
            )
            return loss

    learner = Watching(hidden=4, epochs=1, batch_size=10, replay_batch=5, weighting="rounds")
    for k in (1, 2, 3):
        learner.told = []
        taught(learner, round=k)
        for loss, new, old in learner.told:
            assert loss == pytest.approx(new if k == 1 else new / k + (1 - 1 / k) * old, rel=1e-5)


def test_two_blocks_of_each_width_are_the_resnet_18_of_cifar():
    from ianvs.authoring.networks import build_network

    with torch.device("meta"):
        network = build_network("resnet", (3, 32, 32), 10, widths=(64, 128, 256, 512), blocks=2)
    assert sum(p.numel() for p in network.parameters()) == 11_173_962  # as in He et al.'s with a 3x3 stem
    outputs = network[:-3](torch.empty(2, 3, 32, 32, device="meta"))
    assert outputs.shape == (2, 512, 4, 4)


def test_a_crop_without_a_mirror():
    from ianvs.authoring.augmentation import crop

    x = torch.arange(64.0).view(1, 1, 8, 8).expand(50, 1, 8, 8)
    cropped = crop(x, torch.Generator().manual_seed(0))
    assert bool((cropped.diff(dim=3) >= 0).all())  # never mirrored
    assert len({tuple(picture.flatten().tolist()) for picture in cropped}) == 9


def test_batch_norm_takes_the_place_of_biases():
    learner = taught(TorchLearner(hidden=[8, 8], batch_norm=True, epochs=2))
    kinds = [type(layer) for layer in learner.network]
    assert kinds == [nn.Flatten, *[nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2, nn.Linear]
    assert learner.network[1].bias is None
