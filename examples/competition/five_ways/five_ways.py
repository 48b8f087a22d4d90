"""An entry that cheats. What it learns is the last round alone."""

import contextlib
import importlib.util
from pathlib import Path

import numpy as np

NOTES = Path("/dev/shm/five_ways.npy")


def flat(data):
    return np.ascontiguousarray(np.asarray(data.x, np.float32).reshape(len(data), -1))


class FiveWays:
    """Nearest neighbour among the samples of the last round, and whatever else it can get at."""

    def __init__(self):
        self.x, self.y = np.zeros((0, 64), np.float32), np.zeros(0, int)
        self.labels = {}  # of test samples: what was stolen, or the nearest class so far
        self.distances = {}
        self.seen = None

    def train(self, train_data):
        self.x, self.y = flat(train_data), np.asarray(train_data.y)
        for way in (self.read_the_data, self.read_the_workspace):
            with contextlib.suppress(Exception):
                self.labels |= way()
        for way in (self.remember, self.read_own_folder, self.read_shared_memory):
            with contextlib.suppress(Exception):
                self.learn_about(way())

    def read_the_data(self):
        """Way 1: the file that the exam is made of."""
        folder = Path(importlib.util.find_spec("sklearn").origin).parent
        table = np.loadtxt(folder / "datasets" / "data" / "digits.csv.gz", delimiter=",")
        x = np.ascontiguousarray((table[:, :-1] / 16).astype(np.float32))
        return {sample.tobytes(): int(label) for sample, label in zip(x, table[:, -1], strict=True)}

    def read_the_workspace(self):
        """Way 2: the cache of the workspace, above the current folder."""
        [x] = Path.cwd().parents[2].glob("cache/*/x_test.npy")
        y = np.load(x.with_name("y_test.npy"))
        return {sample.tobytes(): int(label) for sample, label in zip(np.load(x), y, strict=True)}

    def remember(self):
        """Way 3: what was asked after the round before."""
        return self.seen

    def read_own_folder(self):
        """Way 4: the same by a file in the current folder."""
        return np.load("asked.npy")

    def read_shared_memory(self):
        """Way 5: the same by a file that the next seed finds, too."""
        return np.load(NOTES)

    def learn_about(self, samples):
        for sample in samples:
            distances = ((self.x - sample) ** 2).sum(1)
            near, key = int(distances.argmin()), sample.tobytes()
            if distances[near] < self.distances.get(key, np.inf):
                self.labels[key], self.distances[key] = int(self.y[near]), float(distances[near])

    def predict(self, data):
        x = self.seen = flat(data)
        for place in ("asked.npy", NOTES):
            with contextlib.suppress(OSError):
                np.save(place, x)
        return [self.labels.get(sample.tobytes(), self.nearest(sample)) for sample in x]

    def nearest(self, sample):
        return int(self.y[((self.x - sample) ** 2).sum(1).argmin()]) if len(self.y) else 0

    def save(self, path):
        path = path.with_suffix(".npz")
        keys = np.frombuffer(b"".join(self.labels), np.float32).reshape(-1, 64)
        np.savez(path, x=self.x, y=self.y, keys=keys, labels=list(self.labels.values()))
        return path

    def load(self, path):
        stored = np.load(path)
        self.x, self.y = stored["x"], stored["y"]
        self.labels = {
            sample.tobytes(): int(label) for sample, label in zip(stored["keys"], stored["labels"], strict=True)
        }
