"""The interpreter of an algorithm's plugins, if not that of ianvs."""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from ianvs.base.errors import InvalidValue
from ianvs.config.models.base import path_text
from ianvs.config.models.section import PlacedSpec
from ianvs.config.paths import Lookup, expand

FOLDER = "environments"
"""Folder of environments created by `ianvs prepare`, in a workspace."""


def _interpreter(value: object, info: "ValidationInfo[Lookup]") -> Path | None:
    """Return an absolute path without resolving its last part, which is a link in a virtual environment."""
    if value in (None, ""):
        return None
    text, lookup = path_text(value), info.context
    lookup.find(text)
    folder, name = os.path.split(expand(text, lookup.environment))
    path = lookup.find(folder or ".", "folder") / name
    if not os.access(path, os.X_OK):
        raise InvalidValue(
            f"'{text}' can't be executed. Write the path of a python interpreter, such as venv/bin/python.",
            "invalid-interpreter",
        )
    return path


def _requirements(value: object, info: "ValidationInfo[Lookup]") -> Path:
    return info.context.find(value)


Interpreter = Annotated[Path | None, BeforeValidator(_interpreter)]


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec(PlacedSpec):
    """An environment created by `ianvs prepare`: a list of packages, and an interpreter to start from."""

    requirements: Annotated[
        Path, BeforeValidator(_requirements), Field(description="a file that lists packages, as pip reads it")
    ]
    python: Interpreter = None  # to start from; None: the one that ianvs runs in

    @property
    def base(self) -> Path:
        """The interpreter to start from."""
        return self.python or Path(sys.executable)

    def folder(self, workspace: Path) -> Path:
        """Return its folder, which depends on the list of packages and on the interpreter."""
        read = self.requirements.read_bytes() + b"\0" + os.fsencode(self.base.resolve())
        return workspace / FOLDER / hashlib.sha256(read).hexdigest()[:16]

    def interpreter(self, workspace: Path) -> Path:
        """Return its python."""
        return self.folder(workspace) / "bin" / "python"
