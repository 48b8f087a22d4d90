"""MiB and PLOP against statements of their equations, pixel by pixel."""

import math

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.class_segmentation.dense_network import build
from ianvs.testalgorithms.class_segmentation.finetune.basemodel import DenseFinetune
from ianvs.testalgorithms.class_segmentation.mib.basemodel import MiB, unbiased_cross_entropy, unbiased_distillation
from ianvs.testalgorithms.class_segmentation.plop.basemodel import PLOP, local_pod, medians
from tests.errors import errors_of

OLD, NEW, BACKGROUND = [0, 1, 3], [2, 4], 0


def logits(seed=0, classes=6):
    return torch.randn(2, classes, 3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labels():
    y = torch.tensor([0, 2, 4, 255, 1, 3])[torch.arange(24) % 6].view(2, 3, 4)
    return y.long()


def probability(z, c):
    """Of one pixel: softmax over the classes taught."""
    return math.exp(z[c]) / sum(math.exp(z[k]) for k in OLD + NEW)


def pixels(z):
    return z.permute(0, 2, 3, 1).reshape(-1, z.shape[1]).tolist()


def test_unbiased_cross_entropy_takes_old_classes_for_the_background():
    z, y = logits(), labels()
    losses = []
    for row, c in zip(pixels(z), y.flatten().tolist(), strict=True):
        if c != 255:
            p = sum(probability(row, k) for k in OLD) if c in OLD else probability(row, c)
            losses.append(-math.log(p))
    assert float(unbiased_cross_entropy(z, y, torch.tensor(OLD), torch.tensor(NEW), BACKGROUND)) == pytest.approx(
        np.mean(losses)
    )


def test_unbiased_distillation_takes_new_classes_for_the_old_background():
    z, told = logits(1), logits(2)
    losses = []
    for row, before in zip(pixels(z), pixels(told), strict=True):
        total = sum(math.exp(before[k]) for k in OLD)
        for c in OLD:
            p = probability(row, c) + (sum(probability(row, k) for k in NEW) if c == BACKGROUND else 0)
            losses.append(-math.exp(before[c]) / total * math.log(p))
    found = unbiased_distillation(z, told, torch.tensor(OLD), torch.tensor(NEW))
    assert float(found) == pytest.approx(np.mean(losses))


@pytest.mark.parametrize("network", ["erfnet_narrow", "deeplabv3_resnet50"])
def test_new_outputs_share_the_probability_of_the_background(network):
    torch.manual_seed(0)
    net = build(network, 6).eval()
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        before = net(x)
        net.start_from_background(NEW, BACKGROUND)
        after = net(x)
    p, q = before[:, OLD].softmax(1), after[:, [*OLD, *NEW]].softmax(1)
    torch.testing.assert_close(q[:, 1:3], p[:, 1:], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(q[:, [0, 3, 4]], p[:, :1].expand(-1, 3, -1, -1) / 3, rtol=1e-4, atol=1e-5)
    assert len(net.stages) >= 3


def test_local_pod_is_means_over_rows_and_columns_of_all_regions():
    h = logits(3, 2)[:, :, :, :]
    wanted = []
    for sample in h.tolist():
        values = []
        for scale in (1, 2):  # a quarter of a quarter has no pixel
            height, width = 3 // scale, 4 // scale
            for i in range(scale):
                for j in range(scale):
                    part = [
                        [[v * v for v in row[j * width : (j + 1) * width]] for row in c[i * height : (i + 1) * height]]
                        for c in sample
                    ]
                    values += [np.mean(row) for c in part for row in c]
                    values += [np.mean(column) for c in part for column in zip(*c, strict=True)]
        wanted.append(values)
    torch.testing.assert_close(local_pod(h), torch.tensor(wanted, dtype=torch.float64))


def test_medians_and_pseudo_labels_of_the_background():
    values = torch.rand(501, generator=torch.Generator().manual_seed(0))
    counts = torch.stack([torch.histc(values, 1000, 0, 1), torch.zeros(1000)])
    assert float(medians(counts)[0]) == pytest.approx(float(values.median()), abs=2e-3)
    assert float(medians(counts)[1]) == 0
    learner = PLOP(network="erfnet_narrow")
    learner.old_index = torch.tensor(OLD)
    learner.old, learner.background, learner.medians = OLD, BACKGROUND, torch.tensor([0.9, 0.5, 0.5])
    y, p = labels(), logits(4)[:, OLD].softmax(1)
    found, share = learner.pseudo_labelled(y, p)
    for image in range(2):
        sure = background = 0
        for (r, c), truth in np.ndenumerate(y[image].numpy()):
            q = p[image, :, r, c].tolist()
            entropy = -sum(v * math.log(v) for v in q) / math.log(3)
            answer = int(np.argmax(q))
            wanted = truth
            if truth == BACKGROUND:
                background += 1
                wanted = OLD[answer] if entropy < [0.9, 0.5, 0.5][answer] else 255
                sure += wanted != 255
            assert int(found[image, r, c]) == wanted
        assert float(share[image]) == pytest.approx(sure / background)


@pytest.mark.parametrize("method", [DenseFinetune, MiB, PLOP])
def test_two_rounds_are_learned_saved_and_go_on_the_same(method, tmp_path):
    class Masks:
        def __init__(self, seed, classes):
            draws = np.random.default_rng(seed)
            self.x = draws.integers(0, 256, (6, 3, 16, 16), dtype=np.uint8)
            self.y = draws.choice(classes, (6, 16, 16)).astype(np.uint8)

        def __len__(self):
            return 6

        def tensors(self, device="cpu"):
            return torch.from_numpy(self.x), torch.from_numpy(self.y)

    class Images(Masks):
        def tensors(self, device="cpu"):
            return torch.from_numpy(self.x)

    def learner():
        options = {"network": "erfnet_narrow", "epochs": 1, "batch_size": 3, "learning_rate": 0.01}
        return method(random_resized_crop=[0.5, 2.0], **options)

    def taught(made, k):
        seen, new, there = [((0, 1, 2), (0, 1, 2), [0, 1, 2]), ((0, 1, 2, 3), (3,), [0, 3, 255])][k - 1]
        made.train(Masks(k, there), num_classes=5, round=k, classes_seen=seen, new_classes=new, seed=1)

    whole, first = learner(), learner()
    taught(whole, 1)
    taught(first, 1)
    resumed = learner()
    resumed.load(first.save(tmp_path / "model"))
    for made in (whole, resumed):
        taught(made, 2)
    answers = [m.predict(Images(9, [0]), num_classes=5, classes_seen=(0, 1, 2, 3), seed=1) for m in (whole, resumed)]
    np.testing.assert_array_equal(*answers)
    assert answers[0].shape == (6, 16, 16) and answers[0].max() <= 3
    assert whole.old == [0, 1, 2, 3]


def test_networks_and_weights_that_do_not_fit_are_refused():
    assert errors_of(MiB, network="resnet18") == [("refused-arguments", "")]
    assert errors_of(build, "erfnet", 3, "weights.pt") == [("conflicting-keys", "")]
