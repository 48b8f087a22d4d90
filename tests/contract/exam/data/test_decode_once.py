"""Pictures: what they become, and that each is decoded once, ever."""

from __future__ import annotations

import multiprocessing
import uuid
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.base.errors import DataError
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data import cache
from ianvs.exam.data.decode import decode_labels, decode_picture
from tests.errors import errors_of, located, raised
from tests.unit.exam.data.pictures import two_classes, write_index, write_picture

pytestmark = pytest.mark.usefixtures("in_own_folder")


def forbidden(path, size):
    raise AssertionError(f"{path} is decoded again")


def test_a_second_load_decodes_nothing_and_gives_the_same(tmp_path, monkeypatch):
    spec = two_classes(tmp_path)
    first = data.load(spec, tmp_path / "cache")
    monkeypatch.setattr(cache, "decode_picture", forbidden)
    second = data.load(spec, tmp_path / "cache")
    np.testing.assert_array_equal(first.train.x, second.train.x)
    assert second.fingerprint == first.fingerprint == data.fingerprint(spec, tmp_path / "cache")


def test_loaded_pictures_are_the_files_pixels_in_a_read_only_memory_map(tmp_path):
    dataset = data.load(two_classes(tmp_path), tmp_path / "cache")
    assert isinstance(dataset.train.x, np.memmap)
    assert not dataset.train.x.flags.writeable
    for name, pixels in zip(dataset.train.ids, dataset.train.x, strict=True):
        np.testing.assert_array_equal(pixels, np.asarray(Image.open(tmp_path / name)))


def test_a_changed_picture_is_decoded_again(tmp_path):
    spec = two_classes(tmp_path)
    before = np.array(data.load(spec, tmp_path / "cache").train.x)
    write_picture(tmp_path / "train/0.png", seed=999)
    after = data.load(spec, tmp_path / "cache").train.x
    assert (after[0] != before[0]).any()
    np.testing.assert_array_equal(after[1:], before[1:])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: path.unlink(),
        lambda path: flipped(path.with_name("digests.json")),
        lambda path: (path.with_name("digests.json").unlink(), path.unlink()),
    ],
)
def test_a_damaged_entry_is_made_again(tmp_path, damage):
    spec = two_classes(tmp_path)
    before = np.array(data.load(spec, tmp_path / "cache").train.x)
    for pixels in sorted((tmp_path / "cache").glob("rgb-*/pixels.npy")):
        damage(pixels)
    np.testing.assert_array_equal(data.load(spec, tmp_path / "cache").train.x, before)


def test_an_entry_that_was_only_copied_is_not_made_again(tmp_path, monkeypatch):
    spec = two_classes(tmp_path)
    data.load(spec, tmp_path / "cache")
    for pixels in (tmp_path / "cache").glob("rgb-*/pixels.npy"):
        pixels.touch()
    monkeypatch.setattr(cache, "decode_picture", forbidden)
    data.load(spec, tmp_path / "cache")
    monkeypatch.setattr("ianvs.base.digests._file_digest", forbidden)
    data.load(spec, tmp_path / "cache")  # not even read again


def test_a_note_of_digests_that_was_changed_is_no_note(tmp_path):
    spec = two_classes(tmp_path)
    before = data.fingerprint(spec, tmp_path / "cache")
    other_digits = str.maketrans("abcdef", "bcdefa")
    for memo in (tmp_path / "cache" / "digests").glob("*.json"):
        for content in ("[]", '{"kept": 3}', "", memo.read_text().translate(other_digits)):
            memo.write_text(content)
            assert data.fingerprint(spec, tmp_path / "cache") == before


def test_every_size_has_an_entry_of_its_own(tmp_path):
    for size in (None, (3, 4), (4, 3)):
        dataset = data.load(two_classes(tmp_path, image_size=size), tmp_path / "cache")
        assert dataset.train.x.shape == (4, *(size or (6, 5)), 3)


