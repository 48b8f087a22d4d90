from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data.sources import read_part
from ianvs.testenv.datasets.streets import STREETS_CLASSES, make_streets, write_streets
from ianvs.testenv.datasets.streets.canvas import Camera, Canvas, Polygon
from tests.errors import errors_of

DOMAINS = tuple(STREETS_CLASSES)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_seed_gives_the_same_scenes_however_many_are_asked_for(domain: str):
    x, y = make_streets(domain, 3, (32, 64), seed=5)
    again, labels = make_streets(domain, 2, (32, 64), seed=5)
    assert np.array_equal(x[:2], again)
    assert np.array_equal(y[:2], labels)
    assert not np.array_equal(x, make_streets(domain, 3, (32, 64), seed=6)[0])
    assert not np.array_equal(x, make_streets(domain, 3, (32, 64), seed=5, part="test")[0])


def test_the_scenes_of_version_1_stay_as_they_are():
    digest = hashlib.sha256()
    for domain in DOMAINS:
        for array in make_streets(domain, 2, (32, 64), seed=0):
            digest.update(array.tobytes())
    assert digest.hexdigest() == "f7844b39a41a3d4f188c2d220d10c12b05bb3df0ca7e84611364060cb9934b79", (
        "other scenes need another ianvs.testenv.datasets.streets.make_streets.VERSION"
    )


@pytest.mark.parametrize("domain", DOMAINS)
def test_pictures_and_labels_have_the_shapes_that_are_asked_for_and_every_class_occurs(domain: str):
    x, y = make_streets(domain, 24, (48, 80))
    assert (x.shape, x.dtype) == ((24, 48, 80, 3), np.uint8)
    assert (y.shape, y.dtype) == ((24, 48, 80), np.uint8)
    assert set(np.unique(y).tolist()) == {*range(len(STREETS_CLASSES[domain])), 255}
    assert np.mean(y == 255) < 0.12
    shares = np.bincount(y[y != 255], minlength=len(STREETS_CLASSES[domain])) / y.size
    assert shares.max() < 0.6
    assert shares.min() > 0.002


def test_the_domains_conflict_in_colour():
    """The mean colour of each domain's road is nearer to another class of a later domain than to road there."""

    def colours(domain: str) -> dict[str, np.ndarray]:
        x, y = make_streets(domain, 12, (32, 64))
        return {name: x[y == index].mean(axis=0) for index, name in enumerate(STREETS_CLASSES[domain])}

    means = {domain: colours(domain) for domain in DOMAINS}
    for here, there in (("CS", "SYN"), ("CS", "CR"), ("SYN", "CR")):
        distance = {name: float(np.linalg.norm(means[here]["road"] - mean)) for name, mean in means[there].items()}
        assert min(distance, key=lambda name: distance[name]) != "road", (here, there, distance)


def test_a_larger_size_shows_the_same_scene():
    small, large = (make_streets("SYN", 4, size)[1] for size in ((32, 64), (96, 192)))
    centres = large[:, 1::3, 1::3]
    assert np.mean(small == centres) > 0.85


def test_hundreds_of_scenes_take_seconds():
    start = time.process_time()
    make_streets("CS", 20)
    assert (time.process_time() - start) / 20 < 0.2  # about 0.01 on an idle core


def test_files_hold_what_the_arrays_hold(tmp_path: Path):
    prepared = write_streets(tmp_path, train=3, test=2, size=(32, 64), seed=4)

    assert [one.domain for one in prepared] == list(DOMAINS)
    for one in prepared:
        assert one.classes == STREETS_CLASSES[one.domain]
        for part, count in (("train", 3), ("test", 2)):
            x, y = make_streets(one.domain, count, (32, 64), seed=4, part=part)
            source = (SourceSpec(one.folder / f"{part}-index.txt", "index", one.domain),)
            listing = read_part(DatasetSpec(train=source, test=source), part)
            assert np.array_equal(np.stack([np.asarray(Image.open(path)) for path in listing.x]), x)
            assert np.array_equal(np.stack([np.asarray(Image.open(path)) for path in listing.y]), y)


def test_the_index_of_all_domains_names_them_by_folder(tmp_path: Path):
    write_streets(tmp_path / "s", train=1, test=1, size=(16, 32))
    source = (SourceSpec(tmp_path / "s/train-index.txt", "index"),)
    listing = read_part(DatasetSpec(train=source, using=("CR", "CS")), "train")
    assert sorted(listing.domains) == ["CR", "CS"]


def test_an_unknown_domain_and_a_size_too_small_are_refused():
    assert errors_of(make_streets, "SYM", 1) == [("invalid-choice", "")]
    assert errors_of(make_streets, "CS", 1, (8, 8)) == [("out-of-range", "")]


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-0.5, 0.5)), min_size=3, max_size=3, unique=True),
    st.booleans(),
)
def test_a_triangle_covers_the_points_that_barycentric_coordinates_put_inside(
    corners: list[tuple[float, float]], turned: bool
):
    (ax, ay), (bx, by), (cx, cy) = corners
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    if abs(area) < 1e-3:
        return
    canvas = Canvas((16, 32), Camera(1.5, 1.0, 0.5, 0.5))
    canvas.draw([Polygon(corners[::-1] if turned else corners, (200, 0, 0))], label=7)

    inside = []
    for weights in (
        ((bx - canvas.x) * (cy - canvas.y) - (by - canvas.y) * (cx - canvas.x)) / area,
        ((cx - canvas.x) * (ay - canvas.y) - (cy - canvas.y) * (ax - canvas.x)) / area,
        ((ax - canvas.x) * (by - canvas.y) - (ay - canvas.y) * (bx - canvas.x)) / area,
    ):
        inside.append(weights)
    least = np.minimum(np.minimum(inside[0], inside[1]), inside[2])
    assert np.all(canvas.label[least > 1e-9] == 7)
    assert np.all(canvas.label[least < -1e-9] == 255)


def test_a_border_of_ignored_pixels_lies_around_a_thing_and_not_on_it():
    canvas = Canvas((16, 32), Camera(1.5, 1.0, 0.5, 0.5))
    canvas.label[:] = 3
    square = Polygon(((-0.24, -0.24), (0.26, -0.24), (0.26, 0.26), (-0.24, 0.26)), (9, 9, 9))  # whole pixels
    canvas.draw([square], label=7, border=True)
    _, labels = canvas.finished()
    things, border = np.argwhere(labels == 7), np.argwhere(labels == 255)
    assert len(things) == 8 * 8
    assert 4 * 8 <= len(border) <= 4 * 8 + 4  # the corners may be on it
    assert all(np.abs(things - point).max(axis=1).min() == 1 for point in border)


def test_what_is_twice_as_far_looks_half_as_tall():
    camera = Camera(1.5, 1.0, 0.5, 0.5)
    heights = [camera.see(0, 0, Z)[1] - camera.see(0, 2, Z)[1] for Z in (5.0, 10.0)]
    assert heights[0] == pytest.approx(2 * heights[1])
    assert camera.see(3, 1.5, 7)[1] == 0  # at the camera's height: on the horizon
