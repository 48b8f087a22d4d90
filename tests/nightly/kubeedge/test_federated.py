"""federatedlearning and federatedclassincrementallearning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.paradigms.federated_class_incremental_learning import forget_rate
from ianvs.kubeedge.run import run
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.settings import (
    AlgorithmSettings,
    ExamSettings,
    FederatedDataSetting,
    ModelEval,
    ModelMetric,
)
from tests.errors import recorded
from tests.nightly.kubeedge.children import errors_in_child, other_sedna
from tests.nightly.kubeedge.sample_plugins import ACCURACY, DIE, finish, killed, plugin

# The weights are how often each class was seen and the sum of its values: nearest mean of files of numbers.
CLIENT = (
    DIE
    + """
@ClassFactory.register(ClassType.GENERAL, alias="Client")
class Client:
    def __init__(self, die_at=None, fail_at=None, **kwargs):
        self.weights = [np.zeros(6), np.zeros(6)]
        self.die_at, self.fail_at, self.calls = die_at, fail_at, []

    def train(self, train_data, valid_data, **kwargs):
        assert valid_data is None
        if isinstance(train_data, dict):
            self.calls.append([kwargs["task_id"], kwargs["round"], kwargs["task_size"], len(train_data["unlabel_x"])])
            x, y = train_data["label_x"], train_data["label_y"]
        else:
            self.calls.append(kwargs)
            x, y = train_data
        assert y.dtype == np.int32
        for value, label in zip(x, y):
            self.weights[0][label] += 1
            self.weights[1][label] += value + 0.001 * np.random.rand()
        if len(self.calls) == self.die_at:
            die()
        if len(self.calls) == self.fail_at:
            raise ValueError("tired")
        return {"num_samples": len(x)}

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = [np.array(w) for w in weights]

    def helper_function(self, info):
        self.calls.append(["helped", info])

    def predict(self, data, **kwargs):
        assert kwargs == {"kwargs": {}}
        means = self.weights[1] / np.maximum(self.weights[0], 1e-9)
        means[self.weights[0] == 0] = np.inf
        answers = [str(np.abs(means - np.load(path).mean()).argmin()) for path in data]
        self.asked = getattr(self, "asked", 0) + 1
        return answers if len(answers) == 1 else answers + [json.dumps([self.calls, self.weights[0].tolist()])]

@ClassFactory.register(ClassType.FL_AGG, alias="Mean")
class Mean:
    def __init__(self, **kwargs):
        self.told = []
    def aggregate(self, clients):
        total = sum(c.num_samples for c in clients)
        return [sum(np.array(c.weights[i]) * c.num_samples for c in clients) / total for i in (0, 1)]

@ClassFactory.register(ClassType.FL_AGG, alias="Helping")
class Helping(Mean):
    def helper_function(self, info):
        return info["client_id"]
