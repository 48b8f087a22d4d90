"""Worked values of metrics over a stream, and of the order of questions and labels."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ianvs.exam.metrics import registry
from ianvs.exam.metrics.stream_record import StreamRecord, blind_accuracy
from ianvs.running.session.stream_order import StreamOrder
from ianvs.testenv.metrics import prequential

GOLDEN = Path(__file__).parents[3] / "golden"


def golden(name: str) -> dict:
    return json.loads((GOLDEN / f"prequential_{name}.json").read_text())


def numbers(names) -> np.ndarray:
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64)


def record(scores, **more) -> StreamRecord:
    count = len(scores)
    steps, zeros = np.arange(count), np.zeros(count, np.int64)
    plain = {"rounds": zeros + 1, "chunks": steps, "told_at": steps, "truth": zeros, "answers": zeros}
    return StreamRecord(np.asarray(scores, float), **{**plain, **more})


def value(name: str, of: StreamRecord) -> float:
    found = registry.find(name)
    assert found is not None and found.function is not None
    return found.function(of)


def fits(found: float, wanted: float | None) -> None:
    assert math.isnan(found) if wanted is None else found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("case", golden("gain")["cases"])
def test_gain(case):
    topics = numbers(case["topics"]) if "topics" in case else None
    more = {"start": case["n"]} if "n" in case else {}
    of = record(
        case["s"],
        stateless=np.array(case["z"], float),
        topics=topics,
        window=case["window"],
        r_max=case["r_max"],
        **more,
    )
    for name, wanted in (("online_accuracy", "online"), ("online_windowed", "windowed")):
        fits(value(name, of), case[wanted] if isinstance(case[wanted], float) else case[wanted][-1])
    for name in ("gain", "gain_norm", "gain_area", *(("forward_gain", "return_gain") if "topics" in case else ())):
        fits(value(name, of), case[name])
    np.testing.assert_allclose(prequential.running(of.scores), case["running"])
    np.testing.assert_allclose(prequential.windowed(of.scores, case["window"]), case["windowed"])
    np.testing.assert_allclose(prequential.fading(of.scores, case["alpha"]), case["fading"])
    np.testing.assert_allclose(prequential.running(of.gains), case["gain_curve"])


@pytest.mark.parametrize(
    "case", golden("stream")["cases"], ids=lambda c: f"{c['learner']} {c['feedback']} {c['delay']}"
)
def test_facts(case):
    episodes = golden("stream")["episodes"]
    answers = [one["a"] for one in episodes]
    known = {name: number for number, name in enumerate(dict.fromkeys(answers))}
    of = record(
        case["s"],
        stateless=np.array(case["z"], float),
        truth=numbers(answers),
        answers=np.array([known.get(said, -1) for said in case["said"]]),
        topics=numbers([one["topic"] for one in episodes]),
        facts=numbers([one["fact"] for one in episodes]),
        start=2,  # the n of these worked values
        told_at=np.array([StreamOrder(case["delay"], case["cost"]).revealed_at(t, len(episodes)) for t in range(12)]),
    )
    assert of.told_at.tolist() == case["told_at"]
    assert of.revealed_facts is not None
    assert [
        int(of.revealed_facts.retained.sum()),
        int(of.revealed_facts.updated.sum()),
        int(of.revealed_facts.changed.sum()),
    ] == case["counts"]
    for name in ("retained", "updated", "stale_rate", "gain", "gain_norm", "gain_area", "forward_gain", "return_gain"):
        fits(value(name, of), case[name])


def test_near_future():
    case = golden("future")
    truth, table = np.array(case["y"]), np.array(case["table"])
    count = len(truth)
    near = {s: [float(table[t][t + 1 + s] == truth[t + 1 + s]) for t in range(count - 1 - s)] for s in range(count)}
    of = record(np.zeros(count), near={shift: np.array(scores) for shift, scores in near.items()})
    for shift, wanted in case["near"].items():
        fits(value(f"near_future_accuracy@{shift}", of), wanted)


@pytest.mark.parametrize("case", golden("future")["blind"], ids=lambda c: f"k {c['k']} delay {c['delay']}")
def test_blind(case):
    truth = np.array(golden("future")["y"])
    fits(blind_accuracy(truth, np.arange(len(truth)), case["delay"], case["k"]), case["accuracy"])


def test_costs():
    case = golden("cost")
    episodes = case["episodes"]
    total = {name: sum(one[name] for one in episodes) for name in episodes[0]}
    of = record(
        [one["s"] for one in episodes],
        stateless=np.array(case["z"], float),
        tokens=total["tokens"],
        calls=total["calls"],
        answer_seconds=total["answer_seconds"],
        feedback_seconds=total["feedback_seconds"],
    )
    for name in ("tokens_per_right", "calls_per_right", "seconds_per_right", "gain_per_1000_tokens"):
        fits(value(name, of), case[name])
    none = case["none_right"]
    fits(value("tokens_per_right", record(none["s"], tokens=sum(none["tokens"]))), none["tokens_per_right"])


@pytest.mark.parametrize("case", golden("order")["cases"], ids=lambda c: f"{c['sizes']} d {c['delay']} C {c['cost']}")
def test_order(case):
    sizes, chunks = case["sizes"], case["chunks"]
    firsts = [of for _, _, of in chunks]
    ends = [sum(first <= index for first in firsts) for index in range(len(sizes))]
    order, asked, told, events = StreamOrder(case["delay"], case["cost"]), 0, 0, []
    for kind, number in order.events(ends):
        size = chunks[number][1] - chunks[number][0] if kind != "exam" else 0
        asked, told = asked + size * (kind == "ask"), told + size * (kind == "tell")
        events.append([kind, number, asked, told] if kind == "exam" else [kind, number])
    assert events == case["events"]


# What river 0.26.1 yields by stream.simulate_qa(..., delay=k) of twelve samples: k, then the first events.
RIVER = {
    0: "a0 t0 a1 t1 a2 t2 a3 t3 a4 t4 a5 t5 a6 t6",
    1: "a0 t0 a1 t1 a2 t2 a3 t3 a4 t4 a5 t5 a6 t6",
    2: "a0 a1 t0 a2 t1 a3 t2 a4 t3 a5 t4 a6 t5 a7",
    5: "a0 a1 a2 a3 a4 t0 a5 t1 a6 t2 a7 t3 a8 t4",
}


@pytest.mark.parametrize(("k", "events"), RIVER.items())
def test_the_delay_of_river_is_ours_and_one(k, events):
    """I7: its integer delay of 1 or more is our d = k - 1, and its 0 and 1 are the same."""
    ours = [f"{kind[0]}{number}" for kind, number in StreamOrder(max(0, k - 1)).events([12]) if kind != "exam"]
    assert ours[: len(events.split())] == events.split()


def test_cost_one_is_label_delay_and_cost_two_skips_every_other_chunk():
    """I8."""
    assert [StreamOrder(3, 1).revealed_after(t) for t in range(6)] == [None, None, None, 0, 1, 2]
    assert [StreamOrder(0, 2).revealed_after(t) for t in range(6)] == [None, 0, None, 2, None, 4]
