"""The data of KubeEdge Ianvs: files that plugins get unchanged. They are not decoded or interpreted."""

import os
from collections.abc import Sequence
from pathlib import Path

from ianvs.base.errors import DataError, ValidationError, shown_path
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam.data import Dataset, Source
from ianvs.exam.data.cache import Progress
from ianvs.exam.data.fingerprint import digest_of, file_digests
from ianvs.exam.data.sources import PARTS


class PluginFiles(Source):
    """The files that a testenv of KubeEdge Ianvs names, as a dataset."""

    summary = "The files of a testenv, which plugins of `contract: ianvs` get as they are."
    takes = ("train", "test", "label", "using")

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of the index files and of all files that they name. Unchanged files are read only once."""
        facts = {part: [_content(source, cache_dir) for source in getattr(spec, part)] for part in PARTS}
        domains = {"using": list(spec.using)} if spec.using else {}
        return digest_of({"label": spec.label, **domains, **facts})

    def load(self, spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None) -> Dataset:
        raise DataError(
            "under `contract: ianvs` the files are handed out as they are; there are no samples to show.",
            code="unsupported-by-contract",
        )


def file_problems(sources: Sequence[SourceSpec]) -> list[ValidationError]:
    """Check plugin files, each once."""
    once = {source.path: source for source in reversed(sources)}
    return [problem for source in sources if once[source.path] is source for problem in _check(source)]


def _check(source: SourceSpec) -> list[ValidationError]:
    path = source.path
    if not path.is_file():
        message = f"the data are missing: there is no file {shown_path(path)}. Put them there, or write where they are."
        return [ValidationError(message, source.place, code="missing-file")]
    if not source.form:
        message = f"'{path.name}' is not read: its name ends in none of .txt, .csv, .json, .jsonl. Convert it."
        return [ValidationError(message, source.place, code="wrong-path-type")]
    beside = path.parent / "data.jsonl"
    if source.form == "metadata" and not beside.is_file():
        return [
            ValidationError(
                f"the data are missing: there is no file {shown_path(beside)} beside it.",
                source.place,
                code="missing-file",
            )
        ]
    if source.form != "txt":
        return []
    words = [line.split()[0] for line in _lines(path) if line.split()]
    if not words:
        return [
            ValidationError(
                f"{shown_path(path)} is empty. Write one sample on a line.", source.place, code="empty-dataset"
            )
        ]
    absent = [word for word in words if not (path.parent / word).exists()]
    if not absent:
        return []
    message = (
        f"{len(absent)} of {len(words)} samples of {shown_path(path)} are not there, the first is '{absent[0]}'. "
        f"Paths are absolute, or start at {shown_path(path.parent)}."
    )
    # Words that are no paths are passed on, too.
    return [ValidationError(message, source.place, warning=True, code="doubtful-data")]


def _content(source: SourceSpec, cache_dir: Path) -> object:
    """Return the words of an index as written, with digests of the files that they name."""
    path = source.path
    if not path.is_file():
        return None  # unreadable: reported by `file_problems`
    paths = [path, path.parent / "data.jsonl"] if source.form == "metadata" else [path]
    named = dict.fromkeys(word for line in _lines(path) for word in line.split()) if source.form == "txt" else ()
    files = [os.fspath(file) for word in named if (file := path.parent / word).is_file()]
    return [source.form, *file_digests([*map(os.fspath, paths), *files], cache_dir)]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()
