"""Lifelong learning, federated learning and joint inference, held against runs that have to give the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import ianvs
from ianvs.base.types import CaseResult
from ianvs.exam.data.split import dirichlet_deal
from ianvs.exam.paradigms.federated import weighted_mean
from ianvs.exam.paradigms.link import Link, size_of
from ianvs.store import CaseStore
from tests.edits import edited
from tests.errors import Found, errors_of

ROOT = Path(__file__).parents[3]
NET = """
        - learning_rate: {values: [0.1]}
        - epochs: {values: [2]}
"""
INCREMENTAL = f"""
  paradigm_type: incrementallearning
  modules:
    - type: basemodel
      name: Replay
      hyperparameters:{NET}"""
DETECTOR = edited(INCREMENTAL, "Replay", "ClassMeans")
JOINT = f"""
  paradigm_type: jointinference
  hard_example_mining_mode: MODE
  link: {{rtt_ms: 40, up_mbps: 10, down_mbps: 50}}
  edge_ms: 2
  cloud_ms: 5
  modules:
    - type: edgemodel
      name: Finetune
      hyperparameters:
        - network: {{values: [linear]}}{NET}
    - type: cloudmodel
      name: Replay
      hyperparameters:{NET}
    - type: hard_example_mining
      name: RandomRouter
      hyperparameters:
        - share: {{values: [SHARE]}}
"""
CLASSES = "{name: CIL, rounds: 3, first: 4}"
OPEN = "{name: open-world, rounds: 3, first: 4, returning: 0.2}"
ROUTED = "[accuracy, edge_share, edge_accuracy, cloud_accuracy, latency_ms, uploaded_bytes, downloaded_bytes]"


def run(folder: Path, algorithms: dict[str, str], scenario: str = CLASSES, metrics: str = "[accuracy]") -> dict:
    """The results by algorithm, {name: yaml below `algorithm:`}, in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "testenv.yaml").write_text(
        f"testenv:\n  dataset: {{name: digits}}\n  scenario: {scenario}\n  metrics: {metrics}\n"
    )
    for name, text in algorithms.items():
        (folder / f"{name}.yaml").write_text(f"algorithm:{text}")
    listed = "".join(f"      - {{name: {name}, url: ./{name}.yaml}}\n" for name in algorithms)
    (folder / "benchmarkingjob.yaml").write_text(
        f"benchmarkingjob:\n  name: test\n  workspace: {folder / 'ws'}\n  testenv: ./testenv.yaml\n  seeds: [0]\n"
        f"  engine: inline\n  test_object:\n    type: algorithms\n    algorithms:\n{listed}"
        "  rank:\n    sort_by: [{accuracy: descend}]\n"
    )
    found = {result.case.algorithm: result for result in ianvs.run(folder / "benchmarkingjob.yaml")}
    assert all(one.status == "finished" for one in found.values()), [one.failure for one in found.values()]
    return found


def answers(folder: Path, result: CaseResult) -> list[dict[object, list[int]]]:
    store, case = CaseStore(folder / "ws"), result.case.id
    rounds = [store.predictions(case, one.index) for one in store.complete_rounds(case)]
    return [{asked: said.labels.tolist() for asked, said in one.items()} for one in rounds]


def test_who_is_alone_learns_as_in_incremental_learning(tmp_path: Path) -> None:
    """A single client, a lifelong learner that is taught everything, and a cloud that answers everything."""
    found = run(
        tmp_path,
        {
            "plain": INCREMENTAL,
            "client": edited(
                INCREMENTAL, "incrementallearning", "federatedlearning\n  clients: 1\n  communication_rounds: 1"
            ),
            "lifelong": edited(INCREMENTAL, "incrementallearning", "lifelonglearning"),
            "cloud": edited(JOINT, "MODE", "mining-then-inference", "SHARE", "1.0"),
            "edge": edited(JOINT, "MODE", "inference-then-mining", "SHARE", "0.0"),
            "both": edited(JOINT, "MODE", "inference-then-mining", "SHARE", "0.5"),
        },
        metrics=ROUTED,
    )
    plain = answers(tmp_path, found["plain"])
    for name in ("client", "lifelong", "cloud"):
        assert answers(tmp_path, found[name])[1:] == plain[1:], name
    cloud = found["cloud"].metrics
    assert (cloud["edge_share"], cloud["uploaded_bytes"], cloud["downloaded_bytes"]) == (0, 256, 8)
    assert cloud["cloud_accuracy"] == pytest.approx(
        np.average(found["plain"].matrices["accuracy"].values[-1], weights=_sizes(tmp_path, found["plain"]))
    )
    assert cloud["latency_ms"] == pytest.approx(5 + 40 + 8 * 256 / 10e6 * 1e3 + 8 * 8 / 50e6 * 1e3)
    assert found["plain"].metrics["edge_share"] is None
    # Where the edge is asked first, its time counts too.
    assert (found["edge"].metrics["edge_share"], found["edge"].metrics["latency_ms"]) == (1, 2)
    both = found["both"].metrics
    share = both["edge_share"]
    assert 0.3 < share < 0.7
    assert both["latency_ms"] == pytest.approx(2 + (1 - share) * (5 + 40 + 0.2048 + 0.00128))
    pooled = np.average(found["both"].matrices["accuracy"].values[-1], weights=_sizes(tmp_path, found["both"]))
    assert share * both["edge_accuracy"] + (1 - share) * both["cloud_accuracy"] == pytest.approx(pooled)


