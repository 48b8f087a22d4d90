"""Corruptions: the same picture always looks the same, worse with severity, and as the definition says."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from ianvs.testenv.scenarios.corruptions import CORRUPTIONS, SEVERITIES, Corruption
from ianvs.testenv.scenarios.transforms import Permutation, Rotation
from tests.errors import errors_of
from tests.unit.exam.scenarios.exams import exam_of, same_exam
from tests.unit.exam.scenarios.small_datasets import dataset_of, texts

RNG = np.random.default_rng(0)


def smooth(count, height, width, channels, dtype=np.uint8):
    """Pictures with large shapes and all shades, as photographs have."""
    from scipy.ndimage import gaussian_filter

    noise = gaussian_filter(RNG.random((count, height, width, channels)), (0, height / 8, width / 8, 0))
    low, high = noise.min(axis=(1, 2, 3), keepdims=True), noise.max(axis=(1, 2, 3), keepdims=True)
    unit = (noise - low) / (high - low)
    return np.rint(unit * 255).astype(np.uint8) if dtype == np.uint8 else unit.astype(dtype)


SHAPES = [(32, 32, 3), (8, 8, 1), (16, 24, 3), (70, 64, 3)]
TRANSFORMS = [*(Corruption(name, 3, 0, 1) for name in CORRUPTIONS), Permutation(0, 2), Rotation(30)]


def once(name, x, severity=3):
    return Corruption(name, severity, 0, 1)(x)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_picture_looks_the_same_in_any_batch_and_any_process(transform, dtype):
    x = smooth(5, 12, 10, 3, dtype)
    before = x.copy()
    whole = transform(x)
    np.testing.assert_array_equal(x, before)
    assert (whole.dtype, whole.shape) == (dtype, x.shape)
    for order in ([2], [4, 0], [3, 2, 1, 0, 4]):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(transform))(x[order]), whole[order])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_pictures_of_any_form_stay_pictures(name, shape):
    for dtype, top in ((np.uint8, 255), (np.float32, 1)):
        x = smooth(2, *shape, dtype)
        corrupted = once(name, x, 5)
        assert corrupted.shape == x.shape
        assert corrupted.min() >= 0
        assert corrupted.max() <= top
        assert not np.array_equal(corrupted, x)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("size", [32, 64], ids=["as in CIFAR-10-C", "as in ImageNet-C"])
def test_a_higher_severity_is_farther_from_the_clean_picture(name, size):
    x = smooth(6, size, size, 3, np.float32)
    distance = [np.abs(once(name, x, severity) - x).mean() for severity in SEVERITIES]
    assert distance[0] > 0
    assert (np.diff(distance) > -0.1 * max(distance)).all()
    assert distance[-1] > 1.1 * distance[0]


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "fog"])
def test_noise_is_drawn_by_seed_task_and_content(name):
    x = smooth(2, 16, 16, 1)
    seen = [Corruption(name, 3, *keys)(x) for keys in ((0, 1), (0, 2), (1, 1))]
    assert not any(np.array_equal(seen[i], seen[j]) for i in range(3) for j in range(i))
    added = seen[0].astype(int) - x
    assert not np.array_equal(added[0], added[1])  # each picture has noise of its own


def test_noise_has_the_moments_of_its_distribution():
    grey = np.full((40, 32, 32, 1), 0.5, dtype=np.float32)
    grey += np.arange(40, dtype=np.float32)[:, None, None, None] * 1e-5  # all different
    assert (once("gaussian_noise", grey) - grey).std() == pytest.approx(0.08, rel=0.02)
    assert once("shot_noise", grey).var() == pytest.approx(0.5 / 100, rel=0.05)
    hit = once("impulse_noise", grey, 5)
    assert np.isin(hit, [0, 1]).mean() == pytest.approx(0.07, rel=0.05)
    assert (hit == 1).sum() == pytest.approx((hit == 0).sum(), rel=0.1)


def test_blur_and_contrast_keep_the_mean():
    x = smooth(3, 32, 32, 3, np.float32)
    for name in ("contrast", "gaussian_blur"):
        np.testing.assert_allclose(once(name, x).mean(axis=(1, 2)), x.mean(axis=(1, 2)), atol=0.01)
    np.testing.assert_allclose(once("contrast", x, 3).std(axis=(1, 2)), x.std(axis=(1, 2)) * 0.4, rtol=1e-4)


def test_brightness_adds_to_the_value_of_hsv_and_keeps_hue_and_saturation():
    import colorsys

    x = np.array([[[0.2, 0.4, 0.1], [0.9, 0.95, 0.5]], [[0.0, 0.0, 0.0], [0.3, 0.3, 0.3]]], dtype=np.float64)[None]
    corrupted = once("brightness", x, 4)
    for clean, bright in zip(x.reshape(-1, 3), corrupted.reshape(-1, 3), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*clean)
        np.testing.assert_allclose(bright, colorsys.hsv_to_rgb(hue, saturation, min(1, value + 0.2)), atol=1e-9)


def test_pixelating_by_half_gives_means_of_two_by_two():
    x = smooth(1, 64, 64, 1, np.float32)
    means = x.reshape(1, 32, 2, 32, 2, 1).mean(axis=(2, 4))
    np.testing.assert_allclose(once("pixelate", x, 2), means.repeat(2, axis=1).repeat(2, axis=2), atol=1e-6)


def test_jpeg_is_that_of_the_library():
    x = smooth(1, 32, 32, 3)
    file = io.BytesIO()
    Image.fromarray(x[0]).save(file, "JPEG", quality=50)
    np.testing.assert_array_equal(once("jpeg_compression", x, 4)[0], np.asarray(Image.open(file)))


def test_fog_keeps_the_brightest_value_within_reach_and_is_smooth():
    x = np.zeros((1, 32, 32, 1), dtype=np.float32)
    x[0, 0, 0] = 1
    cloud = once("fog", x, 5)[0, 1:, 1:, 0]
    assert 0 <= cloud.min() < cloud.max() <= 1.5 / 2.5
    assert np.abs(np.diff(cloud, axis=0)).mean() < 0.5 * cloud.std()


def test_corrupted_domains_are_rounds_over_all_samples():
    dataset = dataset_of([0, 1] * 5, [0, 1], shape=(8, 8, 1))
    options = {"corruption": ["none", "fog", {"name": "fog", "severity": 5}], "severity": 1, "seed": 4}
    exam = exam_of(dataset, "DIL", options)
    assert [r.name for r in exam.rounds] == [t.name for t in exam.tests] == ["clean", "fog 1", "fog 5"]
    assert [r.transform for r in exam.rounds] == [None, Corruption("fog", 1, 4, 2), Corruption("fog", 5, 4, 3)]
    assert [t.transform for t in exam.tests] == [r.transform for r in exam.rounds]
    assert all(r.train.tolist() == [*range(10)] for r in exam.rounds)
    assert exam.rules.scenario == "domain-incremental"
    assert not same_exam(exam, exam_of(dataset, "DIL", {**options, "seed": 5}))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"corruption": ["fogg"]}, "invalid-scenario"),
        (
            {"corruption": [{"name": "fog", "severity": 6}]},
            "invalid-scenario",
        ),
        ({"corruption": [{"nam": "fog"}]}, "invalid-scenario"),
        ({"corruption": [3]}, "invalid-scenario"),
        ({"corruption": ["fog", {"name": "fog", "severity": 3}]}, "invalid-scenario"),
        ({"corruption": ["fog"], "rotation": [0, 90]}, "invalid-option"),
        ({"corruption": ["fog"], "rounds": 2}, "round-count-conflict"),
        ({"rotation": [0, 90], "severity": 2}, "invalid-option"),
    ],
)
def test_a_slip_is_refused_with_the_remedy(options, code):
    assert errors_of(exam_of, dataset_of([0, 1], [0, 1], shape=(8, 8, 1)), "DIL", options) == [(code, "")]


def test_what_is_no_picture_from_black_to_white_is_refused():
    features = dataset_of([0, 1], [0, 1])
    scaled = dataset_of([0, 1, 2], [0], shape=(8, 8, 1, 1))
    for dataset in (features, scaled, texts()):
        assert errors_of(exam_of, dataset, "DIL", {"corruption": ["fog"]}) == [("invalid-scenario", "")]
    pictures = dataset_of([0, 1, 2], [0, 1, 2], shape=(8, 8, 1))
    standardised = replace(pictures, train=replace(pictures.train, x=pictures.train.x.astype(np.float32) - 1))
    assert errors_of(exam_of, standardised, "DIL", {"corruption": ["fog"]}) == [("invalid-scenario", "")]
