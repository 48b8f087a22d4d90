"""What of an exam's data a learner is handed, and when: whole rounds, or the chunks of a stream."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    """One call of train() in a stream.

    number: counts from 1. samples: that have arrived when it is over. begun, ended: rounds whose samples have begun to
    arrive by then, and rounds that are complete. classes: class indices that it tells.
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
class Handout:
    """Samples to hand over, one part after the other or in `order`. name: what errors call them.

    passes: how often a learner may go over them; None: any number. labelled: whether it sees their labels.
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
    """The training data of an exam as one case is handed them."""

    def __init__(
        self,
        exam: Exam,
        train_ratio: float,
        seed: int,
        passes: int | None,
        type_spec: DataTypeSpec | None = None,
    ) -> None:
        """train_ratio: share of a round that is trained on; of a stream, which hands over no rounds, all of it.

        passes: how many over a round's data the exam allows. type_spec: of an author's data type.
        """
        self._exam, self._passes, self._seed = exam, passes, seed
        self.streams = exam.stream is not None
        self._type = data_type(exam.dataset.kind, type_spec)
        train = exam.dataset.train
        y = _plain(self._type.training_labels(train.y))
        self._train = replace(train, x=_plain(train.x), y=y, ids=_plain(train.ids))
        train_ratio = 1.0 if self.streams else train_ratio
        self._parts: list[Part] = []
        self._held_out: list[NDArray[np.int64]] = []
        for round_ in exam.rounds:
            positions, held_out = hold_out(round_, exam.dataset, train_ratio, seed)
            labels = None if round_.labels is None else round_.labels[_where(round_.train, positions)]
            if round_.limited and round_.background is None:
                labels = self._type.limited(self._train.y[positions], round_.classes)
            self._parts.append(Part(self._train, positions, round_.transform, labels))
            self._held_out.append(held_out)
        # Of each round.
        self._chunks = [() for _ in self._parts] if exam.stream is None else self._cut(exam.stream)

    def round(self, index: int, share: Share = ALL, skew: float | None = None) -> Handout:
        """What is taught in round `index`, whole or a share of it."""
        part = self._of_round(index)
        if share != ALL:
            part = self._shared(part, share, skew, index)
        return self._view((part,), f"round {index}", self._passes)

    def _of_round(self, index: int, positions: NDArray[np.int64] | None = None) -> Part:
        """Round `index`, or other `positions`, as it is told. Masks are limited only now: all at once are too large."""
        part, round_ = self._parts[index - 1], self._exam.rounds[index - 1]
        if positions is not None:
            part = Part(part.samples, positions, part.transform)
        if round_.background is None:
            return part
        shown = round_.classes if round_.shown_classes is None else round_.shown_classes
        return replace(part, labels=self._type.limited(self._train.y[part.positions], shown, round_.background))

    def rounds(self, first: int, last: int, share: Share = ALL, skew: float | None = None) -> Handout:
        """Rounds `first` to `last` as one, for who is above the rules: none is for it but that of hidden labels.

        They are mixed: one after the other, a learner that goes over them in order would still learn them in turn.
        """
        whole_rounds = self._without_rules(first, last)
        parts = tuple(self._shared(part, share, skew, index) for index, part in enumerate(whole_rounds, first))
        order = None
        if len(parts) > 1:
            order = generator(self._seed, last, "joint").permutation(sum(map(len, parts)))
        return self._view(parts, f"rounds {first} to {last}", None, order=order)

    def past_rounds(self, last: int) -> list[Handout]:
        """Rounds 1 to `last`, one by one, for a bound: no rule but that of hidden labels is for it."""
        whole_rounds = self._without_rules(1, last)
        return [self._view((part,), f"round {k}", None) for k, part in enumerate(whole_rounds, 1)]

    def _without_rules(self, first: int, last: int) -> list[Part]:
        """Rounds `first` to `last` for a learner that sees them together.

        Where a round labels its own classes only, a sample may come in several rounds. It comes once then, in the last
        of them, with its labels of all classes of these rounds.
        """
        rounds = self._exam.rounds[first - 1 : last]
        if first == last or not any(round_.limited for round_ in rounds):
            return [self._of_round(index) for index in range(first, last + 1)]
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
        """Positions in `dataset.train` of the part of round `index` that is not trained on."""
        return self._held_out[index - 1]

    def valid(self, index: int) -> Handout | None:
        """The held-out part of round `index`, with the dataset's own labels."""
        positions = self._held_out[index - 1]
        if not len(positions) or self.streams:
            return None
        return self._view((self._of_round(index, positions),), f"round {index}", None)

    def chunks(self, index: int) -> tuple[Chunk, ...]:
        """The chunks of the stream that arrive in round `index`: up to the one that brings its last sample."""
        return self._chunks[index - 1]

    def chunk(self, chunk: Chunk, share: Share = ALL, skew: float | None = None) -> Handout:
        parts = tuple(self._shared(part, share, skew, chunk.number) for part in chunk.parts)
        return self._view(parts, chunk.name, self._passes)

    def examines_after(self, chunk: Chunk) -> bool:
        """Whether the exam asks every n samples, and the n-th, 2n-th, ... has arrived in `chunk`."""
        stream = self._exam.stream
        if stream is None or stream.eval_every is None:
            return False
        return chunk.samples // stream.eval_every > (chunk.samples - chunk.size) // stream.eval_every

    def arrived(self, index: int) -> int:
        """Training samples that have been handed over when round `index` is over."""
        last = next((chunks[-1] for chunks in reversed(self._chunks[:index]) if chunks), None)
        return last.samples if last is not None else sum(map(len, self._parts[:index]))

    def adaptation(self, test: TestSet) -> Handout:
        """What a copy of the learner is adapted on before it answers `test`."""
        if test.adapt is None:
            raise PluginError(f"nothing is there to adapt a copy to {test.name}", code="invalid-request")
        part = Part(self._train, test.adapt, test.transform)
        return Handout((part,), f"the downstream task {test.name}")

    def probed(self, index: int) -> Part:
        """What a linear probe for the test set of round `index` is fitted on: its samples with their own labels."""
        part = self._parts[index - 1]
        return Part(part.samples, part.positions, part.transform)

    def _view(
        self, parts: tuple[Part, ...], name: str, passes: int | None, order: NDArray[np.int64] | None = None
    ) -> Handout:
        return Handout(parts, name, passes, self._exam.rules.training_labels, order)

    def _shared(self, part: Part, share: Share, skew: float | None, number: int) -> Part:
        """The share (k, n) of `part`: the k-th of n hands, alike in their classes or as unlike as `skew` says."""
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

    def _cut(self, stream: Stream) -> list[tuple[Chunk, ...]]:
        """Chunks of equal size, whatever round their samples are of, so that no chunk tells where a round ends.

        A chunk that runs over the end of a round belongs to that round.
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


def joined(parts: Sequence[Part]) -> list[Part]:
    """The same samples in as few parts, one after the other."""

    def kind(part: Part) -> tuple[int, int, bool]:
        return id(part.samples), id(part.transform), part.labels is None

    merged = []
    for _, some in itertools.groupby(parts, kind):
        first, *_ = same = list(some)
        given = [part.labels for part in same if part.labels is not None]
        labels = np.concatenate(given) if given else None
        merged.append(replace(first, positions=np.concatenate([part.positions for part in same]), labels=labels))
    return merged


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Of a memory map the same memory: to index it takes half the time, since its rows are no memory maps."""
    return values.view(np.ndarray) if type(values) is np.memmap else values


def _labels(part: Part) -> list[int]:
    labels = part.shown_labels
    classes = labels.ndim == 1 and labels.dtype.kind in "iu"  # texts, numbers and boxes have none
    return labels.astype(np.int64).tolist() if classes else []


def _where(positions: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index in `positions`, which are all different, of each of `wanted`."""
    order = np.argsort(positions)
    return order[np.searchsorted(positions, wanted, sorter=order)]
