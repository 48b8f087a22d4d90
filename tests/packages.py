"""Packages that are installed beside ianvs, for tests of what they bring."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["install"]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, points: str) -> None:
    """The package `name`, one module of this `code`, with these `entry_points.txt`, in a `folder` of its own."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{name}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(folder))
