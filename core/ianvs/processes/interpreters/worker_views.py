"""The views that a worker passes to its author's objects; it runs where nothing of ianvs is installed.

As in the worker, the code must run on Python 3.8, and numpy and torch are imported only when data are accessed.
"""

import json
import os


class ExamRuleError(Exception):
    """The same as in ianvs."""


class View:
    """Data that are available until the call ends. The other side counts passes and hides data."""

    def __init__(self, peer, number, count, over):
        self._peer, self._number, self._count, self._over = peer, number, count, over
        self._held = {}

    def __len__(self):
        return self._count

    def _column(self, name):
        self._require_open()
        if name not in self._held:
            body, held = self._peer.call("column", {"view": self._number, "name": name})
            self._held[name] = unpacked(held, body["is"])
        return self._held[name]

    def _counted(self, columns):
        self._require_open()
        self._peer.call("counted", {"view": self._number, "columns": columns})

    def _require_open(self):
        if self._held is None:
            raise ExamRuleError(self._over)

    def close(self):
        self._held = None

    @property
    def x(self):
        self._counted(["x"])
        return self._column("x")

    @property
    def y(self):
        self._counted(["y"])
        return self._column("y")

    @property
    def ids(self):
        self._counted(["ids"])
        return self._column("ids")

    def _tensor(self, name, device):
        import numpy
        import torch

        values = torch.from_numpy(numpy.ascontiguousarray(self._column(name))).to(device)
        if name == "y":
            return values if values.ndim == 3 or values.is_floating_point() else values.long()
        return values.permute(0, 3, 1, 2) if values.ndim == 4 else values

    def _batches(self, tensors, order, batch_size):
        for start in range(0, self._count, batch_size):
            self._require_open()
            rows = order[start : start + batch_size]
            batch = tuple(tensor[rows.to(tensor.device)] for tensor in tensors)
            yield batch if len(batch) > 1 else batch[0]


class TrainView(View):
    """See ianvs.plugins.contract.TrainData."""

    def tensors(self, device="cpu"):
        self._counted(["x", "y"])
        return self._tensor("x", device), self._tensor("y", device)

    def loader(self, batch_size, shuffle=True, generator=None, device="cpu"):
        import torch

        self._counted([])
        order = torch.randperm(self._count, generator=generator) if shuffle else torch.arange(self._count)
        return self._batches((self._tensor("x", device), self._tensor("y", device)), order, batch_size)


class TestView(View):
    """See ianvs.plugins.contract.TestData."""

    def tensors(self, device="cpu"):
        return self._tensor("x", device)

    def loader(self, batch_size, device="cpu"):
        import torch

        return self._batches((self._tensor("x", device),), torch.arange(self._count), batch_size)

    def __iter__(self):
        return iter(self.x)

    def __getitem__(self, index):
        return self.x[index]

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.asarray(self.x, dtype=dtype)


def unpacked(held, spec):
    """Unpack values packed by ianvs.processes.interpreters.wire."""
    import numpy

    if "json" in spec:
        array = numpy.empty(spec["count"], object)
        array[:] = json.loads(bytes(held[spec["at"] : spec["at"] + spec["json"]]))
        return array
    dtype, shape = numpy.dtype(spec["dtype"]), tuple(spec["shape"])
    if "file" not in spec:
        return numpy.ndarray(shape, dtype, held, spec["at"])
    array = numpy.memmap(spec["file"], dtype, "c", shape=shape)
    os.unlink(spec["file"])  # the memory map remains valid
    return array.view(numpy.ndarray)
