"""Label pictures: class lists of domains, ids that are ignored, 16 bits, and pairs that don't fit."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.decode import decode_labels
from tests.errors import errors_of, recorded
from tests.unit.exam.data.pictures import write_index, write_picture

LISTS = {"CS": ("road", "car", "sky"), "SYN": ("sky", "lamp", "road"), "CR": ("stair", "road")}


def write_png_of_16_bits(path: Path, values: np.ndarray) -> Path:
    """(height, width[, channels]) as PNG; Pillow can't write three channels of 16 bits."""
    height, width = values.shape[:2]
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[values.size // (height * width)]

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    lines = b"".join(b"\0" + row.tobytes() for row in values.astype(">u2").reshape(height, -1))
    head = struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    )
    return path


def scenes(folder: Path, labels: dict[str, np.ndarray], **settings: object) -> DatasetSpec:
    """One picture for each label picture, listed in one index; labels: (N, H, W) by domain."""
    lines = []
    for domain, pictures in labels.items():
        for i, values in enumerate(pictures):
            write_picture(folder / f"rgb/{domain}/{i}.png", np.full((*values.shape, 3), i, dtype=np.uint8))
            write_picture(folder / f"gt/{domain}/{i}.png", values)
            lines.append(f"rgb/{domain}/{i}.png gt/{domain}/{i}.png")
    source = write_index(folder, lines)
    return DatasetSpec(train=(source,), test=(source,), **settings)  # type: ignore[arg-type]


