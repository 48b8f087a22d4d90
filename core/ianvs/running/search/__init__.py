"""A search for hyperparameters: what is asked for next, who goes on, who has won. Runs nothing."""

from ianvs.running.search.drawing import draw
from ianvs.running.search.halving import going_on, rungs_of
from ianvs.running.search.waves import REDUCTION, next_wave, record_value

__all__ = ["REDUCTION", "draw", "going_on", "next_wave", "rungs_of", "record_value"]
