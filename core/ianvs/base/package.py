"""Paths of ianvs's own files: the package, and the folders in it, which are links in a checkout.

Also the jobs that come with it, and files of other installed packages, such as the weights of a model.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path

from ianvs.base.errors import ConfigError, ValidationError, one_line
from ianvs.base.near_names import nearest

PACKAGE = Path(__file__).resolve().parents[1]
DISTRIBUTION = "ianvs-bench"
"""The name for pip; `ianvs` is the distribution of KubeEdge Ianvs, which has the package `core`."""
JOB_FILE = "benchmarkingjob.yaml"
CONFIGS = (PACKAGE / "configs").resolve()
GGUF = ".gguf"  # suffix of files with a language model, its tokenizer, chat template and settings
_CARRIED = ("testalgorithms", "testenv", "configs")
# (real folder, its name as a wheel installs it), the inner ones first.
_HOMES = tuple(((PACKAGE / name).resolve(), Path(PACKAGE.name, name)) for name in (*_CARRIED, ""))


def own_name(path: Path) -> Path | None:
    """Return `path` (resolved) as "ianvs/...", the same in a checkout and in a wheel; None for a file of others."""
    for home, name in _HOMES:
        if path.is_relative_to(home):
            return name / path.relative_to(home)
    return None


def own_version() -> str:
    """Return the installed version; "unknown" if only the source is there."""
    try:
        return distribution(DISTRIBUTION).version
    except PackageNotFoundError:
        return "unknown"


def kubeedge_ianvs() -> str | None:
    """Return the version of KubeEdge Ianvs, if it is installed, too. Its command is also `ianvs`."""
    with suppress(PackageNotFoundError):
        other = distribution("ianvs")
        commands = other.entry_points.select(group="console_scripts", name="ianvs")
        if any(command.module.partition(".")[0] != PACKAGE.name for command in commands):
            return other.version
    return None


def own_files() -> Iterator[tuple[Path, Path]]:
    """Yield (file, its own_name) of all files of ianvs, except for hidden and compiled ones.

    The metadata of the installed package are included, since its entry points name the algorithms and datasets.
    """
    with suppress(PackageNotFoundError):
        for file in distribution(DISTRIBUTION).files or ():
            if file.parent.suffix == ".dist-info" and file.name in ("METADATA", "entry_points.txt"):
                yield Path(str(file.locate())), Path(file)
    for folder, inner, names in os.walk(PACKAGE, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            if not name.startswith("."):
                path = Path(folder, name)
                yield path, Path(PACKAGE.name) / path.relative_to(PACKAGE)


def shipped_jobs() -> dict[str, Path]:
    """Return {name: its benchmarkingjob.yaml} of the jobs that come with ianvs."""
    return {file.parent.name: file for file in sorted(CONFIGS.glob(f"*/{JOB_FILE}"))}


def job_path(given: Path) -> Path:
    """Resolve the argument of `-f`: a file, a folder with a job in it, or the name of a job that comes with ianvs.

    Other paths are returned unchanged. Raises ConfigError for a word that is neither a path nor such a job.
    """
    if given.is_file():
        return given
    if (given / JOB_FILE).is_file():
        return given / JOB_FILE
    if given.name != str(given) or given.suffix or given.exists():
        return given
    jobs = shipped_jobs()
    if given.name in jobs:
        return jobs[given.name]
    nearby = _jobs_in_folder()
    if near := nearest(given.name, nearby):
        hint = f"Did you mean {nearby[near]} '{near}'?"
    elif shipped := nearest(given.name, jobs):
        hint = f"Did you mean '{shipped}'?"
    else:
        listed = f"Here are: {one_line(list(nearby))}. " if nearby else ""
        hint = f"{listed}`ianvs list jobs` lists those that come with ianvs."
    message = f"there is no file '{given}', and no job of that name comes with ianvs. {hint}"
    raise ConfigError([ValidationError(message, code="missing-file")])


def _jobs_in_folder() -> dict[str, str]:
    """Return the folders with a job in the working directory, and its yaml files: what each is, by name."""
    with suppress(OSError), os.scandir() as listing:
        names = sorted(entry.name for entry in islice(listing, 1000))
        folders = [name for name in names if (Path(name) / JOB_FILE).is_file()]
        files = [name for name in names if name.endswith((".yaml", ".yml"))]
        return {**dict.fromkeys(folders, "the folder"), **dict.fromkeys(files, "the file")}
    return {}


def files_of(name: str) -> tuple[str, list[Path]] | None:
    """Return ("name version", its files) of an installed package; None: there is none of that name."""
    try:
        package = distribution(name)
    except (PackageNotFoundError, ValueError):
        return None
    return f"{package.name} {package.version}", [Path(str(file.locate())) for file in package.files or ()]


def find_gguf(model: str) -> list[Path]:
    """Find GGUF files: `model` itself, those in a folder without a config.json, or those in a package."""
    path = Path(model).expanduser()
    if path.is_file():
        return [path] if path.suffix.lower() == GGUF else []
    if path.is_dir():
        return [] if (path / "config.json").is_file() else sorted(f for f in path.iterdir() if f.suffix.lower() == GGUF)
    carried = files_of(model) if "/" not in model else None
    return [] if carried is None else [file for file in carried[1] if file.suffix.lower() == GGUF]
