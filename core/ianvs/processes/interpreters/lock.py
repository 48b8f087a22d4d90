"""The interpreter and packages of a plugin; `ianvs prepare` creates an environment from a list."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ianvs.base.errors import IanvsError, one_line, shown_path
from ianvs.config.spec import AlgorithmSpec

WORKER = Path(__file__).with_name("worker.py")
_SECONDS = 60


@dataclass(frozen=True)
class Lock:
    """Versions of an interpreter. python: the minor version. packages: name==version, sorted. Paths do not count."""

    python: str
    packages: tuple[str, ...]

    @property
    def identity(self) -> str:
        return hashlib.sha256(json.dumps([self.python, self.packages]).encode()).hexdigest()[:20]

    def __str__(self) -> str:
        of_interest = [p for p in self.packages if not p.startswith(("pip==", "setuptools==", "wheel=="))]
        return f"Python {self.python} with {one_line(of_interest) or 'no packages'}"


def lock_of(algorithm: AlgorithmSpec) -> Lock:
    """Return the versions of an algorithm's interpreter, which is started once for each command. Raises IanvsError."""
    spec = algorithm.environment
    if spec is not None and algorithm.python is not None and not algorithm.python.exists():
        raise IanvsError(
            f"the environment of {algorithm.name}, {shown_path(spec.requirements)}, is not prepared. "
            "Run `ianvs prepare` with the job's file.",
            code="invalid-interpreter",
        )
    return _lock(str(algorithm.python))


@lru_cache(32)
def _lock(python: str) -> Lock:
    try:
        done = subprocess.run([python, "-I", "-S", str(WORKER), "versions"], capture_output=True, timeout=_SECONDS)
        versions: dict[str, Any] = json.loads(done.stdout)
        return Lock(versions["python"], tuple(versions["packages"]))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = str(error)
        if isinstance(error, ValueError):
            reason = (
                done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
            )
        raise IanvsError(
            f"the interpreter {shown_path(Path(python))} can't be used: {reason}. Python 3.8 or later is needed.",
            code="invalid-interpreter",
        ) from None


def prepare(algorithm: AlgorithmSpec, workspace: Path) -> bool:
    """Create the environment of an algorithm. Returns False if it exists.

    Raises:
        IanvsError: With the last output of the tool; nothing is left then.
    """
    spec = algorithm.environment
    assert spec is not None
    if spec.interpreter(workspace).exists():
        return False
    listed, near = ["-r", str(spec.requirements)], spec.requirements.parent
    make_environment(spec.base, listed, spec.folder(workspace), algorithm.name, near)
    return True


def make_environment(
    base: Path, requirements: Sequence[str], folder: Path, name: str, current: Path, beneath: Sequence[str] = ()
) -> None:
    """Create a virtual environment by uv if it is installed, else by venv and pip.

    Args:
        base: The interpreter to start from.
        requirements: Arguments of `pip install`.
        folder: Its final folder.
        name: Its purpose, for messages.
        current: The working directory of the tool: relative paths in requirements start there.
        beneath: Folders of installed packages that are also visible in it, after its own.

    Raises:
        IanvsError: With the last output of the tool; nothing is left then.
    """
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")  # another command may create the same
    shutil.rmtree(partial, ignore_errors=True)
    python, uv = str(base), None if beneath else shutil.which("uv")  # uv ignores packages in `beneath`
    target = str(partial / "bin" / "python")
    bare = ["--without-pip"] if beneath and find_spec("pip") is not None else []  # pip is in `beneath`, too
    steps = [
        [python, "-m", "venv", *bare, str(partial)],
        [target, "-m", "pip", "install", "--disable-pip-version-check", *requirements],
    ]
    if uv is not None:
        steps = [
            [uv, "venv", "--python", python, str(partial)],
            [uv, "pip", "install", "--python", target, *requirements],
        ]
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=current)
        if done.returncode:
            shutil.rmtree(partial, ignore_errors=True)
            output = " ".join(done.stdout.decode(errors="replace").split()[-60:])
            raise IanvsError(f"the environment of {name} can't be made: {output}", code="invalid-interpreter")
        if beneath and step is steps[0]:
            (packages,) = partial.glob("lib/python*/site-packages")
            lines = [f"import site; site.addsitedir({path!r})" for path in beneath]
            (packages / "beneath.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        partial.rename(folder)  # scripts in bin/ contain the former folder; the interpreter does not
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.is_dir():
            raise
