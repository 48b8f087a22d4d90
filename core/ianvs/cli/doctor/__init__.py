"""Whether what a run needs is here, and what to do where it is not: `ianvs doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ianvs.cli.doctor.looked_at import Finding
from ianvs.cli.doctor.machine import machine_findings
from ianvs.cli.doctor.models_here import model_findings
from ianvs.cli.doctor.software import software_findings

__all__ = ["Finding", "examine"]


def examine(workspace: Path) -> Iterator[Finding]:
    """All findings, each when it is made; results would go into `workspace`, which is not made for it."""
    yield from software_findings()
    yield from machine_findings(workspace)
    yield from model_findings()
