"""What a workspace remembers of a job: `<workspace>/<job name>/job.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ianvs.base.errors import DamagedError
from ianvs.store.keys import canonical
from ianvs.store.sealed import read_sealed, write_sealed

_NAME = "job.json"  # what it is sealed as: a workspace's folder may be renamed


class JobStore:
    """`<workspace>/<job name>/`: the job's record, and the reports below rank/."""

    def __init__(self, workspace: Path, name: str) -> None:
        self.folder = workspace / name
        self.path = self.folder / "job.json"

    def write(self, record: dict[str, object]) -> None:
        """Keep the record, unless only its provenance (who asked last, and when) differs from what is there."""
        try:
            before = self.read()
        except DamagedError:
            before = None
        if before is None or canonical({**before, "provenance": 0}) != canonical({**record, "provenance": 0}):
            write_sealed(self.path, _NAME, record)

    def read(self) -> dict[str, Any] | None:
        """The record; None: there is none. Raises DamagedError."""
        found = read_sealed(self.path, _NAME)
        return None if found is None else {name: value for name, value in found.items() if name != "digest"}

    @staticmethod
    def names(workspace: Path) -> Iterator[str]:
        """Names of the jobs that ran in `workspace`."""
        for path in sorted(workspace.glob("*/job.json")):
            yield path.parent.name
