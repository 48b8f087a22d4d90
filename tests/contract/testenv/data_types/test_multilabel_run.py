"""Exams of samples with several labels each, from an author's function or a file to scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.scenarios import build_exam
from ianvs.exam.scenarios.request import ScenarioRequest
from ianvs.testenv.scenarios.class_incremental import ClassIncremental
from tests.edits import edited
from tests.errors import errors_of, recorded
from tests.jobs import write_job
from tests.marks import slow

pytestmark = pytest.mark.usefixtures("functions_in_forks")

FUNCTION = """
import numpy as np

def samples():
    rng = np.random.default_rng(5)
    y = (rng.random((60, 6)) < 0.3).astype(np.uint8)
    x = np.round(y + rng.normal(size=y.shape), 1).astype(np.float32)  # the scores of the plugin, some of them equal
    return {"train": (x[:36], y[:36]), "test": (x[36:], y[36:]), "classes": list("abcdef")}
"""
PLUGIN = """
import json
from pathlib import Path

import numpy as np

class Echo:
    \"\"\"Answers x for classes that it was told of, 7 for others; remembers what it was told.\"\"\"

    def __init__(self):
        self.told, self.calls = [], 0

    def train(self, train_data):
        self.calls = 0
        self.told.append([train_data.x.tolist(), train_data.y.tolist()])

    def predict(self, data):
        self.calls += len(data) > 2  # two are tried twice, for whether it draws
        assert self.calls <= 1, "asked twice"
        assert len(np.unique(data, axis=0)) == len(data), "a sample is asked twice"
        if not self.told:
            return np.zeros((len(data), 6))
        known = np.any([np.any(y, axis=0) for _, y in self.told], axis=0)
        return np.where(known, data, 7.0)

    def save(self, path):
        path.write_text(json.dumps(self.told))

    def load(self, path):
        self.told = json.loads(path.read_text())
