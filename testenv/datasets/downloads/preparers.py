"""`prepare`: writes index files of a downloaded dataset."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ianvs.base.errors import DataError, closest, one_line
from ianvs.base.package import files_of
from ianvs.testenv.datasets.downloads import bdd100k, camvid, cityscapes, cloud_robotics, idd, synthia
from ianvs.testenv.datasets.downloads.raw_domain import Preparer, PrepareRequest
from ianvs.testenv.datasets.downloads.writing import (
    Prepared,
    Progress,
    refuse_strange_index,
    write_domain,
    write_together,
)

PREPARERS: Mapping[str, Preparer] = MappingProxyType(
    {module.PREPARER.name: module.PREPARER for module in (cityscapes, synthia, cloud_robotics, bdd100k, idd, camvid)}
)
"""By the name that `ianvs dataset prepare` takes."""

_COMMON = ("domain", "skip_missing")


def prepare(
    name: str, root: Path, out: Path, *, check: bool = True, progress: Progress | None = None, **options: Any
) -> tuple[Prepared, ...]:
    """Write train-index.txt, test-index.txt, classes.yaml and provenance.json of a dataset in `root` to `out`.

    Images stay in place; segmentation masks too, except those whose ids have to be mapped: they are written below
    `out`. A dataset of several domains (camvid) gets a folder for each below `out`, and index files of all in `out`.

    options: the fields of PrepareRequest that the preparer uses. check: open every segmentation mask (mapped ones are
    always opened). Raises DataError that names the invalid file.
    """
    preparer = PREPARERS.get(name)
    if preparer is None:
        choices = one_line(sorted(PREPARERS))
        raise DataError(
            f"there is no preparer '{name}'.{closest(name, PREPARERS)} There are: {choices}.", code="invalid-choice"
        )
    heeded = (*_COMMON, *preparer.options)
    for option in options:
        if option not in heeded:
            raise DataError(
                f"{name} has no option '{option}'.{closest(option, heeded)} It takes: {one_line(heeded)}.",
                code="unknown-option",
            )
    if options.get("classes") not in (None, "own", "cityscapes"):
        raise DataError(f"`classes` is 'own' or 'cityscapes', not '{options['classes']}'.", code="invalid-choice")
    if not 0 < options.get("test_ratio", 0.2) < 1:
        raise DataError(f"`test_ratio` is between 0 and 1, not {options['test_ratio']}.", code="out-of-range")
    if not root.is_dir():
        raise DataError(f"{root}: there is no such folder.", code="missing-file")
    refuse_strange_index(out)
    domains = preparer.find(PrepareRequest(root=root, **options))
    origin = origin_of(name, {"root": str(root.resolve()), "options": options})
    if not preparer.several:
        return (write_domain(domains[0], out, origin, check=check, progress=progress),)
    prepared = tuple(write_domain(item, out / item.domain, origin, check=check, progress=progress) for item in domains)
    write_together(out, prepared, origin)
    return prepared


def origin_of(name: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the head of a provenance.json."""
    package = files_of("ianvs")  # None if it runs from a source tree
    return {"dataset": name, "written_by": package[0] if package else "ianvs", **more}
