"""Generated scenes of shapes, and the two sources that read them."""

import hashlib

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.fingerprint import digest_of
from ianvs.testenv.datasets.shapes import SHAPES_CLASSES, make_shapes, multi_hot
from ianvs.testenv.datasets.shapes.make_shapes import HIDDEN, TEXTURES, VERSION
from ianvs.testenv.datasets.shapes.outlines import OUTLINES
from ianvs.testenv.datasets.shapes.shapes_source import Shapes, ShapesMultilabel
from tests.errors import errors_of


def test_a_scene_holds_one_to_four_shapes_within_the_picture():
    x, y = make_shapes("checks", 60, 48, seed=3)
    assert (x.shape, x.dtype) == ((60, 48, 48, 3), np.uint8)
    assert {len(target["labels"]) for target in y} == {1, 2, 3, 4}
    for target in y:
        boxes = target["boxes"]
        assert (boxes.dtype, target["labels"].dtype) == (np.float64, np.int64)
        assert (boxes >= 0).all() and (boxes <= 48).all()
        sides = boxes[:, 2:] - boxes[:, :2]
        assert (sides > 0.12 * 48).all() and (sides <= 0.4 * 48 + 1).all()
    assert set(np.concatenate([target["labels"] for target in y])) == set(range(len(SHAPES_CLASSES)))


def test_a_box_fits_a_single_shape_tightly():
    """On a plain background, what differs from it by more than the noise is the shape."""
    x, y = make_shapes("plain", 80, 64, seed=1)
    for picture, target in zip(x, y, strict=True):
        if len(target["labels"]) > 1:
            continue
        x1, y1, x2, y2 = target["boxes"][0]
        corners = picture[[0, 0, -1, -1], [0, -1, 0, -1]].astype(int)
        outside = abs(picture.astype(int) - corners[0]).max(axis=2) > 45
        rows, columns = np.flatnonzero(outside.any(1)), np.flatnonzero(outside.any(0))
        found = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
        np.testing.assert_allclose(found, [x1, y1, x2, y2], atol=1.0)


@pytest.mark.parametrize("name", OUTLINES)
def test_an_outline_stays_in_the_unit_circle_and_shows_something_of_its_own(name):
    steps = np.linspace(-1.2, 1.2, 241)
    u, v = np.broadcast_arrays(steps[None, :], steps[:, None])
    inside = OUTLINES[name](u, v)
    assert 0.1 < inside.mean() < 0.6
    assert not inside[u * u + v * v > 1.001].any()
    for other, outline in OUTLINES.items():
        both = inside & outline(u, v)
        assert other == name or both.sum() < 0.85 * (inside | outline(u, v)).sum()


def test_a_star_has_the_area_of_a_pentagram():
    """Of the unit circle's: 10 tan 18° / (3 - tan² 18°)."""
    steps = (np.arange(2000) + 0.5) / 1000 - 1
    t = np.tan(np.pi / 10) ** 2
    share = OUTLINES["star"](steps[None, :], steps[:, None]).mean() * 4
    assert share == pytest.approx(10 * np.tan(np.pi / 10) / (3 - t), rel=2e-3)


def test_later_discs_leave_most_of_earlier_ones_visible():
    _, y = make_shapes("plain", 150, frequencies=[1] + [0] * 7)
    points = np.arange(64) + 0.5
    covered = []
    for target in y:
        x1, y1, x2, _ = target["boxes"].T[..., None, None]
        radius = (x2 - x1) / 2
        discs = (points - x1 - radius) ** 2 + (points[:, None] - y1 - radius) ** 2 <= radius**2
        covered += [(discs[i] & discs[i + 1 :].any(0)).sum() / discs[i].sum() for i in range(len(discs))]
    assert max(covered) <= HIDDEN + 0.05  # up to the pixels of an edge
    assert np.mean(np.array(covered) > 0) > 0.1


