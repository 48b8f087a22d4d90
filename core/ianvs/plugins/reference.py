"""Which class trains the same network plainly: what reference runs of an algorithm train."""

from __future__ import annotations

from pathlib import Path

from ianvs.base.errors import PluginError


def reference_of(url: str | None, name: str, target: object) -> tuple[str | None, str]:
    """(url, name) of the class that `target`, the plugin `name` at `url`, names as its `reference`; else itself.

    It is named as "package.module:Class", as "file.py:Class" with a path from the plugin's folder, or as "Class" in the
    plugin's own file. Raises PluginError for anything else.
    """
    said = getattr(target, "reference", None)
    if said is None:
        return url, name
    if not isinstance(said, str) or not said.rpartition(":")[2]:
        raise PluginError(f'{name}.reference is {said!r}; it names a class: "package.module:Class".')
    place, _, class_name = said.rpartition(":")
    if place.endswith(".py") and url is not None and url.endswith(".py"):
        place = str(Path(url).parent / place)
    return place or url, class_name
