"""A job that comes with ianvs, as files in one folder that stand on nothing but the installed package.

Texts are changed where a path stands, and nowhere else: comments and layout stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.errors import IanvsError, one_line
from ianvs.base.package import own_name
from ianvs.base.shipped import JOB_FILE, job_path, shipped_jobs
from ianvs.config.load import files_of_job
from ianvs.config.models.base import at, entries
from ianvs.config.strict_yaml import Document, Step, Steps, read

__all__ = ["copied_job"]

_UPWARDS = re.compile(r"(\.\./)+")


def copied_job(source: str, name: str, folder: str) -> dict[str, str]:
    """{file name: text} of the shipped job `source` under a new `name`, in `folder` as the user has said it.

    Raises IanvsError for what is no such job.
    """
    job = job_path(Path(source))
    if job not in shipped_jobs().values():
        raise IanvsError(f"'{source}' is no job that comes with ianvs. There are: {one_line([*shipped_jobs()], 40)}.")
    documents = {path: read(path) for path in files_of_job(job)}
    names = _names(documents, job)
    files: dict[str, str] = {}
    for path, document in documents.items():
        text, carried = _localised(document, names)
        files[names[path]] = text
        files |= carried
    if old := at(documents[job].data, "benchmarkingjob", "name"):
        files[JOB_FILE] = _replaced(files[JOB_FILE], read(job), {("benchmarkingjob", "name"): (str(old), name)})
    files[JOB_FILE] = files[JOB_FILE].replace(f"configs/{job.parent.name}/{JOB_FILE}", folder)  # in its comments
    return files


def _names(documents: dict[Path, Document], job: Path) -> dict[Path, str]:
    """What each file of the job is called in the new folder."""
    names = {job: JOB_FILE}
    named = {
        (job.parent / str(at(entry, "url"))).resolve(): str(at(entry, "name"))
        for _, entry in entries(documents[job].data, "benchmarkingjob", "test_object", "algorithms")
    }
    testenvs = [path for path, document in documents.items() if at(document.data, "testenv") is not None]
    for path in documents:
        if path == job:
            continue
        if path.resolve() in named:
            wish = re.sub(r"[^A-Za-z0-9._-]+", "_", named[path.resolve()])
        elif path in testenvs:
            wish = path.parent.name if path.stem == "testenv" else path.stem  # an exam may be called so
            wish = "testenv" if len(testenvs) == 1 else wish
        else:
            wish = path.stem
        taken = set(names.values())
        numbered = (f"{wish}.yaml" if n == 1 else f"{wish}_{n}.yaml" for n in range(1, len(documents) + 2))
        names[path] = next(free for free in numbered if free not in taken)
    return names


def _localised(document: Document, names: dict[Path, str]) -> tuple[str, dict[str, str]]:
    """The text with paths that hold in the new folder, and files of other kinds that go with it."""
    folder = document.file.parent
    known = {path.resolve(): name for path, name in names.items()}
    changes: dict[Steps, tuple[str, str]] = {}
    carried: dict[str, str] = {}
    for path, value in _texts(document.data, ()):
        target = (folder / value).resolve()
        if target in known:
            changes[path] = value, f"./{known[target]}"
        elif target.suffix == ".py" and target.is_file():
            module = own_name(target)
            if "modules" in path and module is not None:
                changes[path] = value, ".".join(module.with_suffix("").parts)
            else:
                changes[path] = value, f"./{target.name}"
                carried[target.name] = target.read_text(encoding="utf-8")
        elif "../" in value:  # the folder of data that the user has, or has not yet
            changes[path] = value, _UPWARDS.sub("./", value)
    text = document.file.read_text(encoding="utf-8")
    return _replaced(text, document, changes), carried


def _texts(data: object, path: tuple[Step, ...]) -> Iterator[tuple[Steps, str]]:
    """(path, text) of each value that may be a path."""
    for where, value in entries(data):
        if isinstance(value, str):
            if value.startswith(("./", "../", "${")) or value.endswith((".py", ".yaml")):
                yield (*path, *where), value
        else:
            yield from _texts(value, (*path, *where))


def _replaced(text: str, document: Document, changes: dict[Steps, tuple[str, str]]) -> str:
    """`text` with new values at those paths; `document` says where they stand."""
    lines = text.splitlines(keepends=True)
    places = {document.value_place(path): change for path, change in changes.items()}
    for place in sorted(places, reverse=True):
        old, new = places[place]
        line, start = lines[place.line - 1], place.column - 1
        begin = line.index(old, start)
        lines[place.line - 1] = line[:begin] + new + line[begin + len(old) :]
    return "".join(lines)
