"""The keeper's end of a copy that answers an examination."""

import contextlib
import socket
from collections import Counter
from collections.abc import Set
from typing import Self

from ianvs.base.errors import PluginError
from ianvs.processes.proc import children
from ianvs.processes.sealing.attendance import Attendance
from ianvs.processes.sealing.peer import Gone, Handler, Message, Peer
from ianvs.running.session.processes import LearnerSpawner


class Copy:
    """Within, it can be asked; afterwards it has ended. Entering raises Gone if it ended before it was shut in.

    pid: its process. missing: what it is not kept from, in words. code: its exit code. denied: how often it called what
    a sealed copy can't, by name; in an audit.
    """

    pid = code = 0
    missing: Set[str] = frozenset()

    def __init__(self, end: socket.socket, handler: Handler, spawner: LearnerSpawner) -> None:
        self.calls = Peer(end, self._handled)
        self.denied: Counter[str] = Counter()
        self._handler, self._spawner = handler, spawner
        self._attendance: Attendance | None = None

    def __enter__(self) -> Self:
        try:
            self.calls.answer()
            if self.pid not in children(self._spawner.pid):
                raise Gone
        except BaseException:
            self.calls.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.calls.close()
        self.code = -9
        with contextlib.suppress(Gone):
            self.code = self._spawner.ended(self.pid)
        if self._attendance is not None:
            self._attendance.close()
            self.denied = self._attendance.denied

    def _handled(self, name: str, told: Message) -> Message | None:
        if name == "feed":  # it would count, and the learner be told so
            raise PluginError(
                "training data are handed to a learner that trains, not to one that is asked", code="invalid-request"
            )
        if name != "sealed" or self.pid:
            return self._handler(name, told)
        self.pid, self.missing = int(told.body["pid"]), set(map(str, told.body["missing"]))
        if told.files:
            self._attendance = Attendance(*told.files)
        return None
