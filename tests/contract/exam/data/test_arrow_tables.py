"""Parquet, arrow and feather files, data frames and Hugging Face datasets: what becomes of them, what is refused."""

from __future__ import annotations

import io
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from PIL import Image

from ianvs.base.errors import DataError
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.sources import read_parts
from tests.errors import located, raised, recorded

pytestmark = pytest.mark.usefixtures("in_own_folder", "functions_in_forks")

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")

NAMES = ("cat", "dog", "eel")


def files_spec(path, test=None, **more):
    return DatasetSpec(train=(SourceSpec(path, "data"),), test=(SourceSpec(test or path, "data"),), **more)


def loaded(spec, cache):
    assert [problem for problem in data.check_dataset(spec, cache).problems if not problem.warning] == []
    return data.load(spec, cache)


def refusal(spec, cache, shown=recorded):
    """What `validate` finds, which a run says in the same words."""
    problems = data.check_dataset(spec, cache).problems
    with pytest.raises(DataError) as caught:
        data.load(spec, cache)
    assert str(caught.value) == "\n".join(str(problem) for problem in problems)
    return shown(raised(caught.value))


def authored(tmp_path, body, **more):
    """A dataset of a function whose body is given."""
    (tmp_path / "mine.py").write_text(f"import pandas, datasets, numpy as np\n\n\ndef mine():\n{body}")
    return DatasetSpec(name="mine", url=tmp_path / "mine.py", **more)


def body(text):
    return "\n".join(f"    {line}" for line in dedent(text).strip().splitlines()) + "\n"


def table(**columns):
    return arrow.table(columns)


def png(size, value):
    file = io.BytesIO()
    Image.new("RGB", size, (value, 0, 0)).save(file, "png")
    return file.getvalue()


def of_hugging_face(count=6, **more):
    columns = {"label": [i % 3 for i in range(count)], **more}
    features = datasets.Features({"label": datasets.ClassLabel(names=list(NAMES[::-1]))})
    features |= {"image": datasets.Image()} if "image" in more else {"text": datasets.Value("string")}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_numeric_columns_of_a_file_are_what_a_csv_of_them_is(tmp_path, suffix):
    held = table(a=[1.5, -3, 0.1], label=["x", "y", "x"], b=[1, 2, 3], domain=["p", "p", "q"])
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        parquet.write_table(held, path)
    else:
        with arrow.ipc.new_file(path, held.schema) as file:
            file.write_table(held)
    (tmp_path / "t.csv").write_text("a,label,b,domain\n1.5,x,1,p\n-3,y,2,p\n0.1,x,3,q\n")
    found = loaded(files_spec(path), tmp_path / "one")
    of_csv = loaded(files_spec(tmp_path / "t.csv"), tmp_path / "two")
    assert found.train.x.dtype == np.float32
    for name in ("x", "y", "ids", "domains"):
        np.testing.assert_array_equal(getattr(found.train, name), getattr(of_csv.train, name))
    assert found.classes == of_csv.classes


def test_the_index_of_a_data_frame_is_no_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2, 3, 4], "label": list("xyxy")}).iloc[[3, 0, 2]]
    frame.to_parquet(tmp_path / "t.parquet")
    assert loaded(files_spec(tmp_path / "t.parquet"), tmp_path / "cache").train.x.tolist() == [[4], [1], [3]]


def test_many_blocks_are_one_array(tmp_path):
    x = np.random.default_rng(0).normal(size=(10_000, 2))
    parquet.write_table(table(a=x[:, 0], b=x[:, 1], label=np.arange(10_000) % 7), tmp_path / "t.parquet")
    dataset = loaded(files_spec(tmp_path / "t.parquet"), tmp_path / "cache")
    np.testing.assert_array_equal(dataset.train.x, x.astype(np.float32))
    np.testing.assert_array_equal(dataset.train.y, np.arange(10_000) % 7)


def test_the_table_of_a_file_is_not_read_in_this_process(tmp_path):
    parquet.write_table(table(a=[1.0, 2], label=[0, 1]), tmp_path / "t.parquet")
    code = f"""
        import sys
        from pathlib import Path
        from ianvs.config.spec import DatasetSpec, SourceSpec
        from ianvs.exam import data
        source = (SourceSpec(Path({str(tmp_path / "t.parquet")!r}), "data"),)
        spec = DatasetSpec(train=source, test=source)
        found = data.check_dataset(spec, Path({str(tmp_path / "cache")!r}))
        data.fingerprint(spec, Path({str(tmp_path / "cache")!r}), found.samples)
        print(found.problems, "pyarrow" in sys.modules)
    """
    said = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["[]", "False"]


