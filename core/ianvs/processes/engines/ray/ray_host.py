"""The Ray engine's side on a node (docs/clusters.md#ray): an actor that runs one task after the other.

If the worker or its node fails, the local engine's process sees its pipe close, and ends the task. This module needs
Ray.
"""

import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from filelock import FileLock

from ianvs.processes.engines.engine import Event, Files, Task, Workload
from ianvs.processes.engines.local import LocalEngine
from ianvs.processes.engines.ray.ray_files import pack, relocate, unpack

_PATIENCE = 20.0  # seconds that a call waits for an event


def module_paths() -> list[str]:
    """Return sys.path without Ray's own copies of libraries, which are not for tasks."""
    private = os.fspath(Path(ray.__file__).parent) + os.sep
    return [path for path in sys.path if not path.startswith(private)]


class RayHost:
    """Runs tasks. Its methods are called one after the other, except `cancel`, which may be called at any time.

    paths, folder: sys.path and working directory of the supervisor. code: {path there: name below this process's
    working directory} of the transferred code, None without code. token: identifies this engine on the node.
    """

    def __init__(
        self, workload: Workload, paths: Sequence[str], folder: Path, code: Mapping[Path, str] | None, token: str
    ) -> None:
        work_dir = Path.cwd()
        # Used if this node does not share the workspace.
        self._workspace_copy = Path(tempfile.gettempdir(), f"ianvs-{token}")
        self._code = {path: work_dir / name for path, name in (code or {}).items()}
        came = [] if code is None else [os.fspath(work_dir)]
        sys.path[:] = dict.fromkeys([*came, *paths, *module_paths()])
        importlib.invalidate_caches()
        if folder.is_dir():
            os.chdir(folder)
        if not ray.get_gpu_ids():
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides GPUs only from workers that have others
        self._engine = LocalEngine(replace(workload, jobs=1))
        self._parts: Iterator[bytes] = iter(())

    def can_read(self, marker: Path) -> bool:
        return marker.is_file()

    def start(
        self, task: Task, shares_workspace: bool, reads: Sequence[Any] = (), writes: Sequence[Any] = ()
    ) -> tuple[str, Path]:
        """Begin `task`. With a shared workspace paths are used unchanged, and files are not copied.

        reads, writes: references to the parts of its packed files. Returns the id of this node, and the path of its
        copy of the workspace.
        """
        if not shares_workspace:
            home = {} if task.files is None else {task.files.root: self._workspace_copy}
            task = relocate(task, self._code | home)
            if task.files is not None:
                self._workspace_copy.mkdir(parents=True, exist_ok=True)
                with FileLock(self._workspace_copy / ".lock"):  # another task may transfer the same file
                    if not all(path.exists() for path in task.files.reads):
                        self._receive(reads)
                self._receive(writes)
                self._parts = self._pack_results(task.files)
        self._engine.submit(task)
        return ray.get_runtime_context().get_node_id(), self._workspace_copy

    def events(self) -> list[Event]:
        """Return the events of the task; waits for the first."""
        return self._engine.events(_PATIENCE)

    def cancel(self, key: str, force: bool) -> None:
        self._engine.cancel(key, force=force)

    def next_part(self) -> bytes:
        """Return the next part of the packed results; b"" after the last."""
        return next(self._parts, b"")

    def _receive(self, parts: Sequence[Any]) -> None:
        if parts:
            with tempfile.TemporaryFile() as stream:
                for part in parts:
                    stream.write(ray.get(part))
                stream.seek(0)
                unpack(stream, self._workspace_copy)

    def _pack_results(self, files: Files) -> Iterator[bytes]:
        notes = (note for folder in files.notes for note in folder.glob("[!.]*"))
        yield from pack(self._workspace_copy, [*files.writes, *notes])
        for path in files.writes:
            shutil.rmtree(path, ignore_errors=True)
