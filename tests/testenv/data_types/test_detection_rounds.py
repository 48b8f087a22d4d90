"""Orders of classes, and the two rules that cut pictures into rounds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ianvs.testenv.data_types.detection.detection_rounds import alphabetical, disjoint, overlapping, shuffled

VOC = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)


def test_voc_is_in_alphabetical_order() -> None:
    assert alphabetical(VOC) == list(range(20))
    assert alphabetical(("dog", "cat", "cow")) == [1, 2, 0]


def test_the_order_of_cl_detr() -> None:
    """Its first categories, as its code prints them: ids of COCO, 12 being none."""
    order = shuffled(80)
    assert order[:10] == [64, 58, 59, 4, 69, 53, 31, 77, 8, 43]
    assert sorted(order) == list(range(80))
    gaps = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
    ids = [i for i in range(1, 91) if i not in gaps]
    np.random.seed(123)
    np.random.shuffle(ids)
    assert [[i for i in range(1, 91) if i not in gaps][label] for label in order] == ids


PICTURES = [np.array(classes, dtype=np.int64) for classes in ([0, 1], [2], [], [1, 2, 2], [0], [3])]


def test_a_picture_with_objects_of_two_rounds_comes_twice() -> None:
    assert [part.tolist() for part in overlapping(PICTURES, [(0, 1), (2,), (3, 4), (5,)])] == [
        [0, 3, 4],
        [1, 3],
        [5],
        [],
    ]


@settings(max_examples=80, deadline=None)
@given(
    pictures=st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=60),
    seed=st.integers(0, 3),
)
def test_disjoint_rounds_share_no_picture_and_have_something_to_teach(pictures: list[list[int]], seed: int) -> None:
    classes = [np.array(labels, dtype=np.int64) for labels in pictures]
    rounds = [(0, 1, 2), (3,), (4, 5)]
    found = disjoint(classes, rounds, seed)
    together = np.concatenate(found)
    assert len(np.unique(together)) == len(together)
    for part, group in zip(found, rounds, strict=True):
        assert all(set(pictures[i]) & set(group) for i in part)
    again = disjoint(classes, rounds, seed)
    assert all((a == b).all() for a, b in zip(found, again, strict=True))


def test_shares_are_in_proportion_to_classes() -> None:
    everywhere = [np.arange(80)] * 1000
    found = disjoint(everywhere, [range(70), range(70, 80)])
    assert [len(part) for part in found] == [875, 125]
    order = np.arange(1000)
    np.random.seed(123)  # as CL-DETR draws the pictures of its first phase
    np.random.shuffle(order)
    assert found[0].tolist() == sorted(order[:875])
    assert found[0].tolist() != disjoint(everywhere, [range(70), range(70, 80)], seed=1)[0].tolist()
