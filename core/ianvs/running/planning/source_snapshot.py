"""Stores authors' sources in the workspace before the first case, so that cases run exactly the planned code.

docs/decisions/002-identity.md explains which files are stored.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import IanvsError, shown_path
from ianvs.base.source_files import read_source
from ianvs.config.spec import AlgorithmSpec, JobSpec
from ianvs.exam.metrics.registry import GROUP as METRICS
from ianvs.exam.metrics.registry import foreign_module
from ianvs.exam.scenarios.scenario_catalogue import ENTRY_POINTS as SCENARIOS
from ianvs.exam.scenarios.scenario_catalogue import is_authors
from ianvs.plugins.source import authors_sources
from ianvs.running.planning.identity import Plugin, algorithm_source, plugin_files_of
from ianvs.running.planning.plan import Plan, scored_metrics
from ianvs.store import CodeStore


@dataclass(frozen=True)
class SourceSnapshot:
    """The stored source files of a plugin.

    Attributes:
        file: The plugin's file.
        levels_up: Number of parent folders from `file` to the root of the snapshot.
        key: Key in the CodeStore.
        digests: (name, sha256) of each file.
    """

    file: Path
    levels_up: int
    key: str
    digests: tuple[tuple[str, str], ...] = ()


def store_sources(plan: Plan) -> tuple[SourceSnapshot, ...]:
    """Store all source files of the plan's plugins. Raises IanvsError if one was changed since it was planned."""
    job, store = plan.job, CodeStore(plan.job.workspace)
    plugins = [plugin for algorithm in plan.algorithms for _, plugin in plugin_files_of(job, algorithm.spec)]
    home = job.working_directory or job.file.parent
    for exam in job.testenvs:
        if (scenario := exam.scenario) is not None and is_authors(scenario):
            plugins.append((str(scenario.url) if scenario.url else None, scenario.name, SCENARIOS, home))
        for metric in (*(metric for metric, _ in scored_metrics(exam)), *([exam.gate.metric] if exam.gate else [])):
            if (url := str(metric.url) if metric.url else foreign_module(metric.name)) is not None:
                plugins.append((url, metric.name, METRICS, home))
    snapshots: dict[Path, SourceSnapshot] = {}  # by the plugin's file
    for entry, files in map(_entry, dict.fromkeys(plugins)):
        if entry is not None:
            root = Path(os.path.commonpath([path.parent for path in files]))
            contents = {path.relative_to(root).as_posix(): read_source(path) for path in files}
            digests = tuple((name, hashlib.sha256(content).hexdigest()) for name, content in sorted(contents.items()))
            levels_up = len(entry.resolve().relative_to(root).parts) - 1
            snapshots[entry] = SourceSnapshot(entry, levels_up, store.keep(contents), digests)
    # What is stored now must be what was planned.
    sources: dict[tuple[object, ...], dict[str, str]] = {}
    for algorithm in plan.algorithms:
        authors = tuple(plugin_files_of(job, algorithm.spec))
        if authors not in sources:
            sources[authors] = algorithm_source(job, algorithm.spec)
        if sources[authors] != algorithm.identity["source"]:
            raise _changed(algorithm.spec.file)
    for exam in job.testenvs:
        keys = {key for _, key in scored_metrics(exam)}
        of_exam = (algorithm for algorithm in plan.algorithms if algorithm.testenv is exam and not algorithm.role)
        if any(key not in keys for algorithm in of_exam for _, key in algorithm.scores):
            raise _changed(exam.file)
    return tuple(snapshots.values())


def snapshots_of(
    job: JobSpec, algorithm: AlgorithmSpec, code: tuple[SourceSnapshot, ...]
) -> tuple[SourceSnapshot, ...]:
    """Return the snapshots of one algorithm, without those of its exam."""
    entries = {_entry(plugin)[0] for _, plugin in plugin_files_of(job, algorithm)}
    return tuple(snapshot for snapshot in code if snapshot.file in entries)


def snapshot_contents(workspace: Path, code: tuple[SourceSnapshot, ...]) -> Mapping[Path, bytes]:
    """Return the stored content of source files by their original path. Raises DamagedError."""
    contents: dict[Path, bytes] = {}
    for snapshot in code:
        above = snapshot.file.resolve().parents
        if snapshot.levels_up < len(above):
            files = CodeStore(workspace).read(snapshot.key)
            contents |= {above[snapshot.levels_up] / name: content for name, content in files.items()}
    return contents


def _entry(plugin: Plugin) -> tuple[Path | None, list[Path]]:
    """Return the plugin's file as the job names it, and its local imports; None for a plugin of a package."""
    files, url = authors_sources(*plugin), plugin[0]
    if not files:
        return None, files
    return Path(url) if url is not None and url.endswith(".py") else files[0], files


def _changed(file: Path) -> IanvsError:
    return IanvsError(
        f"source files that {shown_path(file)} names were changed since the job was planned. Run it again.",
        code="changed-since-plan",
    )
