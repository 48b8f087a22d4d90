"""Where pilots come back to: a port of the supervisor's machine, and what they need to know to be let in.

Both sides prove that they have the key, which stands in a file that its owner alone can read. What is said
then is pickled, and not encrypted.
"""

import contextlib
import hmac
import json
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

NAME = "door.json"
_GREETING = 10.0  # seconds that a greeting may take
_KNOCKING = 5.0  # seconds for one address
_NONCE = 32


class Door:
    """Lets pilots in. came: (connection, what it says of itself) of each, in turn."""

    def __init__(self, folder: Path, host: str | None, ring: Callable[[], None]) -> None:
        """host: the name or address of this machine that nodes are to use. ring: called when somebody came."""
        self._ring = ring
        self._key = secrets.token_bytes(32)
        self._socket = socket.create_server(("", 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self.hosts = [host] if host else list(dict.fromkeys(_own_names()))
        self.came: queue.SimpleQueue[tuple[Connection, Any]] = queue.SimpleQueue()
        file = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            json.dump({"hosts": self.hosts, "port": self.port, "key": self._key.hex()}, stream)
        self._socket.settimeout(1.0)
        self._open = True
        self._keeper = threading.Thread(target=self._let_in, name="door", daemon=True)
        self._keeper.start()

    def close(self) -> None:
        self._open = False
        self._keeper.join()
        self._socket.close()

    def _let_in(self) -> None:
        while self._open:
            with contextlib.suppress(OSError):
                guest, _ = self._socket.accept()
                threading.Thread(target=self._greet, args=(guest,), daemon=True).start()

    def _greet(self, guest: socket.socket) -> None:
        with guest, contextlib.suppress(OSError, EOFError):
            connection = _proven(guest, self._key, b"door", b"pilot")
            self.came.put((connection, connection.recv()))
            self._ring()


def knock(folder: Path, patience: float) -> Connection:
    """A way to the supervisor whose door is described in `folder`. Raises ConnectionError, which says the remedy."""
    told = json.loads((folder / NAME).read_text())
    deadline, said = time.monotonic() + patience, "nothing"
    while time.monotonic() < deadline:
        for host in told["hosts"]:
            try:
                with socket.create_connection((host, told["port"]), timeout=_KNOCKING) as made:
                    return _proven(made, bytes.fromhex(told["key"]), b"pilot", b"door")
            except (OSError, EOFError) as error:
                said = f"{host}: {error}"
        time.sleep(0.5)
    tried = ", ".join(told["hosts"])
    raise ConnectionError(
        f"{socket.gethostname()} can't reach the supervisor at port {told['port']} of {tried} (last, {said}). "
        "Set `host` of engine slurm to a name or address of the supervisor's machine that nodes can reach."
    )


def _proven(made: socket.socket, key: bytes, own: bytes, other: bytes) -> Connection:
    """A connection over `made`, once each side has shown that it has the key. Raises OSError."""
    made.settimeout(_GREETING)
    nonce = secrets.token_bytes(_NONCE)
    made.sendall(nonce)
    theirs = _exactly(made, _NONCE)
    made.sendall(hmac.digest(key, own + theirs, "sha256"))
    if not hmac.compare_digest(_exactly(made, 32), hmac.digest(key, other + nonce, "sha256")):
        raise ConnectionRefusedError("the other side does not have the key")
    made.settimeout(None)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a machine that is switched off says nothing
    return Connection(os.dup(made.fileno()))


def _exactly(made: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        if not (more := made.recv(count - len(got))):
            raise EOFError("closed in the middle of a greeting")
        got += more
    return got


def _own_names() -> Iterator[str]:
    """What nodes may know this machine by, the likeliest first."""
    yield socket.gethostname()
    yield socket.getfqdn()
    for addresses in psutil.net_if_addrs().values():
        yield from (one.address for one in addresses if one.family == socket.AF_INET and one.address != "127.0.0.1")
