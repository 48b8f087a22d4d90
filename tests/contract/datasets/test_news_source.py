"""The generated yearly news: what recurs, what changes, and what is asked."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.spec import DatasetSpec, ScenarioSpec
from ianvs.exam import data
from ianvs.exam.scenarios import build_exam
from ianvs.testenv.datasets.news.generated_news import TOPICS, make_news
from tests.errors import errors_of, recorded

SIZES = st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(0, 4)).filter(
    lambda s: s[1] + s[2] >= 1 and s[0] * (s[1] + s[2]) <= 36  # a topic has as many answers
)


def loaded(tmp_path, **options):
    spec = DatasetSpec(name="yearly_news", options=options)
    assert data.check_dataset(spec).problems == []
    return data.load(spec, tmp_path)


def answers(news):
    return {(one.year, question): answer for one in news for question, answer in one.turns}


def test_more_than_there_are_answers_for_is_refused():
    make_news(4, 4, 4, 0, "train")
    assert errors_of(make_news, 5, 4, 4, 0, "train") == [("out-of-range", "")]


@given(SIZES, st.integers(0, 5))
def test_what_is_asked_was_taught_in_the_year_itself(sizes, seed):
    taught, asked = (answers(make_news(*sizes, seed, part)) for part in ("train", "test"))
    assert asked.items() <= taught.items()


@given(SIZES, st.integers(0, 5))
def test_every_fact_is_taught_in_two_wordings_and_asked_about_once(sizes, seed):
    years, recurring, once = sizes
    taught, asked = (make_news(*sizes, seed, part) for part in ("train", "test"))
    facts = years * (recurring + once) * len(TOPICS)
    assert len(answers(taught)) == 2 * facts
    assert sum(len(one.turns) for one in taught) == 2 * facts
    assert len(answers(asked)) == sum(len(one.turns) for one in asked) == facts


def test_a_recurring_question_never_has_an_old_answer():
    news = make_news(4, 3, 1, 0, "train")
    by_question = {}
    for (year, question), answer in answers(news).items():
        by_question.setdefault(question, {})[year] = answer
    recurring = [said for said in by_question.values() if len(said) > 1]
    assert len(recurring) == 2 * 3 * len(TOPICS)
    assert all(len(said) == len(set(said.values())) == 4 for said in recurring)


def test_the_system_prompt_names_the_year_and_both_kinds_of_conversation_occur():
    news = make_news(2, 2, 3, 0, "test")
    assert all(one.year in one.system for one in news)
    assert {len(one.turns) for one in news} == {1, 2}


def test_it_is_a_dataset_of_conversations_with_a_round_for_each_year(tmp_path):
    dataset = loaded(tmp_path, years=3)
    assert dataset.kind == "conversation" and set(dataset.test.topics) == set(TOPICS)
    assert all(len(x["user"]) == len(y) for x, y in zip(dataset.train.x, dataset.train.y, strict=True))
    assert set(dataset.train.x[0]) == {"id", "system", "user"}
    exam = build_exam(dataset, ScenarioSpec("domain-incremental"))
    assert [round_.name for round_ in exam.rounds] == ["2022", "2023", "2024"]


def test_the_fingerprint_changes_with_every_option_and_with_nothing_else(tmp_path):
    seen = {loaded(tmp_path, **options).fingerprint for options in ({}, {"seed": 1}, {"once": 1}, {"years": 2})}
    assert len(seen) == 4
    assert loaded(tmp_path).fingerprint == loaded(tmp_path, seed=0).fingerprint


def test_the_same_seed_makes_the_same_news_in_another_process():
    code = "from ianvs.testenv.datasets.news.generated_news import make_news; print(make_news(2, 1, 2, 7, 'train'))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == str(make_news(2, 1, 2, 7, "train"))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"once": 9}, "invalid-option"),
        ({"recurring": 0, "once": 0}, "invalid-option"),
        ({"yeers": 3}, "unknown-option"),
    ],
)
def test_slips_in_the_options_are_explained(options, code):
    assert recorded(data.check_dataset(DatasetSpec(name="yearly_news", options=options)).problems) == [(code, "")]


def test_a_year_that_is_not_there_is_refused_with_the_closest():
    (problem,) = data.check_dataset(DatasetSpec(name="yearly_news", using=("2032",))).problems
    assert "Did you mean '20" in problem.message
