"""How source files of authors are listed and read, whatever else lies beside them in their folders."""

from collections.abc import Iterator
from pathlib import Path

from ianvs.base.errors import Location, PluginError


def regular_files(folder: Path, *patterns: str) -> Iterator[Path]:
    """Yield files below a folder, one pattern after the other.

    Folders called `x.py`, links that lead nowhere, sockets and pipes are left out.

    Args:
        folder: The folder from which the patterns start.
        patterns: As `Path.glob` takes them.

    Yields:
        Paths of regular files, or of links to such.
    """
    for pattern in patterns:
        yield from (path for path in folder.glob(pattern) if path.is_file())


def read_source(path: Path) -> bytes:
    """Return the bytes of a source file.

    Args:
        path: The file.

    Returns:
        Its content.

    Raises:
        PluginError: It can't be read; the message names the file, the reason and the remedy.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{Location(path)}: the file can't be read: {error.strerror or error}."
        raise PluginError(
            f"{message} Make it readable, or take it out of the folder.", code="unreadable-file"
        ) from error
