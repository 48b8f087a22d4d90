"""A job as plain data, for the record of a run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from ianvs.base.secrets import without_secrets
from ianvs.config.spec import JobSpec

__all__ = ["resolved"]

_NOT_CONTENT = ("place", "places", "value_places", "warnings", "problems", "written", "overrides")


def resolved(job: JobSpec) -> dict[str, object]:
    """What the files of `job` say, defaults filled in, in dicts and lists that json can hold. Secrets are hidden.

    A grid is a mapping from hyperparameters to lists of values. Infinite numbers and nan are text. A path that was
    written with `${NAME}` is shown with it.
    """
    overrides = {f"{one.algorithm}.{one.key}".lstrip("."): one.value for one in job.overrides}
    plain = cast("dict[str, object]", _plain(job, job.unexpanded_paths))
    return without_secrets(plain | ({"set": _plain(overrides, job.unexpanded_paths)} if overrides else {}))


def _plain(value: object, unexpanded_paths: Mapping[Path, str]) -> object:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in _NOT_CONTENT]
        value = {name: dict(getattr(value, name)) if name == "grid" else getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain(item, unexpanded_paths) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, unexpanded_paths) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Path) or (isinstance(value, str) and value.startswith("/")):
        path = Path(value)
        known = next((parent for parent in (path, *path.parents) if parent in unexpanded_paths), None)
        return str(value if known is None else Path(unexpanded_paths[known]) / path.relative_to(known))
    return value
