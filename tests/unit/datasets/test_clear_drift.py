"""The generated pictures that drift, as arrays, as a built-in source, and as files in the layout of CLEAR."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import DataError
from ianvs.config.spec import DatasetSpec, ScenarioSpec
from ianvs.exam import data
from ianvs.exam.scenarios import build_exam
from ianvs.testenv.datasets.drift import BUCKETS, DRIFT_CLASSES, make_drift, write_drift
from tests.errors import errors_of, recorded


def spec(using: tuple[str, ...] = (), **options: object) -> DatasetSpec:
    return DatasetSpec(name="clear_drift", using=using, options={"train": 2, "test": 1, "size": 16, **options})


def test_a_seed_gives_the_same_pictures_however_many_are_asked_for():
    x, y = make_drift(4, 3, 16, seed=5)
    again = make_drift(4, 2, 16, seed=5)[0]
    for label in range(len(DRIFT_CLASSES)):
        np.testing.assert_array_equal(x[y == label][:2], again[2 * label : 2 * label + 2])
    for other in (
        make_drift(4, 3, 16, seed=6),
        make_drift(4, 3, 16, seed=5, part="test"),
        make_drift(5, 3, 16, seed=5),
    ):
        assert not np.array_equal(x, other[0])


def test_the_pictures_of_version_1_stay_as_they_are():
    digest = hashlib.sha256()
    for bucket in (1, 5, 10):
        digest.update(make_drift(bucket, 3, 16)[0].tobytes())
    assert digest.hexdigest() == "df2813d9ee22035af63cb9a729a5546972f6caba5fa51e7b22522f8041adf206", (
        "other pictures need another ianvs.testenv.datasets.drift.make_drift.VERSION"
    )


def test_near_buckets_are_easier_than_far_ones_for_a_nearest_mean():
    means = [
        [x[y == label].mean(axis=0) for label in range(8)] for x, y in (make_drift(b, 20, 16) for b in range(1, 11))
    ]
    R = np.zeros((BUCKETS, BUCKETS))
    for j in range(BUCKETS):
        x, y = make_drift(j + 1, 15, 16, part="test")
        for k in range(BUCKETS):
            distance = [((x - mean) ** 2).sum(axis=(1, 2, 3)) for mean in means[k]]
            R[k, j] = np.mean(np.argmin(distance, axis=0) == y)
    away = np.abs(np.subtract.outer(np.arange(BUCKETS), np.arange(BUCKETS)))
    here, near, middle, far = (R[mask].mean() for mask in (away == 0, away == 1, away == 4, away >= 7))
    assert here > near > middle > far
    assert here > 0.5
    assert far < 0.35


def test_the_look_changes_smoothly():
    """Bucket by bucket the mean picture moves away from that of the first bucket, and never far in one step."""
    means = np.stack([make_drift(bucket, 12, 16)[0].mean(axis=0) for bucket in range(1, 11)])
    whole = np.linalg.norm(means[-1] - means[0])
    steps = [np.linalg.norm(after - before) for before, after in pairwise(means)]
    assert max(steps) < 0.5 * whole


@pytest.mark.parametrize(("bucket", "size"), [(0, 16), (11, 16), (1, 7)])
def test_a_bucket_or_a_size_that_can_not_be_is_refused(bucket: int, size: int):
    with pytest.raises(DataError):
        make_drift(bucket, 1, size)


def test_the_source_has_a_domain_for_every_bucket(tmp_path: Path):
    found = data.load(spec(), tmp_path)
    assert found.kind == "classification"
    assert found.classes == DRIFT_CLASSES
    assert (found.train.x.shape, found.test.x.shape) == ((160, 16, 16, 3), (80, 16, 16, 3))
    exam = build_exam(found, ScenarioSpec("domain-incremental"))
    assert [each.name for each in exam.rounds] == [str(k) for k in range(1, 11)]
    for number, each in enumerate(exam.rounds, start=1):
        x, y = make_drift(number, 2, 16)
        np.testing.assert_array_equal(found.train.x[each.train], x)
        np.testing.assert_array_equal(found.train.y[each.train], y)
        assert each.classes == tuple(range(8))
    assert len({*found.train.ids, *found.test.ids}) == 240


def test_buckets_can_be_chosen_and_ordered(tmp_path: Path):
    found = data.load(spec(("9", "2")), tmp_path)
    assert list(dict.fromkeys(found.train.domains.tolist())) == ["9", "2"]
    assert recorded(data.check_dataset(spec(("1", "11"))).problems) == [("unknown-domain", "")]


def test_a_fingerprint_tells_options_and_buckets_apart_and_nothing_else(tmp_path: Path):
    base = data.fingerprint(spec(), tmp_path)
    assert data.fingerprint(spec(), tmp_path) == base
    others = [spec(seed=1), spec(train=4), spec(size=20), spec(("1", "2"))]
    assert len({base, *(data.fingerprint(other, tmp_path) for other in others)}) == 5


def test_the_written_tree_is_read_by_the_loader_of_clear_and_holds_the_same_samples(tmp_path: Path):
    write_drift(tmp_path / "tree", train=2, test=1, size=16)
    read = data.load(DatasetSpec(name="clear10", root=tmp_path / "tree", image_size=(16, 16)), tmp_path)
    made = data.load(spec(), tmp_path)
    assert read.classes == made.classes
    for one, other in ((read.train, made.train), (read.test, made.test)):
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.y, other.y)
        assert one.domains.tolist() == other.domains.tolist()
        assert [i.removeprefix("clear10/") for i in one.ids] == [i.removeprefix("clear_drift/") for i in other.ids]


def test_writing_does_not_mix_with_what_is_there(tmp_path: Path):
    write_drift(tmp_path, train=1, test=1, size=8)
    assert errors_of(write_drift, tmp_path, train=1, test=1, size=8) == [("existing-output", "")]
