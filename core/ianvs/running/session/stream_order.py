"""What is told when, in an exam that asks each chunk before it tells of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StreamOrder:
    """delay: chunks between an answer and what is told of it (Csaba et al. 2024, arXiv 2312.00923). cost: a learner of
    relative complexity C learns from every C-th chunk, and is C - 1 chunks late (Ghunaim et al. 2023, arXiv 2302.01047,
    section 3): the others are skipped, never told.
    """

    delay: int = 0
    cost: int = 1

    def told_after(self, chunk: int) -> int | None:
        """The chunk that is told once `chunk` was answered, both from 0; None: none is."""
        number = chunk - self.delay - (self.cost - 1)
        return number if number >= 0 and number % self.cost == 0 else None

    def told_at(self, chunk: int, chunks: int) -> int:
        """The chunk after whose answers `chunk`, of so many, is told; -1: never."""
        after = chunk + self.delay + self.cost - 1
        return after if chunk % self.cost == 0 and after < chunks else -1

    def events(self, ends: Sequence[int]) -> Iterator[tuple[str, int]]:
        """("ask", chunk), ("tell", chunk), ("exam", round from 1). ends: of each round how many chunks there are then.

        A round without a chunk of its own is examined with the one before it.
        """
        rounds = list(enumerate(ends, start=1))
        for chunk in range(ends[-1] if ends else 0):
            yield "ask", chunk
            if (due := self.told_after(chunk)) is not None:
                yield "tell", due
            yield from (("exam", number) for number, end in rounds if end == chunk + 1)
