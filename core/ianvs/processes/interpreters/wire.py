"""The protocol between this process and a worker in another interpreter: calls in both directions, one at a time.

Values are JSON, so that messages can't run code. Arrays are bytes after the JSON; large ones are files that the
receiver maps and removes. The other end is ianvs.processes.interpreters.worker.
"""

import contextlib
import json
import os
import re
import socket
import struct
import tempfile
from bdb import BdbQuit
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json, to_json

from ianvs.base import errors
from ianvs.base.errors import IanvsError, author_place

_HEADER = struct.Struct("<QQ")  # sizes of the JSON and of the following bytes
_MAX_MESSAGE_BYTES = 1 << 28  # maximum size of a message
_FILE_THRESHOLD = 1 << 24  # arrays of this size are transferred as files
_PLAIN = re.compile(r"[<>|=]?[biuf][1248]")

Spec = Mapping[str, Any]
"""Position of values: numbers {"dtype", "shape", "at"} or {"dtype", "shape", "file"}; mappings of arrays
{"count", "ragged": {name: [all rows, where those of each mapping begin]}}; else {"json": bytes, "count", "at"}."""


class PeerClosedError(Exception):
    """The other process has ended or closed its end, maybe regularly."""


class RemoteError(Exception):
    """An error of an author's code that is not one of ours. kind: the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RemoteExit(SystemExit):
    """`sys.exit` of an author's code in another process, as text."""


class Message(NamedTuple):
    """A message. body: JSON values. held: the bytes after them."""

    body: Mapping[str, Any]
    held: bytes | bytearray = b""


Handler = Callable[[str, Message], Message | None]


class Peer:
    """One end of the connection.

    `handler` answers calls of the other end: it gets the name of the call and its content.
    """

    def __init__(self, end: socket.socket, handler: Handler) -> None:
        self._end, self._handler = end, handler

    def close(self) -> None:
        self._end.close()

    def call(self, name: str, body: Mapping[str, object] | None = None, held: bytes | bytearray = b"") -> Message:
        """Return the reply. Raises the error of the other process, or PeerClosedError if there is no reply."""
        self._send({"call": name, "with": body or {}}, held)
        while True:
            message, held = self._receive()
            if "call" in message:
                self._answer(message, held)
            elif "error" in message:
                raise _error(message["error"], message.get("message"))
            elif "reply" in message:
                return Message(_mapping(message["reply"]), held)

    def serve(self) -> None:
        """Serve calls of the other process until it ends, which raises PeerClosedError."""
        while True:
            self._answer(*self._receive())

    def _answer(self, message: Mapping[str, Any], held: bytearray) -> None:
        try:
            reply = self._handler(str(message["call"]), Message(_mapping(message.get("with")), held)) or Message({})
        except PeerClosedError:
            raise
        except Exception as error:
            self._send({"error": error_kind(error), "message": str(error)})
            return
        self._send({"reply": reply.body}, reply.held)

    def _send(self, message: Mapping[str, object], held: bytes | bytearray = b"") -> None:
        words = _written(message)
        try:
            self._end.sendall(b"".join((_HEADER.pack(len(words), len(held)), words, held)))
        except OSError as error:
            raise PeerClosedError from error

    def _receive(self) -> tuple[Mapping[str, Any], bytearray]:
        """Return the next message. Notes are passed to the handler."""
        while True:
            words, size = _HEADER.unpack(self._exactly(_HEADER.size))
            if words + size > _MAX_MESSAGE_BYTES:
                raise RemoteError("ProtocolError", f"a message of {words + size} bytes")
            body = self._exactly(words + size)
            try:
                message = _mapping(_read(body[:words]))
            except ValueError as error:
                raise RemoteError("ProtocolError", f"a message that is no JSON ({error})") from None
            if "note" not in message:
                return message, body[words:]
            self._handler(str(message["note"]), Message(_mapping(message.get("with"))))

    def _exactly(self, size: int) -> bytearray:
        body = bytearray(size)
        view, done = memoryview(body), 0
        while done < size:
            try:
                got = self._end.recv_into(view[done:])
            except OSError as error:
                raise PeerClosedError from error
            if not got:
                raise PeerClosedError
            done += got
        return body


def error_kind(error: Exception) -> str:
    """Return the name of the error's class, also if it was raised in another process."""
    return error.kind if isinstance(error, RemoteError) else type(error).__name__


