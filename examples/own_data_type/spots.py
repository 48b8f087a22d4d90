"""The data: 24 x 24 images with one to four coloured spots, and where each is."""

import numpy as np

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220)}


def spots(train: int = 60, test: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    return {"train": part(rng, train), "test": part(rng, test), "classes": list(COLOURS)}


def part(rng, count):
    x = rng.integers(0, 40, (count, 24, 24, 3)).astype(np.uint8)
    y = []
    for picture in x:
        places = rng.permutation(16)[: rng.integers(1, 5)]  # one in each cell of a grid, so that none touch
        xy = np.stack([places % 4, places // 4], axis=1) * 6 + rng.integers(1, 4, (len(places), 2))
        labels = rng.integers(0, 3, len(places))
        for (column, row), label in zip(xy, labels, strict=True):
            picture[row : row + 2, column : column + 2] = list(COLOURS.values())[label]
        y.append({"xy": (xy + 0.5).tolist(), "labels": labels.tolist()})
    return {"x": x, "y": y}
