"""The JSON schemas that editors get: what is committed fits them, what ianvs refuses does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ianvs.base.package import PACKAGE
from ianvs.cli import main
from ianvs.cli.scaffold import SCHEMA_LINE
from ianvs.cli.schema import KINDS, file_schema
from ianvs.config.strict_yaml import parse, read
from tests.edits import edited

ROOT = Path(__file__).parents[3]
TOPS = ("configs", "testenv", "testalgorithms", "examples", "core/ianvs/cli/templates")
FORMS_OF_IANVS = {
    "from_ianvs", "draft_and_verify", "speculative_decoding", "mdil_ss_proposal", "mdil_ss_ianvs_plugin", "templates"
}  # fmt: skip
FILES = [file for top in TOPS for file in sorted((ROOT / top).rglob("*.yaml"))]
CHECKERS = {key: Draft202012Validator(file_schema(kind)) for kind, key in KINDS.items()}


def problems(document: dict[str, Any]) -> list[str]:
    key = next(key for key in KINDS.values() if key in document)
    return [f"{list(error.absolute_path)}: {error.message}" for error in CHECKERS[key].iter_errors(document)]


@pytest.mark.slow
def test_every_committed_file_fits() -> None:
    checked = 0
    for file in FILES:
        document = read(file).data
        # Else it holds constants, or has keys of Ianvs's contract that belong to no form of ours.
        if any(key in document for key in KINDS.values()) and "speculative_decoding" not in file.parts:
            assert problems(document) == [], file
            checked += 1
    assert checked > 300


@pytest.mark.slow
def test_every_committed_file_names_its_schema_for_editors() -> None:
    """Not those that show the forms of Ianvs, which is what people have before they come here."""
    kinds = {key: kind for kind, key in KINDS.items()}
    for file in FILES:
        key = next((key for key in kinds if key in read(file).data), None)
        if key is None or not FORMS_OF_IANVS.isdisjoint(file.parts):
            continue
        last = file.read_text(encoding="utf-8").splitlines()[-1]
        assert last.startswith(SCHEMA_LINE), file
        assert last.endswith(f"/core/ianvs/schemas/{kinds[key]}.json"), file


@pytest.mark.parametrize("kind", KINDS)
def test_the_schemas_that_ship_are_those_of_the_models(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    text = capsys.readouterr().out
    Draft202012Validator.check_schema(json.loads(text))
    committed = (PACKAGE / "schemas" / f"{kind}.json").read_text()
    assert committed == text, f"ianvs schema {kind} > core/ianvs/schemas/{kind}.json"


TESTENV = """
testenv:
  dataset: {name: digits, test_ratio: 0.3}
  scenario: {name: class-incremental, rounds: 5, order_seed: case}
  metrics: [accuracy, {name: BWT, of: accuracy}]
"""
ALGORITHM = """
algorithm:
  paradigm_type: federatedlearning
  clients: 3
  modules: [{type: basemodel, name: Finetune, hyperparameters: [{epochs: {values: [1]}}]}]
"""


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (TESTENV, "rounds: 5", "rounds: five"),
        (TESTENV, "rounds: 5", "round: 5"),
        (TESTENV, "order_seed: case", "order_seed: other"),
        (TESTENV, "test_ratio: 0.3", "test_ration: 0.3"),
        (TESTENV, "test_ratio: 0.3", "test_ratio: much"),
        (TESTENV, "name: digits, ", ""),
        (TESTENV, "metrics:", "metrcs:"),
        (TESTENV, "of: accuracy", "of: 3"),
        (ALGORITHM, "clients: 3", "clients: many"),
        (ALGORITHM, "clients: 3", "client: 3"),
        (ALGORITHM, "federatedlearning", "incrementallearning"),  # has no option `clients`
        (ALGORITHM, "values: [1]", "values: 1"),
        (ALGORITHM, "name: Finetune, ", ""),
    ],
)
def test_a_slip_that_ianvs_refuses_is_one_for_the_editor(text: str, old: str, new: str) -> None:
    assert problems(parse(text, Path("file.yaml")).data) == []
    assert text.count(old) == 1
    assert problems(parse(edited(text, old, new), Path("file.yaml")).data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{name: class-incremental, rounds: 5, order_seed: case}", "CIL"),
        ("{name: class-incremental, rounds: 5, order_seed: case}", "{name: Mine, url: ./mine.py, whatever: 1}"),
        ("{name: digits, test_ratio: 0.3}", "{name: mine, url: ./mine.py, train: 4, using: a b}"),
        ("{name: digits, test_ratio: 0.3}", "{train_index: a.txt, test_index: b.txt, image_size: 32}"),
    ],
)
def test_what_an_author_brings_is_not_a_slip(old: str, new: str) -> None:
    assert TESTENV.count(old) == 1
    assert problems(parse(edited(TESTENV, old, new), Path("file.yaml")).data) == []


def test_files_of_new_name_a_schema_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(["new", "job", "mine", "--from", "digits_class_incremental"])
    files = list((tmp_path / "mine").glob("*.yaml"))
    assert len(files) == 10
    for file in files:
        [line] = [line for line in file.read_text().splitlines() if line.startswith(SCHEMA_LINE)]
        schema = json.loads((file.parent / line.removeprefix(SCHEMA_LINE)).read_text())
        assert set(schema["properties"]) & set(read(file).data)
