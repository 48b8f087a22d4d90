"""Sizes of a plugin's `memory`: containers of arrays and tensors, and a note where a size is unknown."""

from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from ianvs.processes.interpreters.author_object import _Memory
from ianvs.running.session.measure import memory_sizes

ROW = np.zeros((8, 8), np.float32)  # 256 bytes


def measured(memory: object) -> tuple[int | None, int | None, str]:
    return memory_sizes([SimpleNamespace(memory=memory)])


@pytest.mark.parametrize(
    ("memory", "samples", "size"),
    [
        ([ROW.copy(), ROW.copy()], 2, 512),
        ([ROW] * 3, 3, 256),  # one array
        ((), 0, 0),
        (deque([(ROW.copy(), 3), (ROW.copy(), 4)], maxlen=5), 2, 2 * 264),
        ({"cat": [ROW.copy()], "dog": (ROW.copy(), None)}, 2, 512),
        ([("a question", "an ansẅer", b"12")], 1, 10 + 11 + 2),
        (ROW, 8, 256),
        (SimpleNamespace(), None, None),
        (None, None, None),
        (range(7), 7, None),  # the samples are elsewhere
        ({0: np.zeros((4, 8, 8), np.float32), 1: np.zeros((2, 8, 8), np.float32)}, 6, 6 * 256),  # exemplars by class
        ({0: np.zeros((4, 5), np.float32), 1: np.zeros((0, 5), np.float32)}, 4, 80),
        ({"cat": [ROW.copy(), ROW.copy()], "dog": [ROW.copy()]}, 3, 768),
        ({7: np.zeros(5, np.float32), 9: np.zeros(5, np.float32)}, 2, 40),  # a sample each
        ({"x": np.zeros((4, 5), np.float32), "y": np.zeros(4, np.int64)}, 4, 112),  # fields of the same four samples
    ],
)
def test_a_memory_counts_with_all_that_it_holds(memory, samples, size):
    assert measured(memory) == (samples, size, "")


def test_tensors_count():
    torch = pytest.importorskip("torch")
    assert measured([(torch.zeros(4), torch.tensor(1))]) == (1, 24, "")


def test_what_has_no_known_size_is_named():
    class Image:
        pass

    assert measured([ROW, Image()]) == (
        2,
        None,
        "Memory_bytes is blank: `memory` holds objects of type Image; give it a property `nbytes`",
    )


def test_the_memory_of_a_plugin_in_another_interpreter():
    assert measured(_Memory(3, 24, "")) == (3, 24, "")
    assert measured(_Memory(3, None, "a Image"))[2].startswith("Memory_bytes is blank: `memory` holds a Image;")
    plugins = [SimpleNamespace(memory=_Memory(3, None, "a Image")), SimpleNamespace(memory=[ROW])]
    assert memory_sizes(plugins)[:2] == (4, None)


def test_a_store_that_is_not_called_memory_is_named():
    held = SimpleNamespace(replay_buffer=[ROW])
    samples, size, note = memory_sizes([held])
    assert (samples, size) == (None, None)
    assert "SimpleNamespace has `replay_buffer`; write `self.memory = self.replay_buffer`" in note
    assert memory_sizes([SimpleNamespace(buffer=[])])[2] == ""  # empty
    assert memory_sizes([SimpleNamespace(buffer=200)])[2] == ""  # a number
    assert memory_sizes([held, SimpleNamespace(memory=[])])[2] == ""
