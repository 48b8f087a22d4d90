"""The source of a plugin: its file and, transitively, its local imports, with their digests.

Local files are below the plugin's folder or the job's, or belong to ianvs itself, on which built-in methods are based.
"""

import os
import sys
from pathlib import Path
from typing import NamedTuple

from ianvs.base.entry_points import installed
from ianvs.base.package import own_name
from ianvs.plugins.authors_files import is_installed
from ianvs.plugins.loader import ENTRY_POINTS
from ianvs.plugins.local_imports import (
    INIT,
    bytes_digest,
    find_module,
    import_folders,
    package_of,
    source_files,
    tree_digest,
)


def source_of(url: str | None, name: str, group: str = ENTRY_POINTS, job: Path | None = None) -> dict[str, str]:
    """Digest each source file of a plugin, without comments, docstrings and formatting.

    Args:
        url: As `ianvs.plugins.loader.load` takes it.
        name: The name of the plugin.
        group: The entry points among which it is looked up if it has no url.
        job: The folder of the job, whose modules are local as well.

    Returns:
        {short file name: digest}; {} if the file is not known. Names are relative to the plugin's folder or its
        package, and those of ianvs to ianvs's, so that a moved folder keeps them.
    """
    plugin_files = _locate(url, name, group, job)
    return {plugin_files.short(path): tree_digest(path) for path in sorted(plugin_files.files())}


def file_digests(url: str | None, name: str, job: Path | None = None) -> dict[str, str]:
    """Digest the text of each source file of a plugin, as `source_of`; only line ends don't count."""
    plugin_files = _locate(url, name, ENTRY_POINTS, job)
    return {plugin_files.short(path): bytes_digest(path) for path in sorted(plugin_files.files())}


def local_files(url: str | None, name: str, job: Path | None = None) -> set[Path]:
    """Return the files that `source_of` digests."""
    return _locate(url, name, ENTRY_POINTS, job).files()


def authors_sources(url: str | None, name: str, job: Path | None = None, group: str = ENTRY_POINTS) -> list[Path]:
    """Return the `local_files` that belong neither to ianvs nor to an installed package, the entry file first."""
    plugin_files = _locate(url, name, group, job)
    theirs = (path for path in plugin_files.files() if own_name(path) is None and not is_installed(path))
    return sorted(theirs, key=lambda path: (path != plugin_files.entry, path))


class _PluginFiles(NamedTuple):
    """The files of a plugin. folder: base of their short names. local_folders: folders whose modules are local."""

    entry: Path | None = None
    folder: Path = Path()
    local_folders: tuple[Path, ...] = ()

    def files(self) -> set[Path]:
        return set() if self.entry is None else source_files(self.entry, self.local_folders)

    def short(self, path: Path) -> str:
        """Return the short name of one of the files."""
        if path.is_relative_to(self.folder):
            return path.relative_to(self.folder).as_posix()
        if (package_path := own_name(path)) is not None:
            return package_path.as_posix()
        around = next((folder for folder in self.local_folders if path.is_relative_to(folder)), path.parent)
        return os.path.relpath(path, self.folder if self.folder.is_relative_to(around) else around)


def _locate(url: str | None, name: str, group: str, job: Path | None) -> _PluginFiles:
    job_folder = () if job is None else (job.resolve(),)
    if url is not None and url.endswith(".py"):
        entry = Path(url).resolve()
        return _PluginFiles(entry, package_of(entry) or entry.parent, (*import_folders(entry), *job_folder))
    if url is not None and Path(url).is_absolute():  # the folder of a package
        file = Path(url).resolve() / INIT
        return _PluginFiles(file, file.parent, (file.parent, *job_folder)) if file.is_file() else _PluginFiles()
    if url is None and name not in installed(group):
        return _PluginFiles()
    module = (url or installed(group)[name].value).partition(":")[0]
    source = find_module(module, [*sys.path])
    if source is None:
        return _PluginFiles()
    package_depth = module.count(".") - (source.name != INIT)  # modules of its top-level package are local
    return _PluginFiles(
        source, source.parent, (source if package_depth < 0 else source.parents[package_depth], *job_folder)
    )
