"""Memories of old samples with a limited size."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ianvs.authoring.round_data import gather, to_device
from ianvs.base.errors import PluginError, closest

State = dict[str, Any]
"""State of a method or a memory for `torch.save`: tensors, numbers, strings, and lists or dicts of these, by name."""


def _rows(columns: Iterable[Tensor], index: Tensor) -> tuple[Tensor, ...]:
    return tuple(gather(column, to_device(index, column.device)) for column in columns)


class Memory:
    """At most `capacity` samples with their data, in the order of arrival. Subclasses decide which ones stay.

    A method may add further columns.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise PluginError(
                f"the capacity of a memory is a number of samples, 0 or more; it can't be {capacity}.",
                code="out-of-range",
            )
        self.capacity = int(capacity)
        self.seen = 0  # samples that were ever added
        self.columns: tuple[Tensor, ...] = ()  # x, y and further columns

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def x(self) -> Tensor:
        """(len, ...) stored samples, as they were added."""
        return self.columns[0] if self.columns else torch.empty(0)

    @property
    def y(self) -> Tensor:
        """(len,) their labels."""
        return self.columns[1] if self.columns else torch.empty(0, dtype=torch.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is stored about the samples."""
        return sum(column.nbytes for column in self.columns)

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Return (x, y, ...) of min(n, len) distinct samples, drawn uniformly."""
        return self.at(torch.randperm(len(self), generator=generator)[:n])

    def at(self, index: Tensor) -> tuple[Tensor, ...]:
        """Return (x, y, ...) of the samples at the positions `index` (n,)."""
        return _rows(self.columns, index)

    def state(self) -> State:
        """Return everything that it stores, for `torch.save`."""
        return {"seen": self.seen, "columns": list(self.columns)}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        self.seen, self.columns = state["seen"], tuple(state["columns"])

    def _keep(self, chosen: Tensor, columns: tuple[Tensor, ...]) -> None:
        """Keep the `chosen` of old and new samples: increasing positions, where new ones follow the old ones."""
        before = len(self)
        old, new = chosen[chosen < before], chosen[chosen >= before] - before
        if self.columns and not len(new) and len(old) == before:
            return  # nothing changes, so nothing is copied
        chosen_columns = _rows(columns, new)
        if self.columns:
            pairs = zip(self.columns, chosen_columns, strict=True)
            chosen_columns = tuple(
                torch.cat([to_device(gather(a, to_device(old, a.device)), b.device), b]) for a, b in pairs
            )
        self.columns = chosen_columns


class ReservoirMemory(Memory):
    """At any time a uniform random subset of all samples ever added.

    Each sample draws one uniform key when it arrives, and those with the largest keys stay. This is equivalent to
    reservoir sampling (Vitter 1985, algorithm R), and works for a whole round at once.

    Args:
        capacity: Number of samples.
        in_place: New samples overwrite those that leave. That is fast for a few samples at a time, but the order of
            arrival is lost.
    """

    def __init__(self, capacity: int, *, in_place: bool = False) -> None:
        super().__init__(capacity)
        self.in_place = in_place
        self._keys = torch.empty(0, dtype=torch.float64)
        self._least: float | None = None  # smallest key; None: not computed yet

    def add(
        self, x: Tensor | NDArray[Any], y: Tensor | NDArray[Any], generator: torch.Generator, *more: Tensor
    ) -> None:
        """Offer samples.

        Args:
            x: (N, ...) samples.
            y: (N,) labels.
            generator: Draws the keys, on the CPU.
            *more: (N, ...) further columns.
        """
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        self.seen += len(y)
        drawn = torch.rand(len(y), dtype=torch.float64, generator=generator)
        if self._none_stays(drawn):
            return
        self._least = None
        keys = torch.cat([self._keys, drawn])
        chosen = keys.topk(min(self.capacity, len(keys))).indices.sort().values
        if self.in_place and self.columns and len(self) == self.capacity:
            self._replace(chosen, keys, (x, y, *more))
            return
        self._keep(chosen, (x, y, *more))
        self._keys = keys[chosen]

    def _none_stays(self, drawn: Tensor) -> bool:
        """Return whether no new key is large enough. This quick check is mostly true late in a stream."""
        if not len(self) or len(self) < self.capacity or not len(drawn):
            return False
        if self._least is None:
            self._least = float(self._keys.min())
        return float(drawn.max()) < self._least

    def _replace(self, chosen: Tensor, keys: Tensor, columns: tuple[Tensor, ...]) -> None:
        """Keep the `chosen` of old and new samples; new ones overwrite the old ones that leave."""
        before = len(self)
        come = chosen[chosen >= before]
        goes = torch.ones(before, dtype=torch.bool)
        goes[chosen[chosen < before]] = False
        places = goes.nonzero()[:, 0]
        for stored, column in zip(self.columns, columns, strict=True):
            new = to_device(gather(column, to_device(come - before, column.device)), stored.device)
            stored.index_copy_(0, to_device(places, stored.device), new)
        self._keys[places] = keys[come]

    def state(self) -> State:
        """Return everything that it stores, for `torch.save`."""
        return {**super().state(), "keys": self._keys}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        super().restore(state)
        self._keys, self._least = state["keys"], None


class PerRoundMemory:
    """At most `samples_per_round` samples of each round, a uniform random subset (GEM)."""

    def __init__(self, samples_per_round: int) -> None:
        ReservoirMemory(samples_per_round)  # raises for an invalid number of samples
        self.samples_per_round = int(samples_per_round)
        self.parts: list[ReservoirMemory] = []  # one per round

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def nbytes(self) -> int:
        """Bytes of the stored samples and labels."""
        return sum(part.nbytes for part in self.parts)

    def add(self, x: Tensor, y: Tensor, generator: torch.Generator, *more: Tensor) -> None:
        """Choose from samples x (N, ...), labels y (N,) and further columns of one round; `generator` is on the CPU."""
        part = ReservoirMemory(self.samples_per_round)
        part.add(x, y, generator, *more)
        self.parts.append(part)

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Return (x, y, ...) of min(n, len) distinct samples of all rounds, drawn uniformly."""
        return self.at(torch.randperm(len(self), generator=generator)[:n])

    def at(self, index: Tensor) -> tuple[Tensor, ...]:
        """Return (x, y, ...) of the samples at the positions `index` (n,), counted over all rounds."""
        return _rows(map(torch.cat, zip(*(part.columns for part in self.parts), strict=True)), index)

    def state(self) -> list[State]:
        """Return everything that it stores, for `torch.save`."""
        return [part.state() for part in self.parts]

    def restore(self, state: list[State]) -> None:
        """Restore what `state` returned."""
        self.parts = [ReservoirMemory(self.samples_per_round) for _ in state]
        for part, part_state in zip(self.parts, state, strict=True):
            part.restore(part_state)


FORMULAS = ("alpha_over_n", "constant")


class PerClassMemory(Memory):
    """A memory that shares its room among classes.

    Args:
        capacity: Samples of all classes together.
        per_class: Samples of each class instead, so that the memory grows with the classes; None: `capacity` counts.
    """

    def __init__(self, capacity: int, per_class: int | None = None) -> None:
        super().__init__(capacity)
        if per_class is not None and per_class < 1:
            raise PluginError(
                f"memory_per_class is a number of samples, 1 or more; it can't be {per_class}.", code="out-of-range"
            )
        self.per_class = per_class

    def share(self, classes: int) -> float:
        """Return how many samples of each class are stored for this number of classes."""
        return self.capacity / max(1, classes) if self.per_class is None else float(self.per_class)


class ClassBalancedMemory(PerClassMemory):
    """As many samples of each class as possible, greedily (GDumb; Prabhu et al. 2020, algorithm 1).

    A sample is stored if its class is new or has fewer than capacity / (number of classes so far); when the memory is
    full, a random sample of the largest class makes room. With `per_class`, the first samples of each class stay.
    """

    def add(self, x: Tensor, y: Tensor, generator: torch.Generator, *more: Tensor) -> None:
        """Offer samples x (N, ...), labels y (N,) and further columns, one by one; `generator` is on the CPU."""
        slots: dict[int, list[int]] = {}  # class -> positions of its samples, new ones counted on after the old ones
        for position, label in enumerate(self.y.tolist()):
            slots.setdefault(label, []).append(position)
        stored, before = len(self), len(self)
        for position, label in enumerate(y.tolist(), start=before):
            class_positions = slots.setdefault(label, [])
            if self.per_class is not None:
                if len(class_positions) < self.per_class:
                    class_positions.append(position)
                continue
            if self.capacity == 0 or len(class_positions) * len(slots) >= max(self.capacity, len(slots)):
                continue  # the class has its share; a new class always gets one
            if stored == self.capacity:
                most = max(slots.values(), key=len)
                most.pop(int(torch.randint(len(most), (1,), generator=generator)))
            else:
                stored += 1
            class_positions.append(position)
        self.seen += len(y)
        self._keep(
            torch.tensor(sorted(p for class_positions in slots.values() for p in class_positions), dtype=torch.int64),
            (x, y, *more),
        )


class BiasedReservoirMemory(Memory):
    """A reservoir that favours recent buckets of data (CLEAR; Lin et al. 2021).

    The first bucket fills it. Of bucket i >= 1 (counted from 0), each sample is accepted with probability p. Accepted
    samples replace old ones, which are drawn uniformly. A bucket larger than the memory is first cut to its size, at
    random. While there is room, every sample is stored.

    With buckets of the memory's size, "alpha_over_n" with alpha 1 gives every bucket the same expected share, and
    "constant" with alpha 1 keeps only the newest bucket.

    Args:
        capacity: Number of samples.
        formula: "alpha_over_n": p = alpha / (i + 1). "constant": p = alpha. p is at most 1.
        alpha: Scale of p.
    """

    def __init__(self, capacity: int, formula: str = "alpha_over_n", alpha: float = 1.0) -> None:
        super().__init__(capacity)
        if formula not in FORMULAS:
            hint = closest(formula, FORMULAS)
            raise PluginError(
                f"formula '{formula}' of a biased reservoir is not known.{hint} {' or '.join(FORMULAS)}.",
                code="invalid-choice",
            )
        if alpha < 0:
            raise PluginError(f"alpha of a biased reservoir can't be negative, but is {alpha:g}.", code="out-of-range")
        self.formula, self.alpha = formula, alpha
        self.buckets = 0

    @property
    def probability(self) -> float:
        """The probability p for samples of the next bucket, if the memory is full."""
        return min(1.0, self.alpha / (self.buckets + 1) if self.formula == "alpha_over_n" else self.alpha)

    def add(self, x: Tensor, y: Tensor, generator: torch.Generator) -> None:
        """Offer a bucket of samples x (N, ...) with labels y (N,); `generator` is on the CPU."""
        before = len(self)
        offered = torch.randperm(len(y), generator=generator)[: self.capacity]
        room = min(self.capacity - before, len(offered))
        stored, candidates = offered[:room], offered[room:]
        accepted = candidates[torch.rand(len(candidates), generator=generator, dtype=torch.float64) < self.probability]
        # New samples replace only old ones, not samples of their own bucket; if those are too few, the rest is dropped.
        accepted = accepted[:before]
        old = torch.randperm(before, generator=generator)[len(accepted) :]
        self._keep(torch.cat([old, before + stored, before + accepted]).sort().values, (x, y))
        self.seen += len(y)
        self.buckets += 1

    def state(self) -> State:
        """Return everything that it stores, for `torch.save`."""
        return {**super().state(), "buckets": self.buckets}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        super().restore(state)
        self.buckets = state["buckets"]


def herding(features: Tensor, n: int) -> Tensor:
    """Select samples whose mean approximates the mean of all (iCaRL; Rebuffi et al. 2017, algorithm 4).

    p_k = argmin_i |mu - (f_i + sum_{j<k} f_{p_j}) / k|, with mu the mean of all rows. The mean of the first k is close
    to mu for every k. No row is taken twice. Of equally good rows the first is taken.

    Args:
        features: (N, D).
        n: How many.

    Returns:
        (min(n, N),) indices of rows, in the order of selection.
    """
    features = features.double()
    mean, total = features.mean(0), torch.zeros_like(features[:1])
    taken = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    order: list[int] = []
    for k in range(1, min(n, len(features)) + 1):
        distance = (mean - (total + features) / k).norm(dim=1).masked_fill(taken, torch.inf)
        order.append(int(distance.argmin()))
        taken[order[-1]] = True
        total = total + features[order[-1]]
    return torch.tensor(order, dtype=torch.int64)


class HerdingMemory(PerClassMemory):
    """Exemplars of each class in herding's order: capacity / (number of classes so far), or `per_class`.

    When classes are added, the first exemplars of each class stay (algorithm 5). If a class comes again, its exemplars
    are selected again, from the stored and the new samples.
    """

    def add(self, x: Tensor, y: Tensor, features: Callable[[Tensor], Tensor], *more: Tensor) -> None:
        """Select exemplars.

        Args:
            x: (N, ...) samples.
            y: (N,) labels.
            features: A function from stored samples (B, ...) to (B, D). It is called again for exemplars of classes
                that come again.
            *more: (N, ...) further columns.

        Raises:
            PluginError: There are more classes than the capacity.
        """
        self.seen += len(y)
        come, stored = set(y.tolist()), set(self.y.tolist())
        classes = sorted(come | stored)
        if self.per_class is None and 0 < self.capacity < len(classes):
            raise PluginError(
                f"a memory with a capacity of {self.capacity} can't hold exemplars of {len(classes)} classes.",
                code="refused-arguments",
            )
        parts: list[tuple[Tensor, ...]] = []
        for c in classes:
            part = self.at((self.y == c).nonzero()[:, 0]) if c in stored else ()
            new = _rows((x, y, *more), (y == c).nonzero()[:, 0]) if c in come else ()
            if part and new:
                part = tuple(torch.cat([a.to(b.device), b]) for a, b in zip(part, new, strict=True))
            part = part or new
            n = int(self.share(len(classes)))
            order = herding(features(part[0]), n) if c in come else torch.arange(min(n, len(part[0])))
            parts.append(_rows(part, order))
        if parts:
            place = parts[-1][0].device
            self.columns = tuple(torch.cat([c.to(place) for c in column]) for column in zip(*parts, strict=True))


def memory_options(selection: str, total: int | None, per_class: int | None) -> dict[str, Any]:
    """Return further arguments of the memory called `selection`, for `memory_total` and `memory_per_class`."""
    if per_class is None:
        return {}
    if total is not None:
        raise PluginError(
            "`memory_total` fixes the memory and `memory_per_class` lets it grow. Keep one of them.",
            code="conflicting-keys",
        )
    if selection not in ("balanced", "herding"):
        raise PluginError(
            f"memory_per_class needs a memory with a share for each class: set `selection` to balanced or herding, not "
            f"{selection}.",
            code="conflicting-keys",
        )
    return {"per_class": per_class}