"""
TESTENV = """
dataset: {url: ./mine.py, name: samples, data_type: multilabel}
scenario: {name: class-incremental, rounds: 3, cut: overlapping, tests: all}
metrics: [{name: mAP}, {name: mAP_seen}, {name: average_mAP}, {name: BWT, of: mAP}, {name: CF1}]
"""
GROUPS = ((0, 1), (2, 3), (4, 5))
Arrays = tuple[NDArray[np.float32], NDArray[np.uint8]]


def drawn() -> tuple[Arrays, Arrays]:
    found: dict[str, object] = {}
    exec(FUNCTION, found)
    made = found["samples"]()  # type: ignore[operator]
    return made["train"], made["test"]


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def job(folder: Path, testenv: str = TESTENV, plugin: str = PLUGIN, function: str = FUNCTION) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(function)
    return write_job(
        folder, plugin=plugin, name="Echo", testenv=testenv, hyperparameters="", job="engine: inline",
        sort_by="[{mAP: descend}]",
    )  # fmt: skip


def told(folder: Path) -> list[Arrays]:
    """What the plugin was told in each round."""
    [saved] = (folder / "ws").glob("cases/*/rounds/3/model/model")
    return [(np.array(x, np.float32), np.array(y, np.uint8)) for x, y in json.loads(saved.read_text())]


@pytest.mark.parametrize(
    ("cut", "tests"),
    [("overlapping", "containing"), ("exclusive", "all"), slow("overlapping", "all"), slow("exclusive", "containing")],
)
def test_classes_arrive_and_each_sample_is_asked_once_a_round(tmp_path: Path, cut: str, tests: str) -> None:
    testenv = edited(TESTENV, "cut: overlapping, tests: all", f"cut: {cut}, tests: {tests}")
    [case] = ianvs.run(job(tmp_path, testenv))
    assert case.status == "finished", case
    (x, y), (asked, truth) = drawn()
    within = np.stack([y[:, group].any(axis=1) for group in GROUPS])
    last = np.where(within, np.arange(3)[:, None], -1).max(axis=0)
    for k, (samples, labels) in enumerate(told(tmp_path)):
        chosen = within[k] if cut == "overlapping" else last == k
        np.testing.assert_array_equal(samples, x[chosen])
        np.testing.assert_array_equal(labels, y[chosen] * np.isin(np.arange(6), GROUPS[k]))
    expected = np.zeros((4, 3))
    for k in range(3):
        for j in range(k + 1):
            rows = truth[:, GROUPS[j]].any(axis=1) | (tests == "all")
            expected[k + 1, j] = average_precision_score(truth[rows][:, GROUPS[j]], asked[rows][:, GROUPS[j]])
    np.testing.assert_allclose(case.matrices["mAP"].values, expected, rtol=0, atol=1e-12)
    rows = truth.any(axis=1) | (tests == "all")
    seen = [average_precision_score(truth[rows][:, : 2 * k], asked[rows][:, : 2 * k]) for k in (1, 2, 3)]
    np.testing.assert_allclose(case.matrices["mAP_seen"].values[1:, 0], seen, rtol=0, atol=1e-12)
    assert case.metrics["mAP_seen"] == pytest.approx(seen[-1], abs=1e-12)
    assert case.metrics["average_mAP"] == pytest.approx(np.mean(seen), abs=1e-12)


def held(y: NDArray[np.uint8], names: tuple[str, ...]) -> Dataset:
    samples = Samples(np.zeros((len(y), 1)), y, np.arange(len(y)).astype(str))
    return Dataset("held", "multilabel", samples, samples, names, "0")


def test_rounds_of_krt_and_prs_are_the_worked_ones() -> None:
    golden = json.loads((Path(__file__).parents[3] / "golden" / "multilabel.json").read_text())["class_incremental"]
    alone = len(golden["truth"])  # a sample that is of the first round alone: no round may be empty
    truth = np.array([*golden["truth"], [1] + [0] * 7], dtype=np.uint8)

    class Grouped(ClassIncremental):
        def class_groups(self, request: ScenarioRequest) -> list[tuple[int, ...]]:
            return [tuple(group) for group in golden["groups"]]

    def taught(scenario: Grouped) -> list[list[int]]:
        exam = scenario.build(ScenarioRequest(held(truth, tuple("abcdefgh")), None, (), None))
        return [round_.train.tolist() for round_ in exam.rounds]

    first, *others = golden["training_pictures_of_round_KRT"]
    assert taught(Grouped()) == [[*first, alone], *others]
    first, *others = golden["exclusive_rule"]
    assert taught(Grouped(cut="exclusive")) == [[*first, alone], *others]


KINDS_OF_ANIMALS = ("animal", "car", "dog", "cat", "truck", "vehicle")
SAMPLES = (
    [("animal", "dog")] * 7 + [("vehicle", "car")] * 5 + [("animal", "cat")] * 4 + [("truck",)] * 3 + [("animal",)]
)
IN_ORDER = ["animal", "truck", "vehicle", "dog", "cat", "car"]


def refined(samples: list[tuple[str, ...]], order: list[str], rounds: int) -> tuple[list[list[int]], list[list[int]]]:
    """(positions that the rounds teach, labels told in them) of an exam."""
    names = KINDS_OF_ANIMALS
    y = np.array([[name in one for name in names] for one in samples], dtype=np.uint8)
    spec = ScenarioSpec("class-incremental", {"rounds": rounds, "cut": "refined", "class_order": order})
    exam = build_exam(held(y, names), spec)
    told = [y[one.train][:, list(one.classes)].sum(axis=1).tolist() for one in exam.rounds]
    return [one.train.tolist() for one in exam.rounds], told


@pytest.mark.parametrize("seed", range(3))
def test_refined_rounds_are_those_of_iirc_and_tell_one_label_of_a_sample(seed: int) -> None:
    """Beside the rule of its authors' code, class by class with slices of lists: the first and the last 60 %."""
    samples = [SAMPLES[i] for i in np.random.default_rng(seed).permutation(len(SAMPLES))]
    parts: dict[str, list[int]] = {name: [] for name in KINDS_OF_ANIMALS}
    for labels in set(samples):
        rows = [n for n, one in enumerate(samples) if one == labels]
        if len(labels) == 1:
            parts[labels[0]] += rows
        else:
            parts[labels[0]] += rows[: int(0.6 * len(rows))]
            parts[labels[1]] += rows[-int(0.6 * len(rows)) :]
    taught, told = refined(samples, IN_ORDER, 3)
    expected = [sorted({n for name in IN_ORDER[2 * k : 2 * k + 2] for n in parts[name]}) for k in range(3)]
    assert taught == expected
    assert {count for round_ in told for count in round_} == {1}
    assert len(set(taught[0]) & set(taught[1])) > 0  # a few are taught as animal and as dog


