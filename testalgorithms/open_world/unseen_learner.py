"""Experience replay by a learner that also scores how different each sample is from everything that was taught."""

from dataclasses import replace

import torch

from ianvs.authoring import ReservoirMemory, TorchLearner
from ianvs.authoring.round_data import gather, output_mask, to_device


class KeptSamples:
    """The samples of earlier rounds that a learner stores, counted together."""

    def __init__(self, *memories):
        self.memories = memories

    def __len__(self):
        return sum(map(len, self.memories))

    @property
    def nbytes(self):
        return sum(memory.nbytes for memory in self.memories)


class UnseenLearner(TorchLearner):
    """Replays old samples as Replay does; a detector defines `strangeness`, and what is above a threshold is unseen.

    The threshold is the `seen_kept` quantile of the strangeness of samples of all rounds so far that were never trained
    on: a network is too sure of those that were.

    capacity: samples that are kept, a fifth of them for the threshold. seen_kept: share of what was taught that shall
    pass for seen. held_out: share of a round that is offered to the threshold instead of being trained on.
    """

    def __init__(self, *, capacity: int = 200, seen_kept: float = 0.95, held_out: float = 0.1, **training):
        super().__init__(**training)
        self.seen_kept, self.held_out, self.threshold = seen_kept, held_out, None
        self.replayed, self.held = ReservoirMemory(capacity - capacity // 5), ReservoirMemory(capacity // 5)
        self.memory = KeptSamples(self.replayed, self.held)

    def strangeness(self, x, mask):
        """Return (B,) for prepared samples x (B, ...): higher for samples less similar to what was taught.

        mask: (num_classes,) 0 for classes that were taught and -inf for others; None: all were.
        """
        raise NotImplementedError

    def detect_unseen(self, data, *, num_classes, classes_seen=(), device="cpu", **context):
        """Return the strangeness above the threshold (N,); before there is a threshold, everything is unseen."""
        if self.threshold is None:
            return torch.ones(len(data))
        self.network.to(device)
        mask = output_mask(tuple(classes_seen), num_classes, torch.device(device))
        return self._strangeness(data.tensors("cpu"), mask) - self.threshold

    def before_round(self, data):
        self.draws = data.generator("replay")

    def training_data(self, data):
        order = torch.randperm(len(data), generator=data.generator("held out")).to(data.y.device)
        rows = order[round(self.held_out * len(data)) :]
        self.spared = order[: len(data) - len(rows)]
        return replace(data, x=gather(data.x, rows), y=data.y.index_select(0, rows))

    def extend(self, x, y):
        if not len(self.replayed):
            return x, y
        old_x, old_y = self.replayed.sample(len(y), self.draws)
        return torch.cat([x, self.views(old_x)]), torch.cat([y, to_device(old_y, y.device)])

    def after_round(self, data):
        spared = replace(data, x=gather(data.x, self.spared), y=data.y.index_select(0, self.spared))
        taught = self.training_data(data)  # the same as before: its draws are those of the round
        for memory, part, draws in ((self.replayed, taught, "memory"), (self.held, spared, "threshold")):
            samples = part.samples_to_store()
            memory.add(samples.x, samples.y, data.generator(draws))
        if len(self.held) and not data.pretraining:
            self.threshold = float(torch.quantile(self._strangeness(self.held.x, data.mask), self.seen_kept))

    def state(self):
        state = {"replayed": self.replayed.state(), "held": self.held.state(), "threshold": self.threshold}
        return {**state, **self.detector_state()}

    def restore(self, state):
        self.replayed.restore(state["replayed"])
        self.held.restore(state["held"])
        self.threshold = state["threshold"]

    def detector_state(self):
        """Return the state that a detector keeps between rounds, for its own `restore`."""
        return {}

    def _strangeness(self, x, mask):
        return self.each(x, lambda part: self.strangeness(part, mask)).double().cpu()
