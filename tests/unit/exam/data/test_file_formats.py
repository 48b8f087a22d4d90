"""What a label, an empty cell and a record are, by every door; and the shapes in which people have their files."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from ianvs.config.spec import DatasetSpec, DataTypeSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.load_listing import check_listed, load_listed, warnings_of
from ianvs.exam.data.normalize_user_data import store_returned
from ianvs.exam.data.sources import read_parts
from tests.errors import errors_of, located, recorded

pytestmark = pytest.mark.usefixtures("in_own_folder")

ROWS = 6


def spec_of(path, test=None, **more):
    more = {"test_share": 0.34} | more if test is None else more
    tested = () if test is None else (SourceSpec(test, "data"),)
    return DatasetSpec(train=(SourceSpec(path, "data"),), test=tested, **more)


def loaded(spec, cache):
    parts = read_parts(spec)
    check_listed(parts, spec)
    return load_listed(parts, spec, "", cache), [warning.message for warning in warnings_of(parts, spec)]


def refusal(spec):
    with pytest.raises(SourceError) as caught:
        read_parts(spec)
    return recorded(caught.value.problems)


def text_table(label):
    return "a,label\n" + "".join(f"{i}.5,{label(i)}\n" for i in range(ROWS))


def save(folder, form, labels):
    """The same samples and labels in one of the formats; the file."""
    x = np.arange(ROWS, dtype=np.float32)[:, None] + 0.5
    path = folder / f"t.{form}"
    if form == "csv":
        path.write_text(text_table(lambda i: labels[i].decode() if isinstance(labels[i], bytes) else labels[i]))
    elif form in ("json", "jsonl"):
        said = [{"a": float(x[i, 0]), "label": labels[i]} for i in range(ROWS)]
        path.write_text(json.dumps(said) if form == "json" else "\n".join(map(json.dumps, said)))
    elif form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow = pytest.importorskip("pyarrow")
        parquet.write_table(pyarrow.table({"a": x[:, 0], "label": labels}), path)
    else:
        np.savez(path, x=x, y=np.array(labels))
    return path


WRITTEN = {
    "whole numbers": [0, 1, 2] * 2,
    "floats": [0.0, 1.0, 2.0] * 2,
    "texts of floats": ["0.0", "1.0", "2.0"] * 2,
    "texts": ["0", "1", "2"] * 2,
    "bytes": [b"0", b"1", b"2"] * 2,
}


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "npz"])
@pytest.mark.parametrize("written", WRITTEN)
def test_the_classes_are_the_same_whichever_file_they_come_from(form, written, tmp_path):
    if (form, written) == ("json", "bytes"):
        pytest.skip("there is no such file")
    dataset, _ = loaded(spec_of(save(tmp_path, form, WRITTEN[written])), tmp_path / "cache")
    assert dataset.classes == ("0", "1", "2")
    by_row = dict(
        zip((*dataset.train.x[:, 0], *dataset.test.x[:, 0]), (*dataset.train.y, *dataset.test.y), strict=True)
    )
    assert [int(by_row[row + 0.5]) for row in range(ROWS)] == [0, 1, 2] * 2


@pytest.mark.parametrize("form", ["csv", "npz", "parquet"])
def test_names_of_a_class_list_that_look_like_floats_are_names(form, tmp_path):
    spec = spec_of(save(tmp_path, form, ["2.0", "1.0", "1.0"] * 2), classes=("2.0", "1.0"))
    dataset, _ = loaded(spec, tmp_path / "cache")
    assert dataset.classes == ("2.0", "1.0")
    assert np.bincount([*dataset.train.y, *dataset.test.y]).tolist() == [2, 4]


@pytest.mark.parametrize("form", ["csv", "jsonl", "npz", "parquet"])
def test_an_empty_label_is_refused_with_its_row(form, tmp_path):
    labels = ["a", "b", "", "a", "b", "a"] if form == "csv" else ["a", "b", None, "a", "b", "a"]
    if form == "npz":
        labels = [1.0, 0.0, np.nan, 1.0, 0.0, 1.0]
    spec = spec_of(save(tmp_path, form, labels))
    place = {"csv": "t.csv:4:1", "jsonl": "t.jsonl:3:1"}.get(form, f"t.{form}")
    assert refusal(spec) == [("invalid-array" if form == "npz" else "invalid-record", place)]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_empty_cell_among_numbers_is_told_with_its_row(form, tmp_path):
    cells = [1, 2, None, 4, None, 6]
    path = tmp_path / f"t.{form}"
    if form == "csv":
        path.write_text("a,label\n" + "".join(f"{'' if one is None else one},x\n" for one in cells))
    elif form == "jsonl":
        path.write_text("".join(json.dumps({"a": one, "label": "x"}) + "\n" for one in cells))
    else:
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(pyarrow.table({"a": cells, "label": ["x"] * 6}), path)
    spec = spec_of(path)
    line = {"csv": 4, "jsonl": 3, "parquet": 0}[form]
    assert refusal(spec) == [("invalid-record", f"{path.name}:{line}:1" if line else path.name)]
    with pytest.raises(SourceError) as caught:
        read_parts(spec)
    message = caught.value.problems[0].message
    assert "'a' is empty (2 rows are so)" in message
    assert ("row 3:" in message) == (form == "parquet")


@pytest.mark.parametrize(("mark", "called"), [(";", "';'"), ("\t", "tabs"), ("|", "'|'")])
def test_cells_may_be_parted_by_other_marks_and_decimals_by_commas(mark, called, tmp_path):
    rows = [(f"{i},25", f"-{i},5e1", "xy"[i % 2]) for i in range(ROWS)]
    (tmp_path / "t.csv").write_text("\n".join(map(mark.join, [("a", "b", "label"), *rows])))
    dataset, told = loaded(spec_of(tmp_path / "t.csv"), tmp_path / "cache")
    assert sorted(dataset.train.x[:, 0].tolist() + dataset.test.x[:, 0].tolist()) == [i + 0.25 for i in range(ROWS)]
    assert min(dataset.train.x[:, 1].min(), dataset.test.x[:, 1].min()) == -55
    assert any(called in one and "decimals have commas" in one for one in told)
    (tmp_path / "t.tsv").write_text("a\tlabel\n1\tx\n2\ty\n" * 1)
    spec = spec_of(tmp_path / "t.tsv", tmp_path / "t.tsv")
    assert [str(one) for one in data.check_dataset(spec, tmp_path / "cache").problems if "parted" in one.message] == []


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("sep=;\na;b;label\n0,5;1;x\n1,5;2;y\n", True),
        ("sep=,\na,b,label\n0.5,1,x\n1.5,2,y\n", False),
        ('"sep=:"\na:b:label\n0.5:1:x\n1.5:2:y\n', True),
        ('a,b,label\n"0,5",1,x\n"1,5",2,y\n', True),
        ("\ufeffSEP=\t\n\na\tb\tlabel\n0.5\t1\tx\n1.5\t2\ty\n", True),
    ],
)
def test_a_csv_as_spreadsheets_write_it(tmp_path, text, noted):
    (tmp_path / "t.csv").write_text(text)
    train, _ = read_parts(spec_of(tmp_path / "t.csv", tmp_path / "t.csv"))
    assert (train.x.tolist(), train.y.tolist()) == ([[0.5, 1], [1.5, 2]], ["x", "y"])
    assert (train.features, bool(recorded(train.warnings))) == (("a", "b"), noted)


def test_places_in_a_csv_with_its_separator_are_those_of_the_file(tmp_path):
    (tmp_path / "t.csv").write_text("sep=;\na;split;label\n1;train;x\n2;test;y\n3;train;\n")
    assert refusal(spec_of(tmp_path / "t.csv", tmp_path / "t.csv")) == [("invalid-record", "t.csv:5:1")]
    (tmp_path / "t.csv").write_text("sep=;\na;split;label\n1;train;x\n2;test;y\n")
    assert refusal(spec_of(tmp_path / "t.csv")) == [("conflicting-keys", "t.csv:2:3")]


@pytest.mark.parametrize("cells", [('"1,234"', '"2,345"'), ('"0,5"', "1.5")])
def test_quoted_commas_that_may_part_thousands_are_refused(tmp_path, cells):
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"{cell},x\n" for cell in cells))
    assert refusal(spec_of(tmp_path / "t.csv", tmp_path / "t.csv")) == [("invalid-record", "t.csv:2:1")]


@pytest.mark.parametrize("end", ["", "\n"])
def test_lists_on_the_lines_of_a_jsonl_are_told_by_line(tmp_path, end):
    (tmp_path / "t.jsonl").write_text('["a.png", "cat"]\n["b.png", "dog"]' + end)
    assert refusal(spec_of(tmp_path / "t.jsonl")) == [
        ("invalid-record", "t.jsonl:1:1"),
        ("invalid-record", "t.jsonl:2:1"),
    ]


@pytest.mark.parametrize("cell", ["NA", "?", "-", "n/a", "o.5", "nan", "NaN"])
def test_a_cell_without_a_number_is_told_with_its_line(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"a,b,label\n1,1,x\n2,{cell},y\n3,2,x\n")
    assert refusal(spec_of(tmp_path / "t.csv", tmp_path / "t.csv")) == [("invalid-record", "t.csv:3:1")]


def test_a_column_of_few_numbers_among_missing_ones_is_numeric(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\nNA,x\nNA,y\n3,x\n")
    assert refusal(spec_of(tmp_path / "t.csv", tmp_path / "t.csv")) == [("invalid-record", "t.csv:2:1")]


def test_a_comma_between_thousands_is_no_decimal_comma(tmp_path):
    (tmp_path / "t.csv").write_text("a;label\n1.234,5;x\n2;y\n")
    assert refusal(spec_of(tmp_path / "t.csv")) == [("missing-column", "t.csv:2:1")]


RECORDS = [{"a": float(i), "label": "xy"[i % 2]} for i in range(ROWS)]
SHAPES = {
    "a list": (".json", json.dumps(RECORDS)),
    "lists by column": (".json", json.dumps({name: [one[name] for one in RECORDS] for name in RECORDS[0]})),
    "a list inside": (".json", json.dumps({"version": 1, "data": RECORDS})),
    "by id": (".json", json.dumps({f"r{i}": one for i, one in enumerate(RECORDS)})),
    "a list in jsonl": (".jsonl", json.dumps(RECORDS, indent=1)),
    "lines": (".jsonl", "\n".join(map(json.dumps, RECORDS))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_records_are_read_in_the_shapes_that_people_have(shape, tmp_path):
    suffix, text = SHAPES[shape]
    path = tmp_path / f"t{suffix}"
    path.write_text(text)
    dataset, _ = loaded(spec_of(path, path, label="label"), tmp_path / "cache")
    assert (dataset.classes, dataset.train.x[:, 0].tolist()) == (("x", "y"), [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2], "label": ["x"]},
        {"train": RECORDS, "test": RECORDS},
        {"question": "why?", "answer": "so"},
        "records",
        {},
    ],
)
def test_other_json_is_refused_with_what_is_read(value, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(value))
    assert refusal(spec_of(tmp_path / "t.json")) == [("invalid-record", "t.json:1:1")]


def test_the_place_of_a_record_by_its_id_is_its_own(tmp_path):
    (tmp_path / "t.json").write_text('{"r0": {"a": 1, "label": "x"},\n "r1": {"a": "one", "label": "y"}}')
    assert refusal(spec_of(tmp_path / "t.json")) == [("missing-column", "t.json:2:1")]


def pictures(folder, names):
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), (10 * i, 0, 0)).save(folder / name)


@pytest.mark.parametrize(
    "lines",
    [
        ["img/a.png,cat", "img/b 1.png,big dog", "img/c.PNG , cat"],
        ["img\\a.png cat", '"img\\b 1.png" "big dog"', "img\\c.PNG cat"],
        ["img/a.png;cat", "img/b 1.png;big dog", "img/c.PNG;cat"],
    ],
)
def test_an_index_may_have_commas_or_backslashes(lines, tmp_path):
    pictures(tmp_path, ["img/a.png", "img/b 1.png", "img/c.PNG"])
    (tmp_path / "t.txt").write_text("\n".join(lines))
    train, _ = read_parts(spec_of(tmp_path / "t.txt", tmp_path / "t.txt"))
    assert train.y.tolist() == ["cat", "big dog", "cat"]
    assert train.ids.tolist() == ["img/a.png", "img/b 1.png", "img/c.PNG"]


def test_a_name_with_a_comma_in_it_stays_whole(tmp_path):
    pictures(tmp_path, ["a,b.png", "c.png"])
    (tmp_path / "t.txt").write_text("a,b.png cat\nc.png 1,5\n")
    train, _ = read_parts(spec_of(tmp_path / "t.txt", tmp_path / "t.txt"))
    assert (train.ids.tolist(), train.y.tolist()) == (["a,b.png", "c.png"], ["cat", "1,5"])


def split_table(path, *splits):
    path.write_text("a,split,label\n" + "".join(f"{i},{split},{'xy'[i % 2]}\n" for i, split in enumerate(splits)))
    return path


def test_a_column_split_gives_the_rows_to_the_parts(tmp_path):
    path = split_table(tmp_path / "t.csv", "train", "Train", "test", "train", "Testing", "train")
    dataset, told = loaded(spec_of(path, path), tmp_path / "cache")
    assert (dataset.train.x[:, 0].tolist(), dataset.test.x[:, 0].tolist()) == ([0, 1, 3, 5], [2, 4])
    assert any("the column 'split' is read as the split: 4 rows for training, 2 for testing" in one for one in told)
    assert refusal(spec_of(path)) == [("conflicting-keys", "t.csv:1:3")]


@pytest.mark.parametrize("word", ["val", "Valid", "validation", "dev"])
def test_validation_rows_are_left_out_beside_test_rows_and_else_the_test_part(tmp_path, word):
    path = split_table(tmp_path / "t.csv", "train", "train", word, "test", word, "test")
    listings = read_parts(spec_of(path, path))
    assert [listing.x[:, 0].tolist() for listing in listings] == [[0, 1], [3, 5]]
    unused = [warning for warning in listings[1].warnings if "validation rows" in warning.message]
    assert located(unused) == [("doubtful-data", "t.csv:1:3")]
    assert word == "dev" or recorded(unused)
    path = split_table(tmp_path / "t.csv", "train", "train", word, word)
    assert [listing.x[:, 0].tolist() for listing in read_parts(spec_of(path, path))] == [[0, 1], [2, 3]]


def parts_of(folder, packed, layouts):
    """Class folders cat and dog of two pictures below each of `layouts`, as a folder or a zip; its path."""
    pictures(
        folder, [layout.format(label) + f"/{i}.png" for layout in layouts for label in ("cat", "dog") for i in (0, 1)]
    )
    if not packed:
        return folder
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in sorted(folder.rglob("*.png")):
            archive.write(file, file.relative_to(folder.parent))
    return folder.with_suffix(".zip")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "layouts",
    [
        ("train/{}", "test/{}"),
        ("Training/{}", "Testing/{}"),
        ("train/{}", "val/{}"),
        ("train/{}", "test/{}", "valid/{}"),
        ("{}/train", "{}/test"),
        ("train/{}/deep", "test/{}/deep"),
    ],
)
def test_folders_of_parts_are_the_parts_and_no_classes(tmp_path, packed, layouts):
    path = parts_of(tmp_path / "data", packed, layouts)
    parts = read_parts(spec_of(path, path))
    assert [sorted(listing.y.tolist()) for listing in parts] == [["cat", "cat", "dog", "dog"]] * 2
    assert (bool(parts[0].warnings), len(parts[1].warnings)) == (True, len(layouts) == 3)  # the split is told once
    assert any("validation" in warning.message for warning in parts[1].warnings) == (len(layouts) == 3)
    assert packed or not {*parts[0].ids.tolist()} & {*parts[1].ids.tolist()}
    with pytest.raises(SourceError) as caught:
        read_parts(spec_of(path))
    assert located(caught.value.problems) == [("conflicting-keys", path.name)]


@pytest.mark.parametrize("tested", ["Testing", "test", "Val", "dev"])
def test_a_root_has_its_parts_by_the_same_words(tmp_path, tested):
    path = parts_of(tmp_path / "data", False, ("Training/{}", f"{tested}/{{}}"))
    spec = DatasetSpec(root=path)
    assert [source.path.name for source in (*spec.train, *spec.test)] == ["Training", tested]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "layouts", [("real/train/{}", "real/test/{}", "sketch/train/{}", "sketch/test/{}"), ("real/{}", "sketch/{}")]
)
def test_domains_in_folders_with_and_without_parts(tmp_path, packed, layouts):
    path = parts_of(tmp_path / "data", packed, layouts)
    spec = spec_of(path, path, using=("real", "sketch"))
    for listing in read_parts(spec):
        assert {*listing.y.tolist()} == {"cat", "dog"}
        assert {*listing.domains.tolist()} == {"real", "sketch"}
    unnamed = read_parts(spec_of(path, path))[0]
    assert any("using: [real, sketch]" in warning.message for warning in unnamed.warnings)
    with pytest.raises(SourceError) as caught:
        read_parts(spec_of(path, path, using=("real", "sketsh")))
    assert {problem.code for problem in caught.value.problems} == {"unknown-domain"}
    assert "sketch" in str(caught.value)


@pytest.mark.parametrize(
    ("layouts", "using", "refused"),
    [
        (("train", "test"), (), True),  # no class folders
        (("train/{}", "test/{}", "extra/{}"), (), True),
        (("train/{}", "bus/{}"), (), False),
        (("train/{}", "test/{}"), ("train", "test"), False),
    ],
)
def test_what_may_be_parts_or_classes_is_refused_and_what_is_named_is_not(tmp_path, layouts, using, refused):
    path = parts_of(tmp_path / "data", False, layouts)
    spec = spec_of(path, path, using=using)
    if refused:
        assert refusal(spec) == [("ambiguous-data", "data")]
    else:
        assert len(read_parts(spec)[0]) == 8


def test_a_column_split_of_other_words_is_a_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,split,label\n1,3,x\n2,4,y\n")
    dataset, _ = loaded(spec_of(path, path), tmp_path / "cache")
    assert dataset.train.x.tolist() == [[1, 3], [2, 4]]


def test_folders_of_domains_are_told_with_the_key_that_reads_them(tmp_path):
    names = [f"{domain}/{label}/{i}.png" for domain in ("sun", "fog") for label in ("cat", "dog") for i in range(2)]
    pictures(tmp_path / "data", names)
    spec = spec_of(tmp_path / "data", tmp_path / "data")
    assert any("`using: [fog, sun]`" in one for one in loaded(spec, tmp_path / "cache")[1])
    dataset, told = loaded(spec_of(tmp_path / "data", tmp_path / "data", using=("fog", "sun")), tmp_path / "cache")
    assert dataset.classes == ("cat", "dog") and not any("`using" in one for one in told)


def zipped(path, names):
    with zipfile.ZipFile(path, "w") as file:
        for i, name in enumerate(names):
            with file.open(name, "w") as entry:
                Image.new("RGB", (4 + i % 2, 3), (10 * i, 0, 0)).save(entry, "png")
    return path


def test_class_folders_in_a_zip_are_read(tmp_path):
    names = [f"photos/{label}/{i}.png" for label in ("cat", "dog") for i in (0, 2)]
    path = zipped(tmp_path / "t.zip", [*names, "__MACOSX/photos/cat/._0.png"])
    dataset, _ = loaded(spec_of(path, path, image_size=(3, 4)), tmp_path / "cache")
    assert (dataset.classes, dataset.train.x.shape) == (("cat", "dog"), (4, 3, 4, 3))
    assert dataset.train.y.tolist() == [0, 0, 1, 1]
    assert dataset.train.x[:, 0, 0, 0].tolist() == [0, 10, 20, 30]


def test_a_zip_may_have_a_folder_for_each_part(tmp_path):
    path = zipped(tmp_path / "t.zip", [f"{part}/{label}/0.png" for part in ("train", "test") for label in "ab"])
    dataset, _ = loaded(spec_of(path, path, image_size=(3, 4)), tmp_path / "cache")
    assert (dataset.classes, len(dataset.train), len(dataset.test)) == (("a", "b"), 2, 2)
    assert dataset.test.x[:, 0, 0, 0].tolist() == [20, 30]


@pytest.mark.parametrize(
    ("names", "code"), [([], "empty-dataset"), (["a.png", "cat/b.png"], "invalid-record"), (None, "unreadable-data")]
)
def test_a_zip_of_something_else_is_refused(names, code, tmp_path):
    path = tmp_path / "t.zip"
    path.write_bytes(b"PK and nothing else") if names is None else zipped(path, names)
    assert refusal(spec_of(path, path)) == [(code, "t.zip")]


def test_an_unknown_format_is_told_with_the_way_out(tmp_path):
    (tmp_path / "t.mat").write_bytes(b"")
    with pytest.raises(SourceError) as caught:
        read_parts(spec_of(tmp_path / "t.mat", tmp_path / "t.mat"))
    assert recorded(caught.value.problems) == [("wrong-path-type", "t.mat")]
    assert "url: ./mine.py" in caught.value.problems[0].message


@pytest.mark.parametrize(("labels", "share"), [(["x", "y"], 0.2), (["x"] * 20 + ["y"] * 20, 0.001), (["x"], 0.9)])
def test_a_share_that_draws_no_test_sample_at_all_is_refused(tmp_path, labels, share):
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    assert refusal(spec_of(tmp_path / "t.csv", test_share=share)) == [("missing-data", "")]


def test_the_share_that_the_message_names_draws_a_sample(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(36)))
    with pytest.raises(SourceError) as caught:
        read_parts(spec_of(tmp_path / "t.csv", test_share=0.001))
    share = float(str(caught.value).partition("Raise it to ")[2].split()[0])
    assert len(read_parts(spec_of(tmp_path / "t.csv", test_share=share))[1]) == 1


def test_a_class_that_no_test_sample_is_drawn_of_is_told_with_the_share_that_does(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"{i},{'x' if i < 18 else 'rare'}\n" for i in range(20)))
    found = data.check_dataset(spec_of(tmp_path / "t.csv", test_share=0.1), tmp_path / "cache").problems
    assert recorded(found) == [("doubtful-data", "")]
    assert "no test sample of rare" in found[0].message and "Raise `test_share` to 0.5" in found[0].message
    assert data.check_dataset(spec_of(tmp_path / "t.csv", test_share=0.5), tmp_path / "cache").problems == []


@pytest.mark.parametrize("answer", [4, 4.0, "4"])
def test_an_answer_in_a_number_is_a_text(answer, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"question": f"2 + {i}?", "answer": answer}) + "\n" for i in range(3)))
    dataset, _ = loaded(spec_of(path, path), tmp_path / "cache")
    assert (dataset.kind, dataset.train.y.tolist()) == ("text", ["4"] * 3)


def test_numbers_with_fractions_are_no_classes_and_told_as_such(tmp_path):
    path = save(tmp_path, "npz", [0.5, 1.0, 2.0] * 2)
    assert refusal(spec_of(path)) == [("invalid-array", "t.npz")]
    dataset, _ = loaded(spec_of(path, data_type=DataTypeSpec("regression")), tmp_path / "cache")
    assert dataset.kind == "regression"


def returned(folder, images, **settings):
    """What is stored of PIL pictures that a function returned."""
    folder.mkdir()
    part = (images, [0] * len(images))
    store_returned((part, part), folder, "f()", DatasetSpec(**settings))
    return np.load(folder / "train" / "x.npy")


@pytest.mark.parametrize("order", [["L", "RGB", "L", "RGBA", "P"], ["RGB", "L", "RGB"], ["L", "L"]])
def test_grey_pictures_beside_coloured_ones_are_coloured(order, tmp_path):
    images = [Image.new("L", (4, 3), 10 * i).convert(mode) for i, mode in enumerate(order)]
    x = returned(tmp_path / "kept", images)
    assert x.shape == ((len(order), 3, 4) if {*order} == {"L"} else (len(order), 3, 4, 3))
    assert x.reshape(len(order), -1).min(axis=1).tolist() == [10 * i for i in range(len(order))]
    assert x.reshape(len(order), -1).max(axis=1).tolist() == [10 * i for i in range(len(order))]


def test_pictures_of_a_function_are_brought_to_the_size_of_the_dataset(tmp_path):
    images = [Image.new(mode, size, 7) for mode, size in (("L", (5, 4)), ("RGB", (9, 2)))]
    assert returned(tmp_path / "sized", images, image_size=(3, 6)).shape == (2, 3, 6, 3)
    assert errors_of(returned, tmp_path / "not", images) == [("mismatched-data", "")]
