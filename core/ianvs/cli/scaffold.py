"""`ianvs new`: the first files of a new user."""

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from ianvs.base.errors import IanvsError, one_line, shown_path
from ianvs.base.package import JOB_FILE, PACKAGE, job_path, own_name, shipped_jobs
from ianvs.config.load import files_of_job
from ianvs.config.models.base import at, entries
from ianvs.config.strict_yaml import Document, Step, Steps, read

SCHEMA_LINE = "# yaml-language-server: $schema="
"""Beginning of the comment from which editors find the schema of a yaml file; it is the file's last line."""

_FOLDER = ".schema"
_KINDS = {"benchmarkingjob:": "job", "testenv:": "testenv", "algorithm:": "algorithm"}


def write_new(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write {name: text} into `folder`, which is created, and return the paths.

    Raises IanvsError if a file exists already.
    """
    files = _with_schemas(files)
    # Schemas are the same for all jobs: existing ones may be replaced.
    existing = [folder / name for name in files if (folder / name).exists() and not name.startswith(_FOLDER)]
    if existing:
        first = shown_path(existing[0])
        raise IanvsError(
            f"{first} already exists, and nothing was written. Choose another name, or remove it.",
            code="existing-output",
        )
    try:
        (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("w" if name.startswith(_FOLDER) else "x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise IanvsError(f"{shown_path(folder)} can't be written: {error.strerror}.", code="unwritable-file") from error
    return [folder / name for name in files if not name.startswith(_FOLDER)]


def _with_schemas(files: Mapping[str, str]) -> dict[str, str]:
    """Return `files` and the schemas, with a relative path to the schema in each yaml file, so the folder can be
    moved.
    """
    texts = {}
    for name, text in files.items():
        kinds = [kind for top, kind in _KINDS.items() if name.endswith(".yaml") and f"\n{top}" in f"\n{text}"]
        lines = [line for line in text.splitlines() if not line.startswith(SCHEMA_LINE)]
        lines += [f"{SCHEMA_LINE}{_FOLDER}/{kind}.json" for kind in kinds[:1]]
        texts[name] = "\n".join([*lines, ""])
    schemas = {f"{_FOLDER}/{path.name}": path.read_text("utf-8") for path in sorted((PACKAGE / "schemas").iterdir())}
    return texts | schemas


_TEMPLATES = PACKAGE / "cli" / "templates"


def from_template(kind: str, name: str, folder: str) -> dict[str, str]:
    """Return {file name: text} of a new thing of this kind, called `name`, in `folder` as the user wrote it.

    The template of a metric uses the name my_metric (MyMetric for a class). Raises IanvsError for a name that no Python
    file can have.
    """
    template_name, file_name = f"my_{kind}", name if kind == "job" else _module_name(kind, name)
    class_name = "".join(part[:1].upper() + part[1:] for part in file_name.split("_"))
    new = {f"-f {template_name}": f"-f {folder}", template_name: file_name, f"My{kind.title()}": class_name}

    def renamed(text: str) -> str:
        return re.sub("|".join(new), lambda match: new[match[0]], text)

    files = (path for path in sorted((_TEMPLATES / kind).iterdir()) if path.is_file())
    return {renamed(path.name): renamed(path.read_text(encoding="utf-8")) for path in files}


def _module_name(kind: str, name: str) -> str:
    module = re.sub(r"[- ]", "_", name)
    if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module) or module.startswith("_"):
        raise IanvsError(
            f"a {kind} can't be called '{name}': take letters, digits and _, a letter first.", code="invalid-argument"
        )
    if module in sys.stdlib_module_names or _is_installed(module):
        raise IanvsError(
            f"{module}.py would shadow the installed module '{module}': `import {module}` would import this file. "
            f"Choose another name, such as my_{module}.",
            code="invalid-argument",
        )
    return module


def _is_installed(module: str) -> bool:
    """Return whether `import module` finds a module outside the folder in which ianvs was started."""
    folders = [folder for folder in sys.path if folder and Path(folder).resolve() != Path.cwd().resolve()]
    spec = PathFinder.find_spec(module, folders)
    return spec is not None and spec.origin is not None


_UPWARDS = re.compile(r"(\.\./)+")


def copied_job(source: str, name: str, folder: str) -> dict[str, str]:
    """Return {file name: text} of the shipped job `source` under a new `name`, in `folder` as the user wrote it.

    Raises IanvsError if there is no such job.
    """
    job = job_path(Path(source))
    if job not in shipped_jobs().values():
        raise IanvsError(
            f"no job called '{source}' comes with ianvs. There are: {one_line([*shipped_jobs()], 40)}.",
            code="unknown-name",
        )
    documents = {path: read(path) for path in files_of_job(job)}
    names = _names(documents, job)
    files: dict[str, str] = {}
    for path, document in documents.items():
        text, carried = _localised(document, names)
        files[names[path]] = text
        files |= carried
    if old := at(documents[job].data, "benchmarkingjob", "name"):
        files[JOB_FILE] = _replaced(files[JOB_FILE], read(job), {("benchmarkingjob", "name"): (str(old), name)})
    files[JOB_FILE] = files[JOB_FILE].replace(f"configs/{job.parent.name}/{JOB_FILE}", folder)  # in its comments
    return files


def _names(documents: dict[Path, Document], job: Path) -> dict[Path, str]:
    """Return the names of the job's files in the new folder."""
    names = {job: JOB_FILE}
    named = {
        (job.parent / str(at(entry, "url"))).resolve(): str(at(entry, "name"))
        for _, entry in entries(documents[job].data, "benchmarkingjob", "test_object", "algorithms")
    }
    testenvs = [path for path, document in documents.items() if at(document.data, "testenv") is not None]
    for path in documents:
        if path == job:
            continue
        if path.resolve() in named:
            wish = re.sub(r"[^A-Za-z0-9._-]+", "_", named[path.resolve()])
        elif path in testenvs:
            wish = path.parent.name if path.stem == "testenv" else path.stem  # an exam may have this name
            wish = "testenv" if len(testenvs) == 1 else wish
        else:
            wish = path.stem
        taken = set(names.values())
        numbered = (f"{wish}.yaml" if n == 1 else f"{wish}_{n}.yaml" for n in range(1, len(documents) + 2))
        names[path] = next(free for free in numbered if free not in taken)
    return names


def _localised(document: Document, names: dict[Path, str]) -> tuple[str, dict[str, str]]:
    """Return the text with paths that are valid in the new folder, and the files of other kinds that are copied with
    it.
    """
    folder = document.file.parent
    new_names = {path.resolve(): name for path, name in names.items()}
    changes: dict[Steps, tuple[str, str]] = {}
    carried: dict[str, str] = {}
    for path, value in _texts(document.data, ()):
        target = (folder / value).resolve()
        if target in new_names:
            changes[path] = value, f"./{new_names[target]}"
        elif target.suffix == ".py" and target.is_file():
            module = own_name(target)
            if "modules" in path and module is not None:
                changes[path] = value, ".".join(module.with_suffix("").parts)
            else:
                changes[path] = value, f"./{target.name}"
                carried[target.name] = target.read_text(encoding="utf-8")
        elif "../" in value:  # the folder of data that the user has, or will have
            changes[path] = value, _UPWARDS.sub("./", value)
    text = document.file.read_text(encoding="utf-8")
    return _replaced(text, document, changes), carried


def _texts(data: object, path: tuple[Step, ...]) -> Iterator[tuple[Steps, str]]:
    """Yield (path, text) of each value that may be a path."""
    for where, value in entries(data):
        if isinstance(value, str):
            if value.startswith(("./", "../", "${")) or value.endswith((".py", ".yaml")):
                yield (*path, *where), value
        else:
            yield from _texts(value, (*path, *where))


def _replaced(text: str, document: Document, changes: dict[Steps, tuple[str, str]]) -> str:
    """Return `text` with new values at those paths; `document` knows their positions."""
    lines = text.splitlines(keepends=True)
    places = {document.value_place(path): change for path, change in changes.items()}
    for place in sorted(places, reverse=True):
        old, new = places[place]
        line, start = lines[place.line - 1], place.column - 1
        begin = line.index(old, start)
        lines[place.line - 1] = line[:begin] + new + line[begin + len(old) :]
    return "".join(lines)
