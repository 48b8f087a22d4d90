"""Calls a user's function for the samples of a dataset, in a separate process.

Files and folders that the function opens in Python are recorded, but not those of compiled libraries, of subprocesses,
or of the network.
"""

import hashlib
import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

from numpy.typing import NDArray

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import IanvsError, Location, PluginError, code_of
from ianvs.base.package import PACKAGE
from ianvs.config.spec import DatasetSpec, ModuleSpec
from ianvs.exam.data.fingerprint import digest_of
from ianvs.exam.data.label_cells import split_labels
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.normalize_user_data import store_returned
from ianvs.exam.data.typed_labels import ReadLabels, label_reader
from ianvs.plugins.loader import cause, load
from ianvs.plugins.signature import Parameters, constructor_parameters, misnamed
from ianvs.plugins.value_types import type_problems

_OPTIONAL_ARGUMENTS = ("root", "download")  # keys of the dataset that are passed to parameters of these names
# Keys for tables, unless the function has options of these names.
_COLUMNS = ("label", "input", "domain", "label_separator")
SHAPING = ("image_size", "value_range", "test_share", "test_seed")  # keys that affect what is stored
_STDLIB = sysconfig.get_paths()["stdlib"]
_LINECACHE = os.path.join(_STDLIB, "linecache.py")  # noqa: PTH118
_NO_DATA = (_STDLIB, "/proc", "/sys", "/dev", "/etc")


class StoredSamples(TypedDict):
    """Facts of the stored samples.

    Attributes:
        line: First line of the function, 0 if unknown.
        classes: The class names, if it returned some.
        content: Digests of the files by relative name.
        read: `file_signature` of each file that the function read.
    """

    line: int
    classes: list[str] | None
    content: dict[str, str]
    read: dict[str, list[int | str]]


Mistake = tuple[str, str, int, ErrorCode]


class CallResult(TypedDict):
    """The result of a call.

    Attributes:
        made: Facts of the stored samples; None after an error.
        wrong: (message, its option or "", the line of the user's file or 0, the error code) of each error.
    """

    made: StoredSamples | None
    wrong: list[Mistake]


def call_function(question: tuple[DatasetSpec, Path]) -> CallResult:
    """Check the options of a dataset against the function's parameters, call it, and store its result in a folder."""
    dataset, folder = question
    name, url, options = str(dataset.name), Path(dataset.url or ""), dict(dataset.options)
    with _recorded_reads(folder) as seen:
        try:
            loaded = load(str(url), name)
        except PluginError as error:
            return _error_answer((str(error), "", 0, code_of(error, "unloadable-plugin")))
        try:
            read = _reader(dataset)
        except PluginError as error:
            return _error_answer((str(error), "data_type", 0, code_of(error, "unknown-task-or-type")))
        if not callable(loaded.target):
            return _error_answer((f"'{name}' is not a function.", "", 0, "broken-contract"))
        takes = constructor_parameters(loaded.target)
        named: dict[str, Any] = {key: options.pop(key) for key in _COLUMNS if key in options and key not in takes.names}
        named |= {key: tuple(names) for key, names in named.items() if isinstance(names, list)}
        if wrong := list(_wrong_options(name, takes, options, dataset)):
            return _error_answer(*wrong)
        offered: dict[str, object] = {"download": dataset.download}
        if dataset.root is not None:
            offered["root"] = str(dataset.root) if takes.types.get("root") is str else dataset.root
        offered = {key: value for key, value in offered.items() if key in takes.names}
        line = _line(loaded.target)
        try:
            with loaded.active() as function:
                settings = {key: getattr(dataset, key) for key in SHAPING}
                spec = DatasetSpec(**settings, **named, data_type=dataset.data_type)
                returned = function(**options, **offered)
                stored = store_returned(returned, folder, f"{name}()", spec, read)
        except SourceError as broken:
            return _error_answer(*((str(problem), "", line, problem.code) for problem in broken.problems))
        except IanvsError as error:
            return _error_answer((str(error), "", line, code_of(error, "failed-plugin")))
        except Exception as error:
            reason = cause(error, url.resolve())
            return _error_answer((f"{name}() failed: {reason}", "", 0, "failed-plugin"))
    looks = {path: look for path in sorted(seen) if (look := file_signature(path))}
    classes = None if stored is None else list(stored)
    return CallResult(made=StoredSamples(line=line, classes=classes, content=_content(folder), read=looks), wrong=[])


