"""Scores evaluated cases, one after another, in one process for the whole run."""

import contextlib
import json
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection
from pathlib import Path

from ianvs.processes.engines.capped_log import CappedLog
from ianvs.processes.engines.engine import EXIT_INTERRUPTED, Engine, Event, Task
from ianvs.running.planning.case_request import (
    SCORE_CASES,
    SCORER_ADDRESS,
    SCORER_OUTPUT,
    UNANSWERED,
    UNWRITABLE,
    CaseRequest,
)
from ianvs.store import CaseStore


class Scorer:
    """The supervisor's side of the process that scores (ianvs/running/session/scorer_process.py).

    The process is a task of a local engine, beside the cases, and starts with the first request. If it ends, the case
    that it was at ends with its exit status, and the next case gets another process. If it is lost together with the
    cases beside it, of which one may have ended them all, another process scores that case, once.

    Args:
        engine: A local engine.
        separate: Whether the engine is not used for cases.
    """

    def __init__(self, engine: Engine, *, separate: bool) -> None:
        self._engine, self._separate = engine, separate
        self._waiting: deque[CaseRequest] = deque()
        self._present: CaseRequest | None = None
        self._sent = False
        self._key = ""  # of the task; "": there is no process
        self.started = 0  # processes so far; without one there are no events
        self._lost = False  # whether the process was lost with other tasks
        self._rescored: set[str] = set()  # ids of cases whose process was lost with other tasks
        self._folder: Path | None = None  # of a process that is not connected yet
        self._output = -1  # descriptor of the file that it prints to
        self._channel: Connection | None = None
        self._events: list[Event] = []

    @property
    def needs_polling(self) -> bool:
        """Whether there may be events that the engine of the cases does not report."""
        return self._separate and self._present is not None

    def submit(self, request: CaseRequest) -> None:
        """Have the answers of a case scored. Its events are those of a task: started, result and ended.

        The result is UNANSWERED if some of the answers are gone or damaged; else there is none.
        """
        self._waiting.append(request)
        self._advance()

    def events(self, engine_events: Sequence[Event]) -> list[Event]:
        """Return the events of scored cases.

        Args:
            engine_events: Those of the engine that cases run on.
        """
        events = [*engine_events, *(self._engine.events(0.0) if self._separate and self._key else ())]
        self._receive_reply()
        for event in events:
            if event.key and event.key == self._key:
                self._handle_event(event)
            else:
                self._events.append(event)
        self._advance()
        due, self._events = self._events, []
        return due

    def cancel(self, key: str, *, force: bool = False) -> None:
        """Cancel the request of a case. Scoring in progress is ended only with `force`."""
        for request in [request for request in self._waiting if request.case.id == key]:
            self._waiting.remove(request)
            self._events.append(Event(key, "ended", EXIT_INTERRUPTED))
        if force and self._present is not None and self._present.case.id == key:
            self._lost = False
            self._engine.cancel(self._key, force=True)

    def close(self) -> None:
        """End the process."""
        if self._key:
            self._engine.cancel(self._key, force=True)
            self._reset_process()

    def _start(self) -> None:
        self.started += 1
        self._lost = False
        self._key = f"scorer {self.started}"
        self._folder = Path(tempfile.mkdtemp(prefix="ianvs-"))
        output = self._folder / SCORER_OUTPUT
        self._output = os.open(output, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        self._engine.submit(Task(self._key, SCORE_CASES, self._folder, output))

    def _advance(self) -> None:
        """Send the next request, once the process is ready."""
        if self._present is None and self._waiting:
            self._present, self._sent = self._waiting.popleft(), False
        if self._present is None or self._sent:
            return
        if not self._key:
            self._start()
        if self._folder is not None:
            with contextlib.suppress(OSError, ValueError, EOFError):  # it does not listen yet, or not any more
                self._channel = Client(json.loads((self._folder / SCORER_ADDRESS).read_bytes())["address"])
                shutil.rmtree(self._folder, ignore_errors=True)  # both have its files open, so its output is lost
                self._folder = None
        if self._channel is not None:
            with contextlib.suppress(OSError):  # it has ended, of which the engine will tell
                self._channel.send(self._present)
            self._sent = True
            self._events.append(Event(self._present.case.id, "started"))

    def _receive_reply(self) -> None:
        """Handle the reply to the current request, if it has arrived."""
        if self._channel is None:
            return
        try:
            if not self._channel.poll():
                return
            reply = self._channel.recv_bytes().decode()
        except (OSError, EOFError):
            self._channel = None
            self._engine.cancel(self._key, force=True)  # an engine that lost all its tasks would begin it anew
            return
        if self._present is not None and reply == UNANSWERED:
            self._events.append(Event(self._present.case.id, "result", UNANSWERED))
        self._end(0)

    def _handle_event(self, event: Event) -> None:
        """Handle an event of the scorer's process."""
        if event.kind == "restarting":
            self._lost = True
            self._engine.cancel(self._key, force=True)  # a new process is not connected
        elif event.kind == "progress" and event.payload == UNWRITABLE and self._present is not None:
            self._events.append(Event(self._present.case.id, "progress", UNWRITABLE))
        elif event.kind == "ended":
            self._receive_reply()
            if self._lost and self._present is not None and self._present.case.id not in self._rescored:
                self._rescored.add(self._present.case.id)
                self._sent = False
            elif self._sent or self._folder is not None:  # else it ended before it was asked, and another one will be
                self._end(event.payload)
            self._reset_process()

    def _end(self, code: int) -> None:
        """Finish the current case."""
        if self._present is not None:
            self._keep_output(self._present)
            self._events.append(Event(self._present.case.id, "ended", code))
            self._present = None

    def _keep_output(self, request: CaseRequest) -> None:
        """Append the output of the process to the log of the case."""
        with contextlib.suppress(OSError):
            if size := os.fstat(self._output).st_size:
                os.lseek(self._output, 0, os.SEEK_SET)
                log = CappedLog(CaseStore(request.workspace).log(request.case.id), request.secrets)
                log.write(os.read(self._output, size), last=True)
                os.ftruncate(self._output, 0)

    def _reset_process(self) -> None:
        """Reset the state after the process has ended."""
        if self._channel is not None:
            self._channel.close()
        os.close(self._output)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._key, self._folder, self._channel = "", None, None
