"""Files, folders and servers that hyperparameters name. Files count by their content, whatever the key."""

import hashlib
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ianvs.base.errors import DataError, Location, ValidationError, shown_path
from ianvs.base.package import find_gguf
from ianvs.base.secrets import is_secret
from ianvs.config.paths import neighbour
from ianvs.config.spec import AlgorithmSpec, JobSpec, ModuleSpec
from ianvs.exam.data.content_digests import SETTLED_NS
from ianvs.exam.data.fingerprint import digest_of, read_memo, write_memo

# "org/model", "resnet50.a1_in1k" and "torch.optim.SGD" are no files.
_LIKE_A_FILE = re.compile(
    r"(~?/|\.{1,2}/)[^\s,]*\w|[^\s:,]*\w\.(bin|ckpt|csv|gguf|h5|hdf5|json|keras|msgpack|np[yz]|onnx|pickle|pkl|pth?|"
    r"safetensors|toml|txt|ya?ml)"
)


def named_files(job: JobSpec, algorithm: AlgorithmSpec, taken: Collection[str] | None = None) -> dict[str, str]:
    """Return {text of a hyperparameter: digest} of what it names: a file, a folder, the GGUF of a `base_model`.

    A text may name several, separated by commas. Folders that contain the workspace or the working directory count by
    their names, since runs change their content. taken: names of the hyperparameters that count; None: all.
    """
    places, cache = (_home(job), job.workspace.resolve()), job.workspace / "cache"
    return {
        name: content_digest(path, cache)
        for _, key, _, text in _texts(algorithm)
        if taken is None or key in taken
        for name, path in _paths(_home(job), key, text).items()
        if not any(place.is_relative_to(path.resolve()) for place in places)
    }


def named_paths(job: JobSpec, algorithm: AlgorithmSpec) -> dict[Path, Location | None]:
    """Return files and folders that hyperparameters name, and the initial model, with the place where each is named."""
    places_of_paths: dict[Path, Location | None] = {}
    for module, key, position, text in _texts(algorithm):
        paths = _paths(_home(job), key, text).values()
        places_of_paths |= dict.fromkeys(paths, _place_of_value(module, key, position))
    if isinstance(algorithm.initial_model, Path):
        places_of_paths[algorithm.initial_model] = algorithm.places.get("initial_model", algorithm.place)
    return places_of_paths


def named_servers(algorithm: AlgorithmSpec) -> dict[str, Location | None]:
    """Return web addresses that hyperparameters name, with the place where each is named."""
    return {
        text: _place_of_value(module, key, position)
        for module, key, position, text in _texts(algorithm)
        if text.startswith(("http://", "https://"))
    }


def absolute_paths(value: object, home: Path) -> Any:
    """Return a hyperparameter for a plugin with another working directory: relative paths of files below `home` are
    absolute.

    A single word may be any name and stays, even if there is such a file.
    """
    if isinstance(value, Mapping):
        return {key: absolute_paths(part, home) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(absolute_paths(part, home) for part in value)
    if not isinstance(value, str) or not ("/" in value or _LIKE_A_FILE.fullmatch(value.rpartition(",")[2].strip())):
        return value
    if _existing_path(home, value) is not None:
        return str(home / Path(value).expanduser())
    parts = value.split(",")
    paths = [_LIKE_A_FILE.fullmatch(part.strip()) and _existing_path(home, part.strip()) for part in parts]
    return ",".join(str(path) if path else part for path, part in zip(paths, parts, strict=True))


def missing_file_warnings(job: JobSpec) -> Iterator[ValidationError]:
    """Yield a warning for each hyperparameter that looks like the path of a missing file."""
    home = _home(job)
    for algorithm in job.algorithms:
        for module, key, position, text in _texts(algorithm):
            if _LIKE_A_FILE.fullmatch(text) and not _paths(home, key, text):
                near = neighbour([home / text])
                yield ValidationError(
                    f"{key}: there is no file or folder '{text}' in {home}, where the plugin looks for it. "
                    f"It counts by its name: what else it may mean can change unseen.{near}",
                    _place_of_value(module, key, position),
                    warning=True,
                    code="missing-path",
                )


def content_digest(path: Path, cache: Path | None = None) -> str:
    """Return the SHA-256 of a file, or of a folder's files and their names. cache: stores it while none has changed."""
    memo = None if cache is None else cache / "digests" / f"{digest_of(['content', os.fspath(path)])[:32]}.json"
    try:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        names = [file.relative_to(path.parent).as_posix() for file in files]
        stats = [file.stat() for file in files]
        state = digest_of([[n, s.st_size, s.st_mtime_ns, s.st_ino] for n, s in zip(names, stats, strict=True)])
        if memo is not None and (stored := read_memo(memo)) is not None and stored[0] == state:
            return str(stored[1])
        sha = hashlib.sha256()
        for name, file in zip(names, files, strict=True):
            sha.update(name.encode())
            with file.open("rb") as stream:
                hashlib.file_digest(stream, lambda: sha)
    except OSError as error:
        reason = f"{shown_path(error.filename or path)} can't be read: {error.strerror}."
        raise DataError(
            f"{reason} An algorithm names it, so its content is part of what is examined.", code="unreadable-file"
        ) from error
    if memo is not None and all(time.time_ns() - s.st_mtime_ns > SETTLED_NS for s in stats):
        with suppress(OSError):  # the cache only saves time
            write_memo(memo, [state, sha.hexdigest()])
    return sha.hexdigest()


def _home(job: JobSpec) -> Path:
    """Return the working directory of plugins."""
    return job.working_directory or Path.cwd()


def _texts(algorithm: AlgorithmSpec) -> Iterator[tuple[ModuleSpec, str, int, str]]:
    """Yield (module, hyperparameter, position of its value, text) for each string in its values, without secrets."""
    for module in algorithm.modules:
        listed = {name: (value,) for name, value in module.constants.items()} | dict(module.grid)
        for name, values in listed.items():
            for position, value in enumerate(values):
                yield from ((module, name, position, text) for text in _strings_in(value, name))


def _place_of_value(module: ModuleSpec, key: str, position: int) -> Location | None:
    places = module.value_places.get(key, ())
    return places[position] if position < len(places) else module.place


def _strings_in(value: object, name: str) -> Iterator[str]:
    if isinstance(value, str) and not is_secret(name):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _strings_in(part, name if is_secret(name) else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings_in(part, name)


def _paths(home: Path, key: str, text: str) -> dict[str, Path]:
    """Return the existing paths that `text`, or parts of it, name."""
    models = find_gguf(text) if key == "base_model" else []
    if len(models) == 1:
        return {text: models[0]}
    parts = [part.strip() for part in text.split(",") if _LIKE_A_FILE.fullmatch(part.strip())]
    paths = {name: path for name in (text, *parts) if (path := _existing_path(home, name)) is not None}
    return {text: paths[text]} if text in paths else paths


def _existing_path(home: Path, text: str) -> Path | None:
    try:
        path = home / Path(text).expanduser()
        return path if text.strip() and (path.is_file() or path.is_dir()) else None
    except (OSError, RuntimeError, ValueError):  # a long text, or an unknown user
        return None
