"""Files that are handed from process to process, and that nobody can change."""

import errno
import fcntl
import os
import sys

import numpy as np
import pytest

from ianvs.processes.sealing import shared_arrays
from ianvs.processes.sealing.shared_arrays import ArrayWriter, mapped, unpacked

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
