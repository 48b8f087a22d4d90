"""The source of a plugin: its file and, transitively, its local imports, with their digests.

Local files are below the plugin's folder or the job's, or belong to ianvs itself, on which built-in methods are based.
"""

import os
import sys
from pathlib import Path

from ianvs.base.entry_points import installed
from ianvs.base.package import own_name
from ianvs.plugins.authors_files import is_installed
from ianvs.plugins.loader import ENTRY_POINTS
from ianvs.plugins.local_imports import INIT, find_module, package_and_folders, parsed, source_files


def source_of(
    url: str | None, name: str, group: str = ENTRY_POINTS, job: Path | None = None, *, exactly: bool = False
) -> dict[str, str]:
    """Digest each source file of a plugin, without comments, docstrings and formatting.

    Args:
        url: As `ianvs.plugins.loader.load` takes it.
        name: The name of the plugin.
        group: The entry points among which it is looked up if it has no url.
        job: The folder of the job, whose modules are local as well.
        exactly: Only line ends don't count.

    Returns:
        {short file name: digest}; {} if the file is not known. Names are relative to the plugin's folder or its
        package, and those of ianvs to ianvs's, so that a moved folder keeps them.
    """
    files = sorted(local_files(url, name, group, job).items())
    return {short: parsed(path).text if exactly else parsed(path).tree for path, short in files}


def authors_sources(url: str | None, name: str, group: str = ENTRY_POINTS, job: Path | None = None) -> list[Path]:
    """Return the `local_files` that belong neither to ianvs nor to an installed package, the entry file first."""
    files = local_files(url, name, group, job)
    return [path for path in files if own_name(path) is None and not is_installed(path)]


def local_files(url: str | None, name: str, group: str = ENTRY_POINTS, job: Path | None = None) -> dict[Path, str]:
    """Return the files that `source_of` digests with their short names, the entry file first."""
    if url is not None and url.endswith(".py"):
        entry = Path(url).resolve()
        package, local_folders = package_and_folders(entry)
        home = package or entry.parent  # short names are relative to it
    elif url is not None and Path(url).is_absolute():  # the folder of a package
        entry = Path(url).resolve() / INIT
        if not entry.is_file():
            return {}
        home, local_folders = entry.parent, (entry.parent,)
    else:
        point = installed(group).get(name) if url is None else None
        module = (url or ("" if point is None else point.value)).partition(":")[0]
        source = find_module(module, [*sys.path])
        if source is None:
            return {}
        depth = module.count(".") - (source.name != INIT)  # modules of its top-level package are local
        entry, home, local_folders = source, source.parent, (source if depth < 0 else source.parents[depth],)
    if job is not None:
        local_folders += (job.resolve(),)
    files = {}
    for path in (entry, *sorted(source_files(entry, local_folders) - {entry})):
        if path.is_relative_to(home):
            files[path] = path.relative_to(home).as_posix()
        elif (package_path := own_name(path)) is not None:
            files[path] = package_path.as_posix()
        else:
            around = next((folder for folder in local_folders if path.is_relative_to(folder)), path.parent)
            files[path] = os.path.relpath(path, home if home.is_relative_to(around) else around)
    return files
