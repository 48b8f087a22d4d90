"""What a plain (unquoted) scalar means: the core schema of YAML 1.2.2, section 10.3.2.

PyYAML implements YAML 1.1, where `1e-3` is text, `no` is false, `10:30` is 630 and `2024-01-01` a date.
"""

import math
import re
from collections.abc import Callable

Scalar = str | int | float | bool | None

_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Scalar]], ...] = (
    (re.compile(r"null|Null|NULL|~|"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"0o[0-7]+"), lambda text: int(text, 8)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.(nan|NaN|NAN)"), lambda text: math.nan),
)


def resolve_scalar(text: str) -> Scalar:
    """The value of the plain scalar `text`; text that matches no form stays text.

    Raises ValueError for an integer of more digits than Python converts.
    """
    for form, value in _FORMS:
        if form.fullmatch(text):
            return value(text)
    return text
