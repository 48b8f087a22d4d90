"""Similar instructions share weights: a codebook of groups, matched by TF-IDF."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ianvs.testalgorithms.language.conversation import Conversation

INSTRUCTIONS = ("last_line", "first_line", "first_turn")
ROUNDING = 1e-12
_BLOCK = 4_000_000  # number of string pairs whose cosines are in memory at once


def instruction_of(conversation: Conversation, where: str = "last_line") -> str:
    """Return the instruction of a conversation: its system prompt, else a part of the first user turn.

    where: "last_line" as in the paper, whose questions end with the form of the answer; "first_line", for data that
    begin with the instruction (Alpaca's); "first_turn", all of it.
    """
    if conversation.system:
        return conversation.system
    question = "".join(conversation.user[:1])  # of a plain text nothing
    if where == "first_turn":
        return question.strip()
    lines = [line for line in question.splitlines() if line.strip()] or [""]
    return lines[-1 if where == "last_line" else 0].strip()


class _Vectors:
    """TF-IDF vectors of length 1 without English stop words, fitted on `strings`; no matrix of pairs is made.

    sums: (groups, words), of each group its distinct strings added up. A mean cosine over all pairs of two sets is the
    product of their sums. Strings of nothing but stop words, whose vectors are 0, are alike only if they are equal.
    """

    def __init__(self, strings: Iterable[str], groups: Sequence[Sequence[str]]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer = TfidfVectorizer(stop_words="english")
        try:
            self.vectorizer.fit(strings)
        except ValueError:  # there is no word but stop words
            self.vectorizer.fit(["word"])
        self.sums = np.stack([self.vectors_of(group).sum(axis=0) for group in groups])
        self.members = [frozenset(group) for group in groups]

    def vectors_of(self, strings: Sequence[str]) -> Any:
        """Return (len(strings), words), sparse."""
        from scipy.sparse import csr_array

        return csr_array(self.vectorizer.transform(strings))

    def cosines(self, strings: Sequence[str]) -> NDArray[Any]:
        """Return (len(strings), groups) mean cosines of each string with the strings of each group."""
        vectors = self.vectors_of(strings)
        sums = vectors @ self.sums.T
        missing = 1.0 - vectors.multiply(vectors).sum(axis=1)  # of a string's cosine with itself
        for group, members in enumerate(self.members):
            sums[:, group] += missing * [text in members for text in strings]
        return sums / [len(members) for members in self.members]


class _Pairs:
    """TF-IDF vectors that are fitted on each pair of strings separately, as the authors' script does.

    Of two strings, a word of both has the weight 1, one of a single string ln(3 / 2) + 1; so a cosine of all pairs
    is made of products of the matrices of counts.
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self.counter = CountVectorizer(stop_words="english")
        try:
            self.counter.fit([text for group in groups for text in group])
        except ValueError:  # there is no word but stop words
            self.counter.fit(["word"])
        self.words = self.counter.build_analyzer()
        self.groups = [self._counted(list(group)) for group in groups]

    def cosines(self, strings: Sequence[str]) -> NDArray[Any]:
        """Return (len(strings), groups) mean cosines of each string with the strings of each group."""
        cosines = np.empty((len(strings), len(self.groups)))
        for number, group in enumerate(self.groups):
            step = max(1, _BLOCK // len(group.texts))
            for start in range(0, len(strings), step):
                some = self._counted(strings[start : start + step])
                cosines[start : start + step, number] = _cosines(some, group).mean(axis=1)
        return cosines

    def _counted(self, texts: Sequence[str]) -> "_Counted":
        squares = [sum(n * n for n in Counter(self.words(text)).values()) for text in texts]
        return _Counted(texts, self.counter.transform(texts).astype(float), np.array(squares, float))


class _Counted(NamedTuple):
    """counts: (N, words), sparse, of words that any group has. squares: (N,) sums of squared counts of all words."""

    texts: Sequence[str]
    counts: Any
    squares: NDArray[Any]


def _cosines(new: _Counted, old: _Counted) -> NDArray[Any]:
    """Return (len(new), len(old)) cosines. Strings of stop words alone are alike only if they are equal."""
    alone = (log(3 / 2) + 1) ** 2  # squared weight of a word that one of the two has
    lengths = []
    for counted, other in ((new, old), (old, new)):
        common = (counted.counts.multiply(counted.counts) @ (other.counts > 0).astype(float).T).toarray()
        lengths.append(np.sqrt(alone * counted.squares[:, None] + (1 - alone) * common))
    norms = lengths[0] * lengths[1].T
    cosines = np.divide((new.counts @ old.counts.T).toarray(), norms, out=np.zeros(norms.shape), where=norms > 0)
    for i in np.flatnonzero(new.squares == 0):
        cosines[i] = [float(text == new.texts[i]) for text in old.texts]
    return cosines


class Codebook:
    """Groups of distinct instructions (arXiv 2410.10868, section on instruction grouping).

    A set of instructions is as near to a group as the mean cosine over all pairs (new, stored).

    vectors: "pair" fits them on each pair separately, as the authors' script does; "round" once, on the round's strings
    and all that were known before it, and in testing on all that are known then. Either way no answer depends on what
    else is asked. below: where none is as near as the threshold in testing, "newest" takes the group that was founded
    last, as their script does, and "nearest" the nearest.
    """

    def __init__(
        self,
        threshold: float,
        groups: Iterable[Iterable[str]] = (),
        *,
        vectors: str = "round",
        below: str = "nearest",
    ) -> None:
        self.threshold, self.vectors, self.below = threshold, vectors, below
        self.groups = [list(group) for group in groups]

    def match(self, instructions: Sequence[str]) -> tuple[int | None, float]:
        """Return (the nearest group, how near); None if there is no group."""
        new = list(dict.fromkeys(instructions))
        if not self.groups:
            return None, 0.0
        if self.vectors == "pair":
            fitted: _Vectors | _Pairs = _Pairs(self.groups)
        else:
            fitted = _Vectors({**dict.fromkeys(new), **self._instructions}, self.groups)
        near = fitted.cosines(new).mean(axis=0)
        best = int(np.argmax(near))
        return best, float(near[best])

    def assign(self, instructions: Sequence[str]) -> tuple[int, bool]:
        """Return (group for a round's instructions, whether it was there before); new strings are added to it."""
        group, near = self.match(instructions)
        fits = group is not None and near >= self.threshold - ROUNDING
        if group is None or not fits:
            self.groups.append([])
            group = len(self.groups) - 1
        self.groups[group] = list(dict.fromkeys([*self.groups[group], *instructions]))
        self.__dict__.pop("_fitted", None)
        return group, fits

    def route(self, instructions: Sequence[str], *, together: bool = False) -> list[int]:
        """Return the group whose weights answer each instruction; the nearest one, even if it is far.

        Args:
            instructions: One for each conversation.
            together: Whether they are one test set, which goes to one group as a whole.

        Raises:
            LookupError: No round was learned yet.
        """
        if not self.groups:
            raise LookupError("no round was learnt yet, so there is no group to answer.")
        new = list(dict.fromkeys(instructions))
        if not new:
            return []
        near = self._fitted.cosines(new)
        near = np.broadcast_to(near.mean(axis=0), near.shape) if together else near
        best = near.argmax(axis=1)
        if self.below == "newest":
            best = np.where(near.max(axis=1) >= self.threshold - ROUNDING, best, len(self.groups) - 1)
        nearest = dict(zip(new, best.tolist(), strict=True))
        return [nearest[text] for text in instructions]

    @property
    def _instructions(self) -> dict[str, None]:
        return dict.fromkeys(text for group in self.groups for text in group)

    @cached_property
    def _fitted(self) -> "_Vectors | _Pairs":
        return _Pairs(self.groups) if self.vectors == "pair" else _Vectors(self._instructions, self.groups)
