"""The templates of `ianvs new`: small jobs that run as they are, in which names are replaced by the user's own."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from ianvs.base.errors import IanvsError
from ianvs.base.package import PACKAGE

__all__ = ["KINDS", "from_template"]

KINDS = ("job", "algorithm", "metric", "dataset", "paradigm")
_TEMPLATES = PACKAGE / "cli" / "templates"


def from_template(kind: str, name: str, folder: str) -> dict[str, str]:
    """{file name: text} of a new thing of this kind, called `name`, in `folder` as the user has said it.

    In a template of the kind "metric" it is called my_metric, and MyMetric where it is a class. Raises IanvsError for a
    name that no file of python code can have.
    """
    own, file_name = f"my_{kind}", name if kind == "job" else _module_name(kind, name)
    class_name = "".join(part[:1].upper() + part[1:] for part in file_name.split("_"))
    new = {f"-f {own}": f"-f {folder}", own: file_name, f"My{kind.title()}": class_name}

    def renamed(text: str) -> str:
        return re.sub("|".join(new), lambda found: new[found[0]], text)

    files = (path for path in sorted((_TEMPLATES / kind).iterdir()) if path.is_file())
    return {renamed(path.name): renamed(path.read_text(encoding="utf-8")) for path in files}


def _module_name(kind: str, name: str) -> str:
    module = re.sub(r"[- ]", "_", name)
    if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module) or module.startswith("_"):
        raise IanvsError(f"a {kind} can't be called '{name}': take letters, digits and _, a letter first.")
    if module in sys.stdlib_module_names or _is_installed(module):
        raise IanvsError(
            f"{module}.py would stand in the way of the installed module '{module}': whoever imports that would get "
            f"this file. Choose another name, such as my_{module}."
        )
    return module


def _is_installed(module: str) -> bool:
    """Whether `import module` finds something elsewhere than in the folder that ianvs is called from."""
    folders = [folder for folder in sys.path if folder and Path(folder).resolve() != Path.cwd().resolve()]
    found = PathFinder.find_spec(module, folders)
    return found is not None and found.origin is not None
