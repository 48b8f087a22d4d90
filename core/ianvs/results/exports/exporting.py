"""Exports the results of a job into a new folder, by a function in the entry points `ianvs.exports`."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ianvs.base.entry_points import installed
from ianvs.base.errors import IanvsError, closest, shown_path
from ianvs.base.package import own_version
from ianvs.plugins.loader import cause
from ianvs.results.report.values import provenance_facts
from ianvs.results.stored import Results
from ianvs.store import write_atomic

GROUP = "ianvs.exports"
"""The group of entry points; each names a function (results, folder) that fills an empty folder."""

NOTE = "export.json"
"""Written last: describes the export and how it was computed. An export without it is incomplete."""

Write = Callable[[Results, Path], None]


def export_results(results: Results, to: str, out: Path) -> Path:
    """Fill the folder `out`, which must be empty or missing, and return it. Nothing is uploaded.

    Raises IanvsError for an unknown `to`, a missing package, and an `out` that is not empty or can't be written. A
    failure leaves nothing behind.
    """
    write = _load_export(to)
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise IanvsError(
                f"{shown_path(out)} already exists, and nothing is overwritten. Give another folder, or remove it.",
                code="existing-output",
            )
        out.mkdir(parents=True, exist_ok=True)
        try:
            write(results, out.resolve())
            write_atomic(out / NOTE, (json.dumps(_note(results, to), indent=1, ensure_ascii=False) + "\n").encode())
        except BaseException:
            shutil.rmtree(out, ignore_errors=True)
            raise
    except OSError as error:
        where = shown_path(error.filename or out)
        raise IanvsError(
            f"{where} can't be written: {error.strerror or error}. Nothing was exported.", code="unwritable-file"
        ) from error
    return out


@contextmanager
def require_package(package: str, to: str) -> Iterator[None]:
    """Context manager for the imports of `package`, which the extra `to` of ianvs installs.

    Raises IanvsError with the remedy.
    """
    try:
        yield
    except ImportError as error:
        raise IanvsError(
            f"`--to {to}` needs the package {package}, which can't be imported here ({error}). "
            f"`pip install 'ianvs-bench[{to}]'` installs it.",
            code="missing-package",
        ) from error


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Context manager that sets environment variables, by which tools are kept off the network."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _load_export(to: str) -> Write:
    exports = installed(GROUP)
    if to not in exports:
        raise IanvsError(
            f"unknown export '{to}'.{closest(to, exports)} There are: {', '.join(sorted(exports))}.",
            code="unknown-name",
        )
    try:
        write: Write = exports[to].load()
    except Exception as error:
        raise IanvsError(
            f"the export '{to}', {exports[to].value}, can't be imported: {cause(error, None)}", code="unloadable-plugin"
        ) from error
    return write


def _note(results: Results, to: str) -> Mapping[str, object]:
    states = [result.status for result in results]
    return {
        "job": results.name,
        "exported_to": to,
        "ianvs": own_version(),
        "cases": len(states),
        "finished": states.count("finished"),
        "command": results.provenance.get("command"),
        "provenance": provenance_facts(results.provenance),
    }
