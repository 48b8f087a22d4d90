"""Tensors whose rows are decoded when they are read."""

import copy
import io

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from ianvs.authoring.round_data import gather
from ianvs.exam.scenarios import lazy_rows
from ianvs.exam.scenarios.lazy_rows import LazyRows
from tests.errors import errors_of

PICTURES = np.random.default_rng(0).integers(0, 256, (50, 4, 6, 3), np.uint8)


class Source:
    """Counts the rows that are read."""

    lazy, workers, opens_by_path = True, 1, False

    def __init__(self):
        self.shape, self.dtype, self.nbytes, self.count = PICTURES.shape, PICTURES.dtype, PICTURES.nbytes, 0

    def __len__(self):
        return len(PICTURES)

    def gather(self, rows=None):
        rows = np.arange(len(self)) if rows is None else rows
        self.count += len(rows)
        return PICTURES[rows]

    read = gather

    def take(self, rows):
        """Some of the rows; what is read of them is counted here."""
        part, whole = Source(), self
        part.shape, part.gather = (
            (len(rows), *self.shape[1:]),
            lambda some=None: whole.gather(rows if some is None else rows[some]),
        )
        return part

    def close(self): ...


@pytest.fixture
def pair(monkeypatch):
    """(where rows come from, a lazy tensor in PyTorch's order of axes, the same in memory)"""
    monkeypatch.setattr(lazy_rows, "_SMALL", 0)
    source = Source()
    return source, LazyRows(source).permute(0, 3, 1, 2), torch.from_numpy(PICTURES).permute(0, 3, 1, 2)


WAYS = {
    "index_select": lambda x: gather(x, torch.tensor([3, 1, 49])),
    "index": lambda x: x[torch.tensor([3, -1])],
    "booleans": lambda x: x[torch.arange(50) % 7 == 0],
    "one": lambda x: x[-3],
    "parts": lambda x: torch.split(x, 20)[2][1:3],
    "steps": lambda x: x[40::3].permute(0, 2, 3, 1)[1],
    "loader": lambda x: next(iter(DataLoader(TensorDataset(x, torch.arange(50)), 5)))[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("within", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_rows_are_those_of_a_tensor_in_memory_and_no_others_are_read(pair, way, within):
    source, lazy, held = pair
    assert isinstance(lazy, LazyRows)
    assert lazy.is_contiguous(memory_format=torch.channels_last)
    with within():
        found = WAYS[way](lazy)
    assert torch.equal(found, WAYS[way](held))
    assert 0 < source.count < 10


ALL = {
    "mean": lambda x: x.float().mean((0, 2, 3)),
    "cat": lambda x: torch.cat([x, x[:2]]),
    "clone": lambda x: x.clone(),
    "numpy": lambda x: torch.from_numpy(np.asarray(x)),
    "copy": copy.deepcopy,
    "view": lambda x: x.flatten(1),
    "iteration": lambda x: torch.stack(list(x)),
}


@pytest.mark.parametrize("way", ALL)
def test_whatever_else_is_done_is_done_with_all_rows(pair, way):
    _, lazy, held = pair
    assert torch.equal(ALL[way](lazy), ALL[way](held))


def test_what_is_saved_are_the_rows(pair):
    _, lazy, held = pair
    file = io.BytesIO()
    torch.save(lazy, file)
    file.seek(0)
    assert torch.equal(torch.load(file), held)


def test_a_change_in_place_is_refused_with_a_remedy(pair):
    assert errors_of(pair[1].add_, 1) == [("broken-rule", "")]


def test_a_small_part_is_decoded_at_once_so_that_it_can_be_kept(pair, monkeypatch):
    source, lazy, _ = pair
    monkeypatch.setattr(lazy_rows, "_SMALL", 10_000)
    assert not isinstance(lazy[:5], LazyRows)
    assert source.count == 5
