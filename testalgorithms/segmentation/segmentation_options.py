"""Hyperparameters that are names or shapes."""

from collections.abc import Sequence
from types import MappingProxyType

from ianvs.base.errors import require_known
from ianvs.testalgorithms.nets import ErfNetShape

SHAPES = MappingProxyType(
    {
        "erfnet": ErfNetShape(),
        "erfnet_narrow": ErfNetShape(
            (16, 32, 64), blocks=2, dilations=(2, 4, 8), decoder_blocks=1, dropout=(0.03, 0.1)
        ),
    }
)


def shape_of(name: str, **changes: Sequence[float] | int | None) -> ErfNetShape:
    """The shape called `name`, with those of its fields changed that are not None."""
    require_known("network", name, SHAPES)
    given = {
        key: value if isinstance(value, int) else tuple(value) for key, value in changes.items() if value is not None
    }
    return ErfNetShape(**{**vars(SHAPES[name]), **given})
