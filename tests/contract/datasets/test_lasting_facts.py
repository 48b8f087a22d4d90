"""The generated facts: what stays, what changes, what is added, and that no round contradicts another."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.spec import DatasetSpec, ScenarioSpec
from ianvs.exam import data
from ianvs.exam.scenarios import build_exam
from ianvs.testenv.datasets.lasting_facts import KINDS_OF_FACTS, LastingFacts
from tests.errors import recorded

OPTIONS = st.fixed_dictionaries(
    {
        "years": st.integers(1, 7),
        "desks": st.integers(1, 3),
        "stays": st.integers(1, 12),
        "changes": st.integers(0, 4),
        "added": st.integers(1, 4),
        "seed": st.integers(0, 3),
    }
).filter(lambda o: o["stays"] + -(-o["years"] // o["desks"]) * (o["changes"] + o["added"]) <= 64)


def loaded(**options):
    return LastingFacts(**options).load(DatasetSpec(name="lasting_facts", options=options), None)


def facts(samples):
    """(year, kind, system prompt, question, answer) of each conversation, all of one turn."""
    rows = zip(samples.domains, samples.topics, samples.x, samples.y, strict=True)
    return [(str(year), str(kind), x["system"], *x["user"], *y) for year, kind, x, y in rows]


@given(OPTIONS)
def test_what_is_asked_was_taught_in_that_year_in_two_wordings_and_is_asked_once(options):
    dataset = loaded(**options)
    taught, asked = facts(dataset.train), facts(dataset.test)
    assert set(asked) <= set(taught) and len(asked) == len(set(asked))
    assert len(taught) == len(set(taught)) == 2 * len(asked)
    assert sorted((year, kind, answer) for year, kind, _, _, answer in taught) == sorted(
        2 * [(year, kind, answer) for year, kind, _, _, answer in asked]
    )


@given(OPTIONS)
def test_no_question_has_two_answers_and_no_answer_of_a_desk_two_facts(options):
    taught = facts(loaded(**options).train)
    assert len({(desk, question) for _, _, desk, question, _ in taught}) == len(taught), "nothing is repeated"
    assert set(Counter((desk, answer) for _, _, desk, _, answer in taught).values()) == {2}, "its two wordings"


def test_years_bring_what_their_options_say_and_desks_take_turns():
    options = {"years": 5, "desks": 2, "stays": 6, "changes": 3, "added": 2}
    asked = facts(loaded(**options).test)
    counted = Counter((year, kind) for year, kind, *_ in asked)
    first = {"stays": 6, "changes": 3}
    later = {"changes": 3, "added": 2}
    for year, expected in (("2020", first), ("2021", first), ("2022", later), ("2023", later), ("2024", later)):
        assert {kind: counted[year, kind] for kind in KINDS_OF_FACTS if counted[year, kind]} == expected
    desks = [{desk for y, _, desk, _, _ in asked if y == str(2020 + k)} for k in range(5)]
    assert [len(one) for one in desks] == [1] * 5
    assert desks[0] == desks[2] == desks[4] != desks[1] == desks[3]


def test_the_same_things_change_and_a_question_names_the_year_only_then():
    taught = facts(loaded(years=6, desks=2, stays=5, changes=2, added=2).train)
    by_town = {}
    for year, kind, desk, question, answer in taught:
        assert (f"in {year}" in question) == (kind == "changes")
        if kind == "changes":
            by_town.setdefault((desk, question.replace(year, "YEAR")), {})[year] = answer
    assert len(by_town) == 2 * 2 * 2, "desks, facts, wordings"
    assert all(len(said) == len(set(said.values())) == 3 for said in by_town.values())


def test_it_is_an_exam_with_a_round_for_each_year():
    dataset = loaded(years=3)
    assert dataset.kind == "conversation"
    exam = build_exam(dataset, ScenarioSpec("domain-incremental"))
    assert [round_.name for round_ in exam.rounds] == ["2020", "2021", "2022"]


def test_the_fingerprint_changes_with_every_option(tmp_path):
    def fingerprint(**options):
        spec = DatasetSpec(name="lasting_facts", options=options)
        assert data.check_dataset(spec).problems == []
        return data.load(spec, tmp_path).fingerprint

    changed = ({}, {"seed": 1}, {"years": 3}, {"desks": 1}, {"stays": 4}, {"changes": 1}, {"added": 1})
    assert len({fingerprint(**options) for options in changed}) == 7
    assert fingerprint() == fingerprint(seed=0)


def test_the_same_seed_makes_the_same_facts_in_another_process():
    code = (
        "from ianvs.testenv.datasets.lasting_facts import LastingFacts; d = LastingFacts(seed=7).load(None, None);"
        "print(d.test.x.tolist(), d.test.y.tolist())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = loaded(seed=7).test
    assert printed.stdout.strip() == f"{here.x.tolist()} {here.y.tolist()}"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"stays": 60}, "invalid-option"),
        ({"stays": 0, "changes": 0}, "invalid-option"),
        ({"added": 0, "changes": 0}, "invalid-option"),
        ({"desks": 4}, "invalid-option"),
        ({"yeers": 3}, "unknown-option"),
    ],
)
def test_slips_in_the_options_are_explained(options, code):
    assert recorded(data.check_dataset(DatasetSpec(name="lasting_facts", options=options)).problems) == [(code, "")]


def test_a_year_that_is_not_there_is_refused_with_the_closest():
    (problem,) = data.check_dataset(DatasetSpec(name="lasting_facts", using=("2030",))).problems
    assert "Did you mean '20" in problem.message
