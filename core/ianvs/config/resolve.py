"""A job as plain data, for the record of a run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ianvs.config.secrets import without_secrets
from ianvs.config.spec import JobSpec

__all__ = ["resolved"]

_NOT_CONTENT = ("place", "places", "value_places", "warnings", "problems", "written", "overrides")


def resolved(job: JobSpec) -> dict[str, Any]:
    """What the files of `job` say, defaults filled in, in dicts and lists that json can hold. Secrets are hidden.

    A grid is a mapping from hyperparameters to lists of values. Infinite numbers and nan are text. A path that was
    written with `${NAME}` is shown with it.
    """
    overrides = {f"{one.algorithm}.{one.key}".lstrip("."): one.value for one in job.overrides}
    said = {"set": overrides} if overrides else {}
    return without_secrets(_plain(job, job.written) | _plain(said, job.written))


def _plain(value: object, written: Mapping[Path, str]) -> Any:
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        kept = {name: item for name, item in fields.items() if name not in _NOT_CONTENT}
        if "grid" in kept:
            kept["grid"] = dict(kept["grid"])
        return {name: _plain(item, written) for name, item in kept.items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(item, written) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, written) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Path) or (isinstance(value, str) and value.startswith("/")):
        path = Path(value)
        known = next((parent for parent in (path, *path.parents) if parent in written), None)
        return str(value if known is None else Path(written[known]) / path.relative_to(known))
    return value
