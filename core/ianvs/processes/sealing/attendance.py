"""What a copy prints, and in an audit what it asks of the kernel: the keeper's end of both."""

import os
import select
import struct
import threading
from collections import Counter
from contextlib import suppress

from ianvs.processes.sealing.system_calls import machine, numbers

_NOTICE = struct.Struct("<QIIiIQ6Q")  # struct seccomp_notif: its id, process, flags; number of the call, machine, ...
_REPLY = struct.Struct("<QqiI")  # struct seccomp_notif_resp: id, value, error, flags
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_...
_CONTINUE = 1
_BLOCK = 1 << 16
_PATIENCE = 5.0  # seconds; what a copy has started may hold on to its end


class Attendance:
    """Passes on to standard output what comes from `printed`, and lets the calls go on that `listener` tells of.

    Both descriptors are closed in the end. denied: how often a call was made that a sealed copy can't make, by name.
    """

    def __init__(self, printed: int, listener: int | None = None) -> None:
        self.denied: Counter[str] = Counter()
        self._printed, self._listener = printed, listener
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The copy has ended."""
        self._thread.join(_PATIENCE)

    def _attend(self) -> None:
        waiting = select.poll()
        left = {end for end in (self._printed, self._listener) if end is not None}
        for end in left:
            waiting.register(end, select.POLLIN)
        while left:
            for end, event in waiting.poll():
                alive = bool(event & select.POLLIN) and (self._pass_on() if end == self._printed else self._let_go_on())
                if not alive:
                    waiting.unregister(end)
                    left.discard(end)
                    os.close(end)

    def _pass_on(self) -> bool:
        block = os.read(self._printed, _BLOCK)
        with suppress(OSError):
            os.write(1, block)
        return bool(block)

    def _let_go_on(self) -> bool:
        import fcntl  # Linux, where alone there are listeners

        assert self._listener is not None
        notice = bytearray(_NOTICE.size)
        with suppress(OSError):  # who asked has ended meanwhile
            fcntl.ioctl(self._listener, _RECEIVE, notice)
            told = _NOTICE.unpack(notice)
            self.denied[_name(told[3])] += 1
            fcntl.ioctl(self._listener, _SEND, bytearray(_REPLY.pack(told[0], 0, 0, _CONTINUE)))
        return True


def _name(number: int) -> str:
    known = numbers(machine() or "")
    return next((name for name, its_number in known.items() if its_number == number), f"call {number}")