def of_three_domains(folder: Path, **settings: object) -> tuple[DatasetSpec, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    labels = {
        domain: rng.choice([*range(len(names)), len(names), 255], (2, 4, 5)).astype(np.uint8)
        for domain, names in LISTS.items()
    }
    return scenes(folder, labels, **{"classes": LISTS, **settings}), labels


@pytest.mark.parametrize("using", [("CS", "SYN", "CR"), ("CR", "CS"), ()])
def test_labels_of_all_domains_are_numbered_by_the_union_of_the_class_names(tmp_path, using):
    spec, labels = of_three_domains(tmp_path, using=using)
    dataset = data.load(spec, tmp_path / "cache")
    used = using or tuple(LISTS)
    union: list[str] = []
    for domain in used:
        union += [name for name in LISTS[domain] if name not in union]
    assert dataset.classes == tuple(union)
    assert dataset.ignore_index == 255
    assert dataset.train.y.dtype == np.uint8
    for domain in used:
        assert [union[i] for i in dataset.domain_classes[domain]] == list(LISTS[domain])
        here = dataset.train.y[dataset.train.domains == domain]
        for ours, written in zip(here.ravel().tolist(), labels[domain].ravel().tolist(), strict=True):
            ignored = written >= len(LISTS[domain])
            assert (ours == 255) if ignored else (union[ours] == LISTS[domain][written])
    assert set(dataset.domain_classes) == set(used)


def test_one_list_for_all_domains_has_no_lists_by_domain(tmp_path):
    labels = {"CS": np.zeros((1, 4, 4), np.uint8), "CR": np.ones((1, 4, 4), np.uint8)}
    dataset = data.load(scenes(tmp_path, labels, classes=("a", "b"), using=("CS", "CR")), tmp_path / "cache")
    assert (dataset.classes, dataset.domain_classes) == (("a", "b"), {})


def test_a_domain_without_a_class_list_is_refused(tmp_path):
    source = write_index(tmp_path, ["a.png a.png"])
    write_picture(tmp_path / "a.png")
    one = DatasetSpec(train=(SourceSpec(source.path, "index", "CR"),), test=(source,), classes={"CRR": ("a",)})
    assert recorded(data.check_dataset(one).problems) == [("unknown-domain", "")]
    nameless = DatasetSpec(train=(source,), test=(source,), classes=LISTS)
    assert recorded(data.check_dataset(nameless).problems) == [("invalid-record", "index.txt:1:1")]


def test_an_id_outside_its_domains_list_names_picture_id_and_length(tmp_path):
    labels = {"CS": np.zeros((2, 4, 4), np.uint8), "CR": np.zeros((2, 4, 4), np.uint8)}
    labels["CR"][1, 2, 3] = 3
    spec = scenes(tmp_path, labels, classes=LISTS, using=("CS", "CR"))
    assert errors_of(data.load, spec, tmp_path / "cache") == [("unknown-class", "gt/CR/1.png")]


def test_another_class_list_is_another_dataset_and_another_order_too(tmp_path):
    spec, _ = of_three_domains(tmp_path, using=("CS", "CR"))
    prints = [
        data.fingerprint(
            DatasetSpec(train=spec.train, test=spec.test, using=spec.using, classes=classes), tmp_path / "c"
        )
        for classes in (LISTS, {**LISTS, "SYN": ("x",)}, {**LISTS, "CR": ("road", "stair")})
    ]
    assert prints[0] == prints[1]  # a list of a domain that is not used
    assert prints[0] != prints[2]
    first = data.load(spec, tmp_path / "cache").train.y
    other = DatasetSpec(train=spec.train, test=spec.test, using=spec.using, classes={**LISTS, "CR": ("road", "stair")})
    assert not np.array_equal(first, data.load(other, tmp_path / "cache").train.y)


def test_arrays_of_label_pictures_are_numbered_by_domain(tmp_path):
    y = np.array([[[0, 1], [2, 255]], [[0, 1], [2, 255]]], dtype=np.uint8)
    x = np.zeros((2, 2, 2, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x=x, y=y, domain=np.array(["CS", "CR"]))
    source = SourceSpec(tmp_path / "a.npz", "data")
    dataset = data.load(DatasetSpec(train=(source,), test=(source,), classes=LISTS, using=("CS", "CR")), tmp_path / "c")
    assert dataset.classes == ("road", "car", "sky", "stair")
    assert dataset.train.y.tolist() == [[[0, 1], [2, 255]], [[3, 0], [255, 255]]]


def test_classes_of_single_samples_are_read_in_the_list_of_their_domain(tmp_path):
    for name in "abcd":
        write_picture(tmp_path / f"{name}.png")
    source = write_index(tmp_path, ["a.png car", "b.png 2"], "cs.txt")
    other = write_index(tmp_path, ["c.png road", "d.png 0"], "cr.txt")
    sources = (SourceSpec(source.path, "index", "CS"), SourceSpec(other.path, "index", "CR"))
    dataset = data.load(DatasetSpec(train=sources, test=sources, classes=LISTS, using=("CS", "CR")), tmp_path / "c")
    assert [dataset.classes[i] for i in dataset.train.y] == ["car", "sky", "road", "stair"]
    write_index(tmp_path, ["c.png car", "d.png 0"], "cr.txt")
    assert errors_of(
        data.load, DatasetSpec(train=sources, test=sources, classes=LISTS, using=("CS", "CR")), tmp_path / "c"
    ) == [("unknown-class", "cr.txt:1:1")]


def test_grey_and_alpha_of_16_bits_are_refused_with_the_remedy(tmp_path):
    path = write_png_of_16_bits(tmp_path / "l.png", np.zeros((6, 7, 2), dtype=np.int64))
    assert errors_of(decode_labels, str(path), None) == [("unreadable-data", "")]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_of_16_bits_the_first_channel_is_the_class(tmp_path, channels):
    values = np.random.default_rng(0).integers(300, 60000, (6, 7, channels))
    values[..., 0] = np.arange(42).reshape(6, 7) % 23
    path = write_png_of_16_bits(tmp_path / "l.png", values)
    np.testing.assert_array_equal(decode_labels(str(path), None), values[..., 0])


def test_an_id_beyond_8_bits_is_refused_and_not_cut_off(tmp_path):
    values = np.zeros((4, 4, 3), dtype=np.int64)
    values[1, 1, 0] = 256  # its lower 8 bits are 0, a class
    write_png_of_16_bits(tmp_path / "l.png", values)
    write_picture(tmp_path / "x.png", np.zeros((4, 4, 3), dtype=np.uint8))
    source = write_index(tmp_path, ["x.png l.png"])
    assert errors_of(
        data.load, DatasetSpec(train=(source,), test=(source,), classes=("a", "b")), tmp_path / "cache"
    ) == [("unknown-class", "l.png")]


def test_label_pictures_of_16_bits_are_resized_without_new_ids(tmp_path):
    values = np.random.default_rng(0).choice([0, 1], (40, 60, 1))
    values = np.concatenate([values, np.full((40, 60, 2), 500)], axis=2)
    write_png_of_16_bits(tmp_path / "l.png", values)
    write_picture(tmp_path / "x.png", np.zeros((40, 60, 3), dtype=np.uint8))
    source = write_index(tmp_path, ["x.png l.png"])
    spec = DatasetSpec(train=(source,), test=(source,), classes=("a", "b"), image_size=(20, 30))
    y = data.load(spec, tmp_path / "cache").train.y
    expected = Image.fromarray(values[..., 0].astype(np.uint8)).resize((30, 20), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(y[0], np.asarray(expected))


@pytest.mark.parametrize("kind", ["grey", "red"])
def test_a_label_picture_with_three_channels_is_read_where_it_is_plain_what_it_says(tmp_path, kind):
    ids = np.random.default_rng(0).integers(0, 9, (4, 5), dtype=np.uint8)
    zero = np.zeros_like(ids)
    path = write_picture(tmp_path / "l.png", np.stack([ids, ids, ids] if kind == "grey" else [ids, zero, zero], axis=2))
    np.testing.assert_array_equal(decode_labels(str(path), None), ids)


def pair(folder: Path, picture: tuple[int, int], label: tuple[int, int], **settings: object) -> DatasetSpec:
    lines = []
    for i, (shape, own) in enumerate([((8, 16), (8, 16)), (picture, label)]):
        write_picture(folder / f"{i}.png", np.zeros((*shape, 3), dtype=np.uint8))
        write_picture(folder / f"{i}_gt.png", np.zeros(own, dtype=np.uint8))
        lines.append(f"{i}.png {i}_gt.png")
    source = write_index(folder, lines)
    return DatasetSpec(train=(source,), test=(source,), classes=("road",), **settings)  # type: ignore[arg-type]


def test_a_label_picture_of_another_size_is_refused_with_both_names_and_sizes(tmp_path):
    assert errors_of(data.load, pair(tmp_path, (8, 16), (4, 8)), tmp_path / "cache") == [
        ("mismatched-data", "1_gt.png")
    ]


@pytest.mark.parametrize("label", [(4, 8), (5, 11), (16, 32), (3, 5)])
def test_with_an_image_size_label_pictures_may_be_larger_or_smaller(tmp_path, label):
    dataset = data.load(pair(tmp_path, (8, 16), label, image_size=(6, 12)), tmp_path / "cache")
    assert dataset.train.y.shape == (2, 6, 12)


def test_even_with_an_image_size_a_pair_has_one_shape(tmp_path):
    assert errors_of(data.load, pair(tmp_path, (8, 16), (8, 10), image_size=(6, 12)), tmp_path / "cache") == [
        ("mismatched-data", "1_gt.png")
    ]


def test_a_picture_that_is_replaced_by_one_of_another_shape_is_found_out(tmp_path):
    spec = pair(tmp_path, (8, 16), (8, 16), image_size=(6, 12))
    data.load(spec, tmp_path / "cache")
    write_picture(tmp_path / "1.png", np.zeros((16, 16, 3), dtype=np.uint8))
    assert errors_of(data.load, spec, tmp_path / "cache") == [("mismatched-data", "1_gt.png")]


def test_a_label_picture_that_is_missing_is_named_with_its_line(tmp_path):
    spec = pair(tmp_path, (8, 16), (8, 16))
    (tmp_path / "1_gt.png").unlink()
    assert recorded(data.check_dataset(spec).problems) == [("missing-file", "index.txt:2:1")]
