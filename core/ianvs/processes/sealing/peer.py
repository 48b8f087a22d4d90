"""Two processes that call each other in turn. Messages are JSON, so that nothing that arrives can run code.

A call may be answered by calls in the other direction before its reply comes: a learner that trains asks for data.
"""

import array
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from ianvs.base import errors
from ianvs.base.errors import IanvsError

_HEADER = struct.Struct("<QI")  # bytes of the words, and of what is held behind them
_MOST = 1 << 28  # bytes of a message
_MOST_FILES = 8
_FLAGS = int(socket.MSG_WAITALL | getattr(socket, "MSG_CMSG_CLOEXEC", 0))  # a number: an enum's `|` takes a microsecond


class Gone(Exception):  # noqa: N818 - what it says may be in good order
    """The other process has ended, or has closed its end."""


class RemoteError(Exception):
    """An error of the other process that is none of ours. kind: the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Message(NamedTuple):
    """body: JSON values. files: descriptors that came along; whoever gets them closes them. held: bytes that did, few
    enough to need no file."""

    body: Mapping[str, Any]
    files: tuple[int, ...] = ()
    held: bytes | bytearray = b""


Handler = Callable[[str, Message], Message | None]


class Caller:
    """Whoever answers calls: `ask` and `note` are its own. Raises the error that a call was answered with."""

    def ask(self, name: str, told: Message) -> Message:
        """The reply to a call."""
        raise NotImplementedError

    def note(self, name: str, body: Mapping[str, object]) -> None:
        """Say something that needs no reply."""
        raise NotImplementedError

    def call(self, name: str, body: Mapping[str, object] | None = None, files: Sequence[int] = ()) -> Message:
        """`ask`, of what needs no more than JSON values and files."""
        return self.ask(name, Message(body or {}, tuple(files)))


class Peer(Caller):
    """One end. `handler` answers the calls of the other: it is given the name of the call, and what came with it."""

    def __init__(self, end: socket.socket, handler: Handler) -> None:
        self._end, self._handler = end, handler

    def close(self) -> None:
        self._end.close()

    def ask(self, name: str, told: Message) -> Message:
        """The reply. Raises the error that the other process answered with, and Gone if it does not answer."""
        self._send({"call": name, "with": told.body}, told.files, told.held)
        while True:
            said, came, more = self._receive()
            if "call" in said:
                self._answer(said, came, more)
            elif "error" in said:
                raise _error(said["error"], said.get("message"))
            elif "reply" in said:
                return Message(_mapping(said["reply"]), came, more)

    def note(self, name: str, body: Mapping[str, object]) -> None:
        self._send({"note": name, "with": body})

    def serve(self) -> None:
        """Answer calls until the other end is closed."""
        with contextlib.suppress(Gone):
            while True:
                told, files, held = self._receive()
                if "call" in told:
                    self._answer(told, files, held)

    def answer(self) -> None:
        """Wait for one call, and answer it."""
        told, files, held = self._receive()
        self._answer({"call": "", **told}, files, held)

    def _answer(self, told: Mapping[str, Any], files: tuple[int, ...], held: bytearray) -> None:
        try:
            reply = self._handler(str(told["call"]), Message(_mapping(told.get("with")), files, held)) or Message({})
        except Gone:
            raise
        except Exception as error:
            kind = error.kind if isinstance(error, RemoteError) else type(error).__name__
            self._send({"error": kind, "message": str(error)})
            return
        self._send({"reply": reply.body}, reply.files, reply.held)
        for file in reply.files:
            os.close(file)

    def _send(self, told: Mapping[str, object], files: Sequence[int] = (), held: bytes | bytearray = b"") -> None:
        words = _written(told)
        whole = b"".join((_HEADER.pack(len(words), len(held)), words, held))  # each part would wake the other process
        try:
            done = socket.send_fds(self._end, [whole], files) if files else self._end.send(whole)
            if done < len(whole):
                self._end.sendall(memoryview(whole)[done:])
        except OSError as error:
            raise Gone from error

    def _receive(self) -> tuple[Mapping[str, Any], tuple[int, ...], bytearray]:
        """The next message, and what came along; a note is given to the handler."""
        while True:
            header, files = self._header()
            words, size = _HEADER.unpack(header)
            if words + size > _MOST:
                raise RemoteError("ProtocolError", f"a message of {words + size} bytes")
            body = self._exactly(words + size)
            try:
                told = _mapping(_read(body[:words]))
            except ValueError as error:
                raise RemoteError("ProtocolError", f"a message that is no JSON ({error})") from None
            if "note" not in told:
                return told, files, body[words:]
            self._handler(str(told["note"]), Message(_mapping(told.get("with")), files))

    def _header(self) -> tuple[bytes, tuple[int, ...]]:
        size = socket.CMSG_SPACE(_MOST_FILES * array.array("i").itemsize)
        try:
            header, extra, _, _ = self._end.recvmsg(_HEADER.size, size, _FLAGS)
        except OSError as error:
            raise Gone from error
        if len(header) < _HEADER.size:
            raise Gone
        if not extra:
            return header, ()
        files = array.array("i")
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(data[: len(data) - len(data) % files.itemsize])
        return header, tuple(files)

    def _exactly(self, size: int) -> bytearray:
        body = bytearray(size)
        view, done = memoryview(body), 0
        while done < size:
            try:
                got = self._end.recv_into(view[done:])
            except OSError as error:
                raise Gone from error
            if not got:
                raise Gone
            done += got
        return body


def _written(told: Mapping[str, object]) -> bytes:
    """As JSON, by pydantic in a fifth of json's time; json writes what is no Unicode, such as some names of files."""
    try:
        return to_json(told)
    except ValueError:
        return json.dumps(told).encode()


def _read(words: bytearray) -> object:
    try:
        return from_json(words)
    except ValueError:
        return json.loads(words.decode())


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RemoteError("ProtocolError", f"a message holds {type(value).__name__} in place of an object")
    return value


def _error(kind: object, message: object) -> Exception:
    """As it was raised, where it is one of ours; a class that takes a text."""
    found = getattr(errors, str(kind), None)
    if isinstance(found, type) and issubclass(found, IanvsError) and not issubclass(found, errors.ConfigError):
        return found(str(message))
    return RemoteError(str(kind), str(message))