def _reader(dataset: DatasetSpec) -> ReadLabels | None:
    """Return the function that reads labels of the testenv's data type. Raises PluginError."""
    if dataset.data_type is None:
        return None
    reader, given = label_reader(dataset.data_type), dataset.classes
    separator = dataset.options.get("label_separator")

    def read_labels(y: object, classes: tuple[str, ...] | None) -> tuple[NDArray[Any], tuple[str, ...]]:
        if reader.several_labels and isinstance(separator, str) and hasattr(y, "__iter__"):
            y = split_labels(list(y), separator, classes).labels
        return reader.read(y, classes if given is None else tuple(given))

    return read_labels


def _error_answer(*wrong: Mistake) -> CallResult:
    return CallResult(made=None, wrong=list(wrong))


def file_signature(path: str) -> list[int | str]:
    """Return size and modification time of a file, or number and digest of the names in a folder; [] for others."""
    try:
        if os.path.isdir(path):  # noqa: PTH112  (there may be many: Path is slow)
            names = sorted(name for name in os.listdir(path) if name[0] != "." and name != "__pycache__")  # noqa: PTH208
            return [len(names), digest_of(names)]
        stat = os.stat(path)  # noqa: PTH116
        return [stat.st_size, stat.st_mtime_ns] if os.path.isfile(path) else []  # noqa: PTH113
    except OSError:
        return []


def _wrong_options(
    name: str, takes: Parameters, options: Mapping[str, object], dataset: DatasetSpec
) -> Iterator[Mistake]:
    for key in takes.required:
        if key == "root" and dataset.root is None:
            yield f"{name} needs `{key}`. Set it in the dataset, or give it as --{key}.", "", 0, "missing-option"
    required = [key for key in takes.required if key not in _OPTIONAL_ARGUMENTS]
    defaults = {key: value for key, value in takes.defaults.items() if key not in _OPTIONAL_ARGUMENTS}
    parameters = Parameters((*required, *defaults), required, defaults, takes.open, takes.types)
    for key, message in misnamed(name, "option", parameters, options):
        yield message, key, 0, "unknown-option" if key in options else "missing-option"
    for key, value in options.items():
        for problem in type_problems(
            ModuleSpec("dataset", name, name, constants={key: value}), parameters, Location(Path())
        ):
            yield problem.message, key, 0, "invalid-option"


def _line(target: Callable[..., object]) -> int:
    try:
        return inspect.getsourcelines(target)[1]
    except (OSError, TypeError):
        return 0


def _content(folder: Path) -> dict[str, str]:
    digests = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            digests[file.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


@contextmanager
def _recorded_reads(folder: Path) -> Iterator[set[str]]:
    """Context manager: record files opened for reading and listed folders, without code and without `folder`."""
    seen: set[str] = set()
    watching = True

    def no_data(path: Path) -> bool:
        installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
        return installed or any(path.is_relative_to(place) for place in (folder, *_NO_DATA))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if (
            not watching
            or event not in ("open", "os.listdir", "os.scandir")
            or not _is_read_by_author(sys._getframe(1))
        ):
            return
        path, flags = arguments[0] or ".", arguments[2] if event == "open" else 0
        written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        if isinstance(path, str | bytes) and not written:
            seen.add(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100  (links stay links)

    sys.addaudithook(hook)  # an audit hook can't be removed
    try:
        yield seen
    finally:
        watching = False
        seen -= {path for path in seen if no_data(Path(path))}


def _is_read_by_author(frame: FrameType | None) -> bool:
    """Return whether a frame belongs to the user's or a library's code, not to ianvs or a tool that reads source
    code.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(("<frozen importlib", f"{PACKAGE}{os.sep}")) or file == _LINECACHE:
            return False
        if not file.startswith(("<frozen ", f"{_STDLIB}{os.sep}")) or "site-packages" in file:
            return True
        frame = frame.f_back
    return False
