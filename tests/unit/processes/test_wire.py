"""Messages and arrays between this process and a worker in another interpreter."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ianvs.processes.interpreters import wire, worker
from ianvs.processes.interpreters.wire import Message, Peer, RemoteError, packed, unpacked
from tests.errors import printed

Answer = Callable[[str, Any], tuple[Any, bytes | bytearray]]


@contextlib.contextmanager
def connected(answer: Answer) -> Iterator[Peer]:
    """One end, whose calls a worker's end in another thread answers."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with contextlib.suppress(EOFError):
            worker.Peer(theirs, answer).serve()

    server = threading.Thread(target=serve)
    server.start()
    with theirs, ours:
        yield Peer(ours, lambda name, message: None)
        ours.shutdown(socket.SHUT_RDWR)
        server.join()


@pytest.mark.parametrize(("count", "files"), [(3, 0), (1 << 14, 1)])
def test_few_bytes_pass_in_the_message_and_more_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, files: int
) -> None:
    """What arrived is the receiver's to change, and no file is left."""
    monkeypatch.setattr(wire, "_FILE_THRESHOLD", 1 << 10)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    numbers, texts, held = np.arange(count), [None, "a\0b"], bytearray()
    specs = {"texts": packed(texts, held), "none": packed(numbers[:0], held), "numbers": packed(numbers, held)}
    assert len(list(tmp_path.iterdir())) == files
    with connected(lambda name, body: (specs, held)) as peer:
        reply = peer.call("send")
    assert unpacked(reply.held, reply.body["texts"]) == texts
    assert len(unpacked(reply.held, reply.body["none"])) == 0
    received: Any = unpacked(reply.held, reply.body["numbers"])
    np.testing.assert_array_equal(received, numbers)
    received[:] = 7
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("within", ["numbers", "rows"])
def test_a_sandbox_can_not_have_a_file_read(tmp_path: Path, within: str) -> None:
    """A spec comes from whoever is examined, and a file is read with the rights of the case."""
    (tmp_path / "truth").write_bytes(np.arange(3).tobytes())
    spec: Any = {"dtype": "<i8", "shape": [3], "file": str(tmp_path / "truth")}
    if within == "rows":
        spec = {"count": 1, "ragged": {"boxes": [spec, spec]}}
    with pytest.raises(RemoteError):
        unpacked(b"", spec, files=False)
    assert (tmp_path / "truth").exists()


def test_a_message_may_hold_any_text() -> None:
    """Names of files may be no Unicode, and whoever calls has to get its error."""

    def failing(name: str, body: Any) -> tuple[Any, bytes]:
        if name == "fail":
            raise ValueError("caf\udce9")
        return body, b""

    with connected(failing) as peer:
        body = {"file": "caf\udce9", "numbers": [1.5, 2**70, None]}
        assert peer.call("echo", body) == Message(body, b"")
        with pytest.raises(RemoteError, match="caf\udce9"):
            peer.call("fail")


MAPPINGS = [
    {"boxes": np.arange(8.0).reshape(2, 4), "labels": np.array([3, 1])},
    {"boxes": np.empty((0, 4)), "labels": np.empty(0, np.int64)},
    {"boxes": np.full((1, 4), 0.5), "labels": np.array([7])},
]


def test_mappings_of_arrays_pass_as_numbers() -> None:
    held = bytearray()
    spec = packed(MAPPINGS, held)
    received: Any = unpacked(held, spec)
    assert list(spec["ragged"]) == ["boxes", "labels"]
    assert [one.keys() for one in received] == [one.keys() for one in MAPPINGS]
    for one, sent in zip(received, MAPPINGS, strict=True):
        for name in sent:
            assert one[name].dtype == sent[name].dtype
            assert one[name].shape == sent[name].shape
            assert one[name].tolist() == sent[name].tolist()


@pytest.mark.parametrize(
    "starts", [[0, 2, 2, 4], [0, 3, 2, 3], [-1, 2, 2, 3], [0, 2, 3], [0, 3, 0, 3], [[0, 2, 2, 3]], []]
)
def test_rows_that_begin_elsewhere_are_refused(starts: Any) -> None:
    """A worker may send anything: overlapping rows would take more memory here than it has."""
    held = bytearray()
    spec = packed(MAPPINGS, held)
    rows, _ = spec["ragged"]["labels"]
    forged = {**spec, "ragged": {"labels": [rows, packed(np.array(starts, np.int64), held)]}}
    with pytest.raises(RemoteError) as caught:
        unpacked(held, forged)
    printed(str(caught.value))


def test_mappings_in_mappings_are_refused() -> None:
    held = bytearray()
    spec = packed(MAPPINGS, held)
    with pytest.raises(RemoteError) as caught:
        unpacked(held, {"count": 3, "ragged": {"labels": [spec, spec]}})
    printed(str(caught.value))
