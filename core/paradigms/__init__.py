"""How one case is examined."""

from core.paradigms.rounds import PARADIGMS, Paradigm, Sitting, examine, find_paradigm

__all__ = ["PARADIGMS", "Paradigm", "Sitting", "examine", "find_paradigm"]
