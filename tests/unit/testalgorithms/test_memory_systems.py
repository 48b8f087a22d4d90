"""Systems with memory in a made-up town, in a loop of its own that asks, and tells some steps later."""

from functools import cache

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec
from ianvs.testalgorithms.memory.memories import History, KeyedNotes, MostFrequent, NearestByWords, SameWording
from ianvs.testalgorithms.memory.systems import AsNoted, ExactWording, Majority, Notes, Retrieval
from ianvs.testenv.datasets.made_up_town import MadeUpTown
from tests.errors import errors_of
from tests.unit.testalgorithms.questions import texts, told, view

SYSTEMS = {
    "majority": Majority,
    "exact": ExactWording,
    "oldest": lambda **options: Retrieval(of_equals="oldest", **options),
    "newest": Retrieval,
    "notes": Notes,
}
SPECIFIED = {"majority": 0.207, "exact": 0.455, "oldest": 0.453, "newest": 0.520, "notes": 0.803}
SEEDS = (0, 11)  # the second played no part when the systems were written


@cache
def town(seed, choices=0):
    spec = DatasetSpec(name="made_up_town")
    return MadeUpTown(seed=seed, choices=choices).load(spec, None).train


def stream(system, asked, delay=0, kind="label"):
    """(N,) answers; what is right is told `delay` questions later."""
    said = []
    for t, question in enumerate(asked.x):
        said.extend(system.answer(view(question)))
        if (j := t - delay) >= 0:
            feedback = asked.y[j] if kind == "label" else said[j] == asked.y[j]
            system.feedback(told([asked.x[j]], [said[j]], [feedback], kind))
    return texts(*said)


@cache
def run(name, seed, delay=0):
    """By name of a score its value, as the specification defines them; answers without a memory are all wrong."""
    asked = town(seed)
    said = stream(SYSTEMS[name](), asked, delay)
    right, retained, updated, stale = said == asked.y, [], [], []
    for i, fact in enumerate(asked.facts):
        before = [k for k in range(i) if asked.facts[k] == fact]
        known = [k for k in before if k + delay < i]
        if known and asked.y[known[-1]] == asked.y[i]:
            if asked.domains[known[-1]] != asked.domains[i]:
                retained.append(right[i])
            if any(asked.y[k] != asked.y[i] for k in known):
                updated.append(right[i])
        if former := {asked.y[k] for k in before} - {asked.y[i]}:
            stale.append(said[i] in former)
    return {
        "gain": right.mean(),
        "retained": np.mean(retained),
        "updated": np.mean(updated) if updated else np.nan,
        "stale": np.mean(stale),
    }


def mean(name, score, delay=0):
    return np.mean([run(name, seed, delay)[score] for seed in SEEDS])


