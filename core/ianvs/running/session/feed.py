"""Training data of an exam by round, or by chunk of a stream."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.seeding import generator
from ianvs.config.spec import DataTypeSpec
from ianvs.exam.data.parts import Column, Part, columns_of
from ianvs.exam.data.split import dirichlet_deal, stratified_deal
from ianvs.exam.data_types import data_type
from ianvs.exam.scenarios.exam import Exam, Stream, TestSet
from ianvs.exam.scenarios.request import hold_out

Share = tuple[int, int]
"""(k, n): the k-th, from 0, of n parts."""
ALL: Share = (0, 1)


@dataclass(frozen=True)
class Chunk:
    """The data of one train() call in a stream.

    number: counts from 1. samples: number of samples so far, this chunk included. begun, ended: number of rounds that
    have begun and ended by then. classes: class indices of its labels.
    """

    number: int
    samples: int
    begun: int
    ended: int
    classes: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))

    @property
    def name(self) -> str:
        return f"chunk {self.number} of the stream"


@dataclass(frozen=True)
class ServedSamples:
    """Samples for a learner, one part after the other or in `order`. name: their name in errors.

    passes: how often a learner may iterate over them; None: without limit. labelled: whether it sees their labels.
    """

    parts: tuple[Part, ...]
    name: str
    passes: int | None = None
    labelled: bool = True
    order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def columns(self) -> dict[str, Column]:
        hidden = (replace(part, labels=np.full(len(part), -1)) for part in self.parts)
        return columns_of(self.parts if self.labelled else tuple(hidden), order=self.order)


class DataFeed:
    """The training data of an exam for one case."""

    def __init__(
        self,
        exam: Exam,
        train_ratio: float,
        seed: int,
        passes: int | None,
        type_spec: DataTypeSpec | None = None,
    ) -> None:
        """train_ratio: share of a round for training; a stream is used as a whole.

        passes: how many over a round's data the exam allows. type_spec: of an author's data type.
        """
        self._exam, self._passes, self._seed = exam, passes, seed
        self.streams = exam.stream is not None
        self._view = partial(ServedSamples, labelled=exam.rules.training_labels)
        self._type = data_type(exam.dataset.kind, type_spec)
        train = exam.dataset.train
        arrays = train.x, self._type.training_labels(train.y), train.ids
        # A plain array of the same memory is indexed twice as fast as a memory map.
        x, y, ids = (array.view(np.ndarray) if type(array) is np.memmap else array for array in arrays)
        self._train = replace(train, x=x, y=y, ids=ids)
        train_ratio = 1.0 if self.streams else train_ratio
        self._parts: list[Part] = []
        self._held_out: list[NDArray[np.int64]] = []
        for round_ in exam.rounds:
            positions, held_out = round_.train, round_.train[:0]
            if train_ratio != 1:
                positions, held_out = hold_out(round_, exam.dataset, train_ratio, seed)
            labels = None if round_.labels is None else round_.labels[_indices_of(round_.train, positions)]
            if round_.limited and round_.background is None:
                labels = self._type.limited(self._train.y[positions], round_.classes)
            self._parts.append(Part(self._train, positions, round_.transform, labels))
            self._held_out.append(held_out)
        # Of each round.
        self._chunks = [() for _ in self._parts] if exam.stream is None else self._cut_chunks(exam.stream)

    def round(self, index: int, share: Share = ALL, skew: float | None = None) -> ServedSamples:
        """Return the training samples of round `index`, or a share of them."""
        part = self._round_part(index)
        if share != ALL:
            part = self._share_of(part, share, skew, index)
        return self._view((part,), f"round {index}", self._passes)

    def _round_part(self, index: int, positions: NDArray[np.int64] | None = None) -> Part:
        """Return round `index`, or other `positions`, with its labels. Masks are limited lazily to save memory."""
        part, round_ = self._parts[index - 1], self._exam.rounds[index - 1]
        if positions is not None:
            part = Part(part.samples, positions, part.transform)
        if round_.background is None:
            return part
        shown = round_.classes if round_.shown_classes is None else round_.shown_classes
        return replace(part, labels=self._type.limited(self._train.y[part.positions], shown, round_.background))

    def rounds(self, first: int, last: int, share: Share = ALL, skew: float | None = None) -> ServedSamples:
        """Return rounds `first` to `last` as one, without the rules of the exam, except for hidden labels.

        They are shuffled, because a learner that reads them in order would still learn one after the other.
        """
        whole_rounds = self._without_rules(first, last)
        parts = tuple(self._share_of(part, share, skew, index) for index, part in enumerate(whole_rounds, first))
        order = None
        if len(parts) > 1:
            order = generator(self._seed, last, "joint").permutation(sum(map(len, parts)))
        return self._view(parts, f"rounds {first} to {last}", None, order=order)

    def past_rounds(self, last: int) -> list[ServedSamples]:
        """Return rounds 1 to `last` separately, for an upper bound; only labels that the exam hides stay hidden."""
        whole_rounds = self._without_rules(1, last)
        return [self._view((part,), f"round {k}", None) for k, part in enumerate(whole_rounds, 1)]

    def _without_rules(self, first: int, last: int) -> list[Part]:
        """Return rounds `first` to `last` for a learner that sees them together.

        Where a round labels its own classes only, a sample may come in several rounds. It comes once then, in the last
        of them, with its labels of all classes of these rounds.
        """
        rounds = self._exam.rounds[first - 1 : last]
        if first == last or not any(round_.limited for round_ in rounds):
            return [self._round_part(index) for index in range(first, last + 1)]
        classes = tuple(sorted({c for round_ in rounds for c in round_.classes}))
        parts: list[Part] = []
        later = np.zeros(0, np.int64)
        for part in reversed(self._parts[first - 1 : last]):
            positions = part.positions[~np.isin(part.positions, later)]
            labels = self._type.limited(self._train.y[positions], classes, rounds[-1].background)
            parts.insert(0, replace(part, positions=positions, labels=labels))
            later = np.concatenate([later, positions])
        return parts

    def held_out(self, index: int) -> NDArray[np.int64]:
        """Return positions in `dataset.train` of the held-out part of round `index`."""
        return self._held_out[index - 1]

    def valid(self, index: int) -> ServedSamples | None:
        """Return the held-out part of round `index`, with the dataset's own labels."""
        positions = self._held_out[index - 1]
        if not len(positions) or self.streams:
            return None
        return self._view((self._round_part(index, positions),), f"round {index}", None)

    def chunks(self, index: int) -> tuple[Chunk, ...]:
        """Return the chunks of round `index`, up to the one with its last sample."""
        return self._chunks[index - 1]

    def chunk(self, chunk: Chunk, share: Share = ALL, skew: float | None = None) -> ServedSamples:
        parts = tuple(self._share_of(part, share, skew, chunk.number) for part in chunk.parts)
        return self._view(parts, chunk.name, self._passes)

    def evaluates_after(self, chunk: Chunk) -> bool:
        """Return whether the exam evaluates every n samples, and `chunk` has the n-th, 2n-th, ... one."""
        stream = self._exam.stream
        if stream is None or stream.eval_every is None:
            return False
        return chunk.samples // stream.eval_every > (chunk.samples - chunk.size) // stream.eval_every

    def samples_until(self, index: int) -> int:
        """Return the number of training samples up to the end of round `index`."""
        last = next((chunks[-1] for chunks in reversed(self._chunks[:index]) if chunks), None)
        return last.samples if last is not None else sum(map(len, self._parts[:index]))

    def adaptation(self, test: TestSet) -> ServedSamples:
        """Return the samples to which a copy of the learner is adapted before it predicts `test`."""
        if test.adapt is None:
            raise PluginError(f"nothing is there to adapt a copy to {test.name}", code="invalid-request")
        part = Part(self._train, test.adapt, test.transform)
        return ServedSamples((part,), f"the downstream task {test.name}")

    def probe_part(self, index: int) -> Part:
        """Return the samples of round `index` with their own labels, to fit a linear probe for its test set."""
        part = self._parts[index - 1]
        return Part(part.samples, part.positions, part.transform)

    def _share_of(self, part: Part, share: Share, skew: float | None, number: int) -> Part:
        """Return the k-th of n shares of `part`.

        skew: concentration of a Dirichlet distribution of their classes; smaller is more uneven; None: stratified.
        """
        k, n = share
        if n == 1:
            return part
        labels = part.shown_labels
        classes = labels if labels.ndim == 1 and labels.dtype.kind in "iu" else None
        draws = generator(self._seed, number, f"share of {n}")
        if skew is None:
            hands = stratified_deal(classes, len(part), n, draws)
        else:
            hands = dirichlet_deal(classes, len(part), n, skew, draws)
        return part.part(np.sort(hands[k]))

    def _cut_chunks(self, stream: Stream) -> list[tuple[Chunk, ...]]:
        """Cut chunks of equal size across rounds, so that their size does not reveal the end of a round.

        A chunk that extends beyond a round belongs to that round.
        """
        chunks: list[list[Chunk]] = [[] for _ in self._parts]
        flow = self._parts
        if stream.shuffled:
            draws = [generator(self._seed, index + 1, "stream") for index in range(len(flow))]
            flow = [part.part(draw.permutation(len(part))) for part, draw in zip(flow, draws, strict=True)]
        labels = [_labels(part) for part in flow]
        ends = np.cumsum([*map(len, flow)]).tolist()
        starts = [0, *ends[:-1]]
        for number, start in enumerate(range(0, ends[-1], stream.batch), start=1):
            end = min(start + stream.batch, ends[-1])
            first, begun = bisect_right(ends, start), bisect_left(starts, end)
            parts, taught = [], set()
            for index in range(first, begun):
                if ends[index] > starts[index]:
                    where = slice(max(start, starts[index]) - starts[index], end - starts[index])
                    parts.append(flow[index].part(where))
                    taught.update(labels[index][where])
            classes = tuple(sorted(label for label in taught if label >= 0))
            chunks[first].append(Chunk(number, end, begun, bisect_right(ends, end), classes, tuple(parts)))
        return [*map(tuple, chunks)]


def merge_parts(parts: Sequence[Part]) -> list[Part]:
    """Merge adjacent parts where possible."""

    def kind(part: Part) -> tuple[int, int, bool]:
        return id(part.samples), id(part.transform), part.labels is None

    merged = []
    for _, some in itertools.groupby(parts, kind):
        first, *_ = same = list(some)
        given = [part.labels for part in same if part.labels is not None]
        labels = np.concatenate(given) if given else None
        merged.append(replace(first, positions=np.concatenate([part.positions for part in same]), labels=labels))
    return merged


def _labels(part: Part) -> list[int]:
    labels = part.shown_labels
    classes = labels.ndim == 1 and labels.dtype.kind in "iu"  # strings, real numbers and boxes have no classes
    return labels.astype(np.int64).tolist() if classes else []


def _indices_of(positions: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of each of `wanted` in `positions`, which are unique."""
    order = np.argsort(positions)
    return order[np.searchsorted(positions, wanted, sorter=order)]
