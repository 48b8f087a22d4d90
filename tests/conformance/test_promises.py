"""What every method promises, whatever it does: stated once, over all that ship."""

from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from ianvs.plugins.contract import Learner
from tests.conformance.every_method import CLASSIFIERS, EVERY, same, weights
from tests.testalgorithms.exam_of_arrays import pictures, teach

FOLDER = Path(__file__).resolve().parents[2] / "testalgorithms"
every_method = pytest.mark.parametrize("one", EVERY.values(), ids=EVERY)
every_classifier = pytest.mark.parametrize("one", CLASSIFIERS.values(), ids=CLASSIFIERS)
pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft


def taught(one, rounds, seed=5):
    learner = one.make()
    for k in range(1, rounds + 1):
        one.teach(learner, k, seed)
    return learner


def test_no_method_that_ships_is_left_out():
    places = {one.place.replace(".", "/") for one in EVERY.values()}
    folders = {file.parent.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("basemodel.py")}
    assert folders == places
    named = {entry.value for entry in entry_points(group="ianvs.algorithms") if entry.value.startswith("ianvs.")}
    here = {f"{one.method.__module__}:{one.name}" for one in EVERY.values()}
    assert {value for value in named if value.partition(":")[0].endswith("basemodel")} - here == {
        "ianvs.testalgorithms.mdil_ss.basemodel:ERFNet"  # another name of MDILSS
    }


@every_method
def test_it_is_a_learner(one):
    assert isinstance(one.make(), Learner)


@every_method
def test_a_loaded_model_answers_and_goes_on_bit_for_bit(one, tmp_path):
    learner = taught(one, one.rounds - 1)
    resumed = one.make()
    resumed.load(learner.save(tmp_path / "model"))
    before = [one.answers(each, one.rounds - 1, 5) for each in (learner, resumed)]
    np.testing.assert_array_equal(*before)
    for each in (learner, resumed):
        one.teach(each, one.rounds, 5)
    assert same(weights(learner), weights(resumed))
    np.testing.assert_array_equal(*(one.answers(each, one.rounds, 5) for each in (learner, resumed)))


@every_method
def test_loading_takes_it_back_to_where_it_was_saved(one, tmp_path):
    learner, straight = taught(one, 1), taught(one, 1)
    kept = learner.save(tmp_path / "kept")
    one.teach(learner, 2, 5)
    learner.load(kept)  # as when model_eval does not adopt round 2, which then comes again
    for each in (learner, straight):
        one.teach(each, 2, 5)
    assert same(weights(learner), weights(straight))


@every_method
def test_an_untrained_model_can_be_examined_and_that_changes_nothing_later(one):
    examined, blind = one.make(), one.make()
    one.answers(examined, 0, 5)
    for learner in (examined, blind):
        one.teach(learner, 1, 5)
    assert same(weights(examined), weights(blind))


@every_method
def test_the_seed_decides_the_model(one):
    a, b, c = (taught(one, 1, seed) for seed in (5, 6, 5))
    assert same(weights(a), weights(c))
    assert not one.draws or not same(weights(a), weights(b))


@every_classifier
def test_a_residual_network_goes_on_bit_for_bit_after_loading(one, tmp_path):
    exam = pictures()
    learner, resumed = (one.make(network="resnet", widths=(4, 8)) for _ in range(2))
    teach(learner, exam, 1, seed=5)
    learner.save(tmp_path / "model")
    resumed.load(tmp_path / "model")  # the path that save() was given will do
    for each in (learner, resumed):
        teach(each, exam, 2, seed=5)
    assert same(weights(learner), weights(resumed))


@every_classifier
def test_only_classes_seen_are_ever_predicted(one):
    learner = one.make()
    for k in (1, 2, 3):
        one.teach(learner, k, 5)
        assert set(one.answers(learner, k, 5)) <= set(range(2 * k))
