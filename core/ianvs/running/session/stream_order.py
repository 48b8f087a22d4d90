"""When chunks of a prequential stream are revealed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StreamOrder:
    """The order of predictions and revealed labels.

    delay: chunks between a prediction and its label (Csaba et al. 2024, arXiv 2312.00923). cost: a learner of relative
    complexity C learns from every C-th chunk, and is C - 1 chunks late (Ghunaim et al. 2023, arXiv 2302.01047,
    section 3). Other chunks are skipped and never revealed.
    """

    delay: int = 0
    cost: int = 1

    def revealed_after(self, chunk: int) -> int | None:
        """Return the chunk that is revealed after the predictions of `chunk`, both from 0; None: none is."""
        number = chunk - self.delay - (self.cost - 1)
        return number if number >= 0 and number % self.cost == 0 else None

    def revealed_at(self, chunk: int, chunks: int) -> int:
        """Return the chunk after whose predictions `chunk`, of `chunks`, is revealed; -1: never."""
        after = chunk + self.delay + self.cost - 1
        return after if chunk % self.cost == 0 and after < chunks else -1

    def events(self, ends: Sequence[int]) -> Iterator[tuple[str, int]]:
        """Yield ("ask", chunk), ("tell", chunk), ("exam", round from 1). ends: chunks at the end of each round.

        A round without a chunk of its own is evaluated with the previous one.
        """
        rounds = list(enumerate(ends, start=1))
        for chunk in range(ends[-1] if ends else 0):
            yield "ask", chunk
            if (due := self.revealed_after(chunk)) is not None:
                yield "tell", due
            yield from (("exam", number) for number, end in rounds if end == chunk + 1)
