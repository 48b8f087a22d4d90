"""Images of more than 8 bits are brought to 8 by one range for the whole dataset, or refused; never clipped."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.decode import decode_picture
from ianvs.exam.data.normalize_user_data import store_returned
from tests.errors import errors_of
from tests.unit.exam.data.pictures import write_index, write_picture
from tests.unit.exam.data.test_label_pictures import write_png_of_16_bits

RAMP = np.arange(64).reshape(8, 8)


def write_tiff_of_16_bit_colour(path: Path, values: np.ndarray, order: str, packed: bool, kind: int = 2) -> Path:
    """(height, width, 3) as TIFF, which Pillow can't write, or (height, width, 4) of kind 5, which is CMYK."""
    height, width, channels = values.shape
    held = values.astype(f"{order}u2").tobytes()
    held = zlib.compress(held) if packed else held
    tags = [(256, width), (257, height), (258, None), (259, 8 if packed else 1), (262, kind), (273, None)]
    tags += [(277, channels), (278, height), (279, len(held)), (284, 1)]
    after = 8 + 2 + 12 * len(tags) + 4
    out = struct.pack(f"{order}2sHIH", b"II" if order == "<" else b"MM", 42, 8, len(tags))
    for tag, value in tags:
        if tag == 258:
            out += struct.pack(f"{order}HHII", tag, 3, channels, after)
        else:
            out += struct.pack(f"{order}HHII", tag, 4, 1, after + 2 * channels if value is None else value)
    path.write_bytes(out + struct.pack(f"{order}I{channels}H", 0, *[16] * channels) + held)
    return path


def write_deep(folder: Path, form: str, values: np.ndarray) -> Path:
    """A grey ramp in a file of this form."""
    if form == "png rgb":
        return write_png_of_16_bits(folder / "a.png", np.stack([values] * 3, axis=-1))
    if form.startswith("tiff rgb"):
        colours = np.stack([values] * 3, axis=-1)
        return write_tiff_of_16_bit_colour(folder / "a.tif", colours, form[-1], "packed" in form)
    path = folder / f"a.{form.split()[0]}"
    Image.fromarray(values.astype(form.split()[1])).save(path)
    return path


FORMS = ["png uint16", "tif uint16", "tif int32", "tif float32", "png rgb", "tiff rgb <", "tiff rgb >"]


@pytest.mark.parametrize("top", [4095, 65535])
@pytest.mark.parametrize("form", [*FORMS, "tiff rgb packed <"])
def test_a_range_maps_all_values_to_8_bits(tmp_path, form, top):
    values = RAMP * (top // 63)
    path = write_deep(tmp_path, form, values)
    found = decode_picture(str(path), None, value_range=(0, top))
    expected = np.rint(values * (255 / top))
    np.testing.assert_array_equal(found, np.stack([expected] * 3, axis=-1))


@pytest.mark.parametrize("form", FORMS)
def test_without_a_range_they_are_refused_with_the_key(tmp_path, form):
    path = write_deep(tmp_path, form, RAMP * 60)
    assert errors_of(decode_picture, str(path), None) == [("ambiguous-data", path.name)]


@pytest.mark.parametrize("settings", [{}, {"value_range": (0, 4095)}])
@pytest.mark.parametrize("form", ["grey and alpha", "cmyk"])
def test_what_can_not_be_read_in_full_is_refused(tmp_path, form, settings):
    values = RAMP.astype(np.uint16) * 60
    if form == "cmyk":
        path = write_tiff_of_16_bit_colour(tmp_path / "a.tif", np.stack([values] * 4, axis=-1), "<", False, 5)
    else:
        path = write_png_of_16_bits(tmp_path / "a.png", np.stack([values] * 2, axis=-1))
    source = (write_index(tmp_path, [f"{path.name} 0"]),)
    spec = DatasetSpec(train=source, test=source, **settings)
    assert errors_of(data.load, spec, tmp_path / "cache") == [("unreadable-data", path.name)]


def test_what_is_outside_of_the_range_becomes_black_or_white(tmp_path):
    values = np.array([[-2000, -1000, -300, 400, 3000, np.nan]], np.float32)
    path = write_deep(tmp_path, "tif float32", values)
    assert decode_picture(str(path), None, value_range=(-1000, 400))[0, :, 0].tolist() == [0, 0, 128, 255, 255, 0]


def test_images_of_8_bits_stay_as_they_are(tmp_path):
    path = write_picture(tmp_path / "a.png")
    np.testing.assert_array_equal(
        decode_picture(str(path), None), decode_picture(str(path), None, value_range=(0, 4095))
    )


def class_folders(folder: Path, **settings: object) -> DatasetSpec:
    """Two images of 12 bits for each class; those of "bright" are twice as bright."""
    for part in ("train", "test"):
        for number, name in enumerate(("dark", "bright"), start=1):
            for i in range(2):
                path = folder / part / name / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray((RAMP * 32 * number + i).astype(np.uint16)).save(path)
    sources = [(SourceSpec(folder / part, "data"),) for part in ("train", "test")]
    return DatasetSpec(train=sources[0], test=sources[1], **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("storage", ["decoded", "encoded"])
def test_brightness_stays_comparable_between_images(tmp_path, storage):
    dataset = data.load(class_folders(tmp_path, value_range=(0, 4095), storage=storage), tmp_path / "cache")
    bright, dark = (np.asarray(dataset.train.x)[dataset.train.y == y, 7, 7, 0].tolist() for y in (0, 1))
    assert (bright, dark) == ([251, 251], [126, 126])


def test_the_range_that_is_proposed_holds_the_other_images_and_works(tmp_path):
    assert errors_of(data.load, class_folders(tmp_path), tmp_path / "cache") == [("ambiguous-data", "train")]


def test_another_range_is_another_dataset_and_decoded_anew(tmp_path):
    specs = [class_folders(tmp_path, value_range=(0, top)) for top in (4095, 8191)]
    assert len({data.fingerprint(spec, tmp_path / "cache") for spec in specs}) == 2
    first, second = (np.asarray(data.load(spec, tmp_path / "cache").train.x) for spec in specs)
    assert first.max() > second.max()


def test_a_range_has_no_meaning_for_samples_that_are_no_images(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 3)), y=np.arange(4) % 2)
    source = (SourceSpec(tmp_path / "a.npz", "data"),)
    assert data.check_dataset(DatasetSpec(train=source, test=source, value_range=(0, 1))).problems


