"""Networks that several methods share."""

from ianvs.testalgorithms.nets.erfnet import ErfNet, ErfNetShape

__all__ = ["ErfNet", "ErfNetShape"]
