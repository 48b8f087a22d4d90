"""What is recorded about software and machine."""

from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from ianvs.results.report.build_document import document_of
from ianvs.results.report.markdown import markdown
from ianvs.results.stored.provenance import collect
from tests.errors import printed
from tests.unit.results.report.report_cases import board, result


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_facts_are_those_of_this_process_and_ready_for_json() -> None:
    facts = json.loads(json.dumps(collect(packages=("numpy", "no-such-package"))))
    assert facts["packages"] == {"numpy": version("numpy"), "no-such-package": None}
    assert facts["python"] == platform.python_version()
    assert facts["cpu"]["count"] >= facts["cpu"]["usable"] >= 1
    assert facts["memory_bytes"] > 1e8
    assert facts["git"] is None


def test_the_commit_of_the_jobs_folder_and_whether_it_was_changed(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("a: 1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert collect((), job)["git"] == {"commit": commit, "dirty": False}
    job.write_text("a: 2")
    assert collect((), job)["git"] == {"commit": commit, "dirty": True}


def test_outside_of_a_repository_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert collect((), tmp_path / "job.yaml")["git"] is None


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert collect((), tmp_path / "job.yaml")["git"] is None


def test_the_page_of_a_leaderboard_names_versions_and_commit() -> None:
    facts = {
        "python": "3.11.1",
        "packages": {"torch": "2.9", "ray": None},
        "git": {"commit": "abcd" * 10, "dirty": True},
    }
    text = markdown(document_of(board([result("a")]), provenance=facts))
    python = text.index("- Python: 3.11.1\n")
    assert "torch 2.9" in text and "abcdabcdabcd" in text
    printed("\n".join(text[python:].splitlines()[:3]))
