"""Files that are handed from process to process, and that nobody can change."""

import errno
import fcntl
import os
import socket
import sys
import threading

import numpy as np
import pytest

from ianvs.processes.sealing import shared_arrays
from ianvs.processes.sealing.peer import Message, Peer, RemoteError
from ianvs.processes.sealing.shared_arrays import ArrayWriter, brought, mapped, unpacked
from tests.errors import printed

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason=f"no sealed files on {sys.platform}")


def busy(times, monkeypatch):
    """The kernel says so many times that the file is in use."""
    real, said = fcntl.fcntl, []

    def add_seals(*given):
        if len(said) < times:
            said.append(given)
            raise OSError(errno.EBUSY, "Device or resource busy")
        return real(*given)

    monkeypatch.setattr(fcntl, "fcntl", add_seals)


def test_a_file_that_the_kernel_still_holds_is_sealed_a_little_later(monkeypatch):
    busy(3, monkeypatch)
    writer = ArrayWriter(100)
    spec = writer.array(np.arange(5))
    file = writer.sealed()
    with pytest.raises(PermissionError):
        os.pwrite(file, b"0", 0)
    assert unpacked(mapped(file), spec).tolist() == [0, 1, 2, 3, 4]


def test_a_file_that_can_never_be_sealed_is_told(monkeypatch):
    busy(10**9, monkeypatch)
    monkeypatch.setattr(shared_arrays, "_PATIENCE", 0.0)
    with pytest.raises(OSError, match="busy"):
        ArrayWriter(100).sealed()


@pytest.mark.parametrize(("count", "files"), [(3, 0), (1 << 14, 1)])
def test_few_bytes_pass_in_the_message_and_more_in_a_file(count, files):
    """What arrived is the receiver's to change."""
    ours, theirs = socket.socketpair()
    numbers, texts = np.arange(count), [None, "a\0b"]
    writer = ArrayWriter()
    specs = {"texts": writer.objects(texts), "none": writer.array(numbers[:0]), "numbers": writer.array(numbers)}
    caller = threading.Thread(target=lambda: Peer(theirs, lambda name, told: writer.told(specs)).serve())
    caller.start()
    with theirs, ours:
        reply = Peer(ours, lambda name, told: None).call("send")
        ours.shutdown(socket.SHUT_RDWR)
        caller.join()
    assert len(reply.files) == files
    memory = brought(reply)
    assert unpacked(memory, reply.body["texts"]) == texts
    assert len(unpacked(memory, reply.body["none"])) == 0
    found = unpacked(memory, reply.body["numbers"])
    np.testing.assert_array_equal(found, numbers)
    found[:] = 7


def test_a_message_may_hold_any_text():
    """Names of files may be no Unicode, and whoever calls has to get its error."""
    ours, theirs = socket.socketpair()

    def failing(name: str, told: Message) -> Message:
        if name == "fail":
            raise ValueError("caf\udce9")
        return told

    caller = threading.Thread(target=lambda: Peer(theirs, failing).serve())
    caller.start()
    with theirs, ours:
        peer = Peer(ours, failing)
        body = {"file": "caf\udce9", "numbers": [1.5, 2**70, None]}
        assert peer.call("echo", body).body == body
        with pytest.raises(RemoteError, match="caf\udce9"):
            peer.call("fail")
        ours.shutdown(socket.SHUT_RDWR)
        caller.join()


MAPPINGS = [
    {"boxes": np.arange(8.0).reshape(2, 4), "labels": np.array([3, 1])},
    {"boxes": np.empty((0, 4)), "labels": np.empty(0, np.int64)},
    {"boxes": np.full((1, 4), 0.5), "labels": np.array([7])},
]


def test_mappings_of_arrays_pass_as_numbers():
    writer = ArrayWriter()
    spec = writer.objects(MAPPINGS)
    file = writer.sealed()
    found = unpacked(mapped(file), spec)
    assert list(spec["ragged"]) == ["boxes", "labels"]
    assert [one.keys() for one in found] == [one.keys() for one in MAPPINGS]
    for one, sent in zip(found, MAPPINGS, strict=True):
        for name in sent:
            assert one[name].dtype == sent[name].dtype
            assert one[name].shape == sent[name].shape
            assert one[name].tolist() == sent[name].tolist()


@pytest.mark.parametrize(
    "starts", [[0, 2, 2, 4], [0, 3, 2, 3], [-1, 2, 2, 3], [0, 2, 3], [0, 3, 0, 3], [[0, 2, 2, 3]], []]
)
def test_rows_that_begin_elsewhere_are_refused(starts):
    """A learner may say anything: overlapping rows would take more memory here than it has."""
    writer = ArrayWriter()
    spec = writer.objects(MAPPINGS)
    rows, _ = spec["ragged"]["labels"]
    forged = {**spec, "ragged": {"labels": [rows, writer.array(np.array(starts, np.int64))]}}
    with pytest.raises(RemoteError) as caught:
        unpacked(mapped(writer.sealed()), forged)
    printed(str(caught.value))


def test_mappings_in_mappings_are_refused():
    writer = ArrayWriter()
    spec = writer.objects(MAPPINGS)
    with pytest.raises(RemoteError) as caught:
        unpacked(mapped(writer.sealed()), {"count": 3, "ragged": {"labels": [spec, spec]}})
    printed(str(caught.value))
