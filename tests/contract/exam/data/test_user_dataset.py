"""A dataset in one Python file of an author."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch

from ianvs.base.errors import DataError, Location
from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from ianvs.exam.data.fingerprint import read_memo
from ianvs.exam.data.normalize_user_data import store_returned
from ianvs.processes.isolated import ask_isolated
from tests.edits import edited
from tests.errors import Found, errors_of, recorded
from tests.unit.exam.data.pictures import write_picture

pytestmark = pytest.mark.usefixtures("in_own_folder", "functions_in_forks")

ARRAYS = """
    import numpy as np

    def mine(count: int = 4, seed: int = 0):
        rng = np.random.default_rng(seed)
        x, y = rng.random((count, 3)), np.arange(count) % 2
        return {"train": (x, y), "test": (x[:2], y[:2])}
"""


def written(folder: Path, source: str, name: str = "mine.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(dedent(source).lstrip("\n"))
    return folder / name


def spec(file: Path, name: str = "mine", **settings: object) -> DatasetSpec:
    options = settings.pop("options", {})
    places = {"name": Location(Path("testenv.yaml"), 2, 9)} | {
        key: Location(Path("testenv.yaml"), 5, 3) for key in options
    }
    return DatasetSpec(name=name, url=file, options=options, places=places, **settings)


def loaded(folder: Path, source: str, **settings: object) -> data.Dataset:
    given = spec(written(folder, source), **settings)
    assert [problem for problem in data.check_dataset(given, folder / "cache").problems if not problem.warning] == []
    return data.load(given, folder / "cache")


def refusals(folder: Path, source: str, seconds: float = 60.0, **settings: object) -> list[Found]:
    given = spec(written(folder, source), **settings)
    return recorded(data.check_dataset(given, folder / "cache", seconds).problems)


# --- what a function may return ---------------------------------------------------------------------------------------


def test_arrays_with_domains_ids_and_class_names(tmp_path):
    source = """
        import numpy as np

        def mine():
            x = np.arange(12.0).reshape(4, 3)
            train = {"x": x, "y": [1, 0, 1, 0], "domain": list("ppqq"), "ids": list("abcd")}
            return {"train": train, "test": (x[:2], ["dog", "cat"], ["q", "p"]), "classes": ["cat", "dog"]}
    """
    dataset = loaded(tmp_path, source)
    assert (dataset.name, dataset.kind, dataset.classes) == ("mine", "classification", ("cat", "dog"))
    assert dataset.train.x.dtype == np.float32
    np.testing.assert_array_equal(dataset.train.x, np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(dataset.train.y, [1, 0, 1, 0])
    np.testing.assert_array_equal(dataset.test.y, [1, 0])
    assert dataset.train.ids.tolist() == list("abcd")
    assert dataset.test.domains.tolist() == ["q", "p"]
    assert isinstance(dataset.train.x, np.memmap)
    one = loaded(tmp_path, source, using=("q",))
    assert one.train.ids.tolist() == ["c", "d"]


@pytest.mark.slow
def test_a_torch_dataset_is_read_sample_by_sample(tmp_path):
    source = """
        import torch

        class Numbers(torch.utils.data.Dataset):
            def __init__(self, count):
                self.count = count

            def __len__(self):
                return self.count

            def __getitem__(self, index):
                return torch.full((3, 4, 5), float(index)), index % 2

        def mine():
            return Numbers(4), torch.utils.data.Subset(Numbers(4), [3, 1])
    """
    dataset = loaded(tmp_path, source)
    assert dataset.train.x.shape == (4, 4, 5, 3)  # channels last
    np.testing.assert_array_equal(dataset.train.x[:, 0, 0, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(dataset.test.x[:, 0, 0, 0], [3, 1])
    np.testing.assert_array_equal(dataset.test.y, [1, 1])


@pytest.mark.parametrize("path", ["root / name", "name", "str(root / name)"])
def test_paths_of_pictures_are_decoded_like_those_of_an_index(tmp_path, path):
    for number, name in enumerate(("a.png", "b.png")):
        write_picture(tmp_path / "photos" / name, np.full((6, 5, 3), 40 * number, dtype=np.uint8))
    source = f"""
        from pathlib import Path

        def mine(root: Path):
            part = ([{path} for name in ("a.png", "b.png")], ["dog", "cat"])
            return {{"train": part, "test": part}}
    """
    dataset = loaded(tmp_path, source, root=tmp_path / "photos", image_size=(3, 2))
    assert dataset.train.x.shape == (2, 3, 2, 3)
    np.testing.assert_array_equal(dataset.train.x[:, 0, 0, 0], [0, 40])
    np.testing.assert_array_equal(dataset.train.y, [1, 0])
    assert dataset.train.ids.tolist() == ["a.png", "b.png"]


def test_paths_are_relative_to_the_file_and_labels_may_be_pictures(tmp_path):
    for name in ("CS/1.png", "CR/1.png"):
        write_picture(tmp_path / name)
        write_picture(tmp_path / "labels" / name, np.full((6, 5), name.startswith("CS"), dtype=np.uint8))
    source = """
        def mine():
            names = ["CS/1.png", "CR/1.png"]
            part = {"x": names, "y": [f"labels/{name}" for name in names]}
            return part, part
    """
    dataset = loaded(tmp_path, source, using=("CR", "CS"), classes=("road", "sky"))
    assert (dataset.kind, dataset.ignore_index) == ("segmentation", 255)
    assert dataset.train.domains.tolist() == ["CS", "CR"]  # folders of the paths
    np.testing.assert_array_equal(dataset.train.y[:, 0, 0], [1, 0])


def test_conversations_in_any_of_their_forms(tmp_path):
    source = """
        def mine(year: int):
            train = [{"query": f"what of {year}?", "response": "this", "domain": year, "topic": "sport"}]
            said = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": "that"}]
            return {"train": train, "test": [{"messages": said, "domain": str(year)}]}
    """
    dataset = loaded(tmp_path, source, options={"year": 2024})
    assert dataset.kind == "conversation"
    assert dataset.train.x[0]["user"] == ["what of 2024?"]
    assert dataset.test.y.tolist() == [["that"]]
    assert dataset.train.domains.tolist() == ["2024"]
    assert dataset.train.topics.tolist() == ["sport"]


def test_a_class_takes_the_options_and_has_the_parts(tmp_path):
    source = """
        class mine:
            classes = ["no", "yes"]

            def __init__(self, count=2):
                self.train = ([[i] for i in range(count)], [0, 1] * (count // 2))
                self.test = ([[5]], [1])
    """
    dataset = loaded(tmp_path, source, options={"count": 6})
    np.testing.assert_array_equal(dataset.train.x[:, 0], range(6))
    assert dataset.classes == ("no", "yes")


def kept(folder: Path, part: object) -> dict[str, np.ndarray]:
    folder.mkdir(exist_ok=True)
    store_returned((part, part), folder, "mine()", DatasetSpec())
    return {file.stem: np.load(file) for file in (folder / "train").glob("*.npy")}


def test_one_part_may_be_given_in_many_ways(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)
    y, domain = [0, 1, 0, 1], list("ppqq")
    from PIL import Image

    pictures = [Image.fromarray(one) for one in pixels]
    ways = [
        (pixels, y, domain),
        (list(pixels), np.array(y, dtype=np.uint8), np.array(domain)),
        (torch.from_numpy(pixels), torch.tensor(y), domain),
        (torch.from_numpy(pixels).permute(0, 3, 1, 2), torch.tensor(y)[:, None], tuple(domain)),
        (pictures, [np.int32(label) for label in y], domain),
        {"x": pictures, "y": y, "domain": domain},
        list(zip(pixels, y, domain, strict=True)),
        {"x": list(zip(torch.from_numpy(pixels).permute(0, 3, 1, 2), torch.tensor(y), strict=True)), "domain": domain},
    ]
    for number, way in enumerate(ways):
        arrays = kept(tmp_path / str(number), way)
        assert sorted(arrays) == ["domain", "x", "y"], number
        x = arrays["x"] if arrays["x"].shape == pixels.shape else np.moveaxis(arrays["x"], 1, 3)  # as it came
        np.testing.assert_array_equal(x, pixels)
        assert x.dtype == np.uint8
        assert arrays["y"].reshape(-1).tolist() == y
        assert arrays["y"].dtype == np.int64
        assert arrays["domain"].tolist() == domain


def test_label_pictures_stay_small(tmp_path):
    maps = [np.full((6, 5), number, dtype=np.int64) for number in range(3)]
    for number, labels in enumerate((maps, np.stack(maps), torch.from_numpy(np.stack(maps)))):
        y = kept(tmp_path / str(number), (np.zeros((3, 6, 5, 3), dtype=np.uint8), labels))["y"]
        assert (y.dtype, y.shape) == (np.uint8, (3, 6, 5))


# --- what it may not --------------------------------------------------------------------------------------------------

X = np.zeros((3, 2))


RETURNED = {
    "None": (None, "invalid-result"),
    "a list of three": ([X, X, X], "invalid-result"),
    "a slip in test": ({"train": (X, [0, 1, 0]), "tset": (X, [0, 1, 0])}, "invalid-result"),
    "no test": ({"train": (X, [0, 1, 0])}, "invalid-result"),
    "one part": ((X, [0, 1, 0]), "invalid-result"),
    "parts that are None": ((None, None), "invalid-result"),
    "x alone": (({"x": X}, None), "invalid-result"),
    "y alone": (({"y": X}, None), "invalid-result"),
    "an unknown key": (({"x": X, "label": [0]}, None), "invalid-result"),
    "no samples": (([], []), "empty-dataset"),
    "samples without labels": (([X, X], None), "invalid-result"),
    "a sample of four": (([(X, 0), (X, 1, 2, 3)], None), "invalid-result"),
    "pairs of two shapes": (([(X, 0), (X[:2], 1)], None), "mismatched-data"),
    "paths and numbers": (([("a.png", 0), (X, 1)], None), "invalid-result"),
    "arrays of two shapes": ((([X, X[:1]], [0, 1]), None), "mismatched-data"),
    "ragged labels": (((X, [[0], [0, 1], [1]]), None), "invalid-result"),
    "mappings": (((np.array([{}, {}]), [0, 1]), None), "invalid-result"),
    "domains as a text": (((X, [0, 1, 0], "ppq"), None), "invalid-result"),
    "a number of classes": ({"train": (X, [0, 1, 0]), "test": (X, [0, 1, 0]), "classes": 2}, "invalid-result"),
    "domains of conversations": (({"x": [{"query": "a"}], "domain": ["p"]}, None), "invalid-result"),
    "a set in a conversation": (([{"query": {1, 2}}], None), "invalid-result"),
}


@pytest.mark.parametrize(("returned", "code"), RETURNED.values(), ids=RETURNED)
def test_a_bad_return_is_told_with_what_was_expected(tmp_path, returned, code):
    assert errors_of(store_returned, returned, tmp_path, "mine()", DatasetSpec()) == [(code, "")]


def test_a_refusal_names_the_line_of_the_function(tmp_path):
    errors = refusals(tmp_path, "import numpy\n\n\ndef mine():\n    return 7\n")
    assert errors == [("invalid-result", "mine.py:4:1")]


PARTS = {
    "too few labels": ("([[1], [2]], [0])", "mismatched-data"),
    "half a label": ("([[1], [2]], [0.5, 1])", "invalid-array"),
    "a number and a name": ("([[1], [2]], [0, 'b'])", "ambiguous-data"),
    "pictures that are not there": ("(['a.png', 'b.png'], [0, 1])", "missing-file"),
    "no conversation": ("[{'query': 'a', 'response': 'b'}, {'query': 'a', 'answer': 'b'}]", "invalid-record"),
}


@pytest.mark.parametrize(("part", "code"), PARTS.values(), ids=PARTS)
def test_what_is_wrong_with_samples_names_the_line_of_the_function(tmp_path, part, code):
    (first, *_) = refusals(tmp_path, f"def mine():\n    part = {part}\n    return part, part\n")
    assert first == (code, "mine.py:1:1")


def test_a_domain_that_no_sample_has(tmp_path):
    assert refusals(tmp_path, ARRAYS, using=("CS",)) == [("unknown-domain", "mine.py")]


# --- its options ------------------------------------------------------------------------------------------------------


def test_options_are_held_against_the_signature_before_anything_runs(tmp_path):
    source = """
        raise_ = 1

        def mine(folder: str, count: int = 4, *, root, more=None):
            raise SystemExit(9)
    """
    options = {"cuont": 3, "count": "many", "download_": 1}
    assert refusals(tmp_path, source, options=options) == [
        ("missing-option", "testenv.yaml:2:9"),
        ("unknown-option", "testenv.yaml:5:3"),
        ("unknown-option", "testenv.yaml:5:3"),
        ("missing-option", "testenv.yaml:2:9"),
        ("invalid-option", "testenv.yaml:5:3"),
    ]


@pytest.mark.parametrize(("annotation", "kind"), [("", "PosixPath"), (": str", "str"), (": Path", "PosixPath")])
def test_root_and_download_are_given_to_a_function_that_names_them(tmp_path, annotation, kind):
    source = f"""
        from pathlib import Path

        def mine(root{annotation}, download=None):
            part = [[1], [2]], [type(root).__name__, str(download)]
            return part, part
    """
    assert loaded(tmp_path, source, root=tmp_path, download=True).classes == tuple(sorted([kind, "True"]))


def test_a_file_that_is_gone(tmp_path):
    assert recorded(data.check_dataset(spec(tmp_path / "mine.py"), tmp_path / "cache").problems) == [
        ("missing-file", "")
    ]


def test_a_name_that_the_file_lacks_and_one_that_is_no_function(tmp_path):
    assert refusals(tmp_path, ARRAYS, name="mime") == [("unloadable-plugin", "testenv.yaml:2:9")]
    assert refusals(tmp_path, "mine = 3\n") == [("broken-contract", "testenv.yaml:2:9")]


# --- the process in which it runs -------------------------------------------------------------------------------------


def test_an_error_of_the_function_is_told_with_its_line(tmp_path):
    source = "def mine():\n    return helper()\n\n\ndef helper():\n    return {}['key']\n"
    assert refusals(tmp_path, source) == [("failed-plugin", "testenv.yaml:2:9")]
    (problem,) = data.check_dataset(spec(tmp_path / "mine.py"), tmp_path / "cache").problems
    assert "mine.py:6: KeyError" in problem.message
    assert refusals(tmp_path, "def mine(:\n") == [("unloadable-plugin", "testenv.yaml:2:9")]


@pytest.mark.slow
def test_a_function_that_ends_its_process_or_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["ianvs.exam.data.user_dataset"], "ask_isolated", ask_isolated)
    assert refusals(tmp_path, "import os\n\ndef mine():\n    os._exit(3)\n") == [("failed-plugin", "testenv.yaml:2:9")]
    errors = refusals(tmp_path, "def mine():\n    while True: pass\n", seconds=3)
    assert errors == [("failed-plugin", "testenv.yaml:2:9")]
    assert list((tmp_path / "cache" / "authored").glob("*.new")) == []


def test_it_runs_in_another_process_and_may_print_and_import_what_lies_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["ianvs.exam.data.user_dataset"], "ask_isolated", ask_isolated)
    written(tmp_path, "import os\nLABEL = str(os.getpid())\n", "beside.py")
    source = """
        from beside import LABEL

        def mine():
            print(LABEL)
            return [([1], LABEL)], [([1], LABEL)]
    """
    assert loaded(tmp_path, source).classes != (str(os.getpid()),)


# --- once, until something changes ------------------------------------------------------------------------------------

COUNTED = """
    import random
    from pathlib import Path

    def mine(root: Path, bias: int = 0):
        with (root / "calls.log").open("a") as log:
            log.write("called\\n")
        x = [[int(line) + bias] for line in (root / "numbers.txt").read_text().split()]
        x += [[len(path.name)] for path in sorted(root.glob("more/*"))]
        part = x, [0] * len(x)
        return part, part
"""


@pytest.fixture
def counted(tmp_path: Path):
    """(how often the function has been called when the data have been asked for again, their fingerprint)."""
    root = tmp_path / "root"
    (root / "more").mkdir(parents=True)
    (root / "numbers.txt").write_text("1 2 3")
    file = written(tmp_path, COUNTED)

    def ask(**settings: object) -> tuple[int, str]:
        given = spec(file, root=root, **settings)
        assert data.check_dataset(given, tmp_path / "cache").problems == []
        fingerprint = data.fingerprint(given, tmp_path / "cache")
        assert data.load(given, tmp_path / "cache").fingerprint == fingerprint
        return len((root / "calls.log").read_text().splitlines()), fingerprint

    return ask


@pytest.mark.slow
def test_it_is_called_once_for_each_choice_of_options(counted):
    calls, first = counted()
    assert calls == 1
    assert counted() == (1, first)
    calls, biased = counted(options={"bias": 1})
    assert (calls, biased != first) == (2, True)
    assert counted() == (2, first)
    assert counted(options={"bias": 1}) == (2, biased)


@pytest.mark.slow
def test_it_is_called_again_when_what_it_read_has_changed(counted, tmp_path):
    _, first = counted()
    (tmp_path / "root" / "numbers.txt").write_text("1 2 4")
    calls, second = counted()
    assert (calls, second != first) == (2, True)
    (tmp_path / "root" / "more" / "new.txt").write_text("")
    calls, third = counted()
    assert (calls, third != second) == (3, True)
    (tmp_path / "root" / "unread.txt").write_text("")
    assert counted() == (3, third)


@pytest.mark.slow
def test_its_source_does_not_change_the_fingerprint_but_the_samples_do(counted, tmp_path):
    _, first = counted()
    file = tmp_path / "mine.py"
    file.write_text(file.read_text() + "# a word more\n")
    assert counted() == (1, first)
    file.write_text(edited(file.read_text(), "+ bias", "- bias"))
    assert counted() == (2, first)  # 1 - 0 is 1 + 0
    file.write_text(edited(file.read_text(), "- bias", "* 2"))
    calls, doubled = counted()
    assert (calls, doubled != first) == (3, True)


def test_the_same_samples_elsewhere_have_the_same_fingerprint(tmp_path):
    fingerprints = set()
    for folder in ("here", "there"):
        write_picture(tmp_path / folder / "a.png")
        source = """
            from pathlib import Path

            def mine():
                part = [Path(__file__).parent / "a.png"], [0]
                return part, part
        """
        given = spec(written(tmp_path / folder, source))
        fingerprints.add(data.fingerprint(given, tmp_path / folder / "cache"))
    assert len(fingerprints) == 1
    time.sleep(0.01)
    write_picture(tmp_path / "there" / "a.png", seed=1)
    assert data.fingerprint(given, tmp_path / "there" / "cache") not in fingerprints


@pytest.mark.slow
def test_how_numbers_are_held_does_not_change_the_fingerprint(tmp_path):
    ways = ("np.arange(6.0).reshape(2, 3)", "np.asfortranarray(np.arange(6).reshape(2, 3))", "[[0, 1, 2], [3, 4, 5]]")
    labels = ("[0, 1]", "np.array([0, 1], dtype=np.int16)", "(0, 1)")
    found = set()
    for x, y in zip(ways, labels, strict=True):
        source = f"import numpy as np\n\ndef mine():\n    part = {x}, {y}\n    return part, part\n"
        found.add(data.fingerprint(spec(written(tmp_path, source)), tmp_path / "cache"))
    assert len(found) == 1


@pytest.mark.slow
def test_a_random_function_is_called_once_and_what_it_returned_is_kept(tmp_path):
    given = spec(written(tmp_path, edited(ARRAYS, "default_rng(seed)", "default_rng()")))
    x = [data.load(given, tmp_path / "cache").train.x for _ in range(2)]
    np.testing.assert_array_equal(*x)
    other = data.load(given, tmp_path / "another workspace" / "cache")
    assert not np.array_equal(x[0], other.train.x)


@pytest.mark.slow
def test_samples_that_were_deleted_from_the_cache_are_made_again(tmp_path):
    given = spec(written(tmp_path, ARRAYS))
    first = data.fingerprint(given, tmp_path / "cache")
    (stored,) = (path for path in (tmp_path / "cache").glob("authored-*") if path.is_dir())
    stored.rename(tmp_path / "gone")
    assert data.fingerprint(given, tmp_path / "cache") == first
    assert stored.is_dir()


def test_samples_that_were_changed_in_the_cache_are_made_again(tmp_path):
    given = spec(written(tmp_path, ARRAYS))
    first = np.array(data.load(given, tmp_path / "cache").train.x)
    stored = next((tmp_path / "cache").glob("authored-*/train/x.npy"))
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.write_bytes(content)
    np.testing.assert_array_equal(data.load(given, tmp_path / "cache").train.x, first)


def test_seen_are_files_and_folders_that_the_function_reads_not_code_nor_what_it_writes(tmp_path):
    source = """
        import csv
        import os
        from pathlib import Path

        import beside

        here = Path(__file__).parent
        names = list(here.glob("a folder/*"))

        def mine():
            (here / "log.txt").write_text("written")
            rows = [[int(cell) for cell in row] for row in csv.reader(open(here / "read.csv"))]
            os.listdir(here / "listed")
            open("/etc/hostname").close()
            part = rows, [0] * len(rows)
            return part, part
    """
    for folder in ("a folder", "listed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "read.csv").write_text("1\n2\n")
    (tmp_path / "beside.py").write_text("")
    loaded(tmp_path, source)
    (memo,) = (tmp_path / "cache" / "authored").glob("*.json")
    assert {Path(path).name for path in read_memo(memo)["read"]} == {"read.csv", "a folder", "listed"}


def test_a_frame_with_a_row_number_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text(
        ",a,label\n" + "".join(f"{row},{row % 3 / 2},{'cd'[row // 6]}\n" for row in range(12))
    )
    source = "import pandas\n\n\ndef mine():\n    frame = pandas.read_csv(FILE)\n    return frame, frame\n"
    (tmp_path / "mine.py").write_text(source.replace("FILE", repr(str(tmp_path / "t.csv"))))
    with pytest.raises(DataError, match="Unnamed: 0"):
        data.load(DatasetSpec(name="mine", url=tmp_path / "mine.py"), tmp_path / "cache")
    listed = DatasetSpec(name="mine", url=tmp_path / "mine.py", options={"input": ["a"]})
    assert data.load(listed, tmp_path / "cache").train.x.shape == (12, 1)
