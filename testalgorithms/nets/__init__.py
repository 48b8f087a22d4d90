"""Networks that several methods share."""

from testalgorithms.nets.erfnet import ErfNet, ErfNetShape

__all__ = ["ErfNet", "ErfNetShape"]
