"""What a plain (unquoted) scalar means: the core schema of YAML 1.2.2, section 10.3.2.

PyYAML implements YAML 1.1, where `1e-3` is text, `no` is false, `10:30` is 630 and `2024-01-01` a date.
"""

from __future__ import annotations

import re

__all__ = ["Scalar", "resolve_scalar"]

Scalar = str | int | float | bool | None

_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")


def resolve_scalar(text: str) -> Scalar:
    """The value of the plain scalar `text`; text that matches no form stays text.

    Raises ValueError for an integer of more digits than Python converts.
    """
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if _HEXADECIMAL.fullmatch(text):
        return int(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _INFINITY.fullmatch(text):
        return float(match[1] + "inf")
    if _NAN.fullmatch(text):
        return float("nan")
    return text
