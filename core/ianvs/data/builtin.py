"""Built-in sources: data that a testenv names instead of listing files."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.config.spec import DatasetSpec
from ianvs.data.cache import Progress, cached_arrays
from ianvs.data.dataset import Dataset, Samples
from ianvs.data.fingerprint import digest_of, file_digests
from ianvs.data.labels import IGNORED
from ianvs.data.options import Options, check_options
from ianvs.data.source_catalogue import SOURCES, Arrays, Builtin, Release
from ianvs.errors import ConfigError, DataError, Problem, closest, one_line

__all__ = ["SOURCES", "check_builtin", "fingerprint_builtin", "load_builtin"]

VERSION = 1  # part of every fingerprint: raise it when the same files give other samples


def check_builtin(spec: DatasetSpec) -> list[Problem]:
    """Every problem of a dataset with a `name`; loads nothing."""
    name = spec.name or ""
    place = spec.places.get("name", spec.place)
    source = SOURCES.get(name)
    if source is None:
        return [
            Problem(
                f"there is no built-in dataset '{name}'.{closest(name, SOURCES)} There are: {one_line(list(SOURCES))}.",
                place,
            )
        ]
    options, problems = check_options(source.options, spec.options, f"the dataset {name}", place, spec.places)
    taken = source.takes if isinstance(source, Release) else ("using",) if source.domains is not None else ()
    for key in ("train", "test", "image_size", "classes", "label", "using"):
        if key not in taken and getattr(spec, key):
            message = f"`{key}` is for data in files; {name} brings its own. Take out `{key}` or `name`."
            problems.append(Problem(message, spec.places.get(key, place)))
    if isinstance(source, Release):
        return problems if problems else source.check(spec, options)
    domains = source.domains() if source.domains is not None else {}
    for domain in spec.using if domains else ():
        if domain not in domains:
            message = f"{name} has no domain '{domain}'.{closest(domain, domains)} It has: {one_line(list(domains))}."
            problems.append(Problem(message, spec.places.get("using", place)))
    if not source.files:
        return problems
    folder = Path(source.files[0]).parent
    if source.package is None and spec.root is None:
        problems.append(Problem(f"{name} needs `root`, the folder that holds {folder}.", place))
    elif not spec.download and (missing := _missing(source, spec)):
        message = f"{missing[0]} is not there. Set `download: true`, or `root` to the folder that holds {folder}."
        problems.append(Problem(message, spec.places.get("root", place)))
    return problems


def fingerprint_builtin(spec: DatasetSpec, cache_dir: Path) -> str:
    """Hash of the source's files and options. Fetches the files if the spec allows it and they are not there."""
    source, options = _checked(spec, cache_dir)
    if isinstance(source, Release):
        return source.fingerprint(spec, options, cache_dir)
    return _fingerprint(source, spec, options, cache_dir)


def load_builtin(spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
    """The source as memory-mapped arrays. Read by its library once, from the cache afterwards.

    progress is told how much of the decoding is done, where there is something to decode.
    """
    source, options = _checked(spec, cache_dir)
    if isinstance(source, Release):
        return source.load(spec, options, cache_dir, progress)
    fingerprint = _fingerprint(source, spec, options, cache_dir)

    def make() -> Arrays:
        try:
            return source.read(spec, options)
        except RuntimeError as error:  # what torchvision raises for files that are damaged
            raise DataError(f"{source.name} can't be read below {spec.root}: {error}") from None

    arrays = cached_arrays(cache_dir, f"{source.name}-{fingerprint[:32]}", make)
    classes = source.classes or tuple(arrays["classes"].tolist())
    pictures = source.kind == "segmentation"
    train, test = (
        Samples(
            x=arrays[f"x_{part}"],
            y=arrays[f"y_{part}"] if pictures else np.array(arrays[f"y_{part}"], dtype=np.int64),
            ids=np.array([f"{source.name}/{name}" for name in arrays[f"ids_{part}"].tolist()], dtype=str),
            domains=arrays.get(f"domains_{part}"),
        )
        for part in ("train", "test")
    )
    lists = source.domains() if source.domains is not None and pictures else {}  # else all domains share the classes
    used = [domain for domain in spec.using or lists if domain in lists]
    return Dataset(
        source.name,
        source.kind,
        train,
        test,
        classes,
        fingerprint,
        ignore_index=IGNORED if pictures else None,
        domain_classes={domain: tuple(classes.index(name) for name in lists[domain]) for domain in used},
    )


def _fingerprint(source: Builtin, spec: DatasetSpec, options: Options, cache_dir: Path) -> str:
    digests = file_digests([os.fspath(path) for path in _files(source, spec)], cache_dir)
    facts = {
        "version": VERSION,
        "name": source.name,
        "options": options.model_dump(exclude_none=True),
        "files": digests,
    }
    if source.version is not None:
        facts |= {"generator": source.version(), "using": list(spec.using)}
    return digest_of(facts)


def _checked(spec: DatasetSpec, cache_dir: Path) -> tuple[Builtin | Release, Any]:
    if problems := check_builtin(spec):
        raise ConfigError(problems)
    source = SOURCES[str(spec.name)]
    if isinstance(source, Builtin) and spec.download:
        _fetch(source, spec)
    return source, source.options.model_validate(dict(spec.options))


def _fetch(source: Builtin, spec: DatasetSpec) -> None:
    """Download what is not there."""
    if source.fetch is None or spec.root is None or not _missing(source, spec):
        return
    from filelock import FileLock

    spec.root.mkdir(parents=True, exist_ok=True)
    with FileLock(spec.root / f".{source.name}.lock"):
        source.fetch(spec.root)
    if missing := _missing(source, spec):
        raise DataError(f"{source.name} was downloaded, but {missing[0]} is not there.")


def _files(source: Builtin, spec: DatasetSpec) -> list[Path]:
    if source.package is None:
        return [Path(spec.root or ".") / file for file in source.files]
    found = importlib.util.find_spec(source.package)  # finds it without importing it
    folders = found.submodule_search_locations if found is not None else None
    return [Path(next(iter(folders or ["."]))) / file for file in source.files]


def _missing(source: Builtin, spec: DatasetSpec) -> list[Path]:
    return [path for path in _files(source, spec) if not path.is_file()]
