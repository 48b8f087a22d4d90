"""Small conversations as the benchmark hands them, and a tiny learner, for tests of language methods."""

from dataclasses import dataclass

import numpy as np

SIZE = {"width": 32, "layers": 1, "heads": 2, "vocabulary": 300, "epochs": 2, "batch_size": 3, "max_new_tokens": 16}


@dataclass
class Talks:
    """Training data if it has replies, else what to reply to."""

    x: np.ndarray
    y: np.ndarray | None = None

    def __len__(self):
        return len(self.x)


def talks(*said, answered=True):
    """said: (system or None, [(user, reply), ...]) of each conversation."""
    x, y = np.empty(len(said), dtype=object), np.empty(len(said), dtype=object)
    for i, (system, turns) in enumerate(said):
        x[i] = {"id": str(i), "system": system, "user": [user for user, _ in turns]}
        y[i] = [reply for _, reply in turns]
    return Talks(x, y if answered else None)


FIRST = talks(
    ("It is 2022.", [("Who is mayor?", "Ada Berg")]),
    ("It is 2022.", [("Who won the cup?", "Red Foxes"), ("And where was the fair?", "Old Fjord")]),
    (None, [("What does bread cost?", "two cents")]),
    ("It is 2022.", [("What does milk cost, and is it more than last year?", "six dimes")]),
)
SECOND = talks(
    ("It is 2023.", [("Who is mayor?", "Ben Cole")]),
    ("It is 2023.", [("Who won the cup?", "Blue Owls"), ("And where was the fair?", "New Bryn")]),
    ("It is 2023.", [("What does bread cost?", "five pence")]),
)


def asked(data):
    return Talks(data.x)


def weights_of(learner):
    return {name: tensor.detach().clone() for name, tensor in learner.network.state_dict().items()}


def taught(learner, rounds=(FIRST, SECOND), seed=0, first=1, folder=None):
    """The learner after these rounds."""
    for k, data in enumerate(rounds, start=first):
        context = {"train_rounds": tuple(rounds[:k])} if getattr(learner, "sees_past_rounds", False) else {}
        learner.train(data, None, round=k, seed=seed, folder=folder, **context)
    return learner