"""
)


def federated(folder: Path, aggregation: str | None = "Mean", **values: object) -> Work:
    """Files of numbers: class c lies around c. Three classes with 8, 8 and 4 samples."""
    (folder / "d").mkdir()
    lines = []
    for label, count in ((0, 8), (1, 8), (2, 4)):
        np.save(folder / "d" / f"{label}.npy", np.full(count, float(label)))
        lines.append(f"{label}.npy {label}\n")
    (folder / "d" / "train.txt").write_text("".join(lines))
    for i, label in enumerate((0, 0, 1, 1, 2, 2)):
        np.save(folder / "d" / f"t{i}.npy", np.full(1, label + 0.1))
    (folder / "d" / "test.txt").write_text("".join(f"t{i}.npy {c}\n" for i, c in enumerate((0, 0, 1, 1, 2, 0))))
    url = plugin(folder / "p", "basemodel", CLIENT)
    server = Module("aggregation", aggregation or "FedAvg", url if aggregation else None)
    modules = (Module("basemodel", "Client", url, values), server)
    return Work(
        "federatedlearning",
        folder / "W",
        modules,
        str(folder / "d" / "train.txt"),
        str(folder / "d" / "test.txt"),
        exam=ExamSettings(client_number=3, round=4),
        seed=3,
    )


def accuracy(folder: Path) -> MetricSpec:
    return MetricSpec("accuracy", Path(plugin(folder / "p", "accuracy", ACCURACY)))


@pytest.mark.parametrize("another", [False, True], ids=["no sedna", "another sedna"])
def test_clients_train_in_order_and_client_0_answers(tmp_path, another):
    work = federated(tmp_path)
    sedna = other_sedna(tmp_path / "site") if another else None
    numbers, result, scores = finish(work, [accuracy(tmp_path)], sedna)
    calls, counts = json.loads(result[-1])
    assert calls == [{"round": r} for r in range(4)] and result[:-1] == list("001122")
    assert scores.scores == {"accuracy": 5 / 6}  # the last label is wrong on purpose
    # 20 samples in parts of 6, 7, 7; after a round each class has the weighted mean of its counts
    assert numbers["measures"]["uploaded_bytes"] == [[96] * 3] * 4 == numbers["measures"]["downloaded_bytes"]
    assert sum(counts) == pytest.approx(4 * (6 * 6 + 7 * 7 + 7 * 7) / 20)
    fedavg = replace(work, folder=tmp_path / "V", modules=federated_modules(tmp_path))
    assert finish(fedavg)[1][:-1] == list("001122")


def federated_modules(folder: Path) -> tuple[Module, ...]:
    return (Module("basemodel", "Client", str(folder / "p" / "basemodel.py")), Module("aggregation", "FedAvg"))


@pytest.mark.slow
def test_non_iid_clients_have_some_of_the_classes_that_occur(tmp_path):
    split = FederatedDataSetting(data_partition="non-iid", non_iid_ratio=0.67)
    settings = AlgorithmSettings(fl_data_setting=split)
    work = replace(federated(tmp_path), algorithm=settings)
    counts = json.loads(finish(work)[1][-1])[1]
    assert np.count_nonzero(counts) <= 3 and sum(counts) > 0
    other = replace(work, folder=tmp_path / "V")
    assert finish(other)[1] == finish(work)[1]  # drawn by the seed


def test_a_client_that_fails_is_named_with_its_round(tmp_path):
    [error] = errors_in_child(run, federated(tmp_path, fail_at=3))
    assert "round 2: client 0: " in error.message and error.message.endswith("ValueError: tired")
    assert recorded([error]) == [("failed-plugin", "")]


@pytest.mark.slow
def test_a_killed_federation_goes_on_and_ends_the_same(tmp_path):
    work = federated(tmp_path, die_at=3)
    whole = finish(replace(work, folder=tmp_path / "whole"))
    killed(work)
    resumed = finish(work)
    assert resumed[1] == whole[1]
    assert resumed[0]["measures"] == whole[0]["measures"]
    assert set(resumed[0]["seconds"]) == {"0", "1", "2", "3", "test"}  # the first rounds were not run again


@pytest.mark.slow
def test_class_incremental_examines_after_each_task(tmp_path):
    work = replace(
        federated(tmp_path, "Helping"),
        paradigm="federatedclassincrementallearning",
        algorithm=AlgorithmSettings(fl_data_setting=FederatedDataSetting(label_data_ratio=0.5)),
        exam=ExamSettings(
            client_number=2,
            round=2,
            incremental_rounds=3,
            model_eval=ModelEval(model_metric=ModelMetric(name="accuracy", url=accuracy(tmp_path).url)),
        ),
    )
    metrics = [accuracy(tmp_path), *map(MetricSpec, ("task_avg_acc", "forget_rate", "BWT", "FWT"))]
    numbers, result, scores = finish(work, metrics)
    calls, _ = json.loads(result[-1])
    # one class in a task: 8, 8, 4 samples, half of them to each of two clients, half of those labelled
    expected = [[[t, r, 1, 2 if t < 2 else 1], ["helped", 0]] for t in range(3) for r in range(2)]
    assert calls == [call for pair in expected for call in pair]
    # slices of the test file: labels 00, 11, 20, of which the last is wrong; nothing is forgotten
    assert numbers["R"] == [[1.0, None, None], [1.0, 1.0, None], [1.0, 1.0, 0.5]]
    assert numbers["forget_rate"] == [0.0, 0.0, 0.0]
    assert scores.scores["task_avg_acc"] == 0.833 and scores.scores["forget_rate"] == 0.0
    assert scores.scores["GEM_BWT"] == 0.0 and scores.scores["accuracy"] == 5 / 6
    die = replace(work.modules[0], values={"die_at": 7})  # its seventh call: task 1, round 1
    killing = replace(work, folder=tmp_path / "K", modules=(die, work.modules[1]))
    killed(killing)
    again, result_again, _ = finish(killing)
    assert result_again == result and again["R"] == numbers["R"]


def test_forget_rate_by_hand():
    # items of task 0: 1, 1; then 0, 1 and 1, 1; then 1, 0 and 1, 0 and 0, 0
    rows = [[[1, 1]], [[0, 1], [1, 1]], [[1, 0], [1, 0], [0, 0]]]
    assert forget_rate(rows) == [0.0, 1 / 4, 2 / 6]


CHAT = """
@ClassFactory.register(alias="Chat")
class Chat:
    def __init__(self): self.known = {}
    def train(self, train_data, valid_data, device_id, client_id):
        questions, answers = train_data
        self.known.update(zip(questions, answers))
        self.last = [device_id, client_id, len(questions)]
        return {"num_samples": len(questions)}
    def get_weights(self): return [self.known, self.last]
    def set_weights(self, weights): self.known, self.lasts = weights
    def predict(self, data, **kwargs):
        if not hasattr(data, "x"):
            data.x
        return [self.lasts] + [self.known.get(str(q)) for q in data.x]

@ClassFactory.register(ClassType.FL_AGG, alias="Union")
class Union:
    def aggregate(self, clients):
        known = {}
        for client in clients: known.update(client.weights[0])
        return known, [client.weights[1] for client in clients]
"""
ANSWERED = """
@ClassFactory.register(alias="answered")
def answered(y, result): return sum(a == b for a, b in zip(y, result[1:])) / len(y)
"""


def test_texts_are_renamed_in_a_copy_and_a_plugin_that_wants_the_source_gets_it(tmp_path):
    rows = [{"ask": f"q{i}", "say": f"a{i}", "more": i} for i in range(7)]
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    before = data.read_text()
    url = plugin(tmp_path / "p", "chat", CHAT)
    modules = (Module("basemodel", "Chat", url), Module("aggregation", "Union", url))
    exam = ExamSettings(client_number=3, if_mode_llm=True, gpu_num=2)
    work = Work("federatedlearning", tmp_path / "W", modules, str(data), str(data), exam=exam)
    numbers, result, scores = finish(work, [MetricSpec("answered", Path(plugin(tmp_path / "p", "answered", ANSWERED)))])
    assert result[0] == [[0, 0, 3], [1, 1, 2], [0, 2, 2]]
    assert scores.scores == {"answered": 1.0} and data.read_text() == before
    assert numbers["handed_test_labels"] is True
