"""Conversations that are longer than a model is taught: told before anything is trained, for all rounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.errors import errors_of, recorded
from tests.jobs import write_job

pytest.importorskip("transformers")

EXAM = """
dataset: {train_data: {old: ./old.jsonl, new: ./new.jsonl}, test_data: {old: ./test.jsonl, new: ./test.jsonl}}
scenario: {name: domain-incremental}
metrics: [reply_exact_match]
"""
OWN = "from ianvs.testalgorithms.language.sequential.basemodel import Sequential\n"


def written(folder: Path, name: str, prompts: list[str]) -> None:
    records = [{"prompt": prompt, "completion": "Ann."} for prompt in prompts]
    (folder / name).write_text("\n".join(map(json.dumps, records)))


def job(folder: Path, old: list[str], new: list[str], **changed: str) -> Path:
    written(folder, "old.jsonl", old)
    written(folder, "new.jsonl", new)
    written(folder, "test.jsonl", ["Who?"])
    grid = "- max_length: {values: [64]}\n- width: {values: [16]}\n- heads: {values: [2]}\n- layers: {values: [1]}"
    path = write_job(
        folder, plugin=OWN, name="Sequential", hyperparameters=f"{grid}\n- epochs: {{values: [1]}}", testenv=EXAM,
        sort_by="[{reply_exact_match: descend}]", job="engine: inline\nseeds: [0]",
    )  # fmt: skip
    algorithm = path.parent / "algorithm.yaml"
    url = changed.get("url", "ianvs.testalgorithms.language.sequential.basemodel")
    algorithm.write_text(edited(algorithm.read_text(), "./plugin.py", url))
    return path


LONG = "Who leads the town of which nobody has ever heard? " * 20


def test_a_later_round_of_which_nothing_fits_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = job(tmp_path, ["Who?"], [LONG, LONG])
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, path) == [("refused-arguments", "algorithm.yaml:8:33")]  # where max_length stands
    assert not list(tmp_path.glob("ws/cases/*"))


@pytest.mark.slow
def test_what_is_skipped_of_any_round_is_a_warning_before_and_a_remark_afterwards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = job(tmp_path, ["Who?"], [LONG, "When?", "Where?"])
    warnings = [warning for warning in ianvs.validate(path).warnings if "max_length 64" in warning.message]
    assert [code for code, _ in recorded(warnings)] == ["doubtful-arguments"]
    said = warnings[0].message.removeprefix("Sequential: ")
    [case] = ianvs.run(path)
    assert case.status == "finished", case.failure
    report = next(tmp_path.rglob("leaderboard.md")).read_text()
    assert said in report


def test_a_plugin_of_others_is_not_told_what_it_will_be_taught(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = job(tmp_path, ["Who?"], [LONG], url="./plugin.py")
    (path.parent / "plugin.py").write_text(
        edited(OWN, "import Sequential", "import Sequential as Base")
        + "class Sequential(Base):\n"
        + "    def check_exam(self, *, conversations):\n"
        + "        if conversations is not None: raise ValueError('seen')\n"
    )
    assert not any(
        "seen" in warning.message or "max_length" in warning.message for warning in ianvs.validate(path).warnings
    )
