"""What travels when a worker does not see the job's workspace: the case's files go, results come back.

Nothing in here needs Ray. A worker finds out by a marker whether it sees the workspace; if it does, nothing travels.
See ianvs.engines.ray.ray_code for authors' files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from filelock import Timeout

from ianvs.config.spec import AlgorithmSpec, ModuleSpec, ScenarioSpec
from ianvs.engines.engine import Task
from ianvs.errors import Place
from ianvs.planning.case_request import PREPARE_EXAM, CaseRequest
from ianvs.session.lineage import lineage_of
from ianvs.store import CaseStore, ExamStore

__all__ = ["Travel", "mark", "pack", "relocate", "sees", "store_arrived", "travel_of", "unpack"]

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
    if not isinstance(argument, CaseRequest):
        return None
    workspace = argument.workspace
    exam = _name(ExamStore(workspace).folder(argument.exam_id), workspace)
    if task.target == PREPARE_EXAM:
        log = (_name(task.log, workspace),) if task.log is not None else ()
        return Travel(workspace, back=(exam, *log))
    case = _name(CaseStore(workspace).folder(argument.case.id), workspace)
    return Travel(workspace, constant=(exam,), own=(case,), back=(case,))


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

    replace: if false, what is there stays. Links that lead out of `root` and special files are left out. What
    can't be read changes nothing: tarfile.TarError.
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


def store_arrived(task: Task, travel: Travel, source: IO[bytes], patience: float) -> bool:
    """Put what came back of `task` into the workspace, with what the worker has noted of a case in its own view.

    False, and nothing is touched, if another process keeps the case for more than `patience` seconds.
    """
    if not isinstance(task.argument, CaseRequest) or task.target == PREPARE_EXAM:
        unpack(source, travel.workspace)
        return True
    case, store = task.argument.case, CaseStore(travel.workspace)
    try:
        with store.lock(case.id).acquire(timeout=patience):
            if store.status(case.id) != "finished":
                store.begin(case, task.argument.identity)
            unpack(source, travel.workspace)
            exam = ExamStore(travel.workspace).record(task.argument.exam_id)
            if exam is not None and store.status(case.id) == "finished":
                store.own(lineage_of(task.argument, exam)[-1], case.id)
    except Timeout:
        return False
    return True


# --- paths in requests ----------------------------------------------------------------------------------------------


def relocate(value: _T, mapping: Mapping[Path, Path]) -> _T:
    """`value` with every path below a key of `mapping` moved; in dataclasses, tuples and mappings too.

    Text is left alone, except for a plugin's `url` and a scenario's `file`; so are places in yaml files, which are for
    the user's eyes.
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
        if isinstance(value, ScenarioSpec) and isinstance(file := value.options.get("file"), str):
            fields["options"] = {**value.options, "file": str(_moved(Path(file), mapping))}
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
