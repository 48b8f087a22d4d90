"""What a plugin is handed: usable as arrays, tensors and batches, and nothing that the rules hide."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part, as_served, columns_of
from ianvs.exam.scenarios.views import TestView, TrainView
from ianvs.testenv.scenarios.transforms import Permutation
from tests.errors import errors_of
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets, texts

PICTURES = dataset_of([0, 1, 2] * 4, [2, 1, 0], shape=(4, 5, 3))
FEATURES = dataset_of([0, 1, 2] * 4, [2, 1, 0], shape=(7,))
POSITIONS = np.array([8, 1, 5, 3, 10])


def train_of(dataset, positions=POSITIONS, **settings):
    transform = settings.pop("transform", None)
    return TrainView(columns_of([Part(dataset.train, positions, transform)]), name="round 2", **settings)


def asked_of(dataset):
    return TestView(columns_of([Part(dataset.test, np.arange(len(dataset.test)))])["x"], name="test set 1")


def test_arrays_are_the_rounds_samples_in_its_order():
    data = train_of(FEATURES)
    assert len(data) == 5
    np.testing.assert_array_equal(data.x[:, 0], POSITIONS)
    np.testing.assert_array_equal(data.y, POSITIONS % 3)
    assert data.ids.tolist() == [f"train/{i}" for i in POSITIONS]


def test_arrays_are_gathered_once_and_a_change_hurts_nobody_else():
    data = train_of(PICTURES)
    assert data.x is data.x
    data.x[:] = 0
    np.testing.assert_array_equal(train_of(PICTURES).x[:, 0, 0, 0], POSITIONS)


def test_the_rounds_transformation_is_applied():
    transform = Permutation(0, 2)
    np.testing.assert_array_equal(train_of(PICTURES, transform=transform).x, transform(PICTURES.train.x[POSITIONS]))


def test_picture_tensors_are_channels_last_views_without_a_copy():
    data = train_of(PICTURES)
    x, y = data.tensors()
    assert x.shape == (5, 3, 4, 5)
    assert x.dtype == torch.uint8
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert x.data_ptr() == data.x.ctypes.data
    assert y.dtype == torch.int64


def test_feature_tensors_are_float32():
    x, _ = train_of(FEATURES).tensors()
    assert (x.shape, x.dtype) == ((5, 7), torch.float32)


def test_label_pictures_stay_uint8_as_tensors():
    dataset = streets()
    data = train_of(dataset, np.arange(4))
    assert data.y.dtype == np.uint8
    _, y = data.tensors()
    assert y.dtype == torch.uint8
    np.testing.assert_array_equal(y.numpy(), dataset.train.y[:4])
    for _, batch in data.loader(3):
        assert batch.dtype == torch.uint8


@pytest.mark.parametrize("dataset", [PICTURES, FEATURES], ids=["pictures", "features"])
def test_a_shuffled_pass_is_one_randperm_of_the_tensors(dataset):
    data = train_of(dataset)
    x, y = data.tensors()
    order = torch.randperm(5, generator=torch.Generator().manual_seed(3))
    batches = list(data.loader(2, generator=torch.Generator().manual_seed(3)))
    assert [len(batch) for _, batch in batches] == [2, 2, 1]
    torch.testing.assert_close(torch.cat([batch for batch, _ in batches]), x[order], rtol=0, atol=0)
    torch.testing.assert_close(torch.cat([batch for _, batch in batches]), y[order], rtol=0, atol=0)


def test_batches_of_pictures_are_channels_last():
    for x, _ in train_of(PICTURES).loader(2):
        assert x.is_contiguous(memory_format=torch.channels_last)


def test_an_unshuffled_pass_keeps_the_order_and_batches_are_copies():
    data = train_of(FEATURES)
    for x, _ in data.loader(2, shuffle=False):
        x.zero_()
    assert [int(x[0, 0]) for x, _ in data.loader(1, shuffle=False)] == POSITIONS.tolist()


def test_large_parts_are_moved_batch_by_batch_with_the_same_result(monkeypatch):
    expected = list(train_of(PICTURES).loader(2, shuffle=False))
    monkeypatch.setattr("ianvs.exam.scenarios.views.RESIDENT_BYTES", 0)
    for (x, y), (other_x, other_y) in zip(expected, train_of(PICTURES).loader(2, shuffle=False), strict=True):
        assert torch.equal(x, other_x)
        assert torch.equal(y, other_y)


def test_a_round_that_is_over_is_out_of_reach():
    data = train_of(FEATURES)
    kept = data.x.copy()
    running = data.loader(1)
    next(running)
    data.close()
    reaches = [
        lambda: data.x,
        lambda: data.y,
        lambda: data.ids,
        data.tensors,
        lambda: data.loader(1),
        lambda: next(running),
    ]
    for reach in reaches:
        assert errors_of(reach) == [("broken-rule", "")]
    assert len(kept) == 5


def test_a_test_set_hides_labels_and_names():
    data = asked_of(FEATURES)
    assert errors_of(lambda: data.y) == [("broken-rule", "")]
    assert errors_of(lambda: data.ids) == [("broken-rule", "")]
    secrets = [FEATURES.test, FEATURES.test.y, FEATURES.test.ids]
    assert not any(value is secret for value in vars(data).values() for secret in secrets)


def test_a_test_set_serves_as_a_sequence_an_array_and_a_tensor():
    data = asked_of(PICTURES)
    assert len(data) == len(list(data)) == 3
    np.testing.assert_array_equal(np.asarray(data), PICTURES.test.x)
    np.testing.assert_array_equal(np.stack(list(data)), PICTURES.test.x)
    np.testing.assert_array_equal(data[1], PICTURES.test.x[1])
    assert data.tensors().shape == (3, 3, 4, 5)
    assert torch.equal(torch.cat(list(data.loader(2))), data.tensors())


def test_a_test_set_that_is_over_is_out_of_reach():
    data = asked_of(FEATURES)
    data.close()
    for reach in (lambda: data.x, lambda: data[0], lambda: np.asarray(data), data.tensors, lambda: list(data)):
        assert errors_of(reach) == [("broken-rule", "")]


def test_texts_are_handed_as_they_are_and_tensors_say_why_not():
    dataset = texts()
    data = train_of(dataset, np.array([2, 0]))
    assert data.x.tolist() == ["c", "a"]
    assert data.y.tolist() == ["C", "A"]
    assert errors_of(data.tensors) == [("wrong-type", "")]
    assert list(asked_of(dataset)) == ["e", "f"]


def test_a_batch_size_of_zero_is_refused():
    assert errors_of(train_of(FEATURES).loader, 0) == [("out-of-range", "")]


def test_numbers_in_double_precision_are_handed_as_float32(tmp_path):
    from dataclasses import replace

    doubled = replace(FEATURES, train=replace(FEATURES.train, x=FEATURES.train.x.astype(np.float64)))
    assert train_of(doubled).x.dtype == np.float32


def test_a_read_only_memory_map_is_handed_as_a_writable_array(tmp_path):
    from dataclasses import replace

    np.save(tmp_path / "x.npy", PICTURES.train.x)
    mapped = replace(PICTURES.train, x=np.load(tmp_path / "x.npy", mmap_mode="r"))
    data = TrainView(columns_of([Part(mapped, POSITIONS)]), name="round 1")
    assert type(data.x) is np.ndarray
    assert data.x.flags.writeable
    assert data.x.flags.c_contiguous


@pytest.mark.parametrize("dataset", [PICTURES, streets()], ids=["classes", "label pictures"])
def test_batches_of_a_part_that_is_too_large_are_read_one_by_one_and_are_the_same(dataset, monkeypatch):
    positions = np.array([4, 1, 5, 3, 0])
    transform = Permutation(0, 2)

    def batches():
        data = train_of(dataset, positions, transform=transform)
        return data, list(data.loader(2, generator=torch.Generator().manual_seed(3)))

    _, expected = batches()
    monkeypatch.setattr("ianvs.exam.scenarios.views.RESIDENT_BYTES", 0)
    data, read = batches()
    assert not data._gathered  # nothing of it was brought into memory whole
    for (x, y), (same_x, same_y) in zip(read, expected, strict=True):
        assert torch.equal(x, same_x)
        assert torch.equal(y, same_y)
        assert x.is_contiguous(memory_format=torch.channels_last)
        assert y.dtype == same_y.dtype


def pickled(data):
    return pickle.loads(pickle.dumps(data))


@pytest.mark.parametrize("taken", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_of_a_view_ends_when_the_view_does(taken):
    for data in (train_of(PICTURES), asked_of(PICTURES)):
        other, whole = taken(data), data.column("x").copy()
        np.testing.assert_array_equal(other.x, whole)
        data.close()
        assert errors_of(lambda: other.x) == [("broken-rule", "")]  # noqa: B023 - within the loop
        assert errors_of(lambda: pickled(data).x) == [("broken-rule", "")]  # noqa: B023 - a plugin may hold one


def test_a_view_of_gigabytes_pickles_to_few_bytes_and_holds_no_other_round(tmp_path):
    """It opens the same file in the other process; labels of the round, which are few, come along."""
    x = np.memmap(tmp_path / "x", np.uint8, "w+", shape=(5000, 1 << 20))  # sparse: 5 GB that take no room
    x[7, :3] = (1, 2, 3)
    labels = np.arange(5000)
    columns = columns_of([Part(Samples(x.view(np.ndarray), labels, np.array(["n"] * 5000)), np.arange(6, 4000))])
    data = TrainView({name: as_served(column, 1) for name, column in columns.items()}, name="round 1")
    held = pickle.dumps(data)
    assert len(held) < 1 << 20
    assert labels[4000:].tobytes()[:80] not in held
    other = pickle.loads(held)
    assert other.tensors()[0][1, :4].tolist() == [1, 2, 3, 0]
    np.testing.assert_array_equal(other.y, np.arange(6, 4000))
    data.close()


def test_what_is_hidden_is_no_attribute():
    assert not hasattr(asked_of(PICTURES), "y") and not hasattr(asked_of(PICTURES), "ids")
    assert hasattr(train_of(PICTURES), "y")


def test_a_pass_that_begins_after_the_end_is_out_of_reach():
    data = train_of(PICTURES)
    batches = data.loader(2)
    data.close()
    assert errors_of(next, batches) == [("broken-rule", "")]


def test_parts_can_be_handed_over_in_an_order_of_their_own():
    parts = [Part(PICTURES.train, np.array([3, 1])), Part(PICTURES.train, np.array([0, 2, 4]), Permutation(7, 1))]
    plain = TrainView(columns_of(parts), name="both")
    mixed = TrainView(columns_of(parts, order=np.array([4, 0, 2, 1, 3])), name="both")
    order = [4, 0, 2, 1, 3]
    assert mixed.ids.tolist() == plain.ids[order].tolist()
    np.testing.assert_array_equal(mixed.x, plain.x[order])
    np.testing.assert_array_equal(mixed.y, plain.y[order])
    fresh = TrainView(columns_of(parts, order=np.array(order)), name="both")
    x, y = next(iter(fresh.loader(5, shuffle=False)))
    np.testing.assert_array_equal(x.permute(0, 2, 3, 1).numpy(), plain.x[order])
    np.testing.assert_array_equal(y.numpy(), plain.y[order])


def test_a_part_has_its_rows_counts_as_a_pass_over_all_and_ends_with_the_whole():
    data = train_of(FEATURES, passes=2)
    unlabelled = data.unlabelled()
    np.testing.assert_array_equal(unlabelled.x[:, 0], POSITIONS)
    assert errors_of(lambda: unlabelled.y) == [("broken-rule", "")]
    assert data.passes == 0  # to be looked at is none
    part = data.part(np.array([True, False, True, False, False]))
    assert part.classes == (2,)
    np.testing.assert_array_equal(part.x[:, 0], [8, 5])
    assert part.ids.tolist() == ["train/8", "train/5"]
    [(x, y)] = data.part([4]).loader(8)
    assert (x[0, 0].item(), y.tolist()) == (10, [1])
    assert errors_of(data.part([0]).tensors) == [("broken-rule", "")]
    assert errors_of(data.part, np.array([True, False])) == [("wrong-type", "")]
    data.close()
    for view in (part, unlabelled):
        assert errors_of(lambda: view.x) == [("broken-rule", "")]  # noqa: B023
    asked = asked_of(FEATURES)
    np.testing.assert_array_equal(asked.part(np.array([2, 0])).x, asked.x[[2, 0]])
