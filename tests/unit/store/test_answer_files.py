"""Answers of a round: what is read is what was written, also by an earlier version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.types import PredictionKey, Predictions
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.store.answer_files import read_extras, read_predictions, write_predictions

ASKED = st.builds(PredictionKey, st.integers(0, 5), st.none() | st.integers(0, 300))
ARRAYS = st.sampled_from(
    [
        np.arange(3, dtype=np.uint8),
        np.empty(0, dtype=np.uint8),
        np.array([-1, 4], dtype=np.int16),
        np.array(["a", "Ålborg"]),
        np.array(["longer than before"]),
        np.ones((2, 3)),
        np.zeros((2, 2, 2), dtype=np.uint8),
    ]
)
SAID = st.builds(Predictions, ARRAYS, st.dictionaries(st.sampled_from(["probe", "all pictures", "0"]), ARRAYS))


def same(first: Predictions, second: Predictions) -> bool:
    pairs = [(first.labels, second.labels), *((first.extras[name], second.extras[name]) for name in first.extras)]
    equal = all(a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b) for a, b in pairs)
    return equal and first.extras.keys() == second.extras.keys()


@given(answers=st.dictionaries(ASKED, SAID, max_size=6))
def test_what_is_read_is_what_was_written(tmp_path_factory, answers: dict[PredictionKey, Predictions]) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("round") / "predictions.npz"
    write_predictions(path, answers)
    found = read_predictions(path)
    assert list(found) == list(answers)
    assert all(same(found[asked], said) for asked, said in answers.items())
    assert read_extras(path) == {name for said in answers.values() for name in said.extras}


def test_a_thousand_small_test_sets_take_little_more_than_their_labels(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    answers = {PredictionKey(j): Predictions(draw.integers(0, 256, 4).astype(np.uint8)) for j in range(1000)}
    write_predictions(tmp_path / "predictions.npz", answers)
    assert (tmp_path / "predictions.npz").stat().st_size < 4000 + 1500


def test_answers_that_an_earlier_version_stored_are_read(tmp_path: Path) -> None:
    arrays = {"3": np.array([1, 2]), "3 probe": np.array([2, 2]), "3@120": np.array([0, 2])}
    np.savez(tmp_path / "predictions.npz", **arrays)  # type: ignore[arg-type]
    found = read_predictions(tmp_path / "predictions.npz")
    assert same(found[PredictionKey(3)], Predictions(arrays["3"], {"probe": arrays["3 probe"]}))
    assert same(found[PredictionKey(3, 120)], Predictions(arrays["3@120"]))
    assert read_extras(tmp_path / "predictions.npz") == {"probe"}


def test_replies_that_an_earlier_version_stored_are_read() -> None:
    text = json.dumps({"replies": [["a", None], [], ["Ålborg"]], "topics": ["x", "", "y"]})
    found = Replies(np.frombuffer(text.encode(), dtype=np.uint8))
    assert list(found) == [["a", None], [], ["Ålborg"]]
    assert found.topics is not None and found.topics.tolist() == ["x", "", "y"]
    picked = found[np.array([True, False, True])]
    assert (list(picked), picked.topics.tolist()) == ([["a", None], ["Ålborg"]], ["x", "y"])
