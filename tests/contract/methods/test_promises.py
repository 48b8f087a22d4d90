"""What every method promises, whatever it does: stated once, over all that ship."""

from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
import yaml

from ianvs.base.errors import PluginError
from ianvs.plugins.contract import Learner
from tests.marks import slow
from tests.nightly.conformance.every_method import (
    CLASSIFIERS,
    EVERY,
    TALKERS,
    TOLD_THE_TASK,
    TRANSFORMERS,
    method,
    same,
    weights,
)
from tests.unit.testalgorithms.exam_of_arrays import digits, pictures

FOLDER = Path(__file__).resolve().parents[3] / "testalgorithms"
ON_ANY_NETWORK = {**CLASSIFIERS, **TOLD_THE_TASK}
OF_CLASSES = {**ON_ANY_NETWORK, **TRANSFORMERS}
WITH_MEMORY = {name: one for name, one in EVERY.items() if "capacity" in one.options}


FEW = {
    *("finetune", "replay", "ewc", "lwf", "gem", "der", "icarl", "bic", "packnet", "max softmax", "ncm"),
    *("segmentation, finetune", "segmentation by classes, MiB", "boxes, replay", "several labels, prs"),
    *("language, replay", "language, moelora"),
}
"""Of each way to keep what was learned, and of each type of data. All others are slow: `.ci/nightly` tries them when
methods, or what they are made of, have changed."""


def every(methods):
    return pytest.mark.parametrize(
        "one", [one if name in FEW else slow(one) for name, one in methods.items()], ids=methods
    )


pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft


@dataclass
class Course:
    """All rounds of a method, taught once with seed 5 and never interrupted; index k is after round k.

    weights, answers: Of each round. saved: What `save` returned. memory: (samples, bytes), None without a memory.
    """

    weights: list = field(default_factory=lambda: [None])
    answers: list = field(default_factory=lambda: [None])
    saved: list = field(default_factory=lambda: [None])
    memory: list = field(default_factory=lambda: [None])


COURSES = {}


@pytest.fixture
def course(one, tmp_path_factory):
    """The course of `one`; all tests of this file share it."""
    if (key := id(one)) not in COURSES:
        COURSES[key] = course = Course()
        folder, learner = tmp_path_factory.mktemp("course"), one.make()
        for k in range(1, one.rounds + 1):
            one.teach(learner, k, 5)
            course.weights.append(deepcopy(weights(learner)))
            course.answers.append(one.answers(learner, k, 5))
            course.saved.append(learner.save(folder / f"round {k}"))
            course.memory.append((len(learner.memory), learner.memory.nbytes) if "capacity" in one.options else None)
    return COURSES[key]


def test_no_method_that_ships_is_left_out():
    places = {one.place.replace(".", "/") for one in EVERY.values()}
    folders = {file.parent.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("basemodel.py")}
    assert folders == places
    named = {entry.value for entry in entry_points(group="ianvs.algorithms") if entry.value.startswith("ianvs.")}
    here = {f"{one.method.__module__}:{one.name}" for one in EVERY.values()}
    assert {value for value in named if value.partition(":")[0].endswith("basemodel")} - here == {
        "ianvs.testalgorithms.mdil_ss.basemodel:ERFNet"  # another name of MDILSS
    }


@every(EVERY)
def test_it_is_a_learner(one):
    assert isinstance(one.make(), Learner)


@every(EVERY)
def test_a_loaded_model_answers_and_goes_on_bit_for_bit(one, course):
    resumed, last = one.make(), one.rounds
    resumed.load(course.saved[last - 1])
    np.testing.assert_array_equal(one.answers(resumed, last - 1, 5), course.answers[last - 1])
    one.teach(resumed, last, 5)
    assert same(weights(resumed), course.weights[last])
    np.testing.assert_array_equal(one.answers(resumed, last, 5), course.answers[last])


@every(EVERY)
def test_loading_takes_it_back_to_where_it_was_saved(one, course):
    learner = one.make()
    for _ in range(2):  # as when model_eval does not adopt round 2, which then comes again
        learner.load(course.saved[1])
        one.teach(learner, 2, 5)
    assert same(weights(learner), course.weights[2])


@every(EVERY)
def test_an_untrained_model_can_be_examined_and_that_changes_nothing_later(one, course):
    examined = one.make()
    one.answers(examined, 0, 5)
    one.teach(examined, 1, 5)
    assert same(weights(examined), course.weights[1])  # the same seed, the same model


@every(EVERY)
def test_the_seed_decides_the_model(one, course):
    other = one.make()
    one.teach(other, 1, 6)
    assert same(weights(other), course.weights[1]) is not one.draws


exam_of_pictures = cache(pictures)


@every(ON_ANY_NETWORK)
def test_a_residual_network_goes_on_bit_for_bit_after_loading(one, tmp_path):
    learner, resumed = (one.make(network="resnet", widths=(4, 8)) for _ in range(2))
    one.teach(learner, 1, 5, exam=exam_of_pictures)
    learner.save(tmp_path / "model")
    resumed.load(tmp_path / "model")  # the path that save() was given will do
    for each in (learner, resumed):
        one.teach(each, 2, 5, exam=exam_of_pictures)
    assert same(weights(learner), weights(resumed))
    np.testing.assert_array_equal(*(one.answers(each, 2, 5, exam=exam_of_pictures) for each in (learner, resumed)))


@cache
def without_labels_at_first():
    exam = digits()
    (x, y), later = exam.rounds[0], exam.rounds[1]
    exam.rounds = [(x[:90], np.full_like(y[:90], -1)), (later[0][:90], later[1][:90])]
    return exam