def stored(folder: Path, images: list[object], **settings: object) -> np.ndarray:
    part = (images, [0] * len(images))
    folder.mkdir()
    store_returned((part, part), folder, "f()", DatasetSpec(**settings))  # type: ignore[arg-type]
    return np.load(folder / "train" / "x.npy")


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_pil_images_of_a_function_are_treated_alike(tmp_path, dtype):
    images = [Image.fromarray((RAMP * 64).astype(dtype)) for _ in range(2)]
    assert errors_of(stored, tmp_path / "without", images) == [("ambiguous-data", "")]
    x = stored(tmp_path / "with", images, value_range=(0, 4095))
    assert (x.shape, x.dtype, len(np.unique(x[0]))) == ((2, 8, 8), np.uint8, 64)


def test_arrays_of_16_bits_stay_numbers(tmp_path):
    x = stored(tmp_path / "a", [(RAMP * 1000).astype(np.uint16)])
    np.testing.assert_array_equal(x[0], RAMP * 1000)


@pytest.mark.parametrize("settings", [{}, {"value_range": (0, 4095)}])
def test_images_in_a_table_of_hugging_face_are_treated_alike(tmp_path, settings):
    pa = pytest.importorskip("pyarrow")
    held = BytesIO()
    Image.fromarray((RAMP * 64).astype(np.uint16)).save(held, "PNG")
    pictures = pa.array([{"bytes": held.getvalue(), "path": None}] * 2)
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(pa.table({"image": pictures, "label": [0, 1]}), tmp_path / "t.parquet")
    source = (SourceSpec(tmp_path / "t.parquet", "data"),)
    spec = DatasetSpec(train=source, test=source, **settings)  # type: ignore[arg-type]
    if not settings:
        assert errors_of(data.load, spec, tmp_path / "cache") == [("invalid-record", "t.parquet")]
    else:
        assert len(np.unique(np.asarray(data.load(spec, tmp_path / "cache").train.x)[0])) == 64


def test_the_range_is_of_all_deep_images_where_the_first_one_is_not_deep(tmp_path):
    write_picture(tmp_path / "0.png", np.zeros((8, 8, 3), np.uint8))
    Image.fromarray(RAMP.astype(np.uint16)).save(tmp_path / "1.png")
    Image.fromarray((RAMP * 64).astype(np.uint16)).save(tmp_path / "2.png")
    source = write_index(tmp_path, ["0.png a", "1.png b", "2.png b"])
    errors = errors_of(data.load, DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache")
    assert [code for code, _ in errors] == ["ambiguous-data"]


def test_a_deep_image_among_others_is_refused_by_its_name(tmp_path):
    write_picture(tmp_path / "0.png", np.zeros((8, 8, 3), np.uint8))
    Image.fromarray((RAMP * 64).astype(np.uint16)).save(tmp_path / "1.png")
    source = write_index(tmp_path, ["0.png a", "1.png b"])
    assert errors_of(data.load, DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache") == [
        ("ambiguous-data", "index.txt:2:1")
    ]
