"""Greedy sampler and dumb learner."""

from dataclasses import replace

import torch

from ianvs.authoring import ClassBalancedMemory, RoundData, TorchLearner
from ianvs.authoring.memory import memory_options


class GDumb(TorchLearner):
    """Greedy sampler and dumb learner (Prabhu et al. 2020, algorithms 1 and 2).

    train() only fills a memory that is balanced over classes. The network is trained from scratch on nothing but the
    memory when it is asked for the first time afterwards, so that the time of learning counts as time of testing.

    capacity: samples that are kept; memory_total is another name of it. memory_per_class: of each class instead.
    """

    def __init__(
        self, *, capacity: int = 200, memory_total: int | None = None, memory_per_class: int | None = None, **training
    ):
        super().__init__(**training)
        share = memory_options("balanced", memory_total, memory_per_class)
        self.memory = ClassBalancedMemory(capacity if memory_total is None else memory_total, **share)
        self.due = None  # of the round after which nothing was asked yet

    def training_data(self, data):
        samples = data.samples_to_store()
        self.memory.add(samples.x, samples.y, data.generator("memory"))
        if data.pretraining:  # a copy will be adapted, which asks nothing before
            self.start_again(data)
            return replace(data, x=self.memory.x, y=self.memory.y, passes=None)
        self.due = {name: getattr(data, name) for name in ("round", "seed", "classes_seen", "mask", "task_masks")}
        return data.nothing()

    def train(self, train_data, valid_data=None, **context):
        super().train(train_data, valid_data, **context)
        if self.due is not None:  # there is no network until it is asked
            self.due["shape"] = self._shape
            self.reset()
            del self.network

    def learn(self, device):
        if self.due is not None:
            place = torch.device(device)
            self._shape = self.due.pop("shape")
            options = {name: value.to(place) if torch.is_tensor(value) else value for name, value in self.due.items()}
            data = RoundData(
                self.memory.x, self.memory.y, device=place, prepare=self.prepare, views=self.views, **options
            )
            self.due = None
            self.start_again(data)
            self.study(data)

    def answer_logits(self, data, *, device="cpu", **context):
        self.learn(device)
        return super().answer_logits(data, device=device, **context)

    def features(self, data, *, device="cpu", **context):
        self.learn(device)
        return super().features(data, device=device, **context)

    def state(self):
        return {"memory": self.memory.state(), "due": self.due}

    def restore(self, state):
        self.memory.restore(state["memory"])
        self.due = state["due"]