def _sizes(folder: Path, result: CaseResult) -> list[int]:
    said = CaseStore(folder / "ws").predictions(result.case.id, 1)
    return [len(one.labels) for _, one in sorted(said.items())]


@pytest.mark.slow
def test_what_looks_seen_is_not_sent_on_and_what_was_not_taught_may_be_answered_unseen(tmp_path: Path) -> None:
    metrics = "[accuracy, AUROC, open_set_accuracy, samples_transfer_share, samples_transfer_ratio]"
    lifelong = edited(DETECTOR, "incrementallearning", "lifelonglearning")
    algorithms = {
        "picky": lifelong,
        "all": edited(lifelong, "modules:", "train_on: all\n  modules:"),
        "incremental": DETECTOR,
        "none": lifelong + "    - type: unseen_sample_recognition\n      name: Nothing\n      url: ./nothing.py\n",
    }
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "nothing.py").write_text(
        "class Nothing:\n    def recognise(self, scores):\n        return scores > 1e9\n"
    )
    found = run(tmp_path, algorithms, OPEN, metrics)
    picky, everything, none = (found[name] for name in ("picky", "all", "none"))
    assert answers(tmp_path, everything) == answers(tmp_path, found["incremental"])  # asked there too
    transferred = [round_.measures["transferred_samples"] for round_ in picky.rounds[1:]]
    inferred = [round_.measures["inferred_samples"] for round_ in picky.rounds[1:]]
    assert transferred[0] == inferred[0]
    assert all(0 < sent < came for sent, came in zip(transferred[1:], inferred[1:], strict=True))
    assert picky.metrics["samples_transfer_share"] == sum(transferred) / sum(inferred)
    assert picky.metrics["samples_transfer_ratio"] == sum(transferred) / (sum(inferred) + 1)
    assert [round_.measures["transferred_samples"] for round_ in none.rounds[2:]] == [0, 0]
    # Only one column, and what is unseen changes with the rounds: after the last nothing is.
    curve = picky.matrices["AUROC"].values
    assert curve.shape == (4, 1)
    assert np.isnan(curve[[0, 3]]).all()
    assert picky.metrics["AUROC"] == pytest.approx(curve[1:3].mean())
    assert picky.metrics["AUROC"] > 0.7
    assert {-1} < {label for one in answers(tmp_path, picky)[1].values() for label in one}
    # With nothing recognised as unseen, -1 is never said, and round 1 is all that it ever learns.
    assert -1 not in {label for one in answers(tmp_path, none)[1].values() for label in one}


STOPPED = """
from pathlib import Path

from ianvs.testalgorithms.class_means.basemodel import ClassMeans


class Stopped(ClassMeans):
    def train(self, train_data, valid_data=None, **context):
        super().train(train_data, valid_data, **context)
        if 9 in context["new_classes"] and Path(__file__).with_name("stop").exists():
            raise RuntimeError("stopped")
"""


def taught(folder: Path) -> dict[tuple[str, int], float]:
    """The seconds of training of each round that is stored, by case and round, the untrained one (0) left out."""
    files = folder.glob("**/cases/*/rounds/[1-9]/round.json")
    return {(file.parts[-4], int(file.parts[-2])): json.loads(file.read_text())["train_seconds"] for file in files}


