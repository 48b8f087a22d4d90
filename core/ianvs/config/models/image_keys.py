"""Keys of a dataset on the conversion of image files and segmentation masks to arrays."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from ianvs.base.errors import InvalidValue
from ianvs.config.models.section import ByYamlType, NotEmpty
from ianvs.config.strict_yaml import described

IGNORE = "ignore"
"""The name in `mask_values` of pixels that belong to no class."""


def _square(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | list):
        message = f"image_size is a whole number or [height, width] in pixels, found {described(value)}."
        raise InvalidValue(message, "wrong-type")
    return [value, value] if isinstance(value, int) else value


def _two_numbers(value: object) -> object:
    if not isinstance(value, list):
        message = "value_range is [black, white], the values that become 0 and 255"
        raise InvalidValue(f"{message}; found {described(value)}.", "wrong-type")
    return value


def _range(value: tuple[float, float]) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise InvalidValue(f"value_range is [black, white], the lower number first; found {list(value)}.")
    return value


def class_name(value: object) -> object:
    """Return the name of a class that is written as an integer."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _of_one_form(values: Mapping[str, int | tuple[int, ...]]) -> Mapping[str, int | tuple[int, ...]]:
    by_value: dict[int | tuple[int, ...], str] = {}
    for name, value in values.items():
        if isinstance(value, int) != isinstance(next(iter(values.values())), int):
            raise InvalidValue("mask_values are all numbers, or all colours [red, green, blue]; these are mixed.")
        if value in by_value:
            raise InvalidValue(f"mask_values gives {value} to both '{by_value[value]}' and '{name}'. Keep one.")
        by_value[value] = name
    if set(values) == {IGNORE}:
        raise InvalidValue(f"mask_values names no class, only '{IGNORE}', which is none.")
    return values


ImageSize = Annotated[
    tuple[int, int],
    ByYamlType(list=Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)]),
    AfterValidator(tuple),
    BeforeValidator(_square),
]
"""A side, or [height, width], in pixels."""

ValueRange = Annotated[
    tuple[float, float],
    ByYamlType(list=Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)]),
    AfterValidator(lambda given: _range(tuple(given))),
    BeforeValidator(_two_numbers),
]
"""The values of images of more than 8 bits that become black and white."""

_Colour = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=3, max_length=3), AfterValidator(tuple)]
_MaskValue = Annotated[
    int | tuple[int, int, int], ByYamlType(number=Annotated[int, Field(ge=0, le=65535)], list=_Colour)
]
MaskValues = Annotated[
    Mapping[str, int | tuple[int, int, int]],
    ByYamlType(mapping=Annotated[dict[str, _MaskValue], NotEmpty]),
    AfterValidator(_of_one_form),
]
"""The value of each class in masks: a number, or a colour [red, green, blue]."""
