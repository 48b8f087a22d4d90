"""Files that hyperparameters name count by their content, whatever the hyperparameter is called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.errors import recorded
from tests.jobs import MAJORITY, TESTENV, write_job

PLUGIN = edited(MAJORITY, "bias=0", "bias=0, checkpoint=None, settings=None")


def job(folder: Path, value: str, name: str = "checkpoint") -> Path:
    return write_job(folder, plugin=PLUGIN, hyperparameters=f"- {name}: {{values: [{value}]}}", job="seeds: [0]")


def case_id(path: Path) -> str:
    [(case, _)] = ianvs.plan(path).cases()
    return case.id


def warnings(path: Path) -> list[str]:
    return [warning.message for warning in ianvs.validate(path).warnings]


@pytest.mark.slow
def test_a_finished_case_runs_again_when_the_file_that_it_was_given_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "start.txt"
    file.write_text("{0: 1}")
    path = job(tmp_path / "job", str(file))
    assert ianvs.run(path).ran == 1
    assert ianvs.run(path).ran == 0
    file.write_text("{0: 2}")
    [planned] = ianvs.plan(path)
    assert planned.state == "new"
    assert f"the content of {file}" in planned.reason


@pytest.mark.parametrize("change", ["a file in it", "a file more", "the name of a file"])
def test_a_folder_counts_by_all_its_files_and_their_names(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.bin").write_bytes(b"one")
    path = job(tmp_path / "job", str(folder))
    before = case_id(path)
    if change == "a file in it":
        (folder / "deep" / "a.bin").write_bytes(b"two")
    elif change == "a file more":
        (folder / "b.bin").write_bytes(b"")
    else:
        (folder / "deep" / "a.bin").rename(folder / "deep" / "c.bin")
    assert case_id(path) != before


def test_a_relative_path_is_that_of_the_working_directory_as_the_plugin_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = job(tmp_path / "job", "start.txt")
    monkeypatch.chdir(tmp_path)
    without = case_id(path)
    (tmp_path / "job" / "start.txt").write_text("not looked at")
    assert case_id(path) == without
    (tmp_path / "start.txt").write_text("one")
    assert case_id(path) != without


@pytest.mark.parametrize("value", ["{'within': ['FILE']}", "'other, FILE'", "'FILE, other'"])
def test_files_are_found_within_values_that_hold_several(tmp_path: Path, value: str) -> None:
    file = tmp_path / "rounds.yaml"
    file.write_text("one")
    path = job(tmp_path / "job", value.replace("FILE", str(file)), "settings")
    before = case_id(path)
    file.write_text("two")
    assert case_id(path) != before


@pytest.mark.slow
def test_a_folder_around_the_workspace_counts_by_its_name_since_the_run_itself_fills_it(tmp_path: Path) -> None:
    path = job(tmp_path, str(tmp_path))
    assert ianvs.run(path).ran == 1
    assert ianvs.run(path).ran == 0


def test_the_content_is_read_again_only_when_the_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(b"one")
    os.utime(file, ns=(1, 1))
    path = job(tmp_path / "job", str(file))
    before = case_id(path)
    os.utime(file, ns=(1, 1))
    with monkeypatch.context() as patched:
        patched.setattr("ianvs.running.planning.named_files.hashlib.file_digest", None)
        assert case_id(path) == before
    other = tmp_path / "other.bin"
    other.write_bytes(b"two")
    os.utime(other, ns=(1, 1))
    other.replace(file)
    assert case_id(path) != before


@pytest.mark.parametrize("text", ["./gone", "/no/where", "weights.pt", "folder/model.safetensors", "conf.yaml"])
def test_a_text_that_only_looks_like_a_file_is_told(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = job(tmp_path, text)
    validated = ianvs.validate(path).warnings
    assert [code for code, _ in recorded(validated)] == ["missing-path"]
    assert ianvs.plan(path).job.warnings == validated


@pytest.mark.parametrize(
    "text",
    ["hf/model", "Qwen/Qwen2.5-0.5B", "resnet50.a1_in1k", "torch.optim.SGD", "1.5", "'a.b, c/d'", "'/'", "'https://x.org/w.pt'"],
)  # fmt: skip
def test_a_name_of_something_else_is_not_taken_for_a_file(tmp_path: Path, text: str) -> None:
    assert warnings(job(tmp_path, text)) == []


def test_a_secret_that_names_a_file_is_not_written_down(tmp_path: Path) -> None:
    secret = tmp_path / "sesame.txt"
    secret.write_text("open")
    plugin = edited(MAJORITY, "bias=0", "bias=0, api_key=None")
    grid = f"- api_key: {{values: [{secret}]}}"
    [planned] = ianvs.plan(write_job(tmp_path / "job", plugin=plugin, hyperparameters=grid, job="seeds: [0]"))
    assert "sesame" not in str(planned.algorithm.identity_of(planned.case))


def test_a_reference_run_counts_the_files_that_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "start.txt"
    file.write_text("one")
    testenv = TESTENV.replace("{name: BWT}", "{name: IM}")
    grid = f"- checkpoint: {{values: [{file}]}}"
    path = write_job(tmp_path / "job", plugin=PLUGIN, hyperparameters=grid, testenv=testenv, job="seeds: [0]")
    before = {case.role: case.id for case, _ in ianvs.plan(path).cases()}
    file.write_text("two")
    after = {case.role: case.id for case, _ in ianvs.plan(path).cases()}
    assert before.keys() == {"", "joint"}
    assert not set(before.values()) & set(after.values())
