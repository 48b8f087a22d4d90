"""incrementallearning: against a naive second implementation, killed and resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.run import run
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, DataSetting, ExamSettings, ModelEval, ModelMetric
from tests.edits import edited
from tests.errors import located
from tests.nightly.kubeedge.children import errors_in_child, other_sedna
from tests.nightly.kubeedge.sample_plugins import ACCURACY, DIE, finish, killed, plugin, samples

# Knows words; what it does not know it answers with "?". Saves a zip, and only if the path says so.
LEARNER = (
    DIE
    + """
import zipfile

@ClassFactory.register(ClassType.GENERAL, alias="Learner")
class Learner:
    def __init__(self, die_at=None, name="model.zip", **kwargs):
        if name:
            os.environ["MODEL_NAME"] = name
        self.die_at, self.words, self.calls = die_at, [], []

    def train(self, train_data, valid_data=None, **kwargs):
        assert valid_data is None and not kwargs
        self.words = sorted({*self.words, *(open(path).read() for path in train_data.x)})
        assert [open(p).read() for p in train_data.x] == list(train_data.y)
        self.calls.append(["train", Context.get_parameters("MODEL_URL")[-7:], len(train_data)])
        if len([c for c in self.calls if c[0] == "train"]) == self.die_at:
            die()

    def save(self, path):
        assert path.endswith(".zip"), path
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("words", json.dumps(self.words))
        return path

    def load(self, model_url):
        self.words = json.loads(zipfile.ZipFile(model_url).read("words"))
        self.calls.append(["load", os.path.basename(os.path.dirname(model_url))])

    def predict(self, data, **kwargs):
        assert len(data) == 1 and isinstance(data[0], str)
        word = open(data[0]).read()
        return {data[0]: word if word in self.words else "?"}

    def evaluate(self, data, model_path, metric, **kwargs):
        self.load(model_path)
        name, function = metric
        given = [self.predict([x])[x] for x in data.x]
        self.calls.append(["evaluate", os.environ["MODEL_URLS"].count(model_path), data.data_type])
        return {name: function(data.y, given)}

@ClassFactory.register(ClassType.HEM, alias="IBT")       # hides the built-in of that name
class Unknown:
    def __call__(self, result): return "?" in result.values()

