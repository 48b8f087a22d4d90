"""Generated scenes: one to four shapes on a texture, with the box and the class of each."""

from ianvs.testenv.datasets.shapes.make_shapes import make_shapes, multi_hot
from ianvs.testenv.datasets.shapes.outlines import OUTLINES

SHAPES_CLASSES = tuple(OUTLINES)

__all__ = ["SHAPES_CLASSES", "make_shapes", "multi_hot"]
