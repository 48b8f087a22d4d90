"""The grid against the constructor, and the class against the contract, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.base.errors import Place
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, ParadigmSpec
from ianvs.running.inspector.plugin_check import Subject, check_plugin, checked
from tests.edits import edited

METHODS = """
    def train(self, train_data, valid_data=None, **context): ...
    def predict(self, data, **context): ...
    def save(self, path): ...
    def load(self, path): ...
"""


def check(tmp_path: Path, source: str, name: str = "Model", **grid: tuple[object, ...]) -> list[str]:
    path = tmp_path / "plugin.py"
    path.write_text(source)
    yaml = Path("algorithm.yaml")
    places = {key: Place(yaml, 11 + number, 11) for number, key in enumerate(grid)}
    module = ModuleSpec("basemodel", name, str(path), tuple(grid.items()), places=places, place=Place(yaml, 4, 7))
    spec = AlgorithmSpec(name="x", file=yaml, paradigm=ParadigmSpec("incrementallearning"), modules=(module,))
    subject = Subject(spec, module, ("train", "predict", "save", "load"), choices=())
    return [str(found) for found in checked(subject, check_plugin).problems]


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
    assert check(tmp_path, BASE, "EWC", **{"lambda": (1,)}) == [
        "algorithm.yaml:11:11: EWC has no hyperparameter 'lambda'. "
        "It takes: strength, learning_rate, epochs, batch_size."
    ]


def test_a_typo_in_a_hyperparameter_names_the_closest(tmp_path: Path) -> None:
    [problem] = check(tmp_path, BASE, "EWC", strenght=(1,))
    assert "has no hyperparameter 'strenght'. Did you mean 'strength'?" in problem


def test_a_required_hyperparameter_that_is_not_given_is_named(tmp_path: Path) -> None:
    [problem] = check(tmp_path, f"class Model:\n    def __init__(self, depth): ...\n{METHODS}")
    assert problem == "algorithm.yaml:4:7: Model needs the hyperparameter 'depth', which the file does not give."


def test_a_constructor_that_takes_anything_takes_anything(tmp_path: Path) -> None:
    assert check(tmp_path, f"class Model:\n    def __init__(self, **kw): ...\n{METHODS}", whatever=(1,)) == []


def test_a_missing_method_is_named(tmp_path: Path) -> None:
    [problem] = check(tmp_path, "class Model:\n    def train(self, d): ...\n    def predict(self, d): ...\n")
    assert problem == "algorithm.yaml:4:7: Model lacks the methods save, load."


def test_an_argument_that_nobody_gives_is_named_before_the_run(tmp_path: Path) -> None:
    source = edited(f"class Model:\n{METHODS}", "train_data, valid_data=None, **context", "train_data, clases_seen")
    [problem] = check(tmp_path, source)
    assert "needs an argument 'clases_seen' that nobody gives. Did you mean 'classes_seen'?" in problem


@pytest.mark.parametrize("source", ["import nowhere_to_be_found\n", "class Other: ...\n", "def f(:\n"])
def test_a_file_that_cannot_be_loaded_is_one_problem_with_the_yamls_place(tmp_path: Path, source: str) -> None:
    [problem] = check(tmp_path, source)
    assert problem.startswith("algorithm.yaml:4:7: ")


def test_a_reference_that_is_not_there_is_told(tmp_path: Path) -> None:
    plain = f"class Plain:\n{METHODS}\n"
    for said, message in {
        "'Plain'": None,
        "'plugin.py:Plain'": None,
        "'Plein'": "has no 'Plein'. Did you mean 'Plain'?",
        "'ianvs.authorin:TorchLearner'": "module 'ianvs.authorin' can't be imported",
        "3": 'Model.reference is 3; it names a class: "package.module:Class".',
    }.items():
        problems = check(tmp_path, f"{plain}class Model:\n    reference = {said}\n{METHODS}")
        assert len(problems) == (0 if message is None else 1)
        assert message is None or message in problems[0]
        assert all(problem.startswith("algorithm.yaml:4:7: ") for problem in problems)
