"""Training on nothing but a memory, whatever the memory favours."""

from dataclasses import replace

from ianvs.authoring import BiasedReservoirMemory, ReservoirMemory, TorchLearner


class BiasedReservoir(TorchLearner):
    """In each round, puts the new samples into a memory and trains on the memory alone (CLEAR; Lin et al. 2021).

    min over theta of the mean of -log p(y | x; theta), over the memory with what the round brought.

    formula: which samples are kept. "reservoir": all equally likely. "alpha_over_n": a sample of the n-th bucket is
    accepted with probability alpha / n; alpha 1 is unbiased, above 1 favours recent data. "constant": with alpha.
    capacity: samples in memory. reset: each round starts from the first weights again.
    """

    def __init__(
        self,
        *,
        capacity: int = 200,
        formula: str = "alpha_over_n",
        alpha: float = 1.0,
        reset: bool = False,
        **training,
    ):
        super().__init__(**training)
        plain = formula == "reservoir"
        self.memory = ReservoirMemory(capacity) if plain else BiasedReservoirMemory(capacity, formula, alpha)
        self.from_scratch = reset

    def training_data(self, data):
        samples = data.samples_to_store()
        self.memory.add(samples.x, samples.y, data.generator("memory"))
        if self.from_scratch:
            self.start_again(data)
        return replace(samples, x=self.memory.x, y=self.memory.y, passes=None)

    def state(self):
        return self.memory.state()

    def restore(self, state):
        self.memory.restore(state)
