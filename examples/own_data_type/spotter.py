"""The algorithm: remembers the mean colour of each class, of all rounds or of the last one alone."""

import json
from pathlib import Path

import numpy as np


class Spotter:
    def __init__(self, keep: bool = True):
        self.keep, self.colours = keep, {}

    def train(self, train_data, valid_data=None):
        if not self.keep:
            self.colours = {}
        seen = {}
        for picture, label in zip(train_data.x, train_data.y, strict=True):
            for (x, y), of in zip(label["xy"], label["labels"], strict=True):
                seen.setdefault(int(of), []).append(picture[int(y), int(x)])
        self.colours |= {of: np.mean(colours, axis=0).tolist() for of, colours in seen.items()}

    def predict(self, data):
        return [self._answer(picture) for picture in data.x]

    def count(self, data):
        return np.array([len(places(picture)) for picture in data.x])

    def _answer(self, picture):
        found = {"xy": [], "labels": []}
        for x, y in places(picture):
            gaps = {of: np.abs(picture[y, x] - np.array(colour)).sum() for of, colour in self.colours.items()}
            if gaps and min(gaps.values()) < 100:
                found["xy"].append([x + 0.5, y + 0.5])
                found["labels"].append(min(gaps, key=gaps.get))
        return found

    def save(self, path):
        (Path(path) / "colours.json").write_text(json.dumps(self.colours))

    def load(self, path):
        self.colours = {int(of): c for of, c in json.loads((Path(path) / "colours.json").read_text()).items()}


def places(picture):
    """(x, y) of the upper left pixel of each bright spot."""
    bright = picture.max(axis=2) > 100
    first = bright.copy()
    first[1:] &= ~bright[:-1]
    first[:, 1:] &= ~bright[:, :-1]
    return [(int(x), int(y)) for y, x in np.argwhere(first)]
