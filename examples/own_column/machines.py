"""Readings of machines of two sites, with a column of its own: what a wrong answer to each reading costs."""

import numpy as np


def machines(train: int = 60, test: int = 30, seed: int = 0):
    rng = np.random.default_rng(seed)
    return {"train": part(rng, train), "test": part(rng, test), "classes": ["sound", "worn", "broken"]}


def part(rng, count):
    y = np.tile([0, 1, 2], 2 * count)
    site = np.repeat(["north", "south"], 3 * count)
    x = rng.normal(y[:, None] + (site == "south")[:, None], 0.7, (len(y), 4))
    cost = np.array([1.0, 2.0, 10.0])[y] * rng.uniform(0.5, 1.5, len(y))
    return {"x": x, "y": y, "domain": site, "columns": {"cost": cost}}
