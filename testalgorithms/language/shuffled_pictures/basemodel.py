"""A control: what can be learnt of questions about images without seeing which image belongs to which."""

from types import SimpleNamespace

import numpy as np

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.language import LanguageLearner


class ShuffledPictures(LanguageLearner):
    """Plain tuning, for which the images of each round are dealt out to its conversations anew, and again in testing.

    Whoever does better than it has seen something. Conversations exchange the images of those that have as many.
    """

    def train(self, train_data, valid_data=None, *, round=1, seed=0, **context):
        dealt = SimpleNamespace(x=shuffled(train_data.x, stream_seed(seed, round, "pictures")), y=train_data.y)
        super().train(dealt, valid_data, round=round, seed=seed, **context)

    def predict(self, data, *, seed=0, **context):
        dealt = SimpleNamespace(x=shuffled(data.x, stream_seed(seed, 0, "pictures")))
        return super().predict(dealt, seed=seed, **context)


def shuffled(x, seed):
    """Conversations with the images of others."""
    draw, samples = np.random.default_rng(seed), list(x)
    counts = np.array([len(sample.get("pictures", ())) for sample in x])
    for count in sorted(set(counts.tolist()) - {0}):
        places = np.flatnonzero(counts == count)
        for to, source in zip(places.tolist(), draw.permutation(places).tolist(), strict=True):
            samples[to] = {**x[to], "pictures": x[source]["pictures"]}
    return samples