def test_a_folder_of_save_to_disk_keeps_class_names_and_pictures(tmp_path):
    pictures = [{"bytes": png((5, 4), 40 * i), "path": None} for i in range(6)]
    of_hugging_face(image=pictures).save_to_disk(tmp_path / "set")
    dataset = loaded(files_spec(tmp_path / "set"), tmp_path / "cache")
    assert (dataset.kind, dataset.classes, dataset.train.x.shape) == ("classification", NAMES[::-1], (6, 4, 5, 3))
    assert dataset.train.x[:, 0, 0, 0].tolist() == [0, 40, 80, 120, 160, 200]
    assert dataset.train.y.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.slow
def test_pictures_of_several_sizes_need_a_size(tmp_path):
    of_hugging_face(
        2, image=[{"bytes": png((5, 4), 9), "path": None}, {"bytes": png((7, 4), 9), "path": None}]
    ).save_to_disk(tmp_path / "set")
    assert refusal(files_spec(tmp_path / "set"), tmp_path / "cache") == [("invalid-record", "set")]
    dataset = loaded(files_spec(tmp_path / "set", image_size=(8, 6)), tmp_path / "cache")
    assert dataset.train.x.shape == (2, 8, 6, 3)


def test_changed_samples_of_a_folder_have_another_fingerprint(tmp_path):
    found = []
    for value in ("a", "b"):
        rows = [{"question": f"{value}{i}?", "answer": "yes"} for i in range(3)]
        datasets.Dataset.from_list(rows).save_to_disk(tmp_path / value / "set")
        found.append(data.fingerprint(files_spec(tmp_path / value / "set"), tmp_path / "cache"))
    assert found[0] != found[1]


def test_lists_of_numbers_are_arrays(tmp_path):
    held = table(x=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]], label=[0, 1])
    parquet.write_table(held, tmp_path / "t.parquet")
    dataset = loaded(files_spec(tmp_path / "t.parquet"), tmp_path / "cache")
    np.testing.assert_array_equal(dataset.train.x, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])


@pytest.mark.slow
def test_texts_and_conversations_follow_the_rules_of_jsonl(tmp_path):
    parquet.write_table(table(question=["who?", "why?"], answer=["me", "so"]), tmp_path / "t.parquet")
    dataset = loaded(files_spec(tmp_path / "t.parquet"), tmp_path / "cache")
    assert (dataset.kind, dataset.train.x.tolist(), dataset.train.y.tolist()) == (
        "text",
        ["who?", "why?"],
        ["me", "so"],
    )
    parquet.write_table(table(query=["who?"], response=["me"], year=[1999]), tmp_path / "c.parquet")
    dataset = loaded(files_spec(tmp_path / "c.parquet", domain="year"), tmp_path / "cache")
    assert (dataset.kind, dataset.train.y.tolist(), dataset.train.domains.tolist()) == (
        "conversation",
        [["me"]],
        ["1999"],
    )


