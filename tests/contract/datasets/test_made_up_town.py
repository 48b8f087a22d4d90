"""The made-up town: what is asked how often, what changes, what its tests ask, and that it is the same everywhere."""

import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.spec import DatasetSpec, ScenarioSpec
from ianvs.exam import data
from ianvs.exam.scenarios import build_exam
from ianvs.testenv.datasets.made_up_town import CHOICES, KINDS_OF_QUESTIONS, MadeUpTown
from tests.errors import errors_of

OPTIONS = st.fixed_dictionaries(
    {
        "visits": st.integers(1, 9),
        "offices": st.integers(1, 4),
        "facts": st.integers(1, 16),
        "askings": st.integers(1, 5),
        "sums": st.integers(0, 8),
        "choices": st.sampled_from([0, 2, 4, 8]),
        "seed": st.integers(0, 3),
    }
)


def loaded(**options):
    return MadeUpTown(**options).load(DatasetSpec(name="made_up_town", options=options), None)


def rows(samples):
    """(visit, kind, fact, question, answer) of each sample."""
    return list(zip(samples.domains, samples.topics, samples.facts, samples.x, samples.y, strict=True))


@given(OPTIONS)
def test_a_visit_asks_each_fact_so_often_with_one_answer_and_so_many_sums(options):
    train = rows(loaded(**options).train)
    visits = list(dict.fromkeys(visit for visit, *_ in train))
    assert len(visits) == options["visits"]
    assert len(train) == options["visits"] * (options["facts"] * options["askings"] + options["sums"])
    for visit in visits:
        asked = Counter((fact, answer) for v, kind, fact, _, answer in train if v == visit and kind != "rule")
        assert set(asked.values()) == {options["askings"]} and len(asked) == options["facts"]
        assert sum(kind == "rule" for v, kind, *_ in train if v == visit) == options["sums"]


@given(OPTIONS)
def test_at_every_return_half_of_the_facts_have_another_answer_and_the_others_have_not(options):
    answers = {}
    for visit, kind, fact, _, answer in rows(loaded(**options).train):
        answers.setdefault((kind, fact), {})[visit] = answer
    for (kind, _), by_visit in answers.items():
        said = list(by_visit.values())
        if kind == "changes":
            assert all(before != after for before, after in pairwise(said))
        else:
            assert len(set(said)) == 1
    offices = min(options["offices"], options["visits"])
    assert sum(kind == "changes" for kind, _ in answers) == offices * (options["facts"] // 2)


@given(OPTIONS)
def test_a_visits_test_asks_in_new_words_what_no_later_visit_contradicts(options):
    dataset = loaded(**options)
    train, test = rows(dataset.train), rows(dataset.test)
    assert not {question.partition(CHOICES)[0] for *_, question, _ in test} & {
        question.partition(CHOICES)[0] for *_, question, _ in train
    }
    visits = list(dict.fromkeys(visit for visit, *_ in train))
    for visit, _, fact, _, answer in test:
        later = visits[visits.index(visit) :]
        assert {a for v, _, f, _, a in train if f == fact and v in later} == {answer}


def test_the_stream_of_the_specification():
    dataset = loaded()
    assert len(dataset.train) == 304 and dataset.kind == "text"
    assert Counter(dataset.train.topics.tolist()) == {"stays": 128, "changes": 128, "rule": 48}
    assert set(KINDS_OF_QUESTIONS) == set(dataset.train.topics.tolist())
    wordings = {}
    for _, _, fact, question, _ in rows(dataset.train):
        wordings.setdefault(fact, set()).add(question)
    assert {len(one) for fact, one in wordings.items() if "," in fact} == {2, 3}
    assert len(loaded(visits=4, offices=2, facts=4, sums=2).train) == 72


def test_an_operation_is_one_of_its_office_and_its_sums_are_of_one_visit():
    train = [row for row in rows(loaded(visits=8, offices=2, sums=8).train) if row[1] == "rule"]
    for office in ("Council", "Harbour"):
        sums = [(question.split(" much is ")[1], answer) for _, _, _, question, answer in train if office in question]
        a, b, results = (
            np.array([int(said.split()[0]) for said, _ in sums]),
            np.array([int(said.split()[2].rstrip("?")) for said, _ in sums]),
            np.array([int(answer) for _, answer in sums]),
        )
        fitted, *_ = np.linalg.lstsq(np.stack([a, b], axis=1), results, rcond=None)
        np.testing.assert_allclose(fitted @ np.stack([a, b]), results, atol=1e-9)
        assert np.allclose(fitted, np.round(fitted)) and fitted.sum() > 2.5, "not a + b"
    visits = {}
    for visit, _, fact, *_ in train:
        visits.setdefault(fact, set()).add(visit)
    assert all(len(one) == 1 for one in visits.values())


@given(OPTIONS.filter(lambda options: options["choices"]))
def test_the_answer_is_among_the_choices(options):
    dataset = loaded(**options)
    for samples in (dataset.train, dataset.test):
        for question, answer in zip(samples.x, samples.y, strict=True):
            offered = question.partition(CHOICES)[2].split("; ")
            assert answer in offered and len(offered) == len(set(offered)) == options["choices"]


def test_no_place_among_the_choices_is_right_more_often_than_by_chance():
    train = loaded(choices=4).train
    places = Counter(q.partition(CHOICES)[2].split("; ").index(a) for q, a in zip(train.x, train.y, strict=True))
    assert max(places.values()) < 0.35 * len(train)


def test_each_visit_is_a_round_in_the_order_of_the_stream():
    dataset = loaded(visits=5, offices=2)
    exam = build_exam(dataset, ScenarioSpec("domain-incremental"))
    assert [one.name for one in exam.rounds] == ["council 1", "harbour 1", "council 2", "harbour 2", "council 3"]
    positions = np.concatenate([one.train for one in exam.rounds])
    np.testing.assert_array_equal(positions, np.arange(len(dataset.train)))


def test_another_process_with_another_hash_seed_makes_the_same_town():
    code = (
        "import hashlib\n"
        "from ianvs.config.spec import DatasetSpec\n"
        "from ianvs.testenv.datasets.made_up_town import MadeUpTown\n"
        "d = MadeUpTown(choices=4).load(DatasetSpec(name='made_up_town'), None)\n"
        "said = [[v.tolist() for v in (p.x, p.y, p.ids, p.domains, p.topics, p.facts)] for p in (d.train, d.test)]\n"
        "print(hashlib.sha256(repr(said).encode()).hexdigest(), d.fingerprint)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_another_seed_makes_another_town():
    first, second = loaded(seed=0), loaded(seed=1)
    assert first.fingerprint != second.fingerprint
    assert first.train.y.tolist() != second.train.y.tolist()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"choices": 1}, "invalid-option"),
        ({"visits": 100, "offices": 1}, "invalid-option"),
    ],
)
def test_what_can_not_be_asked_is_refused_with_the_remedy(options, code, tmp_path):
    assert errors_of(data.fingerprint, DatasetSpec(name="made_up_town", options=options), tmp_path) == [(code, "")]
