"""Label pictures as an author's metric sees them."""

import numpy as np
import pytest

from ianvs.exam.metrics.label_pictures import PackedPictures, PictureRows, compress_mask, pack_masks

PICTURES = np.random.default_rng(0).choice(np.array([0, 3, 255], np.uint8), (5, 4, 6))
KINDS = [
    PictureRows(PICTURES),
    PackedPictures(pack_masks([compress_mask(picture) for picture in PICTURES], (4, 6))),
    PictureRows(np.repeat(PICTURES, 2, axis=0), np.arange(0, 10, 2)),
]


@pytest.mark.parametrize("seen", KINDS)
def test_they_are_a_sequence_and_an_array(seen):
    assert (len(seen), seen.shape, seen.dtype, seen.ndim) == (5, (5, 4, 6), np.uint8, 3)
    np.testing.assert_array_equal(np.asarray(seen), PICTURES)
    np.testing.assert_array_equal(np.stack(list(seen)), PICTURES)
    for index in (1, -1, slice(1, 3), np.array([0, 2]), PICTURES == 3, (0, slice(None), 2)):
        np.testing.assert_array_equal(seen[index], PICTURES[index])
    np.testing.assert_array_equal(seen != 255, PICTURES != 255)
    np.testing.assert_array_equal(seen.ravel(), PICTURES.ravel())
    with pytest.raises(IndexError, match=r"\b5\b.+\b5\b"):  # which, and how many there are
        seen[5]


@pytest.mark.parametrize("seen", KINDS)
def test_what_is_given_is_the_callers_own(seen):
    seen[0][:] = 7
    np.testing.assert_array_equal(seen[0], PICTURES[0])


def test_no_picture_at_all_can_be_packed():
    assert np.asarray(PackedPictures(pack_masks([], (4, 6)))).shape == (0, 4, 6)