@ClassFactory.register(ClassType.GENERAL, alias="calls")
def calls(y, result): return str(y.tolist())
"""
)
# Rounds of 8 lines: 6 to infer, 2 to evaluate. Round 3 brings new words that its evaluation does not ask for.
ROUNDS = (("aabbca", "bc"), ("accdda", "da"), ("eeabcd", "ab"))
TEST = "abcdeabcdex"


def incremental(folder: Path, **values: object) -> Work:
    import json
    import zipfile

    labels = "".join(infer + check for infer, check in ROUNDS)
    # Two folders with the same basenames: copies of hard examples have to be kept apart.
    train = [(f"{i % 2}/s{i // 2}.txt", label) for i, label in enumerate(labels)]
    url = plugin(folder / "p", "base", LEARNER)
    initial = folder / "first" / "initial.zip"
    initial.parent.mkdir()
    with zipfile.ZipFile(initial, "w") as archive:
        archive.writestr("words", json.dumps(["a"]))
    model_metric = ModelMetric(name="accuracy", url=Path(plugin(folder / "p", "accuracy", ACCURACY)))
    return Work(
        "incrementallearning",
        folder / "W",
        (Module("basemodel", "Learner", url, values), Module("hard_example_mining", "IBT", url)),
        samples(folder / "d", "train.txt", train),
        samples(folder / "d", "test.txt", [(f"t{i}.txt", label) for i, label in enumerate(TEST)]),
        algorithm=AlgorithmSettings(
            initial_model_url=str(initial), incremental_learning_data_setting=DataSetting(train_ratio=0.75)
        ),
        exam=ExamSettings(incremental_rounds=3, model_eval=ModelEval(model_metric=model_metric, threshold=0)),
    )


def naive() -> tuple[list[str], list[tuple[int, int]], list[float]]:
    """Answers to the test, (inferred, hard) of each pass, and the test score after each round."""
    current, record, scores = {"a"}, [], []
    for infer, check in ROUNDS:
        hard = [word for word in infer if word not in current]
        record.append((len(infer), len(hard)))
        new = current | set(hard)
        if hard and sum(w in new for w in check) > sum(w in current for w in check):
            current = new
        scores.append(sum(w in current for w in TEST) / len(TEST))
    answers = [w if w in current else "?" for w in TEST]
    return answers, [*record, (len(TEST), answers.count("?"))], scores


@pytest.mark.parametrize("another", [False, True], ids=["no sedna", "another sedna"])
def test_incremental_learning_equals_a_naive_implementation(tmp_path, another):
    work = incremental(tmp_path)
    metrics = [MetricSpec("accuracy", tmp_path / "p" / "accuracy.py"), MetricSpec("samples_transfer_ratio")]
    sedna = other_sedna(tmp_path / "site") if another else None
    numbers, result, scores = finish(work, metrics, sedna)
    answers, record, by_round = naive()
    assert list(result.values()) == answers
    assert [tuple(row) for row in numbers["samples_transfer_ratio"]] == record
    inferred, moved = (sum(column) for column in zip(*record, strict=True))
    assert scores.scores["samples_transfer_ratio"] == round(moved / (inferred + 1), 4)
    assert scores.scores["accuracy"] == by_round[-1]
    assert [gate["adopted"] for gate in numbers["measures"]["gates"]] == [True, True, False]
    output = tmp_path / "W" / "output"
    assert len(list((output / "inference" / "hard_examples" / "1").iterdir())) == 3  # bbc, two named s1.txt
    assert (output / "train" / "1" / "model.zip").is_file()


@pytest.mark.slow
def test_a_killed_case_goes_on_after_its_last_round(tmp_path):
    work = incremental(tmp_path, die_at=3)
    whole = finish(replace(work, folder=tmp_path / "whole"))
    killed(work)
    stopped = (tmp_path / "W" / "output" / "train" / "1" / "model.zip").stat().st_mtime_ns
    numbers, result, _ = finish(work)
    assert list(result.values()) == list(whole[1].values()) and numbers["measures"] == whole[0]["measures"]
    assert (tmp_path / "W" / "output" / "train" / "1" / "model.zip").stat().st_mtime_ns == stopped
    assert len(list((tmp_path / "W" / "output" / "inference" / "hard_examples" / "3").iterdir())) == 2


@pytest.mark.slow
def test_what_can_not_be_stored_starts_over_and_ends_the_same(tmp_path):
    work = incremental(tmp_path, die_at=3)
    file = tmp_path / "p" / "base.py"
    file.write_text(file.read_text() + "\nCOUNT = 0\n")
    text = edited(
        file.read_text(),
        "        assert valid_data is None",
        "        global COUNT; COUNT += 1\n        assert valid_data is None",
    )
    file.write_text(
        edited(text, "self.words = sorted({*self.words,", "self.words = sorted({*self.words, 'x' * (COUNT // 3),")
    )
    whole = finish(replace(work, folder=tmp_path / "whole"))
    killed(work)
    numbers, result, _ = finish(work)
    assert list(result.values()) == list(whole[1].values()) and numbers["measures"] == whole[0]["measures"]
    assert "starts over" in numbers["notes"][0] and "COUNT" in numbers["notes"][0]
    unpicklable = edited(text, "self.die_at, self.words", "self.lock = open(__file__); self.die_at, self.words")
    file.write_text(unpicklable)
    again = replace(work, folder=tmp_path / "V")
    killed(again)
    assert finish(again)[1].keys() == result.keys()


def test_save_must_leave_a_model(tmp_path):
    work = incremental(tmp_path)
    file = tmp_path / "p" / "base.py"
    file.write_text(
        edited(
            file.read_text(),
            "        with zipfile.ZipFile(path",
            "        return 'gone'\n        with zipfile.ZipFile(path",
        )
    )

    [error] = errors_in_child(run, work)
    assert error.message.startswith("round 1: basemodel 'Learner'") and ", save: " in error.message
    assert located([error]) == [("broken-contract", "")]


def test_without_mining_it_does_not_begin(tmp_path):
    work = incremental(tmp_path)
    [error] = errors_in_child(run, replace(work, modules=work.modules[:1]))
    assert located([error]) == [("missing-module", "")]


# Saves a folder. Counts what is trained; evaluate leaves the instance at what it was asked about last.
FOLDERS = """
@ClassFactory.register(ClassType.GENERAL, alias="Folders")
class Folders:
    def __init__(self, name=None):
        self.name, self.trained, self.loads = name, 0, []
    def train(self, train_data, valid_data=None, **kwargs): self.trained += len(train_data)
    def save(self, path):
        os.makedirs(path)
        open(os.path.join(path, self.name or os.path.basename(path) + ".bin"), "w").write(str(self.trained))
        return path
    def load(self, model_url):
        self.loads.append(os.path.basename(model_url))
        self.trained = int(open(model_url).read())
    def predict(self, data, **kwargs): return {data[0]: [self.trained, list(self.loads)]}
    def evaluate(self, data, model_path, metric, **kwargs): return {metric[0]: 0 if model_path == "first" else 1}

@ClassFactory.register(ClassType.HEM, alias="All")
class All:
    def __call__(self, result): return True
"""


@pytest.mark.parametrize("name", [None, "model_finetune_.pkl"], ids=["another-file", "default-name"])
def test_of_a_model_that_is_a_folder_nothing_is_loaded_but_a_file_of_the_default_name(tmp_path, name):
    url = plugin(tmp_path / "p", "folders", FOLDERS)
    work = incremental(tmp_path)
    work = replace(
        work,
        modules=(Module("basemodel", "Folders", url, {"name": name}), Module("hard_example_mining", "All", url)),
        algorithm=replace(work.algorithm, initial_model_url="first"),
        exam=replace(work.exam, model_eval=replace(work.exam.model_eval, threshold=-1)),  # every new one is adopted
    )
    _, result, _ = finish(work)
    trained, loads = next(iter(result.values()))
    assert trained == 18  # three rounds of six: whatever was loaded, it was the newest
    assert loads == ([] if name is None else [name] * 3)  # in rounds 2 and 3, and for the test
