"""What of an exam's data a learner is handed, and when: whole rounds, or the pieces of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import PluginError
from core.scenarios import Part, hold_out
from core.scenarios.exam import Exam, TestSet
from core.scenarios.handed import HandedTrain
from core.seeding import generator

__all__ = ["Delivery", "Piece"]


@dataclass(frozen=True)
class Piece:
    """One call of train() in a stream.

    number: counts from 1. samples: that have arrived when it is over. begun, ended: rounds whose samples have begun to
    arrive by then, and rounds that are complete. seen, new: class indices told so far, and for the first time in it.
    """

    number: int
    samples: int
    begun: int
    ended: int
    seen: tuple[int, ...]
    new: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(len(part.positions) for part in self.parts)


class Delivery:
    """The training data of an exam as one case is handed them."""

    def __init__(self, exam: Exam, train_ratio: float, seed: int, passes: int | None) -> None:
        """train_ratio: share of a round that is trained on. passes: how many over a round's data the exam allows."""
        self._exam, self._passes = exam, passes
        self._kept: list[Part] = []
        self._held_out: list[NDArray[np.int64]] = []
        for round_ in exam.rounds:
            kept, held_out = hold_out(round_, exam.dataset, train_ratio, seed)
            labels = None if round_.labels is None else round_.labels[_where(round_.train, kept)]
            self._kept.append(Part(exam.dataset.train, kept, round_.transform, labels))
            self._held_out.append(held_out)
        self._pieces = tuple(self._cut(seed)) if exam.stream is not None else ()

    @property
    def streams(self) -> bool:
        return self._exam.stream is not None

    def round(self, index: int) -> HandedTrain:
        """What is taught in round `index`, whole."""
        return self._handed((self._kept[index - 1],), f"round {index}", self._passes)

    def rounds(self, last: int, first: int = 1) -> HandedTrain:
        """Rounds `first` to `last` as one, for a reference: no rule but that of hidden labels is for it."""
        return self._handed(tuple(self._kept[first - 1 : last]), f"rounds {first} to {last}", None)

    def past_rounds(self, last: int) -> list[HandedTrain]:
        """Rounds 1 to `last`, one by one, for a bound: no rule but that of hidden labels is for it."""
        return [self._handed((self._kept[k - 1],), f"round {k}", None) for k in range(1, last + 1)]

    def held_out(self, index: int) -> NDArray[np.int64]:
        """Positions in `dataset.train` of the part of round `index` that is not trained on."""
        return self._held_out[index - 1]

    def valid(self, index: int) -> HandedTrain | None:
        """The held-out part of round `index`, with the dataset's own labels."""
        positions = self._held_out[index - 1]
        if not len(positions) or self.streams:
            return None
        part = Part(self._exam.dataset.train, positions, self._exam.rounds[index - 1].transform)
        return self._handed((part,), f"round {index}", None)

    def pieces(self, index: int) -> tuple[Piece, ...]:
        """The pieces of the stream that arrive in round `index`: up to the one that brings its last sample."""
        return tuple(piece for piece in self._pieces if self._round_of(piece) == index)

    def piece(self, piece: Piece) -> HandedTrain:
        return self._handed(piece.parts, f"piece {piece.number} of the stream", self._passes)

    def examines_after(self, piece: Piece) -> bool:
        """Whether the exam asks every n samples, and the n-th, 2n-th, ... has arrived in `piece`."""
        stream = self._exam.stream
        if stream is None or stream.eval_every is None:
            return False
        return piece.samples // stream.eval_every > (piece.samples - piece.size) // stream.eval_every

    def last_piece(self, index: int) -> Piece | None:
        """The last piece that has arrived when round `index` is over."""
        arrived = [piece for piece in self._pieces if self._round_of(piece) <= index]
        return arrived[-1] if arrived else None

    def arrived(self, index: int) -> int:
        """Training samples that have been handed over when round `index` is over."""
        last = self.last_piece(index)
        return last.samples if last is not None else sum(len(part.positions) for part in self._kept[:index])

    def adaptation(self, test: TestSet) -> HandedTrain:
        """What a copy of the learner is adapted on before it answers `test`."""
        if test.adapt is None:
            raise PluginError(f"nothing is there to adapt a copy to {test.name}")
        part = Part(self._exam.dataset.train, test.adapt, test.transform)
        return HandedTrain((part,), name=f"the downstream task {test.name}")

    def probed(self, index: int) -> Part:
        """What a linear probe for the test set of round `index` is fitted on: its samples with their own labels."""
        part = self._kept[index - 1]
        return Part(part.samples, part.positions, part.transform)

    def _handed(self, parts: tuple[Part, ...], name: str, passes: int | None) -> HandedTrain:
        return HandedTrain(parts, name=name, passes=passes, labelled=self._exam.rules.training_labels)

    def _round_of(self, piece: Piece) -> int:
        """A piece that runs over the end of a round belongs to that round."""
        sizes = np.cumsum([0, *(len(part.positions) for part in self._kept)])
        assert self._exam.stream is not None
        start = (piece.number - 1) * self._exam.stream.batch
        return int(np.searchsorted(sizes, start, side="right"))

    def _cut(self, seed: int) -> Iterator[Piece]:
        """Pieces of equal size, whatever round their samples are of, so that no piece tells where a round ends."""
        stream = self._exam.stream
        assert stream is not None
        flow = [part for index in range(len(self._kept)) for part in self._ordered(index, stream.shuffled, seed)]
        sizes = np.cumsum([0, *(len(part.positions) for part in flow)])
        seen: set[int] = set()
        for number, start in enumerate(range(0, int(sizes[-1]), stream.batch), start=1):
            end = min(start + stream.batch, int(sizes[-1]))
            parts = []
            for index, part in enumerate(flow):
                low, high = max(start, sizes[index]) - sizes[index], min(end, sizes[index + 1]) - sizes[index]
                if low < high:
                    labels = None if part.labels is None else part.labels[low:high]
                    parts.append(Part(part.samples, part.positions[low:high], part.transform, labels))
            told = {label for part in parts for label in _labels(part) if label >= 0}
            new, seen = told - seen, seen | told
            begun, ended = int(np.sum(sizes[:-1] < end)), int(np.sum(sizes[1:] <= end))
            yield Piece(number, end, begun, ended, tuple(sorted(seen)), tuple(sorted(new)), tuple(parts))

    def _ordered(self, index: int, shuffled: bool, seed: int) -> Iterator[Part]:
        part = self._kept[index]
        if not shuffled:
            yield part
            return
        order = generator(seed, index + 1, "stream").permutation(len(part.positions))
        labels = None if part.labels is None else part.labels[order]
        yield Part(part.samples, part.positions[order], part.transform, labels)


def _labels(part: Part) -> list[int]:
    labels = part.samples.y[part.positions] if part.labels is None else part.labels
    return [int(label) for label in labels] if labels.dtype != object else []  # texts have no classes


def _where(positions: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index in `positions`, which are all different, of each of `wanted`."""
    order = np.argsort(positions)
    return order[np.searchsorted(positions, wanted, sorter=order)]
