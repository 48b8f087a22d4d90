"""Former name of `ianvs.exam.data.file_formats`, which packages may import; removed in the next release."""

import warnings
from typing import Any

from ianvs.exam.data import file_formats

_NAMES = {"Door": "FileFormat", "doors": "all_formats", "door_of": "find_format"}


def __getattr__(name: str) -> Any:
    member = getattr(file_formats, _NAMES.get(name, name))
    if not name.startswith("__"):
        message = f"{__name__}.{name} is now {file_formats.__name__}.{_NAMES.get(name, name)}; the former name will be"
        warnings.warn(f"{message} removed in the next release.", DeprecationWarning, stacklevel=2)
    return member
