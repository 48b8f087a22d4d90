"""Pictures that stay encoded are not decoded before a run; some are, to see whether they can be."""

from collections.abc import Callable

import numpy as np

from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.decode import require_one_shape
from ianvs.exam.data.encoded_pictures import EncodedPictures, encoded_in, in_threads, threads
from ianvs.exam.data.listing import SourceError

DRAWN = 64  # pictures of each part


def try_pictures(dataset: Dataset, say: Callable[[str], object]) -> None:
    """Decode a few pictures of each part, drawn at random but always the same, with their label pictures.

    say: is told how many. Raises SourceError with all that can't be decoded, or differ in size.
    """
    problems, tried, total = [], 0, 0
    for number, part in enumerate((dataset.train, dataset.test)):
        x, y = encoded_in(part.x), encoded_in(part.y)
        if x is None:
            continue
        count = min(DRAWN, len(x))
        drawn = np.sort(np.random.default_rng(number).choice(len(x), count, replace=False)).tolist()
        wrong: dict[int, SourceError] = {}

        def look(places: range) -> None:
            for place in places:
                try:
                    _look(drawn[place], x, y)  # noqa: B023 - it has ended before the next part comes
                except SourceError as error:
                    wrong[place] = error  # noqa: B023

        in_threads(look, count, x.coding.row_bytes, threads())
        problems += [problem for place in sorted(wrong) for problem in wrong[place].problems]
        tried, total = tried + count, total + len(x)
    if problems:
        raise SourceError(problems)
    if total:
        say(f"{tried} of {total} pictures were decoded, drawn at random; the others are when they are read")


def _look(index: int, x: EncodedPictures, y: EncodedPictures | None) -> None:
    x.decoded(index)
    if y is not None:
        require_one_shape(y.path(index), x.path(index), x.coding.size)
        y.decoded(index)
