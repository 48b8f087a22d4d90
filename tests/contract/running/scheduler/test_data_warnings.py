"""What looks wrong in the data is told before anything runs, by `validate` and by a run in the same words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.cli import main
from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from ianvs.exam.data.data_warnings import data_warnings_of, find_data_warnings
from ianvs.exam.data.dataset import Dataset, Samples
from tests.errors import recorded
from tests.jobs import write_job
from tests.unit.exam.data.pictures import write_picture

RNG = np.random.default_rng(0)


def job(folder: Path, x_train, y_train, x_test, y_test, scenario: str = "{name: IIL, rounds: 2}", **ids) -> Path:
    folder.mkdir(exist_ok=True)
    np.savez(folder / "x.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, **ids)
    return of_files(folder, f"train_data: ./x.npz, test_data: {folder}/x.npz", scenario)


def of_files(folder: Path, dataset: str, scenario: str = "{name: IIL, rounds: 2}", metric: str = "accuracy") -> Path:
    exam = f"dataset: {{{dataset}}}\nscenario: {scenario}\nmetrics: [{metric}]"
    return write_job(folder, hyperparameters="", testenv=exam, sort_by=f"[{{{metric}: descend}}]")


def told(path: Path) -> list[str]:
    """The codes of the warnings of `validate`, each of which names a file."""
    warnings = ianvs.validate(path).warnings
    assert all(warning.location is not None for warning in warnings)
    return [code for code, _ in recorded(warnings)]


def numbers(count: int) -> np.ndarray:
    return RNG.random((count, 5)).astype(np.float32)


def test_good_data_warn_of_nothing(tmp_path):
    assert told(job(tmp_path, numbers(12), np.arange(12) % 3, numbers(6), np.arange(6) % 3)) == []


def test_classes_that_only_the_test_part_has(tmp_path):
    assert told(job(tmp_path, numbers(12), np.arange(12) % 2, numbers(8), np.arange(8) % 4)) == ["doubtful-data"]


def test_samples_in_both_parts_with_their_number(tmp_path):
    x, other = numbers(12), numbers(6)
    other[[1, 4]] = x[[7, 3]]
    assert told(job(tmp_path, x, np.arange(12) % 2, other, np.arange(6) % 2)) == ["doubtful-data"]


def test_the_same_pictures_in_two_files_are_found_by_their_content(tmp_path):
    for part in ("train", "test"):
        lines = []
        for number in range(4):
            picture = np.full((5, 4, 3), 10 * number if number < 3 else len(part), dtype=np.uint8)
            write_picture(tmp_path / part / f"{part}{number}.png", picture)
            lines.append(f"{part}/{part}{number}.png {number % 2}")
        (tmp_path / f"{part}.txt").write_text("\n".join(lines))
    assert told(of_files(tmp_path, "train_index: ./train.txt, test_index: ./test.txt")) == ["doubtful-data"]


@pytest.mark.parametrize(("value", "doubts"), [(np.nan, 1), (np.inf, 1), (None, 0)])
def test_numbers_that_are_none(tmp_path, value, doubts):
    x = numbers(12)
    if value is not None:
        x[[2, 5], 3] = value
    found = told(job(tmp_path, x, np.arange(12) % 2, numbers(6), np.arange(6) % 2))
    assert found == ["doubtful-data"] * doubts


def test_one_class(tmp_path):
    assert told(job(tmp_path, numbers(12), np.zeros(12, int), numbers(6), np.zeros(6, int))) == ["doubtful-data"]


def test_a_line_of_an_index_that_comes_twice(tmp_path):
    for number in range(5):
        write_picture(tmp_path / f"{number}.png", np.full((5, 4, 3), number, dtype=np.uint8))
    (tmp_path / "train.txt").write_text("0.png 0\n1.png 1\n0.png 1\n2.png 0\n1.png 1\n")
    (tmp_path / "test.txt").write_text("3.png 0\n4.png 1\n")
    path = of_files(tmp_path, "train_index: ./train.txt, test_index: ./test.txt")
    [warning] = ianvs.validate(path).warnings
    assert recorded([warning]) == [("doubtful-data", f"{tmp_path / 'train.txt'}:3:1")]
    assert [str(one) for one in ianvs.plan(path).job.warnings] == [str(warning)]  # it is on paper: no need to decode


def test_ids_of_arrays_that_come_twice(tmp_path):
    names = {"ids_train": np.array(["a", "b", "a", "c"]), "ids_test": np.array(list("abcd"))}
    assert told(job(tmp_path, numbers(4), [0, 1, 0, 1], numbers(4), [0, 1, 0, 1], **names)) == ["doubtful-data"]


def test_ids_of_conversations_that_come_twice_in_two_files(tmp_path):
    from ianvs.config.spec import SourceSpec

    def talk(name: str, word: str) -> str:
        turns = [{"from": "human", "value": f"Say {word}."}, {"from": "gpt", "value": word}]
        return json.dumps({"id": name, "conversations": turns})

    (tmp_path / "train.jsonl").write_text("\n".join([talk("a", "one"), talk("b", "two")]))
    (tmp_path / "more.jsonl").write_text(talk("b", "three"))
    (tmp_path / "test.jsonl").write_text("\n".join([talk("a", "four"), talk("b", "five")]))
    given = of_conversations(tmp_path)
    more = SourceSpec(tmp_path / "more.jsonl", "data")
    [warning] = data.check_dataset(DatasetSpec(train=(*given["train"], more), test=given["test"])).problems
    assert warning.warning
    assert recorded([warning]) == [("doubtful-data", f"{tmp_path / 'more.jsonl'}:1:1")]


def of_conversations(tmp_path: Path) -> dict[str, object]:
    from ianvs.config.spec import SourceSpec

    return {part: (SourceSpec(tmp_path / f"{part}.jsonl", "data"),) for part in ("train", "test")}


def test_validate_and_a_run_say_the_same_every_time(tmp_path, capfd):
    x = numbers(12)
    x[0, 0] = np.nan
    path = str(job(tmp_path, x, np.zeros(12, int), x[:6], np.arange(6) % 2))
    said = []
    for command in (["validate"], ["validate"], [], ["validate"]):
        assert main([*command, "-f", path]) == 0
        said.append({line for line in capfd.readouterr().err.splitlines() if line.startswith("warning: ")})
    assert len(said[0]) == 5  # untaught, one class, gaps in two parts, shared samples
    assert said[0] == said[1] == said[2] == said[3]


def test_a_streaming_protocol_asks_what_it_will_teach(tmp_path):
    x, y = numbers(12), np.arange(12) % 2
    domain = np.repeat(["2001", "2002", "2003"], 4)
    streaming = "{name: domain-incremental, streaming: true}"
    assert told(job(tmp_path, x, y, x, y, streaming, domain_train=domain, domain_test=domain)) == []


def dataset(train: np.ndarray, test: np.ndarray, fingerprint: str = "f") -> Dataset:
    def part(x: np.ndarray) -> Samples:
        return Samples(x, np.arange(len(x)) % 2, np.arange(len(x)).astype(str))

    return Dataset("d", "classification", part(train), part(test), ("a", "b"), fingerprint)


def test_samples_are_looked_at_once_for_each_dataset(tmp_path):
    x = numbers(8)
    assert data_warnings_of("f", tmp_path) is None
    find_data_warnings(dataset(x, x), tmp_path)
    find_data_warnings(dataset(x, numbers(8)), tmp_path)  # of the same fingerprint: it is not looked at
    assert data_warnings_of("f", tmp_path)["shared samples"].startswith("8 of 8 ")
    find_data_warnings(dataset(x, numbers(8), "g"), tmp_path)
    assert data_warnings_of("g", tmp_path) == {}


def test_classes_of_label_pictures_are_those_of_their_pixels(tmp_path):
    x = RNG.integers(0, 256, (4, 3, 3, 3), dtype=np.uint8)
    y = np.zeros((4, 3, 3), dtype=np.uint8)
    y[:, 0, 0], y[2:, 1, 1] = 255, 1
    parts = [Samples(x[rows], y[rows], np.array(["a", "b"])) for rows in (slice(0, 2), slice(2, 4))]
    find_data_warnings(Dataset("d", "segmentation", *parts, ("road", "sky"), "f", ignore_index=255), tmp_path)
    found = data_warnings_of("f", tmp_path)
    assert "sky" in found["untaught classes"]
    assert "'road'" in found["one class"]
