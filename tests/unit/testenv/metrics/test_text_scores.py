"""Scores of texts that need no encoder: worked values, a naive second implementation, and what failures cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import find
from ianvs.testenv.metrics import text, text_overlap
from ianvs.testenv.metrics.all_metrics import defined_in
from ianvs.testenv.metrics.text import lcs_length, normalised, turns_of, words
from tests.errors import errors_of
from tests.unit.testenv.metrics.replies import record

SCORES = {metric.name: metric for metric in defined_in(text)} | {"ROUGE_L": text_overlap.ROUGE_L}
FULL = {"lexical_similarity": 1, "reply_exact_match": 1, "ROUGE_L": 1, "reply_coverage": 1}
COMPARING = ["lexical_similarity", "reply_exact_match", "ROUGE_L"]

REFERENCES = [["Ann Berg leads the city.", "Since 2022."], ["It rains in Arlen."], ["Bo Lund won the race.", "Yes."]]


def value(name, references, replies, topics=None):
    return SCORES[name].function(record(references, replies, topics))


@pytest.mark.parametrize("name", SCORES)
def test_identical_replies_score_full_marks(name):
    parts = value(name, REFERENCES, REFERENCES)
    assert parts[name] == pytest.approx(FULL[name])
    assert parts["turn_2"] == pytest.approx(FULL[name])


@pytest.mark.parametrize("name", COMPARING)
def test_replies_to_other_questions_score_less(name):
    references = [[text] for text in ("Ann Berg leads.", "It rains in Arlen.", "Bo Lund won the race.")]
    assert value(name, references, references[1:] + references[:1])[name] < 0.5 * FULL[name]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("nothing", [None, "", "  \n"])
def test_a_missing_or_blank_reply_costs_its_own_pair_and_no_other(name, nothing):
    replies = [list(turns) for turns in REFERENCES]
    replies[1][0] = nothing
    parts = value(name, REFERENCES, replies)
    assert parts[name] == pytest.approx(FULL[name] * 4 / 5)
    assert parts["turn_1"] == pytest.approx(FULL[name] * 2 / 3)
    assert parts["turn_2"] == pytest.approx(FULL[name])


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("failed", [None, [], [None, None]])
def test_a_failed_conversation_counts_all_its_turns(name, failed):
    assert value(name, REFERENCES, [*REFERENCES[:2], failed])[name] == pytest.approx(FULL[name] * 3 / 5)


@pytest.mark.parametrize("name", COMPARING)
def test_the_same_question_asked_twice_is_two_pairs(name):
    references, replies = [["Ann."], ["Bo."]], [["Ann."], ["Ann."]]
    both = value(name, references, replies)[name]
    assert both == pytest.approx((FULL[name] + value(name, references[1:], replies[1:])[name]) / 2)
    assert both < FULL[name]


def test_topics_are_told_apart():
    parts = value("reply_exact_match", REFERENCES, [["x", "y"], *REFERENCES[1:]], ["city", "weather", "city"])
    assert parts["topic city"] == pytest.approx(2 / 4)
    assert parts["topic weather"] == 1
    assert "topic city" not in value("reply_exact_match", REFERENCES, REFERENCES)


def test_texts_without_turns_are_conversations_of_one():
    plain = EvaluationRecord((), y_true=np.array(["a b", "c"], dtype=object), y_pred=np.array(["a b", "d"]))
    assert SCORES["reply_exact_match"].function(plain) == {"reply_exact_match": 0.5}


def test_part_of_a_reference_is_no_match():
    for reply in ("2", "In 2022.", ""):
        assert value("reply_exact_match", [["2022."]], [[reply]])["reply_exact_match"] == 0


def test_case_width_and_blanks_do_not_matter_for_equality():
    assert value("reply_exact_match", [["Straße  ２０２２\n"]], [[" STRASSE 2022"]])["reply_exact_match"] == 1


def test_rouge_l_of_the_example_of_its_paper():
    # Lin 2004, section 3.1: "police killed the gunman" against "police kill the gunman" shares 3 of 4 words in order,
    # "the gunman kill police" 2 of 4.
    reference = [["police killed the gunman"]]
    assert value("ROUGE_L", reference, [["police kill the gunman"]])["ROUGE_L"] == pytest.approx(3 / 4)
    assert value("ROUGE_L", reference, [["the gunman kill police"]])["ROUGE_L"] == pytest.approx(2 / 4)


def test_rouge_l_is_the_f1_of_precision_and_recall():
    precision, recall = 2 / 3, 2 / 5  # "the gunman" of "the gunman fled", and of five words
    found = value("ROUGE_L", [["police killed the gunman today"]], [["The gunman fled!"]])["ROUGE_L"]
    assert found == pytest.approx(2 * precision * recall / (precision + recall))


def test_signs_of_scripts_without_blanks_are_words():
    assert words("東京2022年です。") == ["東", "京", "2022", "年", "で", "す"]


def naive_lcs(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(a=st.lists(st.sampled_from("abcd"), max_size=80), b=st.lists(st.sampled_from("abcde"), max_size=80))
def test_the_longest_common_subsequence_is_that_of_the_textbook(a, b):
    assert lcs_length(a, b) == naive_lcs(a, b)


def naive_letter_counts(text):
    """Runs of 2 to 4 letters of each word, with a blank before and after it."""
    counts: dict[str, int] = {}
    for word in text.split():
        padded = f" {word} "
        for size in (2, 3, 4):
            runs = [padded[i : i + size] for i in range(len(padded) - size + 1)] or [padded]
            for run in runs:
                counts[run] = counts.get(run, 0) + 1
    return counts


@given(st.lists(st.text("abc ß.", min_size=1, max_size=12).filter(str.strip), min_size=2, max_size=2))
def test_lexical_similarity_is_the_cosine_of_letter_counts(texts):
    a, b = (naive_letter_counts(normalised(text)) for text in texts)
    if any(len(word) < 3 for text in texts for word in normalised(text).split()):
        return  # scikit-learn counts words shorter than a run in a way of its own
    product = sum(count * b.get(run, 0) for run, count in a.items())
    expected = product / math.sqrt(sum(c * c for c in a.values()) * sum(c * c for c in b.values()))
    found = value("lexical_similarity", [[texts[0]]], [[texts[1]]])["lexical_similarity"]
    assert found == pytest.approx(expected, abs=1e-8)


def test_a_score_of_a_pair_does_not_depend_on_the_others():
    replies = [["Ann Lund leads a city.", None], ["It rains."], ["Bo lost the race.", "No."]]
    for name in COMPARING:
        whole = value(name, REFERENCES, replies)[name]
        alone = [
            value(name, [[r]], [[p]])[name]
            for rs, ps in zip(REFERENCES, replies, strict=True)
            for r, p in zip(rs, ps, strict=True)
        ]
        assert whole == pytest.approx(np.mean(alone))


def test_nothing_to_answer_is_no_score():
    assert math.isnan(value("ROUGE_L", [], [])["ROUGE_L"])


@pytest.mark.parametrize(
    ("references", "replies", "code"),
    [
        ([["a"]], [["a"], ["b"]], "unfit-metric"),
        ([["a"]], [["a", "b"]], "unfit-metric"),
        ([["a"]], [[3]], "unfit-metric"),
        ([2], [1], "unfit-metric"),
    ],
)
def test_what_can_not_be_paired_is_refused(references, replies, code):
    assert errors_of(list, turns_of(record(references, replies))) == [(code, "")]


SEVERAL = [["Ann leads.", "four"], ["It rains."], ["Oslo"]]
FURTHER = [["4", "It is four"], [], ["The city of Oslo", "Christiania"]]
SAID = [["Bo leads.", "it is 4"], ["It snows."], ["christiania"]]


@pytest.mark.parametrize("name", ["ROUGE_L", "lexical_similarity", "reply_exact_match"])
def test_of_several_right_replies_the_best_counts(name):
    """By scores of each reference alone; the further ones are of the last turn."""
    alone = lambda wanted, reply: SCORES[name].function(record([[wanted]], [[reply]]))[name]  # noqa: E731
    expected = []
    for wanted, more, said in zip(SEVERAL, FURTHER, SAID, strict=True):
        right = [[one] for one in wanted[:-1]] + [[wanted[-1], *more]]
        expected += [max(alone(one, reply) for one in any_of) for any_of, reply in zip(right, said, strict=True)]
    found = SCORES[name].function(record(SEVERAL, SAID, further=FURTHER))
    assert found[name] == pytest.approx(np.mean(expected), abs=1e-12)
    assert found[name] > SCORES[name].function(record(SEVERAL, SAID))[name]


def test_references_stay_with_their_conversation_when_others_are_left_out():
    of_three = record(SEVERAL, SAID, further=FURTHER)
    left = of_three.y_true[np.array([2, 1])]
    assert [list(one) for one in left.references] == [FURTHER[2], FURTHER[1]]


def test_a_text_without_a_turn_has_no_score_of_replies():
    assert errors_of(SCORES["ROUGE_L"].function, record([[]], [["a"]])) == [("unfit-metric", "")]


def test_scores_are_found_by_name_and_alias():
    assert find("EM") is SCORES["reply_exact_match"]
    assert find("ROUGE-L") is find("ROUGE_L")
    assert find("semantic_similarity") is not find("lexical_similarity")
