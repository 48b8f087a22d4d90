"""The contracts, by which a job names how its plugins are made from what its `url` says."""

from ianvs.config.contracts import Native


class Avalanche(Native):
    """A function that returns a strategy of Avalanche 0.6."""

    name = "avalanche"
    adapter = "ianvs.testalgorithms.adapters.avalanche_strategies"
