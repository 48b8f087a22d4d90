"""Provenance for reproducing a job: software, machine, commit, command."""

import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ianvs.base.package import DISTRIBUTION, PACKAGE
from ianvs.base.secrets import without_secret
from ianvs.processes.engines.engine import usable_cores

PACKAGES = (
    *("ianvs", "torch", "torchvision", "numpy", "pandas", "scikit-learn", "scipy", "pillow"),
    *("sentence-transformers", "transformers", "ray"),
)
"""The packages whose version can change a result."""

_PATIENCE = 10.0  # time limit for git and nvidia-smi in seconds


def collect(
    packages: Sequence[str] = PACKAGES, job_file: Path | None = None, imported: Iterable[str] = ()
) -> dict[str, object]:
    """Return facts about this process and machine as a JSON value; None for unknown facts.

    Keys: command (str), python, platform, cpu {model, count, usable}, memory_bytes, gpus (names), packages {name:
    version or None}, git {commit, dirty} of the folder of `job_file` or None. Imports neither torch nor any of
    `packages`, and does not start CUDA. Calls git, so call it once per run, not per case. imported: imports of plugins;
    the installed packages among them are listed, too.
    """
    import psutil

    try:
        named = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        model = named.group(1).strip() if named else platform.machine()
    except OSError:
        model = platform.processor()
    git = None
    if job_file is not None:
        in_folder = ["git", "-C", str(job_file.parent)]
        if commit := output_of([*in_folder, "rev-parse", "HEAD"]):
            changes = output_of([*in_folder, "--no-optional-locks", "status", "--porcelain"])
            git = {"commit": commit, "dirty": None if changes is None else bool(changes)}
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *map(without_secret, sys.argv[1:])]),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": {"model": model or None, "count": os.cpu_count(), "usable": usable_cores()},
        "memory_bytes": psutil.virtual_memory().total,
        "gpus": _gpus() if "torch" in sys.modules else [],
        "packages": {name: version_of(name) for name in packages}
        | {name: version for name in sorted(imported) if name not in packages and (version := version_of(name))},
        "git": git,
    }


@cache
def version_of(package: str) -> str | None:
    """Return the version of a package; None if it is not installed. "ianvs" is this package."""
    try:
        return importlib.metadata.version(DISTRIBUTION if package == PACKAGE.name else package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown" if package == PACKAGE.name else None  # only the source is there


def _gpus() -> list[str]:
    """Return names of the GPUs from torch if it is using them; else from the driver."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        return [str(torch.cuda.get_device_name(index)) for index in range(torch.cuda.device_count())]
    if shutil.which("nvidia-smi") is None:
        return []
    return (output_of(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]) or "").splitlines()


def output_of(command: Sequence[str], seconds: float = _PATIENCE) -> str | None:
    """Return the stripped output of `command`; None if it is missing, fails or exceeds the time limit."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
