"""What a workspace remembers of a job: `<workspace>/<job name>/job.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ianvs.store.files import read_json, write_json
from ianvs.store.keys import canonical

__all__ = ["JobStore"]


class JobStore:
    """`<workspace>/<job name>/`: the job's record, and the reports below rank/."""

    def __init__(self, workspace: Path, name: str) -> None:
        self.folder = workspace / name

    def write(self, record: dict[str, object]) -> None:
        """Keep the record, unless only its provenance (who asked last, and when) differs from what is there."""
        before = read_json(self.folder / "job.json")
        if before is None or canonical({**before, "provenance": 0}) != canonical({**record, "provenance": 0}):
            write_json(self.folder / "job.json", record)

    def read(self) -> dict[str, Any] | None:
        found = read_json(self.folder / "job.json")
        return found if isinstance(found, dict) else None

    @staticmethod
    def names(workspace: Path) -> Iterator[str]:
        """Names of the jobs that ran in `workspace`."""
        for path in sorted(workspace.glob("*/job.json")):
            yield path.parent.name
