"""Folders that a plugin's `save` writes into although nobody makes them."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

_WRITERS = {"save", "savez", "savez_compressed", "savetxt", "open", "save_file", "to_csv", "to_pickle"}
_MAKERS = {"makedirs", "mkdir"}


def missing_folder_text(name: str, folder: str) -> str:
    """Return the message for a `save` of the class `name` that writes into a missing folder."""
    return (
        f"{name}.save() writes into the folder '{folder}', which does not exist. Write at the path that save() is "
        f"given, as in torch.save(state, path), or make the folder first: os.makedirs({folder!r}, exist_ok=True)."
    )


def folder_never_made(save: Callable[..., object]) -> str | None:
    """Return the first folder of a path that stands as text in `save`, unless it exists or the function makes folders.

    Relative folders are those of the case, whose current folder is empty at first.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(save)))
    except (OSError, TypeError, SyntaxError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(_name(call) in _MAKERS for call in calls):
        return None
    folders = (folder for call in calls if _name(call) in _WRITERS for folder in _folders(call))
    return next((folder for folder in folders if not (Path(folder).is_absolute() and Path(folder).exists())), None)


def _folders(call: ast.Call) -> Iterator[str]:
    """Yield the folders of paths among the arguments whose beginning stands as text."""
    for argument in call.args:
        folder, separator, _ = _beginning(argument).rpartition("/")
        if folder and separator:
            yield folder


def _beginning(path: ast.expr) -> str:
    """Return the part of a path, or of a text, up to the first value that is computed."""
    if isinstance(path, ast.Constant):
        return path.value if isinstance(path.value, str) else ""
    if isinstance(path, ast.JoinedStr):
        return _beginning(path.values[0]) if path.values else ""
    if isinstance(path, ast.Call) and _name(path) == "join" and path.args and isinstance(path.args[0], ast.Constant):
        return "/".join([str(path.args[0].value), *map(_beginning, path.args[1:])])
    return ""


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
