"""A sandbox by bubblewrap (Linux), which sees only mounted paths.

A process in it has no network, no capabilities, and its own process table, /tmp and /dev/shm. It sees the interpreter,
its packages and the listed paths; no other files exist for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ianvs.base.package import PACKAGE

_TRIAL_SECONDS = 60.0
_INSTALL = "Install it (`apt-get install bubblewrap`, `dnf install bubblewrap`)."
_SYSTEM = (
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/share/zoneinfo",
)
_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/mime.types")
_CPU_FACTS = "/sys/devices/system/cpu"
"""Files that numerical libraries read to count processors."""
_GPU_PREFIX = "nvidia"
_PASSED = ("LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""Environment variables that a process in the sandbox inherits."""
_HIDDEN_PARTS = ("testenv", "reports", "configs", "tests")
"""Parts of ianvs that no sandbox contains: data of exams, and results."""
_SHOWN_PARTS = ("__init__.py", "data_types", "questions", "datasets/__init__.py", "datasets/downloads")
"""Parts of `testenv` that it contains nevertheless: code that learners need, without data."""


@dataclass(frozen=True)
class Sandbox:
    """Paths that exist in a sandbox, at the same place as outside, besides the interpreter and its packages.

    Attributes:
        read_only: Files and folders that can be read.
        writable: Folders that can be written.
        masked: Files and folders of mounted ones that can't be read. What is mounted below them can.
        gpu: Whether the NVIDIA devices of this machine are available.
        folder: The working directory, which must be mounted; None for /tmp.
    """

    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()
    gpu: bool = False
    folder: Path | None = None

    def command(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """Return the command line that runs `command` in the sandbox.

        Args:
            command: Program and arguments; a Python interpreter is mounted with its packages.
            environment: Variables besides those that every sandbox has. Nothing else is inherited.
        """
        interpreter = Path(command[0])
        mounted = [*python_paths(interpreter), *self.read_only]
        words = [
            _bubblewrap(),
            "--unshare-all",
            "--cap-drop",
            "ALL",
            "--die-with-parent",
            "--new-session",
            "--clearenv",
        ]
        words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", "--tmpfs", "/tmp", *_system_mounts()]
        mounts = {path: ["--ro-bind", str(path), str(path)] for path in mounted}
        mounts |= {path: ["--bind", str(path), str(path)] for path in self.writable}
        roots = [Path(word) for word in (*_SYSTEM, *_ETC)] + list(mounts)
        for path in dict.fromkeys((*_data_of_ianvs(), *data_of_packages(), *self.masked)):
            mounts |= {path: mask} if (mask := _mask(path, roots)) else {}
        # A mount hides earlier mounts below it, so parents come first.
        for _, option in sorted(mounts.items(), key=lambda item: len(item[0].parts)):
            words += option
        words += _visible_parts_of_testenv()
        if self.gpu:
            words += [word for device in _gpu_devices() for word in ("--dev-bind", str(device), str(device))]
        for name, value in (_environment() | dict(environment or {})).items():
            words += ["--setenv", name, value]
        return [*words, "--chdir", str(self.folder or "/tmp"), "--", *command]


def missing_sandbox() -> str:
    """Return why this machine can't run a sandbox, with a remedy; "" if it can."""
    if sys.platform != "linux":
        return f"a sandbox needs Linux; this is {sys.platform}."
    if shutil.which("bwrap") is None:
        return f"a sandbox needs bubblewrap, which is not installed. {_INSTALL}"
    return _try_sandbox()


def _try_sandbox() -> str:
    """Run Python in a sandbox. Returns the reason of a failure."""
    program = "import os; assert not os.path.exists('/etc/passwd'); print('ready')"
    try:
        trial = subprocess.run(
            Sandbox().command([sys.executable, "-I", "-S", "-c", program]),
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap can't be run here: {error}."
    if trial.stdout.strip() == "ready":
        return ""
    reason = (trial.stderr.strip().splitlines() or [f"exit status {trial.returncode}"])[-1]
    return (
        f"bubblewrap can't make a sandbox here: {reason}. In a container or on a hardened kernel, allow unprivileged "
        "user namespaces (`sysctl kernel.unprivileged_userns_clone=1`, or a container that permits them)."
    )


@cache
def python_paths(interpreter: Path) -> tuple[Path, ...]:
    """Return the folders of a Python interpreter and its packages.

    Those of PYTHONPATH and of a script are left out, because they may have the data of an exam.

    Args:
        interpreter: A virtual environment's Python is mounted with the base interpreter that it points to.
    """
    program = (
        "import sys; print('\\n'.join([sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]))"
    )
    command = [str(interpreter), "-I", "-c", program]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    package = PACKAGE  # instead of a checkout's root, which has exams
    folders = [Path(line) for line in lines.splitlines() if line != str(package.parent) and Path(line).is_dir()]
    folders += [package, *(path.resolve() for path in [package / "testalgorithms"] if path.is_symlink())]
    paths = {path for folder in folders for path in (folder, folder.resolve())} - {Path("/usr")}  # of a system's Python
    paths |= {interpreter, *_links_of(interpreter)}
    return tuple(sorted(path for path in paths if not _is_below_any(path, paths - {path})))


def _links_of(path: Path) -> Iterator[Path]:
    """Yield the targets of a chain of links."""
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent / path.readlink()))
        yield path


def _is_below_any(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _system_mounts() -> list[str]:
    """Return options that mount the shared libraries of the system, and no data."""
    words = [word for path in (*_SYSTEM, *_ETC, _CPU_FACTS) for word in ("--ro-bind-try", path, path)]
    for name in ("bin", "lib", "lib32", "lib64", "sbin"):
        root = Path("/") / name
        if root.is_symlink():
            words += ["--symlink", str(root.readlink()), str(root)]
        elif root.exists():
            words += ["--ro-bind", str(root), str(root)]
    return words


def _data_of_ianvs() -> Iterator[Path]:
    """Yield folders with data of exams in a mounted package; in a checkout they are links to folders beside it."""
    for name in _HIDDEN_PARTS:
        path = PACKAGE / name
        if path.is_dir() and not path.is_symlink():
            yield path


def _visible_parts_of_testenv() -> list[str]:
    testenv = (PACKAGE / "testenv").resolve()
    paths = [str(testenv / name) for name in _SHOWN_PARTS]
    return [word for path in paths for word in ("--ro-bind", path, path)]


def _mask(path: Path, mounted: Iterable[Path]) -> list[str]:
    """Return options that replace a mounted path by an empty folder, or by a device that can't be opened."""
    if not path.exists() or not _is_below_any(path, mounted):
        return []
    return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]


def _gpu_devices() -> list[Path]:
    return sorted(path for path in Path("/dev").iterdir() if path.name.startswith(_GPU_PREFIX))


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "USER": "learner", "PYTHONDONTWRITEBYTECODE": "1", **passed}


def _bubblewrap() -> str:
    return shutil.which("bwrap") or "bwrap"


@cache
def data_of_packages() -> tuple[Path, ...]:
    """Return data of known exams in installed packages: the data sets of scikit-learn."""
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    candidates = [Path(folder) / "sklearn" / "datasets" / "data" for folder in folders if folder]
    return tuple(path for path in candidates if path.is_dir())
