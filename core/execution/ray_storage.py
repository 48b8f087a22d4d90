"""What travels when a worker does not see the job's workspace: code and the case's files go, results come back.

Nothing in here needs Ray. A worker finds out by a marker whether it sees the workspace; if it does, nothing travels.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec as FoundModule
from pathlib import Path
from typing import IO, Any, TypeVar

from core.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from core.errors import IanvsError, Place
from core.execution.engine import Task
from core.execution.request import CaseRequest, ExamRequest
from core.plugins.source import source_files
from core.store import CaseStore, ExamStore

__all__ = ["CODE_LIMIT", "Travel", "files_of", "gather_code", "mark", "pack", "relocate", "sees", "travel_of", "unpack"]

CODE_LIMIT = 400 << 20  # bytes of code and initial models; Ray takes no more than 512 MiB
_BESIDE_LIMIT = 10 << 20  # bytes; what is larger beside a plugin is data, not part of it
_PACKAGES = ("core", "testalgorithms", "testenv")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Travel:
    """Names below a workspace: files and folders that a task needs from there, and that it leaves behind there."""

    workspace: Path
    constant: tuple[str, ...] = ()  # needed, and the same for many tasks
    own: tuple[str, ...] = ()  # needed if it is there: what an earlier attempt has finished
    back: tuple[str, ...] = ()


def travel_of(task: Task) -> Travel | None:
    """None for a task that works on no workspace."""
    argument = task.argument
    if isinstance(argument, CaseRequest):
        workspace = argument.exam.workspace
        case = _name(CaseStore(workspace).folder(argument.case.id), workspace)
        exam = _name(ExamStore(workspace).folder(argument.exam.exam_id), workspace)
        return Travel(workspace, constant=(exam,), own=(case,), back=(case,))
    if isinstance(argument, ExamRequest):
        workspace = argument.workspace
        exam = _name(ExamStore(workspace).folder(argument.exam_id), workspace)
        log = (_name(task.log, workspace),) if task.log is not None else ()
        return Travel(workspace, back=(exam, *log))
    return None


def _name(path: Path, workspace: Path) -> str:
    return path.relative_to(workspace).as_posix()


# --- is the workspace shared? -----------------------------------------------------------------------------------------


def mark(workspace: Path, token: str) -> Path:
    """Leave the marker that `sees` looks for; the caller removes it in the end."""
    marker = workspace / f".shared-{token}"
    workspace.mkdir(parents=True, exist_ok=True)
    marker.write_text(token)
    return marker


def sees(workspace: Path, token: str) -> bool:
    """Whether this machine's `workspace` is the one that was marked with `token`."""
    try:
        return (workspace / f".shared-{token}").read_text() == token
    except OSError:
        return False


# --- files ------------------------------------------------------------------------------------------------------------


def pack(root: Path, names: Iterable[str], target: IO[bytes]) -> bool:
    """Write the files and folders `names` below `root` to `target` as a tar; False if none of them is there."""
    there = [name for name in names if (root / name).exists()]
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name in there:
            tar.add(root / name, name)
    return bool(there)


def unpack(source: IO[bytes], root: Path, *, replace: bool = True) -> None:
    """Put what was packed below `root`. Each file or folder appears as a whole, and takes the place of what is there.

    replace: if false, what is there stays. Links that lead out of `root` and special files are left out.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".arriving.", dir=root) as folder:
        arrived = Path(folder)
        with tarfile.open(fileobj=source, mode="r") as tar:
            names = _tops(tar.getnames())
            tar.extractall(arrived / "new", filter=_harmless)
        for number, name in enumerate(names):
            old, new = root / name, arrived / "new" / name
            if not new.exists() or (old.exists() and not replace):
                continue
            old.parent.mkdir(parents=True, exist_ok=True)
            if old.is_dir():
                old.rename(arrived / f"old-{number}")
            with contextlib.suppress(OSError) if not replace else contextlib.nullcontext():
                new.rename(old)  # without `replace`, somebody else may have come first


def _tops(names: Iterable[str]) -> list[str]:
    """Those of `names` that are below no other."""
    known = set(names)
    return [name for name in names if not any(str(parent) in known for parent in Path(name).parents)]


def _harmless(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, target)
    except tarfile.FilterError:
        return None


# --- code -------------------------------------------------------------------------------------------------------------


def files_of(job: JobSpec) -> tuple[Path, ...]:
    """Files and folders of the job's authors: plugins, metrics, initial models."""
    metrics = [*job.exam.metrics, *([job.exam.gate.metric] if job.exam.gate else [])]
    found = [metric.url for metric in metrics if metric.url is not None]
    for algorithm in job.algorithms:
        found += [path for module in algorithm.modules if (path := _file_of(module)) is not None]
        if isinstance(algorithm.initial_model, Path):
            found.append(algorithm.initial_model)
    return tuple(dict.fromkeys(found))


