"""Merges results of several people or machines into a new workspace."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ianvs.base.errors import IanvsError, shown_path
from ianvs.base.former_names import former_names
from ianvs.results.comparing.merge_plan import MergePlan, plan_merge
from ianvs.results.comparing.merge_sources import Source, StoredCase, read_source
from ianvs.results.stored import Results
from ianvs.store import replace_folder
from ianvs.store.files import link_or_copy

# Files of a case that are modified in place; all others are replaced as a whole.
_GROWING = ("log.txt", "files", "stream-*.journal")


@former_names(said="messages")
@dataclass(frozen=True)
class Merged:
    """The result of a merge. taken: number of cases from each source.

    Messages: sentences on what was left out and why.
    """

    results: Results
    taken: Mapping[str, int]
    messages: tuple[str, ...]


def merge_workspaces(sources: Sequence[str | Path], out: str | Path) -> Merged:
    """Write the cases of several jobs into a new workspace at `out`; the sources are only read.

    Cases keep their folders, ids and digests; files that nobody changes are hard links where the disk allows it. The
    workspace appears as a whole or not at all. Its job is not recorded yet: write_reports and JobStore do that.
    Raises IanvsError where `out` is not empty, or nothing of a source fits.
    """
    read = [read_source(path) for path in sources]
    folder = Path(out).absolute()
    _require_free(folder, read)
    plan = plan_merge(read)
    try:
        with replace_folder(folder) as new:
            _copy(plan, read, new)
    except OSError as error:
        raise IanvsError(
            f"{shown_path(folder)} can't be written: {error.strerror} ({error.filename}). Nothing was merged. "
            "Make room, or give --out another folder.",
            code="unwritable-file",
        ) from error
    results = replace(plan.results, workspace=folder.resolve())
    taken = Counter(stored.source.name for stored in plan.chosen.values())
    return Merged(results, {source.name: taken[source.name] for source in read}, tuple(dict.fromkeys(plan.messages)))


def _require_free(folder: Path, sources: Sequence[Source]) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise IanvsError(
            f"{shown_path(folder)} already exists and is not empty. Give --out a new folder.", code="existing-output"
        )
    for source in sources:
        if folder.resolve().is_relative_to(source.results.workspace):
            raise IanvsError(
                f"{shown_path(folder)} lies within {source.name}, which is only read. Give --out another.",
                code="existing-output",
            )


def _copy(plan: MergePlan, sources: Sequence[Source], new: Path) -> None:
    exams: dict[str, StoredCase] = {}
    for case_id, stored in plan.chosen.items():
        source = stored.source
        _copy_case(source.cases.folder(case_id), new / "cases" / case_id)
        identity = source.identity(stored.case)
        exam = str(identity["exam_id"]) if identity else ""
        # That of a finished case was verified; an unfinished case may have none.
        if exam not in exams or exams[exam].lacks:
            exams[exam] = stored
    for exam, stored in exams.items():
        if exam.isalnum() and (origin := stored.source.exams.folder(exam)).is_dir():
            _copy_tree(origin.resolve(), new / "exams" / exam, link=True, hidden=False)
    for source in sources:
        _copy_hints(source.cases.root / ".names", new / "cases" / ".names", set(plan.chosen))


def _copy_case(origin: Path, to: Path) -> None:
    to.mkdir(parents=True)
    for path in sorted(origin.iterdir()):
        if not path.name.startswith(".") and path.name != "running.json":  # else it is still running
            written_once = not any(path.match(pattern) for pattern in _GROWING)
            _copy_tree(path, to / path.name, link=written_once, hidden=not written_once)


def _copy_tree(origin: Path, to: Path, *, link: bool, hidden: bool) -> None:
    """Copy a folder.

    Args:
        origin: The folder.
        to: Where to.
        link: Use hard links if the disk and permissions allow; else copy with the recorded time.
        hidden: Whether names just below `origin` that begin with "." belong to a plugin, as they do further down; else
            they are half-written files, and left out.
    """
    if origin.is_symlink():
        to.symlink_to(origin.readlink())
    elif origin.is_dir():
        to.mkdir(parents=True)
        for path in sorted(origin.iterdir()):
            if hidden or not path.name.startswith("."):
                _copy_tree(path, to / path.name, link=link, hidden=True)
    else:
        (link_or_copy if link else shutil.copy2)(origin, to)


def _copy_hints(origin: Path, to: Path, cases: set[str]) -> None:
    """Copy small files that name a case each, those of the first source if several have one."""
    if not origin.is_dir():
        return
    to.mkdir(parents=True, exist_ok=True)
    for path in sorted(origin.iterdir()):
        if path.is_file() and not (to / path.name).exists() and path.read_text(errors="replace") in cases:
            shutil.copy2(path, to / path.name)
