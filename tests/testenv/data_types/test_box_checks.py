"""What is refused of truths and answers, in which words, and how the rest is packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ianvs.base.errors import DataError, PluginError
from ianvs.testenv.data_types.detection.box_checks import pack_answers, pack_labels
from ianvs.testenv.data_types.detection.packed_boxes import (
    containing,
    cut_answers,
    join,
    limit,
    limit_target,
    take,
    unpack,
)
from tests.testenv.data_types.boxes import scenes, targets

EMPTY = {"boxes": np.empty((0, 4)), "labels": []}
ONE = {"boxes": [[1.0, 2, 3, 4]], "labels": [1]}
SURE = ONE | {"scores": [0.5]}

SLIPS = {
    "a box that is nan": ({"boxes": [[1, 2, np.nan, 4]]}, "box 0: boxes holds .* finite"),
    "a box that is infinite": ({"boxes": [[-np.inf, 2, 3, 4]]}, "box 0: boxes holds .* finite"),
    "x2 below x1": ({"boxes": [[10, 2, 3, 4]]}, "x2 < x1.* x y width height, add"),
    "y2 below y1": ({"boxes": [[1, 20, 3, 4]]}, "y2 < y1"),
    "a label too high": ({"labels": [3]}, "label 3 is none of 0 to 2.*background"),
    "a label below 0": ({"labels": [-1]}, "label -1 is none of 0 to 2"),
    "a label that is no whole number": ({"labels": [0.5]}, "label 0.5"),
    "labels of another length": ({"labels": [1, 1]}, r"labels have shape \(2,\).*one entry for each box"),
    "boxes of three numbers": ({"boxes": [[1, 2, 3]]}, r"shape \(1, 3\).*\(0, 4\)"),
    "ragged boxes": ({"boxes": [[1, 2, 3, 4], [1]]}, "differ in length"),
    "words": ({"labels": ["cat"]}, "expected numbers"),
    "an unknown key": ({"iscrowds": [1]}, "'iscrowds' means nothing here"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_truth_is_refused_with_its_number(slip: str) -> None:
    wrong, words = SLIPS[slip]
    with pytest.raises(DataError, match=rf"^y, sample 12.*{words}"):
        pack_labels([EMPTY, ONE, ONE | wrong], 3, first=10)


@pytest.mark.parametrize("slip", SLIPS)
def test_an_answer_is_refused_with_its_number(slip: str) -> None:
    wrong, words = SLIPS[slip]
    with pytest.raises(PluginError, match=rf"^predict, sample 1.*{words}"):
        pack_answers([SURE, SURE | wrong], 2, 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"iscrowd": [2]}, "iscrowd is 2; expected 0 or 1"),
        ({"difficult": [-1]}, "difficult is -1"),
        ({"area": [-5]}, "area is -5"),
        ({"area": [np.nan]}, "area holds nan"),
        ({"is_crowd": [0]}, "Did you mean 'iscrowd'"),
    ],
)
def test_flags_and_areas_of_truths_are_checked(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        pack_labels([ONE | wrong], 3)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([SURE], "1 answers for 2 pictures; expected one for each"),
        ([SURE, ONE], "there is no 'scores', only boxes, labels"),
        ([SURE, SURE | {"scores": [np.nan]}], "sample 1, box 0: scores holds nan"),
        ([SURE, np.zeros((3, 5))], r"array \(m, 6\).*shape \(3, 5\)"),
        (SURE, "returned dict; expected a list"),
        (None, "returned NoneType; expected a list"),
    ],
)
def test_answers_of_another_form_are_refused(answers: Any, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        pack_answers(answers, 2, 3)


def test_a_truth_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(DataError, match=r"^y, sample 1: a truth is a mapping, this is list"):
        pack_labels([ONE, [[1, 2, 3, 4, 0]]], 3)


def test_tensors_and_rows_of_six_numbers_are_answers() -> None:
    tensors = {key: torch.tensor(values) for key, values in SURE.items()}
    tensors["scores"] = tensors["scores"].bfloat16().requires_grad_()
    rows = np.array([[1, 2, 3, 4, 0.5, 1]])
    packed = pack_answers([tensors, rows, torch.tensor(rows), SURE, np.empty((0, 6)), []], 6, 3)
    assert packed["offsets"].tolist() == [0, 1, 2, 3, 4, 4, 4]
    assert packed["boxes"].tolist() == [[1, 2, 3, 4]] * 4
    assert (packed["labels"].tolist(), packed["scores"].tolist()) == ([1] * 4, [0.5] * 4)


def test_packed_arrays_are_flat_and_of_numbers() -> None:
    packed = pack_labels([EMPTY, ONE | {"iscrowd": [1]}, ONE | {"area": [7]}], 3)
    types = {key: (values.dtype, values.shape) for key, values in packed.items()}
    assert types == {
        "offsets": (np.int64, (4,)),
        "boxes": (np.float64, (2, 4)),
        "labels": (np.int64, (2,)),
        "iscrowd": (np.uint8, (2,)),
        "area": (np.float64, (2,)),
    }
    assert packed["iscrowd"].tolist() == [1, 0]
    assert packed["area"].tolist() == [4, 7]  # of the box where the truth has none


@pytest.mark.parametrize("count", [0, 2])
def test_pictures_without_boxes_are_packed(count: int) -> None:
    for packed in (pack_labels([EMPTY] * count, 3), pack_answers([EMPTY | {"scores": []}] * count, count, 3)):
        assert packed["offsets"].tolist() == [0] * (count + 1)
        assert packed["boxes"].shape == (0, 4)
        assert len(unpack(packed)) == count


@settings(max_examples=60, deadline=None)
@given(scene=scenes(), data=st.data())
def test_packing_and_its_parts_keep_every_box(scene: Any, data: st.DataObject) -> None:
    truths, _ = scene
    packed = pack_labels(truths, 3)
    assert [
        {key: np.asarray(values).tolist() for key, values in target.items() if len(values)} for target in unpack(packed)
    ] == [{key: values for key, values in target.items() if len(values)} for target in truths]
    cut = data.draw(st.integers(1, len(truths)))
    pieces = [pack_labels(part, 3) for part in (truths[:cut], truths[cut:]) if part]
    positions = np.array(data.draw(st.lists(st.integers(0, len(truths) - 1), max_size=5)), dtype=np.int64)
    taken = take(packed, positions)
    for key, values in packed.items():
        np.testing.assert_array_equal(join(pieces)[key], values)
        expected = [unpack(packed)[i][key] for i in positions] if key != "offsets" else []
        if expected:
            np.testing.assert_array_equal(taken[key], np.concatenate(expected))
    left = unpack(limit(packed, [0, 2]))
    for i, (target, rest) in enumerate(zip(unpack(packed), left, strict=True)):
        assert rest["labels"].tolist() == [label for label in target["labels"] if label in (0, 2)]
        assert limit_target(target, [0, 2])["boxes"].tolist() == rest["boxes"].tolist()
        assert (i in containing(packed, [0, 2])) == bool(len(rest["labels"]))


@settings(max_examples=60, deadline=None)
@given(answers=st.lists(targets(3, 8, answer=True), min_size=1, max_size=4), most=st.integers(1, 3))
def test_answers_are_cut_by_picture_and_class(answers: Any, most: int) -> None:
    cut = unpack(pack_answers(answers, len(answers), 3, most))
    for answer, rest in zip(answers, cut, strict=True):
        kept = []
        for label in range(3):
            own = [i for i, other in enumerate(answer["labels"]) if other == label]
            kept += sorted(own, key=lambda i: -answer["scores"][i])[:most]
        assert rest["boxes"].tolist() == [answer["boxes"][i] for i in sorted(kept)]
        assert rest["scores"].tolist() == [answer["scores"][i] for i in sorted(kept)]


def test_cutting_to_more_than_there_are_changes_nothing() -> None:
    packed = pack_answers([SURE], 1, 3)
    assert cut_answers(packed, 1) is packed
