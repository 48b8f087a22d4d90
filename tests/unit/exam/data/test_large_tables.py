"""Large tables: read quickly, and once. Everything must be as if they were small."""

import json
import os
import time

import numpy as np
import pytest
import torch
from PIL import Image

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data import csv_files, large_tables
from ianvs.exam.data.listing import SourceError
from tests.edits import edited
from tests.errors import errors_of, located, recorded


@pytest.fixture
def any_size(monkeypatch):
    """Small files count as large ones."""
    monkeypatch.setattr(csv_files, "WORTH_ARROW", 0)
    monkeypatch.setattr(large_tables, "WORTH_CACHING", 0)


def spec_of(path, test=None, **more):
    return DatasetSpec(train=(SourceSpec(path, "index"),), test=(SourceSpec(test or path, "index"),), **more)


def outcome(path, **more):
    try:
        found = csv_files.read_csv([path], path, spec_of(path, **more), "train")
    except SourceError as broken:
        return [(problem.message, str(problem.place)) for problem in broken.problems]
    return [
        found.form, found.label_form, np.asarray(found.x).tolist(), list(found.y), found.ids.tolist(),
        list(found.domains), found.origins, found.lines.tolist(), found.sources,
    ]  # fmt: skip


PLAIN = "a,b,label\n1,2.5,cat\n-3e-7,0.1,dog\n"
TABLES = {
    "plain": PLAIN,
    "no newline at the end": PLAIN.rstrip("\n"),
    "with domains": "a,label,domain\n1,0,x\n2,1,y\n",
    "label first, blanks in cells": "label, a ,b\n cat , 1, 2\ndog,3 ,4\n",
    "numbers that round twice": "a,label\n16777217,0\n9007199254740993,1\n0.1000000014901161193847656251,1\n",
    "nan": "a,label\n1,0\nnan,1\n",
    "inf": "a,label\ninf,1\n-Infinity,0\n",
    "labels as numbers": "a,label\n1,2.0\n2,02\n3,2\n",
    "python's own numbers": "a,label\n1_000,0\n2,1\n",
    "line ends of Windows": edited(PLAIN, "\n", "\r\n"),
    "a byte order mark": "\ufeff" + PLAIN,
    "a quote": 'a,label\n1,"cat, black"\n2,dog\n',
    "a comment that is none": "a,label\n1,#cat\n2,dog\n",
    "blank lines": "a,label\n\n1,cat\n\n2,dog\n",
    "an empty number": "a,b,label\n1,,cat\n2,3,dog\n",
    "an empty label": "a,label\n1,\n2,dog\n",
    "an empty domain": "a,label,domain\n1,0,\n2,1,y\n",
    "a word among numbers": "a,label\n1,cat\nx,dog\n",
    "NA": "a,label\n1,NA\n2,null\n",
    "a short line": "a,b,label\n1,2,cat\n3,dog\n",
    "a long line": "a,label\n1,cat,5\n2,dog\n",
    "a long and a short line": "a,b,label\n1,2,cat,9\n3,dog\n4,5,6\n",
    "a column twice": "a,a,label\n1,2,cat\n",
    "no label": "a,b\n1,2\n",
    "pictures": "image,label\none.png,cat\n",
    "only a header": "a,label\n",
    "texts": "question,answer\nwho?,me\n",
    "a number that is also x": "x,label\n1,cat\n",
    "other alphabets": "größe,label\n1,Katze\n2,猫\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_the_same_quickly_and_with_care(name, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_bytes(TABLES[name].encode())
    with_care = outcome(path)
    monkeypatch.setattr(csv_files, "WORTH_ARROW", 0)
    np.testing.assert_equal(outcome(path), with_care)


@pytest.mark.parametrize("name", ["plain", "with domains", "label first, blanks in cells", "numbers that round twice"])
def test_plain_numbers_are_read_quickly(name, tmp_path, any_size):
    path = tmp_path / "table.csv"
    path.write_text(TABLES[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_read_all_cells", lambda path: pytest.fail("it was read with care"))
        csv_files.read_csv([path], path, spec_of(path), "train")


@pytest.fixture
def parts(tmp_path):
    draw = np.random.default_rng(0)
    for name, count in (("train", 40), ("test", 15)):
        rows = [f"{a:.4f},{b:.4f},{y},d{y % 2}" for (a, b), y in zip(draw.normal(size=(count, 2)), range(count))]  # noqa: B905
        labelled = [edited(row, f",{n},", f",{n % 3},") for n, row in enumerate(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,label,domain", *labelled]) + "\n")
    return tmp_path / "train.csv", tmp_path / "test.csv"


def same(one, other):
    assert (one.name, one.kind, one.classes, one.fingerprint) == (
        other.name,
        other.kind,
        other.classes,
        other.fingerprint,
    )
    for part in ("train", "test"):
        for column in ("x", "y", "ids", "domains"):
            np.testing.assert_array_equal(getattr(getattr(one, part), column), getattr(getattr(other, part), column))


def test_what_is_kept_is_what_is_read(parts, tmp_path, monkeypatch):
    spec = spec_of(*parts)
    fresh, fingerprint = data.load(spec, tmp_path / "one"), data.fingerprint(spec, tmp_path / "one")
    monkeypatch.setattr(large_tables, "WORTH_CACHING", 0)
    cache = tmp_path / "two"
    assert data.check_dataset(spec, cache).problems == []
    monkeypatch.setattr("ianvs.exam.data.sources.read_source", lambda *given: pytest.fail("it was parsed again"))
    assert data.check_dataset(spec, cache).problems == []
    assert data.fingerprint(spec, cache) == fingerprint
    same(data.load(spec, cache), fresh)


def test_what_texts_are_about_is_kept_too(tmp_path, any_size):
    path = tmp_path / "texts.csv"
    path.write_text("question,answer,topic\nwho?,mé,people\nwhere?,here,places\n", encoding="utf-8")
    os.utime(path, (1e9, 1e9))
    cache = tmp_path / "cache"
    assert data.check_dataset(spec_of(path), cache).problems == []
    assert len(list(cache.glob("files-*/train_x.json"))) == 1
    train = data.load(spec_of(path), cache).train
    assert (train.y.tolist(), train.topics.tolist()) == (["mé", "here"], ["people", "places"])


def test_a_changed_file_or_setting_is_read_anew(parts, tmp_path, any_size):
    spec, cache = spec_of(*parts), tmp_path / "cache"
    assert data.check_dataset(spec, cache).problems == []
    before = data.fingerprint(spec, cache)
    parts[0].write_text(parts[0].read_text() + "9,9,0,d0\n")
    assert data.check_dataset(spec, cache).problems == []
    assert data.fingerprint(spec, cache) != before
    assert len(data.load(spec, cache).train) == 41
    assert data.load(spec_of(*parts, using=("d1",)), cache).train.domains.tolist() == ["d1"] * 20
    parts[0].write_text("a,b,label,domain\n1,2,0\n")
    assert recorded(data.check_dataset(spec, cache).problems) == [("invalid-record", "train.csv:2:1")]


def test_a_damaged_entry_is_made_again(parts, tmp_path, any_size):
    spec, cache = spec_of(*parts), tmp_path / "cache"
    data.check_dataset(spec, cache)
    fresh = data.load(spec, cache)
    whole = fresh.train.x.tolist()
    [kept] = cache.glob("files-*/train_x.npy")
    kept.write_bytes(kept.read_bytes()[:-4] + b"\0\0\0\0")
    assert data.check_dataset(spec, cache).problems == []
    assert data.load(spec, cache).train.x.tolist() == whole


def test_what_has_warnings_is_looked_at_each_time(tmp_path, any_size):
    path = tmp_path / "table.csv"
    path.write_text("image,label\none.png,cat\none.png,cat\n")
    (tmp_path / "one.png").write_bytes(b"")
    for _ in range(2):
        found = data.check_dataset(spec_of(path), tmp_path / "cache").problems
        assert recorded(found) == [("doubtful-data", "table.csv:3:1"), ("doubtful-data", "table.csv:3:1")]


def test_a_file_that_may_not_be_read_is_told_in_words(parts, monkeypatch, any_size):
    def refused(path, *given, **more):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refused)
    assert errors_of(csv_files.read_csv, [parts[0]], parts[0], spec_of(*parts), "train") == [
        ("unreadable-data", "train.csv")
    ]


@pytest.mark.parametrize("record", [{"question": "who?", "answer": "me"}, {"instruction": "who?", "output": "me"}])
def test_of_conversations_too_the_fingerprint_is_kept(record, tmp_path, monkeypatch):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({**record, "n": n}) + "\n" for n in range(5)))
    spec = spec_of(path)
    fingerprint, cache = data.fingerprint(spec, tmp_path / "one"), tmp_path / "two"
    monkeypatch.setattr(large_tables, "WORTH_CACHING", 0)
    assert data.check_dataset(spec, cache).problems == []
    with monkeypatch.context() as patch:
        patch.setattr("ianvs.exam.data.file_formats.read_records", lambda path: pytest.fail("it was parsed again"))
        assert data.check_dataset(spec, cache).problems == []
        assert data.fingerprint(spec, cache) == fingerprint
    assert len(data.load(spec, cache).train) == 5
    path.write_text(edited(path.read_text(), "me", "you", count=1))
    assert data.fingerprint(spec, cache) != fingerprint
    path.write_text(path.read_text() + "{\n")
    assert recorded(data.check_dataset(spec, cache).problems) == [("unreadable-data", "texts.jsonl:6:2")]


def save_arrays(folder, ending, y):
    """Arrays in files of that ending; what is to be named in the testenv, and the file that holds y."""
    x = np.arange(2 * len(y), dtype=np.float32).reshape(-1, 2)
    if ending == ".npz":
        np.savez(folder / "all.npz", x=x, y=y)
    elif ending == ".pt":
        torch.save({"x": torch.from_numpy(x), "y": torch.from_numpy(y)}, folder / "all.pt")
    else:
        np.save(folder / "x_all.npy", x)
        np.save(folder / "y_all.npy", y)
        return folder / "x_all.npy", folder / "y_all.npy"
    return folder / f"all{ending}", folder / f"all{ending}"


@pytest.mark.parametrize("ending", [".npz", ".npy", ".pt"])
def test_arrays_are_looked_into_once_for_all_plans(ending, tmp_path, monkeypatch):
    named, labels = save_arrays(tmp_path, ending, np.array([0, 1, 1]))
    spec, cache = spec_of(named), tmp_path / "cache"
    fingerprint = data.fingerprint(spec, tmp_path / "other")
    monkeypatch.setattr(large_tables, "WORTH_CACHING", 0)
    assert data.check_dataset(spec, cache).problems == []
    with monkeypatch.context() as patch:
        patch.setattr("ianvs.exam.data.sources.read_source", lambda *given: pytest.fail("they were read again"))
        assert data.check_dataset(spec, cache).problems == []
        assert data.fingerprint(spec, cache) == fingerprint
    assert data.load(spec, cache).train.y.tolist() == [0, 1, 1]
    save_arrays(tmp_path, ending, np.array([0, 1, 2]))
    assert data.check_dataset(spec, cache).problems == []
    assert data.fingerprint(spec, cache) != fingerprint
    labels.write_bytes(labels.read_bytes()[:50])
    assert located(data.check_dataset(spec, cache).problems) == [("unreadable-data", labels.name)]


def test_questions_and_answers_are_parsed_once(tmp_path, monkeypatch):
    path = tmp_path / "texts.jsonl"
    said = ["who?", "", "two\r\nlines\0", "Wer? \U0001f600", "half a pair: \ud800", "x" * 5000]
    records = [{"question": text, "answer": text[::-1] or "-", "domain": f"d{len(text) % 2}"} for text in said]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    spec, cache = spec_of(path, title="texts"), tmp_path / "two"
    fresh = data.load(spec, tmp_path / "one")
    monkeypatch.setattr(large_tables, "WORTH_CACHING", 0)
    assert data.check_dataset(spec, cache).problems == []
    monkeypatch.setattr("ianvs.exam.data.file_formats.read_records", lambda path: pytest.fail("it was parsed again"))
    kept = data.load(spec, cache)
    same(kept, fresh)
    assert kept.train.x.tolist() == said
    assert kept.kind == fresh.kind == "text"


@pytest.fixture
def pictures(tmp_path):
    """A folder of pictures and an index of each form, all of them older than a minute."""
    names = [f"{name}.png" for name in ("one", "two", "drei Vögel")]
    for name in names:
        Image.new("RGB", (4, 4)).save(tmp_path / name)
        os.utime(tmp_path / name, (time.time() - 60,) * 2)
    (tmp_path / "pictures.csv").write_text("image,label\n" + "".join(f"{name},cat\n" for name in names))
    (tmp_path / "pictures.txt").write_text("".join(f"{name}\tcat\n" for name in names))
    (tmp_path / "segments.txt").write_text("".join(f"{name}\t{name}\n" for name in names))
    return tmp_path


@pytest.mark.parametrize("index", ["pictures.csv", "pictures.txt", "segments.txt"])
def test_a_list_of_files_is_not_read_again_while_they_stay(index, pictures, any_size, monkeypatch):
    classes = ("street", "sky") if index == "segments.txt" else None
    spec, cache = spec_of(pictures / index, classes=classes), pictures / "cache"
    fingerprint = data.fingerprint(spec, pictures / "other")
    assert data.check_dataset(spec, cache).problems == []
    for name in ("read_source",):
        monkeypatch.setattr(f"ianvs.exam.data.sources.{name}", lambda *given: pytest.fail("it was read again"))
    monkeypatch.setattr(large_tables, "_BLOCK", 2)
    found = data.check_dataset(spec, cache)
    assert found.problems == []
    assert data.fingerprint(spec, cache) == fingerprint
    monkeypatch.setattr("os.stat", lambda *given, **more: pytest.fail("it was looked for again"))
    assert data.fingerprint(spec, cache, found.samples) == fingerprint


@pytest.mark.parametrize("index", ["pictures.csv", "pictures.txt", "segments.txt"])
def test_pictures_of_a_list_are_opened_as_they_were_read(index, pictures, any_size, monkeypatch):
    classes = ("street", "sky") if index == "segments.txt" else None
    spec, cache = spec_of(pictures / index, classes=classes), pictures / "cache"
    fresh = data.load(spec, pictures / "other")
    data.check_dataset(spec, cache)
    data.load(spec, cache)
    with monkeypatch.context() as patch:
        for name in ("read_source",):
            patch.setattr(f"ianvs.exam.data.sources.{name}", lambda *given: pytest.fail("it was read again"))
        kept = data.load(spec, cache)
    same(kept, fresh)
    assert (kept.folders, kept.ignore_index, kept.notes) == (fresh.folders, fresh.ignore_index, fresh.notes)
    for pixels in cache.glob("*/pixels.npy"):
        pixels.write_bytes(pixels.read_bytes()[:-4] + b"\1\1\1\1")
    same(data.load(spec, cache), fresh)
    Image.new("RGB", (4, 4), "red").save(pictures / "two.png")
    if classes is None:
        assert data.load(spec, cache).train.x[1, 0, 0].tolist() == [255, 0, 0]


def test_pictures_are_not_copied_where_the_workspace_is_a_link(pictures, any_size):
    (pictures / "real").mkdir()
    (pictures / "link").symlink_to(pictures / "real")
    spec, cache = spec_of(pictures / "pictures.txt"), pictures / "link" / "cache"
    data.check_dataset(spec, cache)
    data.load(spec, cache)
    [kept] = cache.glob("files-*/facts.json")
    assert not list(kept.parent.glob("*_x.npy"))
    assert len(data.load(spec, cache).train.x) == 3


@pytest.mark.parametrize("index", ["pictures.csv", "segments.txt"])
def test_a_file_of_a_list_that_changes_is_noticed(index, pictures, any_size):
    classes = ("street", "sky") if index == "segments.txt" else None
    spec, cache = spec_of(pictures / index, classes=classes), pictures / "cache"
    assert data.check_dataset(spec, cache).problems == []
    before = data.fingerprint(spec, cache)
    Image.new("RGB", (4, 4), "red").save(pictures / "two.png")
    changed = data.fingerprint(spec, cache)
    assert changed != before
    assert data.check_dataset(spec, cache).problems == []
    assert data.fingerprint(spec, cache) == changed
    (pictures / "one.png").unlink()
    place = f"{index}:{2 if index == 'pictures.csv' else 1}:1"
    assert set(recorded(data.check_dataset(spec, cache).problems)) == {("missing-file", place)}


def test_a_list_is_kept_anew_when_its_files_have_changed(pictures, any_size, monkeypatch):
    spec, cache = spec_of(pictures / "pictures.txt"), pictures / "cache"
    data.check_dataset(spec, cache)
    Image.new("RGB", (4, 4), "red").save(pictures / "two.png")
    os.utime(pictures / "two.png", (1, 1))
    data.check_dataset(spec, cache)
    changed = data.fingerprint(spec, cache)
    assert data.load(spec, cache).fingerprint == changed
    monkeypatch.setattr("ianvs.exam.data.sources.read_source", lambda *given: pytest.fail("it was read again"))
    assert data.check_dataset(spec, cache).problems == []
    assert data.fingerprint(spec, cache) == changed
    assert data.load(spec, cache).train.x[1, 0, 0].tolist() == [255, 0, 0]


def test_files_that_were_written_just_now_are_looked_into(pictures, any_size):
    """They may change again without another time of modification."""
    spec, cache = spec_of(pictures / "pictures.txt"), pictures / "cache"
    os.utime(pictures / "two.png")
    assert data.check_dataset(spec, cache).problems == []
    assert list(cache.glob("list-*")) == []


def test_files_that_may_be_found_elsewhere_first_are_looked_for(pictures, any_size):
    """An index of the folder `root`: what is not there lies beside the index, until it is there."""
    (pictures / "root").mkdir()
    spec, cache = spec_of(pictures / "pictures.txt", root=pictures / "root"), pictures / "cache"
    assert data.check_dataset(spec, cache).problems == []
    before = data.fingerprint(spec, cache)
    Image.new("RGB", (4, 4), "red").save(pictures / "root" / "two.png")
    assert data.fingerprint(spec, cache) != before
