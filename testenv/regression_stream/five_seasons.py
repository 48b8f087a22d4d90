"""Generated readings of a sensor in five seasons, each at its own working point."""

from typing import Any

import numpy as np

SEASONS, FEATURES = ("frost", "thaw", "spring", "summer", "storm"), 6


def five_seasons(train: int = 1000, test: int = 200, seed: int = 0) -> dict[str, Any]:
    """train, test: samples of each season, which is a domain.

    x (N, 6) lies around the season's point; y = sin(2 a . x) + (b . x) (c . x) / 4 + noise, the same function in all
    seasons, of which a season shows a part.
    """
    draw = np.random.default_rng(seed)
    points = draw.normal(0, 1.5, (len(SEASONS), FEATURES))
    a, b, c = draw.normal(0, 1 / np.sqrt(FEATURES), (3, FEATURES))

    def part(count: int) -> tuple[Any, ...]:
        x = np.repeat(points, count, axis=0) + draw.normal(0, 0.7, (len(SEASONS) * count, FEATURES))
        y = np.sin(2 * x @ a) + (x @ b) * (x @ c) / 4 + draw.normal(0, 0.1, len(x))
        return x.astype(np.float32), y, np.repeat(SEASONS, count)

    return {"train": part(train), "test": part(test)}
