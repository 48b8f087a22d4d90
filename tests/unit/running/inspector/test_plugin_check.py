"""The grid against the constructor, and the class against the contract, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ianvs.base.errors import Location
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, ParadigmSpec
from ianvs.running.inspector.plugin_check import Subject, check_plugin, check_result
from tests.edits import edited
from tests.errors import Found, recorded

METHODS = """
    def train(self, train_data, valid_data=None, **context): ...
    def predict(self, data, **context): ...
    def save(self, path): ...
    def load(self, path): ...
"""


def check(tmp_path: Path, source: str, name: str = "Model", **grid: tuple[object, ...]) -> list[Found]:
    path = tmp_path / "plugin.py"
    path.write_text(source)
    yaml = Path("algorithm.yaml")
    places = {key: Location(yaml, 11 + number, 11) for number, key in enumerate(grid)}
    module = ModuleSpec("basemodel", name, str(path), tuple(grid.items()), places=places, place=Location(yaml, 4, 7))
    spec = AlgorithmSpec(name="x", file=yaml, paradigm=ParadigmSpec("incrementallearning"), modules=(module,))
    subject = Subject(spec, module, ("train", "predict", "save", "load"), choices=())
    answers: Iterator[Any] = check_plugin(subject)
    return recorded(check_result(subject, next(answers), answers).problems)


BASE = f"""
class Base:
    def __init__(self, learning_rate=0.1, epochs=1, batch_size=32): ...
{METHODS}

class EWC(Base):
    def __init__(self, strength=100.0, **training):
        super().__init__(**training)
"""


def test_a_class_that_keeps_the_contract_has_no_problems(tmp_path: Path) -> None:
    assert check(tmp_path, BASE, "EWC", strength=(1, 2), epochs=(3,)) == []


def test_an_unknown_hyperparameter_is_shown_with_its_place_and_what_is_taken(tmp_path: Path) -> None:
    assert check(tmp_path, BASE, "EWC", **{"lambda": (1,)}) == [("unknown-hyperparameter", "algorithm.yaml:11:11")]


def test_a_typo_in_a_hyperparameter_names_the_closest(tmp_path: Path) -> None:
    assert check(tmp_path, BASE, "EWC", strenght=(1,)) == [("unknown-hyperparameter", "algorithm.yaml:11:11")]


def test_a_required_hyperparameter_that_is_not_given_is_named(tmp_path: Path) -> None:
    source = f"class Model:\n    def __init__(self, depth): ...\n{METHODS}"
    assert check(tmp_path, source) == [("missing-hyperparameter", "algorithm.yaml:4:7")]


def test_a_constructor_that_takes_anything_takes_anything(tmp_path: Path) -> None:
    assert check(tmp_path, f"class Model:\n    def __init__(self, **kw): ...\n{METHODS}", whatever=(1,)) == []


def test_a_missing_method_is_named(tmp_path: Path) -> None:
    source = "class Model:\n    def train(self, d): ...\n    def predict(self, d): ...\n"
    assert check(tmp_path, source) == [("broken-contract", "algorithm.yaml:4:7")]


def test_an_argument_that_nobody_gives_is_named_before_the_run(tmp_path: Path) -> None:
    source = edited(f"class Model:\n{METHODS}", "train_data, valid_data=None, **context", "train_data, clases_seen")
    assert check(tmp_path, source) == [("broken-contract", "algorithm.yaml:4:7")]


@pytest.mark.parametrize("source", ["import nowhere_to_be_found\n", "class Other: ...\n", "def f(:\n"])
def test_a_file_that_cannot_be_loaded_is_one_problem_with_the_yamls_place(tmp_path: Path, source: str) -> None:
    assert check(tmp_path, source) == [("unloadable-plugin", "algorithm.yaml:4:7")]


def test_a_reference_that_is_not_there_is_told(tmp_path: Path) -> None:
    plain = f"class Plain:\n{METHODS}\n"
    wrong = [("broken-contract", "algorithm.yaml:4:7")]
    for reference, expected in {
        "'Plain'": [],
        "'plugin.py:Plain'": [],
        "'Plein'": wrong,
        "'ianvs.authorin:TorchLearner'": wrong,
        "3": wrong,
    }.items():
        assert check(tmp_path, f"{plain}class Model:\n    reference = {reference}\n{METHODS}") == expected