@pytest.mark.parametrize("name", SYSTEMS)
def test_gain_is_that_of_the_specification(name):
    assert mean(name, "gain") == pytest.approx(SPECIFIED[name], abs=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_gain_separates_notes_from_retrieval_from_the_majority(seed):
    gains = {name: run(name, seed)["gain"] for name in SYSTEMS}
    assert gains["notes"] > gains["newest"] + 0.2 > gains["exact"] + 0.2
    assert gains["exact"] > gains["majority"] + 0.2 and gains["newest"] > gains["oldest"]


def test_without_a_memory_nobody_knows_anything():
    for make in SYSTEMS.values():
        system = make()
        for question in town(0).x[:60]:
            system.feedback(told([question], [""], ["Falk"]))
            system.reset()
            assert system.answer(view(question)) == [""]


def test_notes_keep_what_stays_and_know_what_changed_after_one_telling():
    assert mean("notes", "retained") == mean("notes", "updated") == 1
    assert mean("notes", "stale") == pytest.approx(0.25), "the first asking after a change, which nobody can know"
    assert mean("oldest", "stale") > 0.75 > mean("newest", "stale") + 0.15
    assert mean("oldest", "updated") < 0.25 < mean("newest", "updated") - 0.15
    assert mean("newest", "retained") > mean("majority", "retained") + 0.3


@pytest.mark.parametrize("name", ["majority", "exact", "notes"])
def test_what_is_told_later_helps_less(name):
    assert mean(name, "gain") > mean(name, "gain", 10) > mean(name, "gain", 50) > 0.05


def test_notes_find_out_an_operation_from_two_results():
    asked = town(0)
    right = (stream(Notes(), asked) == asked.y)[asked.topics == "rule"]
    assert right.mean() > 0.75
    noted = KeyedNotes()
    noted.write(told(["Mill: how much is 2 marn 5?", "Mill: how much is 3 marn 1?"], ["", ""], ["12", "5"]))
    assert [answer for _, answer in noted.find("Mill: how much is 10 marn 20?")] == ["50"], "a + 2 b"
    assert noted.find("Mill: how much is 10 dolp 20?") == []


def gain_by_choice(make, **options):
    """Mean gain over choosing without a memory, where only right or wrong is told."""
    gains = []
    for seed in SEEDS:
        asked = town(seed, choices=4)
        alone = texts(*(make(**options).answer(view(question))[0] for question in asked.x))
        gains.append(
            np.mean((stream(make(**options), asked, kind="correctness") == asked.y) * 1.0 - (alone == asked.y))
        )
    return np.mean(gains)


def test_right_and_wrong_is_enough_where_answers_are_chosen_and_more_if_wrong_ones_are_eliminated():
    wording, notes = gain_by_choice(ExactWording), gain_by_choice(Notes)
    assert notes > wording + 0.1 > 0.12
    assert gain_by_choice(Notes, eliminate=True) > notes + 0.02


def test_with_open_answers_right_and_wrong_teaches_nothing():
    asked = town(0)
    for make in SYSTEMS.values():
        assert not (stream(make(eliminate=True), asked, kind="correctness") == asked.y).any()


def test_a_wrong_answer_is_not_chosen_again_until_another_was_right():
    system, question = ExactWording(eliminate=True), "Who? Choose from: Ada; Ben; Cleo"
    chosen = []
    for _ in range(3):
        chosen += system.answer(view(question))
        system.feedback(told([question], chosen[-1:], [False], "correctness"))
    assert sorted(chosen) == ["Ada", "Ben", "Cleo"]
    system.feedback(told([question], ["Ben"], [True], "correctness"))
    assert system.answer(view(question)) == ["Ben"] and system.wrong == {}
    system.feedback(told([question], ["Ben"], [False], "correctness"))
    assert system.answer(view(question)) != ["Ben"], "it was right once, and is not any more"


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("kind", ["label", "correctness"])
def test_a_system_that_was_saved_and_loaded_goes_on_as_the_same(name, kind, tmp_path):
    asked = town(0, choices=4 if kind == "correctness" else 0)
    going, other = (SYSTEMS[name](eliminate=True) for _ in range(2))
    for question, answer in zip(asked.x[:60], asked.y[:60], strict=True):
        said = going.answer(view(question))
        going.feedback(told([question], said, [answer if kind == "label" else said[0] == answer], kind))
    going.save(tmp_path / "model")
    other.load(tmp_path / "model")
    assert going.answer(view(*asked.x[60:120])) == other.answer(view(*asked.x[60:120]))


@pytest.mark.parametrize("make", [History, MostFrequent, SameWording, KeyedNotes, NearestByWords])
def test_a_memory_that_is_listed_beside_an_agent_does_what_a_system_with_it_does(make, tmp_path):
    asked, memory, agent = town(0), make(), AsNoted()
    for question, answer in zip(asked.x[:80], asked.y[:80], strict=True):
        memory.write(told([question], [""], [answer]))
    memory.save(tmp_path / "memory")
    again = make()
    again.load(tmp_path / "memory")
    notes = memory.read(view(*asked.x[80:120]))
    assert again.read(view(*asked.x[80:120])) == notes
    said = agent.answer(view(*asked.x[80:120]), notes=notes)
    assert len(said) == 40 and set(said) - {""}
    again.reset()
    assert again.read(view(asked.x[0])) == [[]]


def test_nearest_by_words_is_the_cosine_of_tf_idf_vectors():
    questions = ["who leads Old Mill", "who leads New Mill", "the head of Old Mill", "and of the Old Gate"]
    memory = NearestByWords(k=4)
    memory.write(told(questions, [""] * 4, list("abcd")))
    words = sorted({word for text in questions for word in text.lower().split()})
    counts = np.array([[text.lower().split().count(word) for word in words] for text in questions], float)
    weights = 1 + np.log((1 + 4) / (1 + (counts > 0).sum(axis=0)))
    vectors = counts * weights
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, question in enumerate(questions):
        np.testing.assert_allclose(memory.similarities(question), vectors @ vectors[number], atol=1e-12)
    assert memory.find("who leads Old Mill")[0] == ("who leads Old Mill", "a")


def test_of_equally_near_ones_the_newest_or_the_oldest_counts():
    for of_equals, expected in (("newest", "Ben"), ("oldest", "Ada")):
        memory = NearestByWords(of_equals=of_equals)
        memory.write(told(["Who?", "Who?"], ["", ""], ["Ada", "Ben"]))
        assert memory.find("Who?") == [("Who?", expected)]


def test_what_they_can_not_do_is_said_with_the_remedy():
    assert errors_of(lambda: Notes().feedback(told(["Who?"], ["Ada"], texts("wrong"), "text"))) == [
        ("refused-arguments", "")
    ]
    for one in (Notes(), NearestByWords()):
        one.check_exam(kind="text", feedback="correctness")
        assert errors_of(one.check_exam, kind="text", feedback="text") == [("refused-arguments", "")]
        assert errors_of(one.check_exam, kind="image", feedback="label") == [("refused-arguments", "")]
    assert errors_of(Retrieval, of_equals="last") == [("invalid-choice", "")]
    assert errors_of(NearestByWords, k=0) == [("out-of-range", "")]
