"""Connections of pilots to a port of the supervisor's machine.

Both sides prove that they have a key, which is in a file that only its owner can read. Later messages are pickled and
not encrypted.
"""

import contextlib
import hmac
import json
import os
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

NAME = "pilot_server.json"
_HANDSHAKE_SECONDS = 10.0  # seconds for the handshake
_CONNECT_SECONDS = 5.0  # seconds for connecting to one address
_BYTES = 32  # of a key, a nonce, and a proof


class PilotListener(socketserver.ThreadingTCPServer):
    """Accepts pilots. `welcome` gets each connection and the pilot's first message, in a thread of its own."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path, host: str | None, welcome: Callable[[Connection, Any], None]) -> None:
        """host: name or address of this machine for the nodes. A connection is closed after `welcome` returns."""
        super().__init__(("", 0), socketserver.BaseRequestHandler)
        self._welcome, self._key = welcome, secrets.token_bytes(_BYTES)
        self.port: int = self.server_address[1]
        self.hosts = [host] if host else list(dict.fromkeys(_own_names()))
        file = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            json.dump({"hosts": self.hosts, "port": self.port, "key": self._key.hex()}, stream)
        threading.Thread(target=self.serve_forever, name="pilot-server", daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: object) -> None:
        with contextlib.suppress(OSError, EOFError), _authenticated(request, self._key, b"server", b"pilot") as guest:
            self._welcome(guest, guest.recv())


def connect_to_supervisor(folder: Path, patience: float) -> Connection:
    """Connect to the supervisor described in `folder`. Raises ConnectionError with a remedy."""
    address = json.loads((folder / NAME).read_text())
    deadline, last_error = time.monotonic() + patience, "nothing"
    while time.monotonic() < deadline:
        for host in address["hosts"]:
            try:
                with socket.create_connection((host, address["port"]), timeout=_CONNECT_SECONDS) as made:
                    return _authenticated(made, bytes.fromhex(address["key"]), b"pilot", b"server")
            except (OSError, EOFError) as error:
                last_error = f"{host}: {error}"
        time.sleep(0.5)
    tried = ", ".join(address["hosts"])
    raise ConnectionError(
        f"{socket.gethostname()} can't reach the supervisor at port {address['port']} of {tried} (last, {last_error}). "
        "Set `host` of engine slurm to a name or address of the supervisor's machine that nodes can reach."
    )


def _authenticated(made: socket.socket, key: bytes, role: bytes, other: bytes) -> Connection:
    """Return a connection over `made` after mutual authentication by the key. Raises OSError, EOFError."""
    made.settimeout(None)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a machine that was switched off
    connection, nonce = Connection(os.dup(made.fileno())), secrets.token_bytes(_BYTES)
    connection.send_bytes(nonce)
    connection.send_bytes(hmac.digest(key, role + _receive_bytes(connection), "sha256"))
    if not hmac.compare_digest(_receive_bytes(connection), hmac.digest(key, other + nonce, "sha256")):
        raise ConnectionRefusedError("the other side does not have the key")
    return connection


def _receive_bytes(connection: Connection) -> bytes:
    if not connection.poll(_HANDSHAKE_SECONDS):
        raise TimeoutError("no message during the handshake")
    return connection.recv_bytes(_BYTES)


def _own_names() -> Iterator[str]:
    """Yield names and addresses of this machine, the most likely first."""
    yield socket.gethostname()
    yield socket.getfqdn()
    for addresses in psutil.net_if_addrs().values():
        yield from (nic.address for nic in addresses if nic.family == socket.AF_INET and nic.address != "127.0.0.1")