def _file_of(module: ModuleSpec) -> Path | None:
    """The plugin's file, the folder of its package, or None for what every installation has."""
    if module.url is None:
        return None
    if module.url.endswith(".py"):
        return Path(module.url)
    top = module.url.partition(":")[0].split(".")[0]
    spec = importlib.util.find_spec(top)
    if top in _PACKAGES or spec is None or not spec.origin or "site-packages" in Path(spec.origin).parts:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def gather_code(files: Iterable[Path], target: Path) -> dict[Path, str]:
    """Copy ianvs itself and `files` to the empty folder `target`, which is to lead sys.path where it arrives.

    A python file takes along the local modules that it imports, and what small files lie beside it and them. Returns
    {path here: name below `target`} for `relocate`. Raises IanvsError above CODE_LIMIT.
    """
    moved: dict[Path, str] = {}
    copies: dict[Path, Path] = {}
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        copies |= {path: Path(package) / inner for path, inner in _below(_home(spec))}
    for file in files:
        if file.suffix == ".py" and file.is_file():
            entry = file.resolve()  # the loader resolves links too: a plugin's modules lie beside the real file
            place = moved.setdefault(entry.parent, f"plugins/{len(moved)}")
            moved[file.parent] = place
            copies |= dict(_with_imports(entry, Path(place)))
        elif file.is_dir() and (file / "__init__.py").is_file():
            copies |= {path: Path(file.name) / inner for path, inner in _below(file)}
        elif file.exists():
            place = moved.setdefault(file, f"files/{len(moved)}/{file.name}")
            inside = [(path, path.relative_to(file)) for path in file.rglob("*")] if file.is_dir() else [(file, Path())]
            copies |= {path: Path(place) / inner for path, inner in inside if path.is_file()}
    size = sum(path.stat().st_size for path in copies)
    if size > CODE_LIMIT:
        largest = max(copies, key=lambda path: path.stat().st_size)
        raise IanvsError(
            f"code and initial models of {size >> 20} MB are too large to travel to the nodes (at most "
            f"{CODE_LIMIT >> 20} MB); the largest file is {largest}. Put the job on storage that all nodes share."
        )
    for path, place in copies.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / place)
    return moved


def _home(spec: FoundModule | None) -> Path:
    """Folder of a package; one that is not installed has none, and travels not."""
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(places[0]) if places else Path(os.devnull)


def _below(folder: Path) -> Iterator[tuple[Path, Path]]:
    """(file, its path relative to `folder`), without what is hidden, compiled, or too large to be code."""
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not any(part.startswith((".", "__pycache__")) for part in inner.parts) and _small(path):
            yield path, inner


def _small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _BESIDE_LIMIT


def _with_imports(entry: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    """(file, where it goes) of a plugin: below `place`, or where an import through sys.path finds it."""
    ours = {_home(importlib.util.find_spec(package)).resolve() for package in _PACKAGES}
    for folder in {path.parent for path in source_files(entry)}:
        if any(folder.is_relative_to(package) for package in ours):
            continue
        beside = [path for path in folder.iterdir() if not path.name.startswith(".") and _small(path)]
        if folder.is_relative_to(entry.parent):
            yield from ((path, place / path.relative_to(entry.parent)) for path in beside)
        else:
            roots = [Path(root).resolve() for root in sys.path if folder.is_relative_to(Path(root).resolve())]
            if roots:
                root = max(roots, key=lambda found: len(found.parts))
                yield from ((path, path.relative_to(root)) for path in beside if path.suffix == ".py")


def relocate(value: _T, mapping: Mapping[Path, Path]) -> _T:
    """`value` with every path below a key of `mapping` moved; in dataclasses, tuples and mappings too.

    Text is left alone, except for a plugin's `url`; so are places in yaml files, which are for the user's eyes.
    """
    moved: Any = value
    if isinstance(value, Place):
        return value
    if isinstance(value, Path):
        moved = _moved(value, mapping)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, ModuleSpec) and value.url is not None and value.url.endswith(".py"):
            fields["url"] = str(_moved(Path(value.url), mapping))
        if isinstance(value, AlgorithmSpec):
            fields.pop("file")  # named in messages only
        moved = dataclasses.replace(value, **{name: relocate(part, mapping) for name, part in fields.items()})
    elif isinstance(value, tuple):
        moved = tuple(relocate(part, mapping) for part in value)
    elif isinstance(value, Mapping):
        moved = {key: relocate(part, mapping) for key, part in value.items()}
    found: _T = moved
    return found


def _moved(path: Path, mapping: Mapping[Path, Path]) -> Path:
    for old in sorted(mapping, key=lambda path: -len(path.parts)):
        if path.is_relative_to(old):
            return mapping[old] / path.relative_to(old)
    return path
