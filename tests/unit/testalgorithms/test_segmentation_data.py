"""Labels in two numberings, and batches of pictures."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ianvs.testalgorithms.segmentation import DomainData, DomainLabels
from ianvs.testalgorithms.segmentation.data import Augmentation
from ianvs.testalgorithms.segmentation.picture_memory import DomainMemory
from ianvs.testalgorithms.segmentation.predicting import answers, mean_iou
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_scenes import LISTS, scenes

CPU = torch.device("cpu")
STILL = Augmentation(flip=0.0, max_shift=0)


def data_of(domain=0, count=8):
    x, y = scenes(domain, count).tensors()
    return DomainData(x, y, DomainLabels(LISTS[domain]), domain, CPU)


def generators():
    return {"order": torch.Generator().manual_seed(1), "moves": torch.Generator().manual_seed(2)}


@given(classes=st.lists(st.integers(0, 254), min_size=1, max_size=60, unique=True), data=st.data())
def test_labels_come_back_from_the_head_as_they_were(classes, data):
    labels = DomainLabels(classes)
    drawn = data.draw(st.lists(st.sampled_from([*classes, 255]), min_size=6, max_size=6))
    y = torch.tensor(drawn, dtype=torch.uint8).view(1, 2, 3)
    inside = labels.to_head(y)
    assert torch.equal(labels.to_exam(inside.long()), y)
    expected = [len(classes) if c == 255 else classes.index(c) for c in drawn]
    assert inside.flatten().tolist() == expected
    assert labels.counts(inside).tolist() == [expected.count(i) for i in range(len(classes) + 1)]


def test_a_label_that_the_round_does_not_teach_is_refused():
    x, y = scenes(0).tensors()
    y[:, 5, 5] = 6
    assert errors_of(DomainData, x, y, DomainLabels(LISTS[0]), 0, CPU) == [("refused-arguments", "")]


def test_pictures_without_a_label_for_each_pixel_are_refused():
    x, y = scenes(0).tensors()
    assert errors_of(DomainData, x, y[:, 0, 0], DomainLabels(LISTS[0]), 0, CPU) == [("refused-arguments", "")]


def test_an_epoch_brings_every_picture_once_with_its_labels():
    data = data_of()
    batches = list(data.epoch(3, STILL, torch.channels_last, **generators()))
    assert [len(batch.y) for batch in batches] == [3, 3, 2]
    seen = torch.cat([(batch.x * 255).round().to(torch.uint8) for batch in batches])
    labels = torch.cat([batch.y for batch in batches])
    order = torch.randperm(8, generator=generators()["order"])
    assert torch.equal(seen, data.x[order]) and torch.equal(labels, data.y[order])
    assert batches[0].x.is_contiguous(memory_format=torch.channels_last)


def test_pictures_that_stay_in_the_hosts_memory_come_in_the_same_batches():
    near, far = data_of(), data_of()
    far.device = torch.device("meta")  # somewhere else
    sent = []
    far._sent = lambda batch: sent.append(batch.result()) or sent[-1]
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1)).split(1)
    fetched = list(far._gathered(order))
    expected = list(near._gathered(order))
    assert len(fetched) == len(expected) == 8
    for (x, y), (x2, y2) in zip(fetched, expected, strict=True):
        assert torch.equal(x, x2) and torch.equal(y, y2)


def test_class_weights_are_those_of_the_published_formula():
    data = data_of()
    counts = np.array([int((data.y == i).sum()) for i in range(4)]) + 1.0
    expected = 1 / np.log(1.1 + counts / counts.sum())
    expected[-1] = 0
    np.testing.assert_allclose(data.weights.numpy(), expected, rtol=1e-6)


def test_the_mean_iou_of_a_domain_counts_absent_classes_as_0_and_ignored_pixels_not_at_all():
    data = data_of()
    data.y[data.y == 2] = 3  # the third class does not occur: these pixels are ignored
    fixed = torch.randn(8, 4, 16, 24, generator=torch.Generator().manual_seed(0))
    state = {"at": 0}

    def logits(x):
        state["at"] += len(x)
        return fixed[state["at"] - len(x) : state["at"]]

    said, valid = fixed.argmax(1), data.y != 3
    hits = [((said == c) & (data.y == c)).sum().item() for c in range(3)]
    unions = [(((said == c) | (data.y == c)) & valid).sum().item() for c in range(3)]
    expected = (hits[0] / unions[0] + hits[1] / unions[1] + 0) / 3
    assert mean_iou(logits, data, torch.channels_last) == pytest.approx(expected, rel=1e-9)


def test_answers_in_parts_are_the_answers_to_all():
    pictures = torch.randint(0, 256, (5, 3, 700, 400), dtype=torch.uint8)
    parts = list(answers(lambda x: x, pictures, 2, torch.channels_last, CPU))
    assert len(parts) > 1
    assert torch.equal(torch.cat(parts), pictures[:, :2].argmax(1))


def test_a_memory_gives_up_pictures_of_old_domains_for_new_ones_and_comes_back_as_it_was():
    memory, draws = DomainMemory(7), torch.Generator().manual_seed(0)
    before = None
    for domain, room in ((0, 7), (1, 3), (2, 2)):
        data = data_of(domain)
        memory.add(domain, data.x, data.y, data.weights, draws)
        assert {len(part) for part in memory.parts.values()} == {room}
        if before is not None:  # those that stay are of those that were there
            kept = memory.parts[0].x
            assert all(any(torch.equal(p, q) for q in before) for p in kept)
        before = memory.parts[0].x.clone()
    again = DomainMemory(7)
    again.restore(memory.state())
    assert len(again) == len(memory) == 6 and again.nbytes == memory.nbytes
    assert all(torch.equal(again.parts[d].x, part.x) for d, part in memory.parts.items())
