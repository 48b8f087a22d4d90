"""ROUGE, BLEU, chrF and SQuAD's scores: the numbers of the tools that people know them from."""

import math
import random
import re
import string
from collections import Counter

import pytest

from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.registry import find
from ianvs.testenv.metrics import text_overlap
from tests.errors import errors_of
from tests.unit.testenv.metrics.replies import record

WORDS = [
    "the", "a", "An", "mayor", "Foo_bar", "x1", "x-1", "Zoë", "東京", "2022", "2,022.5", "won", "won't", "U.S.", "😀",
    "straße", "İstanbul", "cup", "CUP", "...", "!", "\n", "e\u0301", "ﬁne", "self.x", "(b)", "50%",
]  # fmt: skip


def pairs(count=500, seed=3):
    """(reply, reference), every tenth without a letter in one of them."""
    draw = random.Random(seed)

    def text(least):
        return " ".join(draw.choices(WORDS, k=draw.randint(least, 14)))

    made = [(text(1), text(1)) for _ in range(count)]
    return [("!!" if i % 20 == 0 else a, "..." if i % 20 == 10 else b) for i, (a, b) in enumerate(made)]


def value(name, replies, references, further=None):
    said = record([[one] for one in references], [[one] for one in replies], further=further)
    return find(name).function(said)[name]


@pytest.mark.parametrize(("name", "kind"), [("ROUGE_1", "rouge1"), ("ROUGE_2", "rouge2"), ("ROUGE_L", "rougeL")])
def test_rouge_is_that_of_rouge_score_pair_by_pair(name, kind):
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer([kind])
    for reply, reference in pairs():
        wanted = scorer.score(reference, reply)[kind].fmeasure
        assert value(name, [reply], [reference]) == pytest.approx(wanted, abs=1e-12), (reply, reference)


@pytest.mark.parametrize("name", ["ROUGE_1", "ROUGE_2", "ROUGE_L"])
def test_words_of_any_script_count_where_a_testenv_asks_for_them(name):
    metric = find(name).configure(MetricSpec(name, options={"words": "unicode"}))
    assert metric.function(record([["東京 の 数"]], [["東京 の 数"]]))[name] == 1
    assert value(name, ["東京 の 数"], ["東京 の 数"]) == 0
    assert metric.formula != find(name).formula
    wrong = MetricSpec(name, options={"words": "greek"})
    assert [code for code, _ in errors_of(find(name).configure, wrong)] == ["invalid-option"]


@pytest.mark.parametrize(("name", "call"), [("BLEU", "corpus_bleu"), ("chrF", "corpus_chrf")])
def test_bleu_and_chrf_are_a_hundredth_of_sacrebleus(name, call):
    sacrebleu = pytest.importorskip("sacrebleu")
    replies, references = zip(*pairs(), strict=True)
    of_all = getattr(sacrebleu, call)(list(replies), [list(references)]).score
    assert 100 * value(name, replies, references) == pytest.approx(of_all, abs=1e-9)
    for reply, reference in zip(replies, references, strict=True):
        wanted = getattr(sacrebleu, call)([reply], [[reference]]).score
        assert 100 * value(name, [reply], [reference]) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("name", "call"), [("BLEU", "corpus_bleu"), ("chrF", "corpus_chrf")])
def test_all_right_replies_are_references_of_the_corpus(name, call):
    sacrebleu = pytest.importorskip("sacrebleu")
    replies, first, second = ["the mayor is Ann", "red foxes"], ["Ann", "the red foxes"], ["the mayor is Ann", None]
    wanted = getattr(sacrebleu, call)(replies, [first, second]).score
    found = value(name, replies, first, further=[["the mayor is Ann"], []])
    assert 100 * found == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["BLEU", "chrF"])
def test_scores_of_a_corpus_have_parts_by_turn_and_topic_and_count_missing_replies(name):
    pytest.importorskip("sacrebleu")
    references = [["the mayor is Ann Berg", "since the last year"], ["red foxes won the cup"]]
    metric = find(name)
    whole = metric.function(record(references, references, topics=["mayor", "cup"]))
    assert whole == pytest.approx({name: 1, "turn_1": 1, "turn_2": 1, "topic mayor": 1, "topic cup": 1})
    less = metric.function(record(references, [[references[0][0], None], references[1]], topics=["mayor", "cup"]))
    assert less[name] < 1 and less["turn_1"] == pytest.approx(1) and less["turn_2"] == 0
    assert less["topic cup"] == pytest.approx(1) and less["topic mayor"] < 1
    assert math.isnan(metric.function(record([], []))[name])


def test_without_sacrebleu_the_remedy_is_told(monkeypatch):
    monkeypatch.setattr(text_overlap, "find_spec", lambda name: None)
    for name in ("BLEU", "chrF"):
        assert "ianvs-bench[language]" in find(name).missing()
        assert errors_of(find(name).function, record([["a"]], [["a"]])) == [("missing-package", "")]


# SQuAD's evaluate-v1.1.py, as it defines its two scores, step by step.


def naive_normal(text):
    text = "".join(sign for sign in text.lower() if sign not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def naive_f1(reply, truth):
    said, wanted = naive_normal(reply).split(), naive_normal(truth).split()
    same = sum((Counter(said) & Counter(wanted)).values())
    if same == 0:
        return 0
    precision, recall = same / len(said), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def test_squad_scores_are_those_of_its_script_over_the_best_of_several_answers():
    draw, made = random.Random(5), pairs(seed=5)
    for reply, first in made:
        answers = [first, *(draw.choice(made)[1] for _ in range(draw.randint(0, 2)))]
        f1 = max(naive_f1(reply, one) for one in answers)
        em = max(float(naive_normal(reply) == naive_normal(one)) for one in answers)
        assert value("SQuAD_F1", [reply], [first], further=[answers[1:]]) == pytest.approx(f1, abs=1e-12)
        assert value("SQuAD_EM", [reply], [first], further=[answers[1:]]) == em


def test_squad_looks_over_articles_case_and_punctuation():
    assert value("SQuAD_EM", ["The Red, Foxes!"], ["red foxes"]) == 1
    assert value("SQuAD_F1", ["the red foxes won"], ["Red Foxes."]) == pytest.approx(2 * 2 / 5)
