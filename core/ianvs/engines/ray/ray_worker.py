"""What happens on Ray's side of the Ray engine: a task's host, and the mailbox between hosts and supervisor.

A task does not run in Ray's worker but below it, under a local engine of one slot. So it has what every local task has:
a process group, an exit status whatever it does, a log, an end to all that it started. When the worker or its node
dies, the local engine's process sees its pipe close, and ends the task.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from ianvs.engines.engine import Event, Task
from ianvs.engines.local import LocalEngine
from ianvs.engines.ray.ray_storage import Travel, pack, relocate, sees, unpack

__all__ = ["Assignment", "host", "make_entry", "make_mailbox", "make_sweeper", "node_folder", "blocks"]

_TICK = 0.1  # seconds between looks for orders
_PATIENCE = 20.0  # seconds that one look into the mailbox waits for a message
_PIECE = 8 << 20  # bytes


@dataclass(frozen=True)
class Assignment:
    """A task with what its host needs to know. `serial` tells attempts at one task apart."""

    serial: int
    task: Task
    threads: int
    preload: tuple[str, ...]
    token: str  # of the marker in a shared workspace, and of what is kept on nodes that don't share it
    shared: bool | None  # None: find out
    travel: Travel | None = None
    cargo_sent: bool = False
    code: Mapping[Path, str] | None = None  # {path at the supervisor's: name below `code_root`}; None: nothing came
    code_root: Path | None = None


def make_mailbox(capacity: int) -> type:
    """The class of the mailbox. It is made in here so that it travels by value: its process need not find ianvs.

    capacity: bytes of blocks that wait at most; a host that brings more back is held until some were taken.
    """

    class Mailbox:
        """Messages to the supervisor, numbered from 1 and kept until it has seen them; orders to hosts."""

        def __init__(self) -> None:
            import asyncio

            self.messages: list[tuple[int, int, str, Any]] = []  # (number, serial, kind, payload)
            self.number = 0
            self.orders: dict[int, list[str]] = {}
            self.changed = asyncio.Condition()

        async def post(self, serial: int, kind: str, payload: Any) -> None:
            async with self.changed:
                self.number += 1
                self.messages.append((self.number, serial, kind, payload))
                self.changed.notify_all()

        async def post_block(self, serial: int, block: bytes) -> None:
            await self.until(lambda: self.waiting() < capacity, None)
            await self.post(serial, "block", block)

        def waiting(self) -> int:
            return sum(len(payload) for _, _, kind, payload in self.messages if kind == "block")

        async def take(self, seen: int, seconds: float) -> list[tuple[int, int, str, Any]]:
            """Every message after number `seen`; waits for one. What is not seen after all is given again."""
            async with self.changed:
                self.messages = [message for message in self.messages if message[0] > seen]
                self.changed.notify_all()
            await self.until(lambda: bool(self.messages), seconds)
            return self.messages

        async def order(self, serial: int, what: str) -> None:
            async with self.changed:
                self.orders.setdefault(serial, []).append(what)
                self.changed.notify_all()

        async def ordered(self, serial: int, seconds: float) -> list[str]:
            await self.until(lambda: serial in self.orders, seconds)
            return self.orders.pop(serial, [])

        async def until(self, condition: Callable[[], bool], seconds: float | None) -> None:
            import asyncio

            async with self.changed:
                try:
                    async with asyncio.timeout(seconds):
                        await self.changed.wait_for(condition)
                except TimeoutError:
                    pass

    return Mailbox


def make_entry() -> Callable[..., None]:
    """The function that Ray calls. It is made in here so that it travels by value: it makes ianvs importable itself."""

    def ianvs_case(
        paths: list[str], folder: str, code_came: bool, packed: bytes, cargo: list[list[Any]], mailbox: Any
    ) -> None:
        """paths, folder: sys.path and working directory of the supervisor; code_came: Ray's working_dir is our code."""
        import dataclasses
        import importlib
        import os
        import pathlib
        import pickle
        import sys

        import ray

        code_root, before = os.getcwd(), sys.path[:]  # noqa: PTH109
        private = os.path.dirname(ray.__file__) + os.sep  # noqa: PTH120
        own = [path for path in sys.path if not path.startswith(private)]  # Ray's copies of libraries are not for tasks
        sys.path[:] = list(dict.fromkeys([*([code_root] if code_came else []), *paths, *own]))
        try:
            importlib.invalidate_caches()
            worker = importlib.import_module("ianvs.engines.ray.ray_worker")
            assignment = pickle.loads(packed)
            if code_came:
                assignment = dataclasses.replace(assignment, code_root=pathlib.Path(code_root))
            if os.path.isdir(folder):  # noqa: PTH112
                os.chdir(folder)
            worker.host(assignment, cargo, mailbox)
        finally:  # Ray gives this process to the next call
            os.chdir(code_root)
            sys.path[:] = before

    return ianvs_case


