"""What runs is what was planned: authors' source files as bytes, kept in the workspace before the first case.

docs/decisions/002-identity.md says which, and why.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
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
from ianvs.running.planning.identity import algorithm_source, authored, metric_keys, source_home
from ianvs.running.planning.plan import Plan, scored_metrics
from ianvs.store import CodeStore


@dataclass(frozen=True)
class KeptCode:
    """The source files of one author's file. key: of the CodeStore. up: how far above `file` their folder lies.

    digests: (name, sha256 of its bytes) of each.
    """

    file: Path
    up: int
    key: str
    digests: tuple[tuple[str, str], ...] = ()


def keep_code(plan: Plan) -> tuple[KeptCode, ...]:
    """Store all source files of the plan's authors. Raises IanvsError for one that was changed since it was planned."""
    store, snapshots = CodeStore(plan.job.workspace), []
    for entry, files in _files(plan).items():
        home = Path(os.path.commonpath([path.parent for path in files]))
        contents = {path.relative_to(home).as_posix(): read_source(path) for path in files}
        digests = tuple((name, hashlib.sha256(content).hexdigest()) for name, content in sorted(contents.items()))
        up = len(entry.resolve().relative_to(home).parts) - 1
        snapshots.append(KeptCode(entry, up, store.keep(contents), digests))
    sources: dict[tuple[object, ...], dict[str, str]] = {}
    for algorithm in plan.algorithms:
        authors = tuple(authored(algorithm.spec))
        if authors not in sources:
            sources[authors] = algorithm_source(plan.job, algorithm.spec)
        if sources[authors] != algorithm.identity["source"]:
            raise _changed(algorithm.spec.file)
    for exam, scores in zip(plan.job.testenvs, plan.scores, strict=True):
        if not set(metric_keys(scored_metrics(exam))) >= {key for _, key in scores}:
            raise _changed(exam.file)
    return tuple(snapshots)


def code_of(job: JobSpec, algorithm: AlgorithmSpec, code: tuple[KeptCode, ...]) -> tuple[KeptCode, ...]:
    """Those of `code` that an algorithm consists of, and nothing of its exam."""
    entries = {_entry(job, url, name, group)[0] for _, url, name, group in authored(algorithm)}
    return tuple(snapshot for snapshot in code if snapshot.file in entries)


def kept_files(workspace: Path, code: tuple[KeptCode, ...]) -> Mapping[Path, bytes]:
    """The bytes by the paths of the files that they were read from. Raises DamagedError."""
    contents: dict[Path, bytes] = {}
    for snapshot in code:
        above = snapshot.file.resolve().parents
        if snapshot.up < len(above):
            files = CodeStore(workspace).read(snapshot.key)
            contents |= {above[snapshot.up] / name: content for name, content in files.items()}
    return contents


def _files(plan: Plan) -> dict[Path, list[Path]]:
    """By author's file as the job names it, which may be a link: itself and the local ones that it reaches."""
    files_of_entry = {}
    for url, name, group in dict.fromkeys(_authored(plan)):
        entry, files = _entry(plan.job, url, name, group)
        if entry is not None:
            files_of_entry[entry] = files
    return files_of_entry


def _entry(job: JobSpec, url: str | None, name: str, group: str) -> tuple[Path | None, list[Path]]:
    """The author's file as the job names it, and all local ones that it reaches; None for one of a package."""
    files = list(authors_sources(url, name, source_home(job), group))
    if not files:
        return None, files
    return Path(url) if url is not None and url.endswith(".py") else files[0], files


def _authored(plan: Plan) -> Iterator[tuple[str | None, str, str]]:
    """(url, name, group) of all that authors have written."""
    for algorithm in plan.algorithms:
        yield from ((url, name, group) for _, url, name, group in authored(algorithm.spec))
    for exam in plan.job.testenvs:
        if exam.scenario is not None and is_authors(exam.scenario):
            yield _text(exam.scenario.url), exam.scenario.name, SCENARIOS
        for metric in (*scored_metrics(exam), *([exam.gate.metric] if exam.gate else [])):
            if (url := _text(metric.url) or foreign_module(metric.name)) is not None:
                yield url, metric.name, METRICS


def _text(url: Path | None) -> str | None:
    return None if url is None else str(url)


def _changed(file: Path) -> IanvsError:
    return IanvsError(
        f"source files that {shown_path(file)} names were changed since the job was planned. Run it again.",
        code="changed-since-plan",
    )
