"""The code that travels to workers which do not see it: ianvs itself, plugins, metrics, initial models, manifests.

Nothing in here needs Ray: the engine hands the folder that is gathered here to Ray as the `working_dir` of a
`runtime_env`, and Ray puts it at the head of sys.path on every node.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ianvs.config.spec import JobSpec, ModuleSpec
from ianvs.errors import IanvsError
from ianvs.package import PACKAGE, own_files, own_name
from ianvs.plugins.source import source_files

__all__ = ["CODE_LIMIT", "files_of", "gather_code"]

CODE_LIMIT = 400 << 20  # bytes of code and initial models; Ray takes no more than 512 MiB
_BESIDE_LIMIT = 10 << 20  # bytes; what is larger beside a plugin is data, not part of it


def files_of(job: JobSpec) -> tuple[Path, ...]:
    """Files and folders of the job's authors: plugins, metrics, datasets, initial models, files of scenarios."""
    metrics = [metric for exam in job.testenvs for metric in exam.metrics]
    metrics += [exam.gate.metric for exam in job.testenvs if exam.gate]
    found = [metric.url for metric in metrics if metric.url is not None]
    found += [exam.dataset.url for exam in job.testenvs if exam.dataset.url is not None]
    scenarios = [exam.scenario for exam in job.testenvs if exam.scenario is not None]
    found += [Path(file) for scenario in scenarios if isinstance(file := scenario.options.get("file"), str)]
    for algorithm in job.algorithms:
        found += [path for module in algorithm.modules if (path := _file_of(module)) is not None]
        if isinstance(algorithm.initial_model, Path):
            found.append(algorithm.initial_model)
    return tuple(dict.fromkeys(found))


def _file_of(module: ModuleSpec) -> Path | None:
    """The plugin's file, the folder of its package, or None for what every installation has."""
    if module.url is None:
        return None
    if module.url.endswith(".py"):
        return Path(module.url)
    top = module.url.partition(":")[0].split(".")[0]
    spec = importlib.util.find_spec(top)
    if top == PACKAGE.name or spec is None or not spec.origin or "site-packages" in Path(spec.origin).parts:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def gather_code(files: Iterable[Path], target: Path) -> dict[Path, str]:
    """Copy ianvs itself and `files` to the empty folder `target`, which is to lead sys.path where it arrives.

    A python file takes along the local modules that it imports, and what small files lie beside it and them. Returns
    {path here: name below `target`} for ianvs.engines.ray.ray_storage.relocate. Raises IanvsError above CODE_LIMIT.
    """
    copies: dict[Path, Path] = dict(own_files())
    places: dict[Path, Path] = {}
    moved: dict[Path, str] = {}
    for file in files:
        if file.suffix == ".py" and file.is_file():
            entry = file.resolve()  # the loader resolves links too: a plugin's modules lie beside the real file
            own = own_name(entry)
            if own is not None:
                moved[file] = own.as_posix()
                continue
            place = places.setdefault(entry.parent, Path("plugins", str(len(places))))
            moved[file] = (place / entry.name).as_posix()
            copies |= dict(_with_imports(entry, place))
        elif (file / "__init__.py").is_file():
            copies |= {path: file.name / inner for path, inner in _below(file)}
        elif file.exists():
            place = Path("files", str(len(moved)), file.name)
            moved[file] = place.as_posix()
            inside = file.rglob("*") if file.is_dir() else [file]
            copies |= {path: place / path.relative_to(file) for path in inside if path.is_file()}
    _check_size(copies)
    for path, place in copies.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / place)
    return moved


def _below(folder: Path) -> Iterator[tuple[Path, Path]]:
    """(file, its path relative to `folder`), without what is hidden, compiled, or too large to be code."""
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not any(part.startswith((".", "__pycache__")) for part in inner.parts) and _small(path):
            yield path, inner


def _small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _BESIDE_LIMIT


def _with_imports(entry: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    """(file, where it goes) of a plugin: below `place`, or where an import through sys.path finds it."""
    for folder in {path.parent for path in source_files(entry)}:
        if own_name(folder) is not None:
            continue
        beside = [path for path in folder.iterdir() if not path.name.startswith(".") and _small(path)]
        if folder.is_relative_to(entry.parent):
            yield from ((path, place / path.relative_to(entry.parent)) for path in beside)
        else:
            roots = [Path(root).resolve() for root in sys.path if folder.is_relative_to(Path(root).resolve())]
            root = max(roots, key=lambda found: len(found.parts), default=folder)
            yield from ((path, path.relative_to(root)) for path in beside if path.suffix == ".py")


def _check_size(files: Iterable[Path]) -> None:
    sizes = {path: path.stat().st_size for path in files}
    total = sum(sizes.values())
    if total > CODE_LIMIT:
        largest = max(sizes, key=lambda path: sizes[path])
        raise IanvsError(
            f"code and initial models of {total >> 20} MB are too much to send to the nodes (at most "
            f"{CODE_LIMIT >> 20} MB); the largest file is {largest}. Put the job on storage that all nodes share."
        )
