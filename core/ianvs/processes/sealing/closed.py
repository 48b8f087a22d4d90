"""What is closed to the code of those who are examined: the workspace and the exam's data."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ianvs.config.spec import DatasetSpec, JobSpec

_OF_WORKSPACE = ("cases", "exams", "cache", "code")


def closed_paths(workspace: Path, datasets: Iterable[DatasetSpec], folders: Iterable[Path] = ()) -> list[Path]:
    """Files and folders, without those that any program needs. folders: where samples and labels lie as well."""
    parts = (workspace / name for name in _OF_WORKSPACE)
    needed = [Path(path).resolve() for path in (sys.prefix, sys.base_prefix, *filter(None, sys.path))]
    data: list[Path] = []
    for dataset in datasets:
        data += [source.path for source in (*dataset.train, *dataset.test)]
        if isinstance(root := dataset.options.get("root"), str | Path):
            data.append(Path(root))
    found = dict.fromkeys(path.resolve() for path in (workspace, *parts, *data, *folders))
    return [path for path in found if not any(one.is_relative_to(path) for one in needed)]


def denied_paths(job: JobSpec) -> list[Path]:
    """What is closed to the authors' code that a job names, before its exams are built."""
    return closed_paths(job.workspace, (testenv.dataset for testenv in job.testenvs))


def allowed_paths(urls: Iterable[str | None], closed: Sequence[Path]) -> list[Path]:
    """What of closed folders has to be open all the same: authors' files and what lies beside them."""
    found: list[Path] = []
    for url in urls:
        folder = Path(url).resolve().parent if url is not None and url.endswith(".py") else None
        if folder is not None and any(folder.is_relative_to(path) for path in closed):
            found += [path for path in folder.iterdir() if path not in closed]
    return found
