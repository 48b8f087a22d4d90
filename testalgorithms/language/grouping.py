"""Instructions that are alike share weights: a codebook of groups, matched by TF-IDF."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.testalgorithms.language.conversation import Conversation

INSTRUCTIONS = ("last_line", "first_line", "first_turn")
ROUNDING = 1e-12


def instruction_of(conversation: Conversation, where: str = "last_line") -> str:
    """What a conversation tells the model to do: its system prompt, else a part of what the user says first.

    where: "last_line" is that of the paper, whose questions end with how to answer; "first_line", of data that begin
    with the instruction (Alpaca's); "first_turn", all of it.
    """
    if conversation.system:
        return conversation.system
    asked = "".join(conversation.user[:1])  # of a plain text nothing
    if where == "first_turn":
        return asked.strip()
    lines = [line for line in asked.splitlines() if line.strip()] or [""]
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
        self.sums = np.stack([self.of(group).sum(axis=0) for group in groups])
        self.members = [frozenset(group) for group in groups]

    def of(self, strings: Sequence[str]) -> Any:
        """(len(strings), words), sparse."""
        from scipy.sparse import csr_array

        return csr_array(self.vectorizer.transform(strings))

    def cosines(self, strings: Sequence[str]) -> NDArray[Any]:
        """(len(strings), groups) mean cosines of each string with the strings of each group."""
        vectors = self.of(strings)
        sums = vectors @ self.sums.T
        missing = 1.0 - vectors.multiply(vectors).sum(axis=1)  # of a string's cosine with itself
        for group, members in enumerate(self.members):
            sums[:, group] += missing * [text in members for text in strings]
        return sums / [len(members) for members in self.members]


class Codebook:
    """Groups of distinct instructions (arXiv 2410.10868, section on instruction grouping).

    A set of instructions is as near to a group as the mean cosine over all pairs (new, stored). The vectors are fitted
    once a round, not on each pair by itself as in the authors' script: on the round's strings and all that were known
    before it, and in testing on all that are known then, so that no answer depends on what else is asked.
    """

    def __init__(self, threshold: float, groups: Iterable[Iterable[str]] = ()) -> None:
        self.threshold = threshold
        self.groups = [list(group) for group in groups]

    def match(self, instructions: Sequence[str]) -> tuple[int | None, float]:
        """(the nearest group, how near); None if there is no group."""
        new = list(dict.fromkeys(instructions))
        if not self.groups:
            return None, 0.0
        near = _Vectors({**dict.fromkeys(new), **self._known}, self.groups).cosines(new).mean(axis=0)
        best = int(np.argmax(near))
        return best, float(near[best])

    def assign(self, instructions: Sequence[str]) -> tuple[int, bool]:
        """(group for a round's instructions, whether it was there before); new strings are added to it."""
        group, near = self.match(instructions)
        found = group is not None and near >= self.threshold - ROUNDING
        if group is None or not found:
            self.groups.append([])
            group = len(self.groups) - 1
        self.groups[group] = list(dict.fromkeys([*self.groups[group], *instructions]))
        self.__dict__.pop("_fitted", None)
        return group, found

    def route(self, instructions: Sequence[str]) -> list[int]:
        """The nearest group of each, whatever the threshold: at test time some weights have to answer."""
        if not self.groups:
            raise LookupError("no round was learnt yet, so there is no group to answer.")
        new = list(dict.fromkeys(instructions))
        nearest = dict(zip(new, self._fitted.cosines(new).argmax(axis=1).tolist(), strict=True)) if new else {}
        return [nearest[text] for text in instructions]

    @property
    def _known(self) -> dict[str, None]:
        return dict.fromkeys(text for group in self.groups for text in group)

    @cached_property
    def _fitted(self) -> _Vectors:
        return _Vectors(self._known, self.groups)