def test_paths_of_pictures_are_looked_for_below_the_root(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(png((3, 2), 7))
    parquet.write_table(table(path=["a.png"], label=["cat"]), tmp_path / "t.parquet")
    dataset = loaded(files_spec(tmp_path / "t.parquet", root=tmp_path / "pictures"), tmp_path / "cache")
    assert dataset.train.x.shape == (1, 2, 3, 3)


LACKS = {
    "no label": ({"a": [1.0, 2]}, {}, "missing-column", "t.parquet"),
    "no number": ({"a": [1.0, None], "label": [0, 1]}, {}, "invalid-record", "t.parquet"),
    "no sample": ({"text": ["p", "q"], "label": [0, 1]}, {}, "missing-column", "t.parquet"),
    "an empty label": ({"a": [1.0, 2], "label": ["x", None]}, {}, "invalid-record", "t.parquet"),
    "ragged samples": ({"x": [[1, 2], [3]], "label": [0, 1]}, {}, "invalid-record", "t.parquet"),
    "no picture": ({"x": [b"no picture"], "label": [0]}, {}, "invalid-record", "t.parquet"),
    "a slip in label": ({"a": [1.0], "species": ["x"]}, {"label": "specie"}, "missing-column", ""),
    "an unknown input": ({"a": [1.0], "label": ["x"]}, {"input": "b"}, "missing-column", ""),
    "no rows": ({"a": [], "label": []}, {}, "empty-dataset", "t.parquet"),
    "an empty reply": ({"query": ["a", "b"], "response": ["c", " "]}, {}, "invalid-record", "t.parquet"),
}


@pytest.mark.parametrize(("columns", "settings", "code", "place"), LACKS.values(), ids=LACKS)
def test_what_a_table_lacks_is_told_with_its_row_and_a_remedy(tmp_path, columns, settings, code, place):
    parquet.write_table(table(**columns), tmp_path / "t.parquet")
    assert refusal(files_spec(tmp_path / "t.parquet", **settings), tmp_path / "cache") == [(code, place)]


@pytest.mark.slow
def test_a_number_that_is_missing_in_a_later_block_is_told_with_its_row(tmp_path):
    values = [1.0] * 9000
    values[7000] = None
    parquet.write_table(table(a=values, label=[0, 1] * 4500), tmp_path / "t.parquet")
    spec = files_spec(tmp_path / "t.parquet")
    assert refusal(spec, tmp_path / "cache") == [("invalid-record", "t.parquet")]
    assert "row 7001" in data.check_dataset(spec, tmp_path / "cache").problems[0].message


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_broken_file_is_told(tmp_path, suffix):
    (tmp_path / f"t.{suffix}").write_bytes(b"PAR1 and nothing else")
    errors = refusal(files_spec(tmp_path / f"t.{suffix}"), tmp_path / "cache", located)  # it quotes pyarrow
    assert errors == [("unreadable-data", f"t.{suffix}")]


def test_a_label_that_hugging_face_leaves_open_is_refused(tmp_path):
    held = of_hugging_face(3, text=["a", "b", "c"]).map(
        lambda row: {"label": -1 if row["text"] == "b" else row["label"]}
    )
    held.save_to_disk(tmp_path / "set")
    spec = files_spec(tmp_path / "set", input="text")
    assert refusal(spec, tmp_path / "cache") == [("invalid-record", "set")]


FRAME = "frame = pandas.DataFrame({'a': np.arange(12.0), 'kind': list('xyz') * 4, 'year': [1, 2] * 6})\n"


@pytest.mark.slow
def test_a_function_may_return_data_frames(tmp_path):
    spec = authored(tmp_path, body(FRAME + "return frame, frame"), options={"label": "kind", "domain": "year"})
    dataset = loaded(spec, tmp_path / "cache")
    assert (dataset.classes, dataset.train.x.shape) == (("x", "y", "z"), (12, 1))
    assert dataset.train.domains.tolist() == ["1", "2"] * 6


@pytest.mark.slow
def test_columns_are_named_in_the_dataset_and_told_where_they_are_not(tmp_path):
    spec = authored(tmp_path, body(FRAME + "return frame, frame"), options={"label": "kin"})
    assert refusal(spec, tmp_path / "cache") == [("missing-column", "mine.py:4:1")]


@pytest.mark.slow
def test_a_dataset_dict_has_a_training_and_a_test_part(tmp_path):
    code = """
        names = ["dog", "cat"]
        label = datasets.ClassLabel(names=names)
        features = datasets.Features({"x": datasets.Array2D((2, 3), "float32"), "label": label})
        def part(n):
            rows = {"x": np.ones((n, 2, 3), np.float32), "label": [i % 2 for i in range(n)]}
            return datasets.Dataset.from_dict(rows, features=features).shuffle(seed=0)
        return datasets.DatasetDict(train=part(6), validation=part(4), unused=part(2))
    """
    dataset = loaded(authored(tmp_path, body(code)), tmp_path / "cache")
    assert (dataset.classes, dataset.train.x.shape, len(dataset.test)) == (("dog", "cat"), (6, 2, 3), 4)


SET = "held = datasets.Dataset.from_dict({'a': [1], 'y': [0]})"
RETURNED = {
    "no label": ("held = datasets.Dataset.from_dict({'image': ['a.png']})\nreturn held, held", "missing-column"),
    "no train": (
        "held = datasets.Dataset.from_dict({'a': [1]})\nreturn datasets.DatasetDict(test=held)",
        "missing-data",
    ),
    "no test": (f"{SET}\nreturn datasets.DatasetDict(train=held)", "invalid-result"),
    "a stream": (f"{SET}.to_iterable_dataset()\nreturn held, held", "unreadable-data"),
    "objects": ("held = pandas.DataFrame({'a': [object()], 'y': [0]})\nreturn held, held", "unreadable-data"),
    "dicts without a label": ("held = [{'pixel_values': np.ones(3)}]\nreturn held, held", "missing-column"),
    "dicts without a sample": ("held = [{'picture': np.ones(3), 'y': 0}]\nreturn held, held", "invalid-result"),
    "one without a label": (
        "held = [{'x': np.ones(3), 'y': 0}, {'x': np.ones(3)}]\nreturn held, held",
        "missing-column",
    ),
    "iterators": ("return iter([1]), iter([1])", "invalid-result"),
}


@pytest.mark.parametrize(("source", "code"), RETURNED.values(), ids=RETURNED)
def test_what_a_function_returns_is_refused_by_name(tmp_path, source, code):
    assert refusal(authored(tmp_path, body(source)), tmp_path / "cache") == [(code, "mine.py:4:1")]


@pytest.mark.slow
def test_samples_may_be_dicts(tmp_path):
    code = """
        train = [{"pixel_values": np.full((8, 8), i, np.uint8), "labels": "ab"[i % 2], "id": i} for i in range(4)]
        return train, train
    """
    dataset = loaded(authored(tmp_path, body(code)), tmp_path / "cache")
    assert (dataset.train.x.shape, dataset.classes, dataset.train.y.tolist()) == (
        (4, 8, 8, 1),
        ("a", "b"),
        [0, 1, 0, 1],
    )
    code = "train = [{'scan': np.ones(3) * i, 'grade': i % 2} for i in range(4)]\nreturn train, train"
    spec = authored(tmp_path, body(code), options={"input": "scan", "label": "grade"})
    assert loaded(spec, tmp_path / "cache").train.x[:, 0].tolist() == [0, 1, 2, 3]


def test_a_function_may_have_options_of_these_names(tmp_path):
    (tmp_path / "mine.py").write_text("def mine(label: int = 0):\n    return ([[1.0]], [label]), ([[1.0]], [label])\n")
    spec = DatasetSpec(name="mine", url=tmp_path / "mine.py", options={"label": 7})
    assert loaded(spec, tmp_path / "cache").classes == ("7",)


@pytest.mark.slow
def test_a_share_of_the_training_part_is_the_test_part_class_by_class(tmp_path):
    parquet.write_table(table(a=np.arange(100.0), label=[0] * 80 + [1] * 20), tmp_path / "t.parquet")
    source = (SourceSpec(tmp_path / "t.parquet", "data"),)
    spec = DatasetSpec(train=source, test_share=0.2)
    dataset = loaded(spec, tmp_path / "cache")
    assert np.bincount(dataset.train.y).tolist() == [64, 16]
    assert np.bincount(dataset.test.y).tolist() == [16, 4]
    both = np.concatenate([dataset.train.x, dataset.test.x])[:, 0]
    assert sorted(both.tolist()) == list(range(100))
    again = DatasetSpec(train=source, test_share=0.2, test_seed=1)
    assert sorted(loaded(again, tmp_path / "cache").test.x[:, 0]) != sorted(dataset.test.x[:, 0])
    prints = {
        data.fingerprint(one, tmp_path / "cache") for one in (spec, again, DatasetSpec(train=source, test_share=0.3))
    }
    assert len(prints) == 3
    assert [part.ids.tolist() for part in read_parts(spec)] == [dataset.train.ids.tolist(), dataset.test.ids.tolist()]


def test_every_domain_gives_its_share(tmp_path):
    parquet.write_table(
        table(a=np.arange(40.0), label=[0, 1] * 20, domain=["p"] * 30 + ["q"] * 10), tmp_path / "t.parquet"
    )
    dataset = loaded(
        DatasetSpec(train=(SourceSpec(tmp_path / "t.parquet", "data"),), test_share=0.2), tmp_path / "cache"
    )
    assert sorted(dataset.test.domains.tolist()) == ["p"] * 6 + ["q"] * 2


@pytest.mark.slow
def test_a_function_may_leave_the_test_part_to_its_share(tmp_path):
    dataset = loaded(
        authored(tmp_path, body(FRAME + "return frame[['a', 'kind']].rename(columns={'kind': 'y'})"), test_share=0.25),
        tmp_path / "cache",
    )
    assert (len(dataset.train), np.bincount(dataset.test.y).tolist()) == (9, [1, 1, 1])
    said = authored(
        tmp_path, body("return {'train': [{'query': str(i), 'response': 'r'} for i in range(10)]}"), test_share=0.2
    )
    assert [
        len(part) for part in (loaded(said, tmp_path / "cache").train, data.load(said, tmp_path / "cache").test)
    ] == [8, 2]
    both = authored(tmp_path, body("part = (np.ones((3, 1)), [0, 1, 0])\nreturn part, part"), test_share=0.2)
    assert refusal(both, tmp_path / "cache") == [("conflicting-keys", "mine.py:4:1")]
