"""Scores of replies by what a task asks for, against worked values and naive statements of them."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import Location
from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.registry import find, resolve
from ianvs.testenv.metrics.answer_scores import letter_in, number_in, sari
from tests.errors import errors_of
from tests.unit.testenv.metrics.replies import objects, record


def score(name, references, replies, **more):
    return find(name).function(record([[one] for one in references], [[one] for one in replies], **more))[name]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"), ("b", "B"), (" (b). ", "B"), ("B. Jupiter", "B"), ("The answer is C.", "C"), ("Answer: (D)", "D"),
        ("A planet. Answer: B", "B"), ("Jupiter", None), ("", None), ("answer is 4", None),
        ("I'd say that it is (C)", "C"), ("The answer is a planet", None), ("the answer is: b.", "B"),
    ],
)  # fmt: skip
def test_the_letter_of_a_reply(reply, letter):
    assert letter_in(reply) == letter


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("48/2 = 24\n#### 72", 72), ("It is 1,234.50 dollars", 1234.5), ("#### 5 apples", 5), ("72.0", 72),
        ("-3", -3), ("from 2 to 4.", 4), ("none", None), ("####", None), ("3 ####", 3),
    ],
)  # fmt: skip
def test_the_number_of_a_text(text, number):
    assert number_in(text) == number


def test_choices_and_numbers_are_shares():
    assert score("choice_letter", ["B", "A. Mars", "2"], ["The answer is B", "C", "2"]) == pytest.approx(2 / 3)
    assert score("number_match", ["x\n#### 72", "4", "7"], ["so 72.00", "It is 5", None]) == pytest.approx(1 / 3)
    assert score("number_match", ["4"], ["5"], further=[["5.0"]]) == 1.0


def edits(one, other):
    """Insertions and deletions from one to the other, by the plain table."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], before if a == b else 1 + min(row[j], row[j - 1])
    return row[-1]


def test_edit_similarity_is_one_minus_edits_by_length():
    draw = random.Random(0)
    for _ in range(50):
        one, other = ("x" + "".join(draw.choices("ab(=) ", k=draw.randrange(1, 30))) + "x" for _ in range(2))
        expected = 1 - edits(one, other) / (len(one) + len(other))
        assert score("edit_similarity", [other], [f" {one}\n"]) == pytest.approx(expected, abs=1e-12)
    assert score("edit_similarity", ["return self.x"], ["return self.y"]) == pytest.approx(24 / 26)


SOURCE = "About 95 species are currently accepted."
RIGHT = ["About 95 species are currently known.", "About 95 species are now accepted.", "95 species are now accepted."]


@pytest.mark.parametrize(
    ("reply", "expected"), [("About 95 you now get in.", 26.953601953601954), (SOURCE, None), (RIGHT[1], None)]
)
def test_sari_of_its_authors_example(reply, expected):
    """26.9536 is what Hugging Face's evaluate tells in its documentation of the first."""
    found = sari(SOURCE, reply, RIGHT)
    assert found == pytest.approx(naive_sari(SOURCE, reply, RIGHT), abs=1e-12)
    if expected is not None:
        assert 100 * found == pytest.approx(expected, abs=1e-9)


def naive_sari(source, reply, references):
    """Run by run, with shares in place of multiplied counts."""
    split = lambda text: text.lower().replace(".", " .").split()  # noqa: E731
    totals = []
    for n in range(1, 5):
        s, c, *rs = (
            [tuple(t[i : i + n]) for i in range(len(t) - n + 1)] for t in map(split, (source, reply, *references))
        )
        runs = sorted({*s, *c, *(run for r in rs for run in r)})
        share = {run: sum(r.count(run) for r in rs) / len(rs) for run in runs}
        kept = {run: min(s.count(run), c.count(run)) for run in runs}
        gone = {run: max(s.count(run) - c.count(run), 0) for run in runs}
        could = sum(min(s.count(run), share[run]) for run in runs)
        good = {run: min(kept[run], share[run]) for run in runs}
        p = np.mean([good[run] / kept[run] for run in runs if kept[run]]) if any(kept.values()) else 1
        q = sum(good.values()) / could if could else 1
        keep = 2 * p * q / (p + q) if p + q else 0
        left = [max(gone[run] - share[run], 0) / gone[run] for run in runs if gone[run]]
        new, wanted = {run for run in c if run not in s}, {run for r in rs for run in r if run not in s}
        p, q = (len(new & wanted) / len(of) if of else 1 for of in (new, wanted))
        totals.append((keep + (np.mean(left) if left else 1) + (2 * p * q / (p + q) if p + q else 0)) / 3)
    return np.mean(totals)


