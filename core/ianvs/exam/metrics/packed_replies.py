"""Replies to many conversations, compressed: a sequence that is decoded when it is read."""

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.label_pictures import LazyRows

Turns = Sequence[str | None]
"""The replies to one conversation; None where one is missing."""

_MARK = b"R2"  # the first bytes; up to ianvs 0.2 they were those of a json text
_HEAD = 10  # header: the length of the index before the first block, in bytes
_BLOCK = 1 << 18  # characters that are compressed together and read at once


class Replies(LazyRows):
    """N lists of replies. An index or an iteration gives one list; a slice or a mask gives fewer of them."""

    def __init__(self, stored: NDArray[np.uint8]) -> None:
        """stored: the result of `packed`."""
        if stored[: len(_MARK)].tobytes() != _MARK:
            earlier = json.loads(stored.tobytes())
            stored = pack_replies(earlier["replies"], earlier["topics"])
        begin = int.from_bytes(stored[len(_MARK) : _HEAD].tobytes(), "little")
        head = json.loads(zlib.decompress(stored[_HEAD:begin].tobytes()))
        self._data, self._ends, self._first = stored[begin:], head["ends"], head["first"]
        self._positions, self._read = np.arange(self._first[-1]), (-1, list[Turns]())
        self._topics = None if head["topics"] is None else np.array(head["topics"], dtype=str)
        self._references: dict[str, list[str]] = head.get("references", {})

    @property
    def topics(self) -> NDArray[np.str_] | None:
        """(N,) the topic of each conversation; None: unknown."""
        return None if self._topics is None else self._topics[self._positions]

    @property
    def references(self) -> Iterator[Sequence[str]]:
        """Yield further correct replies to the last turn of each conversation."""
        return (self._references.get(str(position), ()) for position in self._positions.tolist())

    def _at(self, position: int) -> Turns:
        block = bisect_right(self._first, position) - 1
        if block != self._read[0]:
            text = zlib.decompress(self._data[self._ends[block] : self._ends[block + 1]].tobytes())
            self._read = block, json.loads(text)
        turns: Turns = self._read[1][position - self._first[block]]
        return turns


def pack_replies(
    replies: Iterable[Turns], topics: Sequence[str] | None = None, references: Iterable[Sequence[str]] = ()
) -> NDArray[np.uint8]:
    """Return lists of replies, topics and further correct replies as bytes for the store."""
    blocks, first = list[bytes](), [0]
    for block in _blocks(replies):
        blocks.append(zlib.compress(json.dumps(block).encode()))
        first.append(first[-1] + len(block))
    ends = [0, *np.cumsum([len(each_block) for each_block in blocks], dtype=int).tolist()]
    header: dict[str, object] = {"topics": None if topics is None else list(topics), "ends": ends, "first": first}
    if further := {str(position): list(right) for position, right in enumerate(references) if right}:
        header["references"] = further
    head = zlib.compress(json.dumps(header).encode())
    begin = (_HEAD + len(head)).to_bytes(_HEAD - len(_MARK), "little")
    return np.frombuffer(b"".join([_MARK, begin, head, *blocks]), dtype=np.uint8)


def _blocks(replies: Iterable[Turns]) -> Iterator[list[Turns]]:
    block, size = list[Turns](), 0
    for turns in replies:
        block.append(list(turns))
        size += 1 + sum(len(reply or "") for reply in turns)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block
