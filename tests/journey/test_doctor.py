"""`ianvs doctor`: it names what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from ianvs.cli import main
from ianvs.cli.doctor import (
    Finding,
    cache_findings,
    folder_findings,
    gpu_findings,
    memory_findings,
    package_findings,
    torch_findings,
)
from tests.errors import printed

GB = 1e9


def only(findings: Iterable[Finding]) -> Finding:
    [found] = findings
    return found


def test_here_nothing_would_break_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for looked_at in (
        "torchvision",
        "cores",
        "memory",
        "workspace",
        "ray",
        "semantic_similarity",
        "Hugging",
    ):
        assert looked_at in said
    assert "wrong " not in said
    assert not (tmp_path / "workspace").exists()


def test_a_workspace_that_can_not_be_written_breaks_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no folder")
    assert only(folder_findings(Path("file/inside"), "the workspace", "Choose another.")).state == "wrong"
    assert main(["doctor", "--workspace", "file"]) == 1
    said = capsys.readouterr().out
    assert said.count("wrong ") == 1 and "--workspace" in said


@pytest.mark.parametrize(
    ("torch", "torchvision", "wanted", "seen", "state"),
    [
        ("2.6.0+cpu", "0.21.0+cpu", "2.6.0", {"cuda": None}, "ok"),
        ("2.6.0", "0.21.0", "2.6.0", {"cuda": "12.4"}, "ok"),
        ("2.7.0", "0.21.0", "2.6.0", {}, "wrong"),
        ("2.6.0", "0.21.0", None, {"error": "RuntimeError: operator"}, "wrong"),
        (None, "0.21.0", "2.6.0", {}, "wrong"),
        ("2.6.0", None, None, {}, "wrong"),
    ],
)
def test_torch_and_torchvision(
    torch: str | None, torchvision: str | None, wanted: str | None, seen: dict[str, str], state: str
) -> None:
    found = only(torch_findings(torch, torchvision, wanted, seen))
    assert found.state == state
    printed(found.message)
    assert bool(found.remedy) == (state != "ok")


@pytest.mark.parametrize(
    ("driver", "built", "usable", "state"),
    [
        (None, None, [], "ok"),
        (["Card, driver 535"], "12.4", ["Card"], "ok"),
        (["Card, driver 535"], None, [], "note"),
        (["Card, driver 300"], "12.4", [], "note"),
    ],
)
def test_cards(driver: list[str] | None, built: str | None, usable: list[str], state: str) -> None:
    found = only(gpu_findings(driver, built, usable))
    assert found.state == state
    printed(found.message)


def test_little_memory_is_a_note_and_a_container_counts() -> None:
    assert only(memory_findings(16 * GB, 8 * GB, None)).state == "ok"
    assert only(memory_findings(16 * GB, 1 * GB, None)).state == "note"
    limited = only(memory_findings(64 * GB, 50 * GB, 1 * GB))
    assert limited.state == "note"
    printed(limited.message)


def test_what_may_be_left_out_is_a_note_with_its_extra() -> None:
    found = list(package_findings({"ray": None, "transformers": "4.56", "peft": None, "timm": "1.0", "optuna": "4"}))
    assert [finding.state for finding in found] == ["note", "ok", "note", "ok", "ok"]
    assert "ianvs-bench[ray]" in found[0].remedy


def test_models_in_a_cache_are_named(tmp_path: Path) -> None:
    (tmp_path / "models--org--name").mkdir()
    assert "org/name" in only(cache_findings("Hugging Face", tmp_path, "models--*")).message
    assert "no models" in only(cache_findings("torchvision", tmp_path / "none", "*.pth")).message
