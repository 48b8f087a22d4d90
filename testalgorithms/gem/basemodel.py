"""Gradient episodic memory."""

import torch

from ianvs.authoring import PerRoundMemory, TorchLearner, flat_gradients, gem_projection, set_flat_gradients


class GEM(TorchLearner):
    """Gradient episodic memory (Lopez-Paz & Ranzato 2017, eq. 8 to 11).

    A step goes along g + G'v, the vector nearest to g that points against no row of G, where
    v solves min 1/2 v'GG'v + g'G'v over v >= margin. Row k of G is the gradient on all that is kept of round k.

    Rounds are what it protects: where an exam hides them and brings a stream, every chunk of it is one.

    samples_per_round: kept of each, drawn at random (the paper takes the last ones of a stream in random order).
    margin: as in the authors' code, pushes steps further towards what earlier rounds want; the paper adds it to v.
    """

    def __init__(self, *, samples_per_round: int = 50, margin: float = 0.5, **training):
        super().__init__(**training)
        self.margin = margin
        self.memory = PerRoundMemory(samples_per_round)

    def adjust_gradients(self, data):
        if len(self.memory):
            gradient = flat_gradients(self.network.parameters())
            parts = (self.batch(data, self.inputs(part.x), part.y.to(data.device)) for part in self.memory.parts)
            references = torch.stack([self.gradient(part) for part in parts])
            set_flat_gradients(self.network.parameters(), gem_projection(gradient, references, self.margin))

    def after_round(self, data):
        samples = data.samples_to_store()
        if len(samples):
            self.memory.add(samples.x, samples.y, data.generator("memory"))

    def state(self):
        return {"parts": self.memory.state()}

    def restore(self, state):
        self.memory.restore(state["parts"])