def test_a_scene_depends_on_its_number_alone():
    x, y = make_shapes("stripes", 5, 32, seed=4)
    again, said = make_shapes("stripes", 3, 32, seed=4)
    np.testing.assert_array_equal(x[:3], again)
    for one, other in zip(y[:3], said, strict=True):
        np.testing.assert_array_equal(one["boxes"], other["boxes"])
    for other in (
        make_shapes("stripes", 5, 32, 5),
        make_shapes("stripes", 5, 32, 4, "test"),
        make_shapes("plain", 5, 32, 4),
    ):
        assert not np.array_equal(x, other[0])


def test_the_scenes_of_version_1_stay_as_they_are():
    digest = hashlib.sha256()
    for texture in TEXTURES:
        x, y = make_shapes(texture, 8)
        digest.update(x.tobytes())
        for target in y:
            digest.update(target["boxes"].tobytes() + target["labels"].tobytes())
    assert VERSION == 1
    assert digest.hexdigest() == "d1019ba438b0d0d2ebfc4e14c5dd11edd71dd0c2371da08d455089e40bab5078", (
        "other scenes need another ianvs.testenv.datasets.shapes.make_shapes.VERSION"
    )


def test_frequencies_make_classes_rare_or_absent():
    _, y = make_shapes("plain", 400, 32, frequencies=[8, 1, 0, 0, 0, 0, 0, 1])
    counts = np.bincount(np.concatenate([target["labels"] for target in y]), minlength=8)
    assert not counts[2:7].any()
    assert 0.7 < counts[0] / counts.sum() < 0.9


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"texture": "strips"}, "invalid-choice"),
        ({"size": 31}, "out-of-range"),
        ({"frequencies": [1, 2]}, "out-of-range"),
        ({"frequencies": [0] * 8}, "out-of-range"),
        ({"frequencies": [-1] + [1] * 7}, "out-of-range"),
    ],
)
def test_what_can_not_be_drawn_is_refused(how, code):
    assert errors_of(make_shapes, **{"texture": "plain", "count": 1, **how}) == [(code, "")]


def test_several_labels_are_the_classes_in_a_scene():
    targets = np.empty(2, dtype=object)
    targets[:] = [{"labels": np.array([2, 2, 0])}, {"labels": np.zeros(0, np.int64)}]
    np.testing.assert_array_equal(multi_hot(targets, 3), [[1, 0, 1], [0, 0, 0]])


def test_both_sources_show_the_same_scenes(tmp_path):
    options = {"train": 3, "test": 2, "size": 32}
    boxes = Shapes(**options).load(DatasetSpec(name="shapes", options=options), tmp_path)
    several = ShapesMultilabel(**options).load(DatasetSpec(name="shapes_multilabel", options=options), tmp_path)
    assert (boxes.kind, several.kind) == ("detection", "multilabel")
    assert boxes.classes == several.classes == SHAPES_CLASSES
    assert list(dict.fromkeys(boxes.train.domains)) == list(TEXTURES)
    for part, count in (("train", 3), ("test", 2)):
        x, y = make_shapes("stripes", count, 32, 0, part)
        of = slice(count, 2 * count)
        own, other = getattr(boxes, part), getattr(several, part)
        np.testing.assert_array_equal(own.x[of], x)
        np.testing.assert_array_equal(own.x, other.x)
        np.testing.assert_array_equal(other.y, multi_hot(own.y))
        for one, drawn in zip(own.y[of], y, strict=True):
            np.testing.assert_array_equal(one["boxes"], drawn["boxes"])
            np.testing.assert_array_equal(one["labels"], drawn["labels"])
    assert len(set(boxes.train.ids) | set(boxes.test.ids)) == 20


def test_each_option_of_a_source_makes_another_dataset(tmp_path):
    made = [({}, ()), ({"train": 5}, ()), ({"seed": 1}, ()), ({"frequencies": [2] + [1] * 7}, ()), ({}, ("plain",))]
    prints = {
        Shapes(**options).fingerprint(DatasetSpec(name="shapes", options=options, using=using), tmp_path)
        for options, using in made
    }
    assert len(prints) == len(made)
    assert digest_of({}) not in prints
