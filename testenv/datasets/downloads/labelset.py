"""The classes of a dataset: names by id, groups and colours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

RGB = tuple[int, int, int]


@dataclass(frozen=True)
class LabelSet:
    """`classes` in the order of their ids, the keys of `palette`; `groups` is empty or holds every class once."""

    palette: Mapping[str, RGB]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.palette)
