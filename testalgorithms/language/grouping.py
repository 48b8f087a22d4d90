"""Instructions that are alike share weights: a codebook of groups, matched by TF-IDF."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.testalgorithms.language.conversation import Conversation


def tfidf_cosines(left: Sequence[str], right: Sequence[str]) -> NDArray[Any]:
    """(len(left), len(right)) cosines of TF-IDF vectors without English stop words, fitted on all strings together.

    Strings of nothing but stop words are alike only if they are equal.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        vectors = TfidfVectorizer(stop_words="english").fit(list(dict.fromkeys([*left, *right])))
        cosines = (vectors.transform(left) @ vectors.transform(right).T).toarray()  # rows have length 1
    except ValueError:  # there is no word but stop words
        cosines = np.zeros((len(left), len(right)))
    same = np.array([[a == b for b in right] for a in left], dtype=bool).reshape(len(left), len(right))
    return np.where(same, 1.0, cosines)


def instruction_of(conversation: Conversation) -> str:
    """What a conversation tells the model to do: its system prompt, else the last line of what the user says first."""
    if conversation.system:
        return conversation.system
    asked = "".join(conversation.user[:1])  # of a plain text nothing
    lines = [line for line in asked.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


class Codebook:
    """Groups of distinct instructions (arXiv 2410.10868, section on instruction grouping).

    A set of instructions is as near to a group as the mean cosine over all pairs (new, stored). The vectors are fitted
    on all strings that are known at the time, once, not on each pair by itself as in the authors' script.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.groups: list[list[str]] = []

    def match(self, instructions: Sequence[str]) -> tuple[int | None, float]:
        """(the nearest group, how near); None if there is no group."""
        new = list(dict.fromkeys(instructions))
        known = [text for group in self.groups for text in group]
        if not known:
            return None, 0.0
        cosines = tfidf_cosines(new, known)
        ends = np.cumsum([len(group) for group in self.groups])
        near = [float(part.mean()) for part in np.split(cosines, ends[:-1], axis=1)]
        best = int(np.argmax(near))
        return best, near[best]

    def assign(self, instructions: Sequence[str]) -> tuple[int, bool]:
        """(group for a round's instructions, whether it was there before); new strings are added to it."""
        group, near = self.match(instructions)
        found = group is not None and near >= self.threshold
        if group is None or not found:
            self.groups.append([])
            group = len(self.groups) - 1
        self.groups[group] += [text for text in dict.fromkeys(instructions) if text not in self.groups[group]]
        return group, found

    def route(self, instruction: str) -> int:
        """The nearest group, whatever the threshold: at test time some weights have to answer."""
        group, _ = self.match([instruction])
        if group is None:
            raise LookupError("no round was learnt yet, so there is no group to answer.")
        return group
