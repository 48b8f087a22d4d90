"""`ianvs validate --format json`: what editors and scripts read."""

import json
from pathlib import Path

import pytest

from ianvs.cli import main
from tests.edits import edited
from tests.jobs import write_job


def validated(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, object]]]:
    """(exit status, the list on standard output)."""
    status = main(["validate", "-f", "benchmarkingjob.yaml", "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_errors_have_code_and_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_job(tmp_path)
    path.write_text(edited(path.read_text(), "sort_by:", "sort_bye:"))
    status, [error] = validated(capsys)
    message = error.pop("message")
    assert status == 2
    assert message
    assert error == {
        "code": "unknown-key",
        "file": "benchmarkingjob.yaml",
        "line": 11,
        "column": 5,
        "warning": False,
    }


def test_a_file_that_is_not_there_has_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, [error] = validated(capsys)
    assert (status, error["code"], error["line"], error["column"]) == (2, "missing-file", None, None)