def test_a_class_before_its_superclass_and_three_labels_are_refused_in_refined_rounds() -> None:
    for order in (
        ["dog", "truck", "vehicle", "animal", "cat", "car"],
        ["animal", "dog", "vehicle", "truck", "cat", "car"],  # both in one round
    ):
        assert errors_of(refined, SAMPLES, order, 3) == [("invalid-scenario", "")]
    assert errors_of(refined, [*SAMPLES, ("animal", "dog", "cat")], IN_ORDER, 3) == [("invalid-scenario", "")]


@pytest.mark.parametrize(
    ("classes", "options", "sizes"),
    [
        (80, {"rounds": 8}, [10] * 8),  # COCO B0-C10
        (80, {"rounds": 5, "first": 40}, [40, *[10] * 4]),  # COCO B40-C10
        (20, {"rounds": 6, "first": 10}, [10, *[2] * 5]),  # VOC B10-C2
    ],
)
def test_rounds_of_the_protocols(classes: int, options: dict[str, int], sizes: list[int]) -> None:
    names = tuple(f"{c:02}" for c in range(classes))
    exam = build_exam(held(np.eye(classes, dtype=np.uint8), names), ScenarioSpec("class-incremental", options))
    assert [len(round_.classes) for round_ in exam.rounds] == sizes
    assert [names[c] for round_ in exam.rounds for c in round_.classes] == sorted(names)


FILES = """
dataset: {train_data: ./train.FORM, test_data: ./train.FORM, data_type: multilabel}
scenario: {name: class-incremental, rounds: 3}
metrics: [{name: mAP}]
"""
LABELS = [["dog", "cat"], [], ["ant"], ["cat", "ant"]]
ANSWERS_ONE = """
import numpy as np

class Echo:
    def train(self, train_data):
        assert train_data.y.shape == (2, 3) or train_data.y.shape == (1, 3)

    def predict(self, data):
        return data[:, 1:]

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass
"""


def write_samples(folder: Path, form: str) -> None:
    """A number and then the truth for ant, cat and dog, and the labels."""
    rows = [[n, *("ant" in one, "cat" in one, "dog" in one)] for n, one in enumerate(LABELS)]
    told = list(zip(rows, LABELS, strict=True))
    if form == "csv":
        lines = [",".join([*(str(int(cell)) for cell in row), ";".join(one)]) for row, one in told]
        (folder / "train.csv").write_text("\n".join(["a,b,c,d,label", *lines, ""]))
    elif form == "jsonl":
        records = [{**{k: int(cell) for k, cell in zip("abcd", row, strict=True)}, "y": y} for row, y in told]
        (folder / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    elif form == "parquet":
        frame = pandas.DataFrame(np.array(rows, dtype=float), columns=list("abcd"))
        frame.assign(y=LABELS).to_parquet(folder / "train.parquet")
    else:
        x = np.array(rows, dtype=np.float32)
        np.savez(folder / "train.npz", x=x, y=x[:, 1:].astype(np.uint8), classes=np.array(["ant", "cat", "dog"]))


@pytest.mark.parametrize("form", ["csv", "jsonl", "npz", "parquet"])
def test_labels_in_files_are_read_where_the_type_is_said(tmp_path: Path, form: str) -> None:
    write_samples(tmp_path, form)
    [case] = ianvs.run(job(tmp_path, FILES.replace("FORM", form), ANSWERS_ONE))
    assert case.matrices["mAP"].values.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert case.matrices["mAP"].tests == ("ant", "cat", "dog")


@pytest.mark.slow
def test_a_data_frame_may_have_lists_of_labels(tmp_path: Path) -> None:
    write_samples(tmp_path, "parquet")
    function = f"""
import pandas

def samples():
    frame = pandas.read_parquet({str(tmp_path / "train.parquet")!r})
    return frame, frame
"""
    [case] = ianvs.run(job(tmp_path, edited(TESTENV, ", tests: all", ""), ANSWERS_ONE, function))
    assert case.metrics["mAP"] == 1


def test_a_wrong_name_in_a_table_is_refused_with_its_line(tmp_path: Path) -> None:
    write_samples(tmp_path, "csv")
    testenv = edited(
        FILES.replace("FORM", "csv"), "data_type: multilabel", "data_type: multilabel, classes: [dog, cat, art]"
    )
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, job(tmp_path, testenv, ANSWERS_ONE)) == [("invalid-record", "train.csv:4:1")]


