"""The algorithm that every newcomer copies: what it stores is read without running code, and gives the same answers."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ianvs.plugins.loader import load

ROOT = Path(__file__).parents[2]
CLASSES = np.repeat([4, 7, 1], 5)


@pytest.fixture
def nearest_mean() -> Any:
    return load(str(ROOT / "examples" / "own_algorithm" / "nearest_mean.py"), "NearestMean").target


def test_the_model_that_it_stored_gives_the_same_answers(nearest_mean: Any, tmp_path: Path) -> None:
    class Samples(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.x)

    pictures = Samples(x=np.random.default_rng(0).normal(CLASSES[:, None, None], 1, (15, 2, 2)), y=CLASSES)
    one, other = nearest_mean(), nearest_mean()
    one.train(pictures)
    stored = one.save(tmp_path / "model")
    with np.load(stored, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
    other.load(stored)
    assert other.predict(pictures).tolist() == one.predict(pictures).tolist()
    other.train(pictures)  # it goes on where it was
    assert set(other.counts.values()) == {10}


def test_an_untrained_model_can_be_stored(nearest_mean: Any, tmp_path: Path) -> None:
    other = nearest_mean()
    other.load(nearest_mean().save(tmp_path / "model"))
    assert other.sums == {}


def test_nothing_that_newcomers_copy_loads_a_pickle() -> None:
    taught = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    taught += [path for top in ("examples", "testalgorithms", "testenv") for path in (ROOT / top).rglob("*.py")]
    # What models of Mammoth and PILOT keep is known to them alone: an adapter reads what it wrote, in their process.
    theirs = {ROOT / "testalgorithms" / "adapters" / name for name in ("mammoth_models.py", "pilot_learners.py")}
    for path in set(taught) - theirs:
        text = path.read_text()
        assert "allow_pickle=True" not in text, path
        assert not re.search(r"pickle\.loads?\(|torch\.load\((?![^\n]*weights_only=True)", text), path