def error_text(error: BaseException) -> str:
    """Return the message of an author's error, with the line of their file before it."""
    if isinstance(error, RemoteExit):
        return str(error)
    if isinstance(error, SystemExit):
        text = f"sys.exit({'' if error.code is None else repr(error.code)}) ends the process"
        return f"{author_place(error)}{text}"
    if isinstance(error, BdbQuit):
        return f"{author_place(error)}a debugger needs the terminal: `ianvs -f JOB --engine inline --limit 1`"
    is_ours = isinstance(error, IanvsError | RemoteError)
    return str(error) if is_ours else f"{author_place(error)}{error}"


def packed(values: NDArray[Any] | Sequence[Any], held: bytearray, *, files: bool = True) -> Spec:
    """Append `values` to `held`, and return their position. files: large arrays are put into files."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        return _packed_objects(values.tolist() if isinstance(values, np.ndarray) else values, held, files=files)
    spec = {"dtype": values.dtype.str, "shape": list(values.shape)}
    if files and values.nbytes > _FILE_THRESHOLD:
        handle, path = tempfile.mkstemp(prefix="array-")
        with os.fdopen(handle, "wb") as file:
            np.ascontiguousarray(values).tofile(file)
        return {**spec, "file": path}
    held += bytes(-len(held) % 64)
    at = len(held)
    held += values.tobytes()
    return {**spec, "at": at}


def _packed_objects(values: Sequence[Any], held: bytearray, *, files: bool) -> Spec:
    """Pack mappings of arrays with the same names: all arrays of one name are stored together as numbers."""
    first = values[0] if len(values) else None
    if isinstance(first, dict) and first and all(isinstance(each, np.ndarray) for each in first.values()):
        ragged = {}
        for name in first:
            rows = [mapping[name] for mapping in values]
            starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            ragged[name] = [packed(array, held, files=files) for array in (np.concatenate(rows), starts)]
        return {"count": len(values), "ragged": ragged}
    text = json.dumps(list(values)).encode()
    at = len(held)
    held += text
    return {"json": len(text), "count": len(values), "at": at}


def unpacked(held: bytes | bytearray | memoryview, spec: Spec, *, files: bool = True) -> NDArray[Any] | list[Any]:
    """Return the values at position `spec` in `held`. Raises RemoteError for an invalid one, since it is untrusted.

    files: whether it may name a file, which is read with the rights of this process.
    """
    memory = memoryview(held)
    try:
        if "ragged" in spec:
            return _unpacked_mappings(memory, spec, files)
        if "json" in spec:
            at = _whole(spec["at"])
            values = json.loads(bytes(memory[at : at + _whole(spec["json"])]))
            if not isinstance(values, list):
                raise ValueError("a list is needed")
            return values
        return _unpacked_numbers(memory, spec, files)
    except (KeyError, IndexError, TypeError, ValueError, OSError) as error:
        raise RemoteError("ProtocolError", f"an array that can't be read: {error}") from None


def _unpacked_mappings(memory: memoryview, spec: Spec, files: bool) -> list[dict[str, NDArray[Any]]]:
    columns = []
    for rows_spec, where in spec["ragged"].values():
        rows = _unpacked_numbers(memory, rows_spec, files)
        starts = _unpacked_numbers(memory, where, files).astype(np.int64)
        if len(starts) != _whole(spec["count"]) + 1 or (np.diff(starts, prepend=0, append=len(rows)) < 0).any():
            raise ValueError("rows that begin nowhere")
        columns.append([rows[start:end].copy() for start, end in pairwise(starts.tolist())])
    return [dict(zip(spec["ragged"], row, strict=True)) for row in zip(*columns, strict=True)]


def _unpacked_numbers(memory: memoryview, spec: Spec, files: bool) -> NDArray[Any]:
    shape = tuple(map(_whole, spec["shape"]))
    if not _PLAIN.fullmatch(spec["dtype"]):
        raise ValueError(f"dtype {spec['dtype']!r}")
    if "file" not in spec:
        return np.ndarray(shape, spec["dtype"], memory, _whole(spec["at"]))
    if not files:
        raise ValueError("it names a file")
    array = np.memmap(spec["file"], spec["dtype"], "c", shape=shape)
    with contextlib.suppress(OSError):
        Path(spec["file"]).unlink()  # the memory map remains valid
    return array.view(np.ndarray)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _written(message: Mapping[str, object]) -> bytes:
    """Return JSON by pydantic, five times as fast as json; json writes invalid Unicode, such as some file names."""
    try:
        return to_json(message)
    except ValueError:
        return json.dumps(message).encode()


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
    """Return the error that was raised, if it is one of ours whose class takes a string."""
    cls = getattr(errors, str(kind), None)
    if isinstance(cls, type) and issubclass(cls, IanvsError) and not issubclass(cls, errors.ConfigError):
        return cls(str(message))
    return RemoteError(str(kind), str(message))