LABEL_SLIPS = {
    "three names": ('list("abcdef")', 'list("abc")', "invalid-record"),
    "a label twice": ("y[36:])", "y[36:] * 2)", "invalid-record"),
    "another name": ("(x[:36], y[:36])", "(x[:36], ['a;g'] * 36)", "invalid-record"),
    "too few": ("(x[:36], y[:36])", "(x[:36], y[:30])", "mismatched-data"),
}


@pytest.mark.parametrize(("old", "new", "code"), LABEL_SLIPS.values(), ids=LABEL_SLIPS)
def test_wrong_labels_are_refused_before_anything_runs(tmp_path: Path, old: str, new: str, code: str) -> None:
    path = job(tmp_path, function=edited(FUNCTION, old, new))
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, path) == [(code, "mine.py:4:1")]


def test_answers_of_another_shape_fail_the_case_with_the_shape_that_is_wanted(tmp_path: Path) -> None:
    plugin = edited(PLUGIN, "return np.where(known, data, 7.0)", "return np.zeros((len(data), 5))")
    [case] = ianvs.run(job(tmp_path, plugin=plugin))
    assert case.status == "failed"
    assert "(24, 6)" in str(case.failure)


@pytest.mark.slow
def test_tasks_that_are_told_are_refused_by_name(tmp_path: Path) -> None:
    path = job(tmp_path, edited(TESTENV, "class-incremental", "task-incremental"))
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, path) == [("invalid-scenario", "testenv.yaml:3:20")]


@pytest.mark.slow
def test_a_method_for_classes_is_refused_in_the_same_words_by_validate_and_run(tmp_path: Path) -> None:
    path = job(tmp_path, plugin="from ianvs.authoring import TorchLearner\n\nclass Echo(TorchLearner): ...\n")
    messages = set()
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as caught:
            command(path)
        assert recorded(caught.value.problems) == [("refused-arguments", "algorithm.yaml:5:13")]
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_scores_of_one_class_each_are_refused_by_a_message_that_names_others(tmp_path: Path) -> None:
    others = ["accuracy", "balanced_accuracy", "f1", "per_class_accuracy", "mIoU", "mIoU_all", "mIoU_novel", "ROUGE_L",
              "exact_match", "MSE", "R2"]  # fmt: skip
    listed = ", ".join(f"{{name: {name}}}" for name in ("mAP", *others))
    path = job(tmp_path, TESTENV.partition("metrics:")[0] + f"metrics: [{listed}]\n")
    line = (tmp_path / "testenv.yaml").read_text().splitlines()[3]
    places = [f"testenv.yaml:4:{line.index(f'{{name: {name}}}') + 8}" for name in others]
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as caught:
            command(path)
        assert recorded(caught.value.problems) == [("unfit-metric", place) for place in places]
        assert all("mAP" in problem.message for problem in caught.value.problems)