def make_sweeper() -> Callable[[str], None]:
    """The function that removes a folder of a node; travels by value."""

    def ianvs_sweep(folder: str) -> None:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)

    return ianvs_sweep


def node_folder(token: str) -> Path:
    """Where a node that does not see the workspace keeps a view of its own while the engine is open."""
    return Path(tempfile.gettempdir()) / f"ianvs-{token}"


def blocks(stream: IO[bytes]) -> Iterable[bytes]:
    """The content of `stream` from its beginning."""
    stream.seek(0)
    return iter(lambda: stream.read(_PIECE), b"")


def host(assignment: Assignment, cargo: list[list[Any]], mailbox: Any) -> None:
    """Run the task and forward its events to the mailbox.

    cargo: object references to the blocks of what travels here, first what is constant, then what is the task's own.
    """
    import ray

    travel, serial = assignment.travel, assignment.serial
    at_home = travel is None or _shared(assignment, travel)
    if not at_home and not assignment.cargo_sent:
        ray.get(mailbox.post.remote(serial, "unshared", None))
        return
    task = assignment.task
    if travel is None or not at_home:
        task = _moved(assignment)
    if travel is not None and not at_home:
        for replaces, references in zip((False, True), cargo, strict=False):
            _receive(references, node_folder(assignment.token), replace_=replaces)
    code = _follow(assignment, task, mailbox)
    node = None
    if travel is not None and not at_home:
        _bring_back(node_folder(assignment.token), travel, serial, mailbox)
        node = ray.get_runtime_context().get_node_id()
    ray.get(mailbox.post.remote(serial, "ended", (code, node)))


def _shared(assignment: Assignment, travel: Travel) -> bool:
    return sees(travel.workspace, assignment.token) if assignment.shared is None else assignment.shared


def _moved(assignment: Assignment) -> Task:
    """The task in terms of this node's paths."""
    mapping: dict[Path, Path] = {}
    if assignment.code_root is not None:
        mapping = {path: assignment.code_root / name for path, name in (assignment.code or {}).items()}
    if assignment.travel is not None:
        mapping[assignment.travel.workspace] = node_folder(assignment.token)
    task = assignment.task
    return replace(task, argument=relocate(task.argument, mapping), log=relocate(task.log, mapping))


def _receive(references: list[Any], root: Path, *, replace_: bool) -> None:
    import ray

    with tempfile.TemporaryFile() as stream:
        for reference in references:
            stream.write(ray.get(reference))
        if stream.tell():
            stream.seek(0)
            unpack(stream, root, replace=replace_)


def _bring_back(root: Path, travel: Travel, serial: int, mailbox: Any) -> None:
    import ray

    with tempfile.TemporaryFile() as stream:
        if pack(root, travel.back, stream):
            for block in blocks(stream):
                ray.get(mailbox.post_block.remote(serial, block))
    for name in travel.own:
        shutil.rmtree(root / name, ignore_errors=True)


def _follow(assignment: Assignment, task: Task, mailbox: Any) -> int:
    """Run `task` to its end; its exit code. Nothing of it runs any more afterwards."""
    import ray

    serial = assignment.serial
    orders = mailbox.ordered.remote(serial, _PATIENCE)
    engine = LocalEngine(1, assignment.threads, assignment.preload)
    try:
        engine.submit(task)
        while True:
            for event in engine.events(_TICK):
                if event.kind == "ended":
                    return int(event.payload)
                _forward(event, serial, mailbox)
            ready, _ = ray.wait([orders], timeout=0)
            if ready:
                for order in ray.get(orders):
                    engine.cancel(task.key, force=order == "kill")
                orders = mailbox.ordered.remote(serial, _PATIENCE)
    finally:
        engine.close()
        # A worker of Ray does not end, and keeps its CPUs, while a call of its own is unanswered.
        mailbox.order.remote(serial, "over")
        ray.wait([orders])


def _forward(event: Event, serial: int, mailbox: Any) -> None:
    mailbox.post.remote(serial, event.kind, event.payload)
