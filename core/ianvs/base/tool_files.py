"""Folders and files that operating systems and tools leave among data."""

from pathlib import PurePath

_FOLDERS = frozenset(
    name.casefold()
    for name in (
        "@eaDir", "#recycle", "#snapshot", "@Recycle", "@Recently-Snapshot", "__MACOSX", "__pycache__", "lost+found",
        "$RECYCLE.BIN", "RECYCLER", "LOST.DIR", "FOUND.000", "~snapshot", "@__thumb", "@sharebin",
        "System Volume Information", "Network Trash Folder", "Temporary Items",
    )
)  # fmt: skip
_FILES = frozenset(name.casefold() for name in ("Thumbs.db", "ehthumbs.db", "desktop.ini", "Icon\r"))


def is_of_tool(name: str) -> bool:
    """Return whether a file or folder of this name was left by a tool: hidden ones, with a leading dot, are taken for
    such.
    """
    return name.startswith(".") or name.casefold() in _FOLDERS or name.casefold() in _FILES


def tool_part(path: PurePath) -> PurePath | None:
    """Return the topmost folder of a relative path, or the file, that was left by a tool; None if there is none."""
    for position, name in enumerate(path.parts):
        if is_of_tool(name):
            return PurePath(*path.parts[: position + 1])
    return None
