"""Networks that several methods share."""

from ianvs.testalgorithms.nets.erfnet import ErfNet, ErfNetShape
from ianvs.testalgorithms.nets.scene_body import scene_body

__all__ = ["ErfNet", "ErfNetShape", "scene_body"]
