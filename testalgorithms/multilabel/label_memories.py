"""Memories that steer the share of each label towards a target: p_c = n_c^rho / sum n^rho, n_c labels seen so far."""

import torch

from ianvs.authoring.memory import Memory
from ianvs.base.errors import PluginError


def target_shares(counts, rho):
    """Return the shares p for counts (C,): 0 for classes never seen.

    Rho 0 is uniform, rho 1 the shares of the stream.
    """
    powers = torch.where(counts > 0, counts.double().clamp(min=1) ** rho, 0.0)
    return powers / powers.sum().clamp(min=1e-300)


def closest_to(target, labels, capacity):
    """Return ascending positions of `capacity` rows of labels (M, C), after removing others one by one as in OCDM.

    Each removal minimises KL(target || shares of the labels in the rest); of equally good rows the first is removed. If
    a removal, or an earlier one, leaves nothing of a class, the smallest part of the target is lost first, and then KL
    is that over the classes left.
    """
    labels = labels.double()
    left, sizes, counts = torch.ones(len(labels), dtype=torch.bool), labels.sum(1), labels.sum(0)
    for _ in range(len(labels) - capacity):
        # For all rows at once: KL without row i is linear in its labels, apart from the term of its size. Where
        # n_c = 1, the class is lost with the row, and its terms go with it.
        last = torch.where(counts == 1, target, 0.0)
        per_label = torch.where(
            counts > 1, target * (counts.log() - (counts - 1).log()), -torch.special.xlogy(last, last)
        )
        lost = labels @ last
        covered = target[counts > 0].sum() - lost
        divergence = labels @ per_label + covered * (counts.sum() - sizes).clamp(min=1).log()
        goes = _first_least(divergence, left & _least(lost, left))
        left[goes] = False
        counts = counts - labels[goes]
    return left.nonzero()[:, 0]


def _least(values, among):
    """Return which values (M,) are the least `among` (M,), up to rounding: equal rows may differ in the last bits."""
    return among & (values <= values[among].min() + 1e-12)


def _first_least(values, among):
    return int(_least(values, among).nonzero()[0, 0])


class _LabelMemory(Memory):
    """A memory of samples with several labels: y (len, C) of 0 and 1."""

    def __init__(self, capacity, rho=0.0):
        super().__init__(capacity)
        self.rho, self.counts = rho, None  # counts: (C,) labels seen so far

    def add(self, x, y, generator, *more):
        """Offer samples x (N, ...), or their ids, with labels y (N, C) and further columns.

        `generator` is on the CPU.
        """
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        if y.ndim != 2:
            raise PluginError(
                f"this memory is for labels (N, C) of 0 and 1; these have the shape {tuple(y.shape)}.",
                code="refused-arguments",
            )
        if self.counts is None:
            self.counts = torch.zeros(y.shape[1], dtype=torch.int64)
        labels = torch.cat([self.y, y]).cpu() if len(self) else y.cpu()
        self.seen += len(y)
        self._keep(self.chosen(labels, len(self), generator), (x, y, *more))

    def state(self):
        return {**super().state(), "counts": self.counts}

    def restore(self, state):
        super().restore(state)
        self.counts = state["counts"]


class DistributionMatchingMemory(_LabelMemory):
    """Of old and new samples, those whose shares of labels are closest to the target (OCDM; Liang and Li 2022).

    rho: 0 for equal shares, as in the paper, 1 for those of the stream.
    """

    def chosen(self, labels, before, generator=None):
        """Return ascending positions to keep among labels (M, C); those from `before` on are new."""
        self.counts = self.counts + labels[before:].sum(0)
        return closest_to(target_shares(self.counts, self.rho), labels, self.capacity)


class PartitioningReservoirMemory(_LabelMemory):
    """Partitioning reservoir sampling (PRS; Kim et al. 2020), with the weights of its authors' code.

    While there is room, every sample stays. Afterwards it is accepted with probability sum_c w_c min(1, m p_c / n_c)
    over its labels c, w the softmax of -n_c, m the capacity. The one that makes room has a label drawn by the
    softmax of delta_c, the stored labels c beyond p_c of all stored labels; of those samples, it lacks the most
    labels with delta <= 0, and leaves the least sum |delta|. A sample without labels is never accepted.

    rho: -0.03 on COCOseq in the authors' code.
    """

    def chosen(self, labels, before, generator):
        """Return ascending positions to keep among labels (M, C); those from `before` on are new."""
        wide, rows = labels.double(), torch.arange(before)
        for new in range(before, len(labels)):
            if len(rows) < self.capacity:
                rows = torch.cat([rows, torch.tensor([new])])
            elif len(rows) and self.accepts(labels[new], generator):
                rows[self.leaves(wide[rows], generator)] = new
            self.counts = self.counts + labels[new]
        return rows.sort().values

    def accepts(self, label, generator):
        """Draw whether a sample with labels (C,) enters the full memory."""
        n = self.counts[label > 0].double()
        m = self.capacity * target_shares(self.counts, self.rho)[label > 0]
        probability = (torch.softmax(-n, 0) * torch.where(n > m, m / n, 1.0)).sum()
        return bool(torch.rand((), generator=generator, dtype=torch.float64) < probability)

    def leaves(self, labels, generator):
        """Return the position of the stored sample to remove, given labels (M, C)."""
        counts, target = labels.sum(0), target_shares(self.counts, self.rho)
        if not counts.any():
            return int(torch.randint(len(labels), (1,), generator=generator))
        delta = counts - target * counts.sum()
        weights = torch.softmax(delta.masked_fill(counts == 0, -torch.inf), 0)
        drawn = labels[:, torch.multinomial(weights, 1, generator=generator)[0]] > 0
        lacking = (1 - labels) @ (delta <= 0).double()
        rest = counts.sum() - labels.sum(1, keepdim=True)
        return _first_least((counts - labels - target * rest).abs().sum(1), _least(-lacking, drawn))
