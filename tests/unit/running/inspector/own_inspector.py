"""An inspector of a job that has nothing but a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ianvs.config.spec import JobSpec, RankSpec
from ianvs.running.inspector import Inspector

__all__ = ["inspector"]


@contextmanager
def inspector(folder: Path, *, inline: bool = True) -> Iterator[Inspector]:
    """Its workspace is `folder`/ws. inline: it imports files here, and starts no process."""
    file, workspace = folder / "job.yaml", folder / "ws"
    job = JobSpec(name="test", file=file, workspace=workspace, testenvs=(), algorithms=(), rank=RankSpec(()))
    with closing(Inspector(job, inline=inline)) as opened:
        yield opened