def test_sari_reads_what_the_user_said_in_the_turn():
    asked = record([[RIGHT[0]], [RIGHT[0]]], [["About 95 you now get in."], [None]], further=[RIGHT[1:], []])
    asked = replace(asked, columns={"questions": objects([[SOURCE], [SOURCE]])})
    assert find("SARI").function(asked)["SARI"] == pytest.approx(0.26953601953601954 / 2)


def task_score(**options):
    return resolve(MetricSpec("task_score", options=options, place=Location(Path("testenv.yaml"), 5)))


def of_test(test, references, replies, tests=("FOMC", "MeetingBank")):
    return replace(record(references, replies), test=test, tests=tests)


def test_each_test_set_is_scored_by_the_score_of_its_task():
    metric = task_score(by={"FOMC": "choice_letter"}, otherwise="ROUGE-L")
    assert metric.formula == "choice_letter on FOMC; ROUGE-L"
    assert metric.function(of_test("FOMC", [["B"]], [["The answer is B"]])) == {"task_score": 1.0}
    said = of_test("MeetingBank", [["the mayor is Ann"]], [["the mayor is Bob"]])
    assert metric.function(said) == {"task_score": pytest.approx(find("ROUGE_L").function(said)["ROUGE_L"])}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "missing-option"),
        ({"by": {"FOMC": "ROUGE"}}, "unknown-metric"),
        ({"by": {"FOMC": "perplexity"}}, "unfit-metric"),
        ({"by": {"FOMC": "BWT"}}, "unfit-metric"),
        ({"by": {"FOMC": "EM"}, "other": "EM"}, "unknown-option"),
    ],
)
def test_options_of_a_task_score_that_mean_nothing(options, code):
    assert errors_of(task_score, **options) == [(code, "testenv.yaml:5:0")]


def test_a_test_set_without_a_score_and_a_score_without_a_test_set():
    assert errors_of(lambda: task_score(by={"FOMC": "EM"}).function(of_test("FOMC", [["B"]], [["B"]]))) == [
        ("unfit-metric", "")
    ]
    assert errors_of(
        lambda: task_score(by={"FOCM": "EM"}, otherwise="EM").function(of_test("FOMC", [["B"]], [["B"]]))
    ) == [("unfit-metric", "")]


# --- TRACE over a matrix --------------------------------------------------------------------------------------------

GENERAL = ScoreMatrix(  # two tasks, then two general test sets
    np.array([[0.1, 0.2, 0.50, 0.30], [0.8, 0.3, 0.47, 0.31], [0.6, 0.9, 0.44, 0.33]]),
    rounds=("FOMC", "Py150"),
    tests=("FOMC", "Py150", "mmlu", "boolq"),
)


def test_general_ability_changes_as_worked():
    """General scores before [.50, .30], after [.44, .33]: -.015."""
    assert find("delta_G").function(GENERAL) == pytest.approx(-0.015, abs=1e-12)
    alone = resolve(MetricSpec("delta_S", options={"tests": ["boolq"]}))
    assert alone.function(GENERAL) == pytest.approx(0.03, abs=1e-12)
    assert errors_of(lambda: resolve(MetricSpec("delta_IF", options={"tests": ["bolq"]})).function(GENERAL)) == [
        ("unfit-metric", "")
    ]


def test_of_an_error_a_loss_of_ability_is_below_zero_too():
    errors = ScoreMatrix(1 - GENERAL.values, tests=GENERAL.tests, higher_is_better=False)
    assert find("delta_G").function(errors) == pytest.approx(-0.015, abs=1e-12)


def test_without_general_test_sets_nothing_is_known_of_general_ability():
    assert np.isnan(find("delta_G").function(ScoreMatrix(GENERAL.values[:, :2])))


def test_overall_and_backward_transfer_of_trace_are_of_the_tasks_alone():
    """OP = (.6 + .9) / 2; BWT = ((.6 - .8) + (.9 - .9)) / 2."""
    assert find("TRACE_OP").function(GENERAL) == pytest.approx(0.75)
    assert find("TRACE_BWT").function(GENERAL) == pytest.approx(-0.1)
