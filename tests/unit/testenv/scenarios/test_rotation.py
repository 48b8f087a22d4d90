"""Rotated pictures against SciPy's, which rotates one after the other."""

import numpy as np
import pytest
from scipy.ndimage import rotate

from ianvs.testenv.scenarios.transforms import Rotation


@pytest.mark.parametrize("degrees", [5, 22.5, 30, 90, 133.37, 180, 270, -10, 360.5])
@pytest.mark.parametrize("shape", [(28, 28, 1), (9, 14, 3), (1, 6, 1)])
def test_rotated_pictures_are_scipys(degrees, shape):
    draw = np.random.default_rng(0)
    for x in (draw.integers(0, 256, (40, *shape), dtype=np.uint8), draw.normal(size=(40, *shape)).astype(np.float32)):
        ours = Rotation(degrees)(x)
        theirs = rotate(x, degrees, axes=(2, 1), order=1, reshape=False)
        assert ours.dtype == x.dtype
        difference = np.abs(ours.astype(float) - theirs.astype(float))
        if x.dtype == np.uint8:  # at exactly a half, rounding may go either way
            assert difference.max() <= 1
            assert (difference > 0).mean() < 1e-3
        else:
            assert difference.max() < 1e-5


@pytest.mark.parametrize("degrees", [0, 360])
def test_a_full_turn_is_none(degrees):
    x = np.arange(32, dtype=np.uint8).reshape(2, 4, 4, 1)
    assert Rotation(degrees)(x) is x


def test_no_pictures_stay_none():
    assert Rotation(30)(np.zeros((0, 4, 4, 1), np.uint8)).shape == (0, 4, 4, 1)