@pytest.mark.slow
def test_a_case_that_ended_in_its_last_round_goes_on_to_the_same_end(tmp_path: Path) -> None:
    stopped = edited(INCREMENTAL, "name: Replay", "name: Stopped\n      url: ./stopped.py")
    algorithms = {
        "federated": edited(
            stopped,
            "incrementallearning",
            "federatedclassincrementallearning\n  clients: 3\n  partition: non-iid\n  concentration: 0.3",
        ),
        "lifelong": edited(stopped, "incrementallearning", "lifelonglearning"),
        "joint_inference": edited(
            JOINT,
            "MODE",
            "inference-then-mining",
            "SHARE",
            "0.5",
            "name: Replay",
            "name: Stopped\n      url: ./stopped.py",
        ),
    }
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stopped.py").write_text(STOPPED)
    whole = run(tmp_path / "whole", algorithms, OPEN)
    (tmp_path / "cut" / "stop").touch()
    with pytest.raises(AssertionError, match="stopped"):
        run(tmp_path / "cut", algorithms, OPEN)
    (tmp_path / "cut" / "stop").unlink()
    before = taught(tmp_path / "cut")
    assert len(before) == 3 * 2
    cut = run(tmp_path / "cut", algorithms, OPEN)
    after = {(one.case.id, r.index): r.train_seconds for one in cut.values() for r in one.rounds}
    assert before.items() <= after.items()  # none of these rounds was taught again
    for name in algorithms:
        assert answers(tmp_path / "cut", cut[name]) == answers(tmp_path / "whole", whole[name]), name
        assert [r.measures for r in cut[name].rounds] == [r.measures for r in whole[name].rounds]


def test_weights_are_averaged_by_samples_in_whatever_form_they_come() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.random((2, 3)).astype(np.float32) for _ in range(3)]
    naive = [[sum(n * a[i][j] for n, a in zip((1, 2, 5), arrays, strict=True)) / 8 for j in range(3)] for i in range(2)]
    assert np.allclose(weighted_mean(arrays, (1, 2, 5)), naive)
    nested = [{"w": [torch.from_numpy(a), 2.0 * k], "steps": torch.tensor(10 * k)} for k, a in enumerate(arrays)]
    found = weighted_mean(nested, (1, 2, 5))
    assert np.allclose(found["w"][0].numpy(), naive)
    assert found["w"][1] == pytest.approx((2 * 2 + 5 * 4) / 8)
    assert (found["steps"].item(), found["steps"].dtype) == (15, torch.int64)  # 120 / 8
    assert found["w"][0].dtype == torch.float32


def test_bytes_and_milliseconds_by_hand() -> None:
    message = {"w": [np.zeros(10, np.float32), torch.zeros(3, dtype=torch.float64)], "name": "ü", "n": 1, "no": None}
    assert size_of(message) == 40 + 24 + 2 + 8
    assert Link(rtt_ms=40, up_mbps=10, down_mbps=50).milliseconds(1e6, 1e6) == pytest.approx(40 + 800 + 160)


def test_a_skewed_deal_gives_every_sample_once_and_is_the_more_skewed_the_smaller_its_concentration() -> None:
    labels = np.repeat(np.arange(10), 50)

    def largest_share(concentration: float) -> float:
        hands = dirichlet_deal(labels, 500, 5, concentration, np.random.default_rng(0))
        assert sorted(np.concatenate(hands).tolist()) == list(range(500))
        assert all(map(len, hands))
        counts = np.array([np.bincount(labels[hand], minlength=10) for hand in hands])
        return float((counts.max(0) / counts.sum(0)).mean())

    assert largest_share(0.05) > 0.8 > 0.5 > largest_share(1.0) > largest_share(1000.0)
    assert largest_share(1000.0) < 0.25
    assert all(len(hand) == 1 for hand in dirichlet_deal(None, 4, 4, 0.01, np.random.default_rng(1)))


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("rtt_ms: 40", "rtt: 40", ("invalid-option", "one.yaml:4:3")),
        ("up_mbps: 10", "up_mbps: 0", ("invalid-option", "one.yaml:4:3")),
        ("mining-then-inference", "edge-first", ("invalid-option", "one.yaml:3:3")),
        ("name: RandomRouter", "name: Finetune", ("broken-contract", "one.yaml:22:13")),
        ("type: cloudmodel", "type: cloudmodle", ("invalid-choice", "one.yaml:15:13")),
    ],
)
def test_slips_are_told_before_anything_runs(tmp_path: Path, old: str, new: str, error: Found) -> None:
    text = edited(JOINT, "MODE", "mining-then-inference", "SHARE", "0.5", old, new)
    (code, location), *_ = errors_of(run, tmp_path, {"one": text})
    assert (code, location.rpartition("/")[2]) == error


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    for name in ("lifelong_learner", "federated_client", "edge_and_cloud"):
        results = ianvs.run(ROOT / "examples" / name / "benchmarkingjob.yaml", workspace=tmp_path, engine="inline")
        assert results.exit_code == 0
        assert all(result.metrics["accuracy"] > 0.5 for result in results)