def test_resizing_is_pillows_bilinear_with_antialiasing(tmp_path):
    path = write_picture(tmp_path / "a.png", np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8))
    expected = np.asarray(Image.open(path).resize((7, 5), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(decode_picture(str(path), (5, 7)), expected)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_every_picture_becomes_rgb(tmp_path, mode):
    path = write_picture(tmp_path / "a.png", mode=mode)
    assert decode_picture(str(path), None).shape == (6, 5, 3)


def test_a_palette_label_gives_its_indices_and_resizing_invents_no_class(tmp_path):
    labels = np.random.default_rng(0).choice(np.array([0, 7, 255], dtype=np.uint8), (20, 20))
    image = Image.fromarray(labels).convert("L")
    image.putpalette([255 - value // 3 for value in range(768)])
    image.save(tmp_path / "l.png")
    np.testing.assert_array_equal(decode_labels(str(tmp_path / "l.png"), None), labels)
    assert set(np.unique(decode_labels(str(tmp_path / "l.png"), (9, 7)))) <= {0, 7, 255}


def test_a_colour_label_picture_is_refused(tmp_path):
    assert errors_of(decode_labels, str(write_picture(tmp_path / "l.png")), None) == [("ambiguous-data", "l.png")]


def test_pictures_of_two_sizes_are_refused_with_both_names_and_the_remedy(tmp_path):
    spec = two_classes(tmp_path)
    write_picture(tmp_path / "train/2.png", np.zeros((8, 9, 3), dtype=np.uint8))
    assert errors_of(data.load, spec, tmp_path / "cache") == [("mismatched-data", "train/0.png")]


def test_a_broken_picture_is_refused_by_name_and_leaves_no_half_entry(tmp_path):
    spec = two_classes(tmp_path)
    picture = tmp_path / "train/3.png"
    picture.write_bytes(picture.read_bytes()[:60])
    with pytest.raises(DataError) as caught:
        data.load(spec, tmp_path / "cache")
    assert located(raised(caught.value)) == [("unreadable-data", "train/3.png")]
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith("rgb") and path.is_dir()]
    write_picture(picture)
    assert len(data.load(spec, tmp_path / "cache").train) == 4


def test_what_a_killed_process_left_is_swept_up(tmp_path):
    left = tmp_path / "key.123.part"
    left.mkdir()
    cache.cached_arrays(tmp_path, "key", lambda: {"a": np.arange(3)})
    assert not left.exists()


def test_progress_rises_to_one(tmp_path):
    reports: list[float] = []
    data.load(two_classes(tmp_path), tmp_path / "cache", reports.append)
    assert reports == sorted(reports)
    assert reports[-1] == 1.0


def _decode_counted(folder: Path, started) -> None:
    started.wait()

    def counted(path, size, **range_of_values):
        (folder / "count" / f"{uuid.uuid4()}-{Path(path).parent.name}-{Path(path).name}").touch()
        return decode_picture(path, size, **range_of_values)

    cache.decode_picture = counted
    data.load(two_classes_spec(folder), folder / "cache")


def two_classes_spec(folder: Path) -> DatasetSpec:
    return DatasetSpec(
        train=(SourceSpec(folder / "train.txt", "index"),), test=(SourceSpec(folder / "test.txt", "index"),)
    )


def test_two_processes_at_once_decode_each_picture_once(tmp_path):
    two_classes(tmp_path)
    (tmp_path / "count").mkdir()
    context = multiprocessing.get_context("fork")
    started = context.Event()
    processes = [context.Process(target=_decode_counted, args=(tmp_path, started)) for _ in range(2)]
    for process in processes:
        process.start()
    started.set()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    decoded = sorted("/".join(call.name.split("-")[-2:]) for call in (tmp_path / "count").iterdir())
    assert decoded == ["test/0.png", "test/1.png", *(f"train/{i}.png" for i in range(4))]


def street_scenes(folder: Path, values: np.ndarray) -> DatasetSpec:
    lines = []
    for i, labels in enumerate(values):
        write_picture(folder / f"{i}.png", np.full((*labels.shape, 3), i, dtype=np.uint8))
        write_picture(folder / f"{i}_label.png", labels)
        lines.append(f"{i}.png {i}_label.png")
    source = write_index(folder, lines)
    return DatasetSpec(train=(source,), test=(source,), classes=("road", "car"))


@pytest.mark.parametrize("others", [[], [255], [2], [2, 255]])
def test_label_pictures_make_a_segmentation_dataset_in_which_255_is_ignored(tmp_path, others):
    values = np.random.default_rng(0).choice(np.array([0, 1, *others], dtype=np.uint8), (3, 8, 9))
    dataset = data.load(street_scenes(tmp_path, values), tmp_path / "cache")
    assert dataset.kind == "segmentation"
    assert dataset.ignore_index == 255
    assert dataset.train.y.dtype == np.uint8
    np.testing.assert_array_equal(dataset.train.y, np.where(values == 2, 255, values))


def test_a_label_outside_the_classes_is_refused_with_a_picture_that_holds_it(tmp_path):
    values = np.zeros((3, 4, 4), dtype=np.uint8)
    values[2, 0, 0] = 9
    assert errors_of(data.load, street_scenes(tmp_path, values), tmp_path / "cache") == [
        ("unknown-class", "2_label.png")
    ]
