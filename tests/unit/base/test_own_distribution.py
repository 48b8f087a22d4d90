"""KubeEdge Ianvs's distribution `ianvs` beside ours, which is called ianvs-bench."""

from __future__ import annotations

from importlib.metadata import distribution
from itertools import islice
from pathlib import Path

import pytest

from ianvs.base.package import DISTRIBUTION, kubeedge_ianvs, own_version
from ianvs.cli.doctor import software_findings


def installed(folder: Path, version: str, command: str) -> None:
    """A distribution `ianvs` with a command `ianvs`."""
    facts = folder / f"ianvs-{version}.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ianvs\nVersion: {version}\n")
    (facts / "entry_points.txt").write_text(f"[console_scripts]\nianvs = {command}\n")


def test_ours_has_two_commands_and_a_version() -> None:
    commands = distribution(DISTRIBUTION).entry_points.select(group="console_scripts")
    assert {command.name for command in commands} == {"ianvs", "ianvs-bench"}
    assert own_version() == distribution(DISTRIBUTION).version


def test_upstreams_is_told_where_both_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "0.1.0", "core.cmd.benchmarking:main")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert kubeedge_ianvs() == "0.1.0"
    _, finding = islice(software_findings(), 2)
    assert finding.state == "note" and "0.1.0" in finding.message and "ianvs-bench" in finding.remedy


def test_an_earlier_version_of_ours_is_not_upstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "0.2.0", "ianvs.__main__:main")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert kubeedge_ianvs() is None
