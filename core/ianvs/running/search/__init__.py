"""A search for hyperparameters: what is asked for next, who goes on, who has won. Runs nothing."""

from ianvs.running.search.drawing import draw
from ianvs.running.search.waves import REDUCTION, going_on, next_wave, record_value, rungs_of

__all__ = ["REDUCTION", "draw", "going_on", "next_wave", "rungs_of", "record_value"]