@every(OF_CLASSES)
def test_a_round_without_any_label_is_no_trouble(one):
    learner = one.make()
    for k in (1, 2):
        one.teach(learner, k, 5, exam=without_labels_at_first)
    one.answers(learner, 2, 5, exam=without_labels_at_first)
    assert all(bool(p.isfinite().all()) for p in learner.network.parameters())


@every(WITH_MEMORY)
def test_a_memory_is_counted_and_keeps_to_its_size(one, course):
    for k, (samples, size) in enumerate(course.memory[1:], start=1):
        rounds = k if one.options.get("selection") == "per_round" else 1
        assert 0 < samples <= rounds * one.options["capacity"]
        assert size >= samples


@every(OF_CLASSES)
def test_only_classes_seen_are_ever_predicted(one, course):
    for k, answers in enumerate(course.answers[1:], start=1):
        assert set(answers) <= set(range(2 * k))


# Files and hyperparameters.

PLACES = sorted({one.place for one in EVERY.values()})
FILES = [file for place in PLACES for file in sorted((FOLDER / place.replace(".", "/")).glob("*.yaml"))]
WITHOUT_EPOCHS = ("ncm", "simplecil", "slda", "ranpac")  # a head out of sums


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(FOLDER).as_posix())
def test_an_algorithm_file_names_a_class_and_hyperparameters_that_it_takes(file):
    place = ".".join(file.parent.relative_to(FOLDER).parts)
    modules = yaml.safe_load(file.read_text())["algorithm"]["modules"]
    for module in (module for module in modules if module["type"] == "basemodel"):
        taken = method(place, module["name"])
        hyperparameters = dict(item for pair in module.get("hyperparameters", ()) for item in pair.items())
        for name, entry in hyperparameters.items():
            for choice in entry.get("values", ()):
                taken(**{name: choice})
        if file.stem in ("algorithm", "resnet", "streets", "camvid") and place not in WITHOUT_EPOCHS:
            assert {"learning_rate", "epochs", "batch_size"} <= hyperparameters.keys()


WRONG = [
    ("packnet", {"prune": 1.0}, "are shares, 0 to below 1"),
    ("packnet", {"prune": -0.1}, "are shares, 0 to below 1"),
    ("packnet", {"retrain": 1.0}, "are shares, 0 to below 1"),
    ("icarl", {"selection": "reservoir", "fill": "during_round"}, "chosen after a round"),
    ("bic", {"held_out": 0}, "held_out is a share of the exemplars"),
    ("dynamic er", {"balance": "algin"}, "Did you mean 'align'"),
    ("dynamic er", {"frozen": True}, "take out `frozen`"),
    ("foster", {"beta": 1.0}, "are 0 to below 1"),
    ("l2p", {"choice": "smaple"}, "choice 'smaple'"),
    ("l2p", {"frozen": True}, "L2P trains prompts of a frozen network: omit `frozen`"),
    ("coda-prompt", {"length": 5}, "an even number; it can't be 5"),
    ("mdil-ss", {"kd": "kll"}, "kd"),
    ("mdil-ss", {"teacher_mode": "evl"}, "teacher_mode"),
    ("mdil-ss", {"optimizer_steps": 3}, "optimizer_steps"),
    ("language, o-lora", {"tuning": "full"}, "tuning is 'full'; O-LoRA tunes adapters: lora"),
    ("language, ewc", {"gamma": 3}, "gamma is"),
    ("language, ewc", {"strength": -1}, "strength is"),
    ("language, lwf", {"temperature": 0}, "temperature is"),
    ("language, replay", {"replay_ratio": -1}, "replay_ratio is"),
    ("language, gem", {"margin": -0.5}, "margin is"),
    ("language, gem", {"per_round": 0}, "per_round is"),
    ("language, agem", {"memory_batch": 0}, "memory_batch is"),
    ("language, cia", {"threshold": 1.5}, "threshold is"),
    ("language, cia", {"preset": "papr"}, "Did you mean 'paper'"),
    ("language, cia", {"formula_side": "left"}, "old, new"),
    ("language, cia", {"fallback": 1.5}, "between 0 and 1"),
    ("language, cia", {"init": "first"}, "before_first_step"),
    ("language, cia", {"beta": 1.5}, "beta is 1.5; it is a number from 0 to 1"),
    ("language, cia", {"beta": True}, "beta is True"),
    ("language, cia", {"beta": 0.9, "scale": 2.0, "fallback": 0.01}, "beta is 0.9, and scale and fallback"),
    ("language, sequential", {"tuning": "lorra"}, "Did you mean 'lora'"),
    ("language, sequential", {"tuning": "moelora", "lora_r": 6}, "multiple of the 4 experts"),
]
OF_LANGUAGE = [
    ({"batch_size": 0}, "batch_size is 0"),
    ({"batch_size": 2.5}, "batch_size is 2.5"),
    ({"epochs": 0}, "epochs is 0"),
    ({"accumulation": 0}, "accumulation is 0"),
    ({"learning_rate": -1}, "learning_rate is -1"),
    ({"learning_rate": float("nan")}, "learning_rate is nan"),
    ({"warmup": 2}, "warmup is 2"),
    ({"max_length": 1}, "max_length is 1"),
    ({"max_new_tokens": 0}, "max_new_tokens is 0"),
    ({"generation_batch": 0}, "generation_batch is 0"),
    ({"width": 30, "heads": 4}, "width is 30"),
    ({"lora_dropout": -0.1}, "lora_dropout is -0.1"),
]  # of every one


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [*WRONG, *((name, *wrong) for name in TALKERS for wrong in OF_LANGUAGE)],
)
def test_a_hyperparameter_that_can_not_be_is_told_by_its_name(name, options, message):
    with pytest.raises(PluginError, match=message):
        EVERY[name].make(**options)
