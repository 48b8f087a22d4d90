"""How one case is examined."""

from ianvs.paradigms.rounds import PARADIGMS, Paradigm, Session, examine, find_paradigm

__all__ = ["PARADIGMS", "Paradigm", "Session", "examine", "find_paradigm"]
