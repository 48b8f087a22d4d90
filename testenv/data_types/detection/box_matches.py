"""Which answers are right, class by class: the costly part of a score, which can be reused when images are left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MISS, HIT, IGNORED = 0, 1, 2


class ClassMatches(NamedTuple):
    """Matches of one class: D answers by falling score, and G true boxes, judged in A areas x T thresholds.

    pictures: (D,) image of each answer. places: (D,) rank of each answer among those to its image, from 0. judged: (A,
    T, D) MISS, HIT or IGNORED. truth_pictures: (G,). counted: (A, G) whether a true box has to be found.
    """

    pictures: NDArray[np.int64]
    places: NDArray[np.int64]
    judged: NDArray[np.uint8]
    truth_pictures: NDArray[np.int64]
    counted: NDArray[np.bool_]


class BoxMatches:
    """A ClassMatches for each class over `pictures` images, all of them or those at `positions`."""

    def __init__(self, of_class: list[ClassMatches], pictures: int, positions: NDArray[np.int64] | None = None) -> None:
        self._of_class, self._pictures = of_class, pictures
        self._positions = np.arange(pictures) if positions is None else positions

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, rows: Any) -> BoxMatches:
        """Return the matches without some of the images. rows: a mask over the current images, or positions."""
        return BoxMatches(self._of_class, self._pictures, self._positions[rows])

    def of_class(self, index: int, area: int, thresholds: slice) -> ClassMatches:
        """Return the matches of a class in one range of area: (1, T, D) and (1, G)."""
        matches = self._of_class[index]
        judged, counted = matches.judged[area : area + 1, thresholds], matches.counted[area : area + 1]
        if len(self._positions) == self._pictures:
            return matches._replace(judged=judged, counted=counted)
        inside = np.zeros(self._pictures, dtype=bool)
        inside[self._positions] = True
        mine, true = inside[matches.pictures], inside[matches.truth_pictures]
        return ClassMatches(
            matches.pictures[mine],
            matches.places[mine],
            judged[..., mine],
            matches.truth_pictures[true],
            counted[:, true],
        )

    @property
    def classes(self) -> range:
        """The positions of the classes in the class list."""
        return range(len(self._of_class))
