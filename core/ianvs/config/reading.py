"""Reads the files of one job, follows their links, and collects all errors."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast

import pydantic

from ianvs.base.errors import ConfigError, Location, ValidationError, closest
from ianvs.config.corrected_keys import MOVED_KEYS, with_known_keys, with_moved_keys
from ianvs.config.messages import home_of, problems_of, to_validation_error
from ianvs.config.models import FILE_KINDS, AlgorithmSpec
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, grids
from ianvs.config.models.base import at, entries
from ianvs.config.models.section import Spec
from ianvs.config.overrides import Override, apply_overrides
from ianvs.config.paths import Lookup, neighbour
from ianvs.config.strict_yaml import Document, Step, Steps, described, read

_adapter = cast("Callable[[type[Spec]], pydantic.TypeAdapter[Any]]", cache(pydantic.TypeAdapter))
_ARTICLES = {"benchmarkingjob": "a benchmarkingjob", "testenv": "a testenv", "algorithm": "an algorithm"}


@dataclass
class Reading:
    """The files read so far. Each file is read once, even if several links lead to it.

    A contract whose files have their own form derives its `Reading` from this one.

    Attributes:
        lookup: Resolves paths in the job's file.
        working_directory: Working directory of plugins; None if the files don't set it.
        problems: Errors that prevent a `JobSpec`, unless they are among `corrected`.
        corrects: Whether misspelt keys are treated as if they were right.
        corrected: Errors of such keys.
        rewritten: Warnings on entries that are read in another form, and errors that only prevent a run.
        documents: By file, in the order in which they were read; None for one that can't be read.
    """

    models: ClassVar[Mapping[str, type[Spec]]] = FILE_KINDS
    rewrite: ClassVar[Callable[[Any, Document], Document] | None] = None  # into the form of `models`

    lookup: Lookup
    working_directory: Path | None = None
    problems: list[ValidationError] = field(default_factory=list)
    warnings: list[ValidationError] = field(default_factory=list)
    overrides: list[Override] = field(default_factory=list)
    corrects: bool = False
    corrected: list[ValidationError] = field(default_factory=list)
    rewritten: list[ValidationError] = field(default_factory=list)
    documents: dict[Path, Document | None] = field(default_factory=dict)

    def migrated(self, folder: Path) -> dict[Path, str]:
        """Return {file below `folder`: its text} of the job's files in the native form; {} if they have it already."""
        return {}

    def open(self, file: Path, link: Location | None = None) -> Document | None:
        """Return the document in `file`. If it can't be read, the error is at the `link` that led to it."""
        if file not in self.documents:
            self.documents[file] = None
            try:
                document = read(file)
                self.problems += document.problems
                self.documents[file] = self.rewrite(document) if self.rewrite else document
            except ConfigError as error:
                for problem in error.problems:
                    whole_file = problem.location is None or problem.location.line == 0
                    if link and whole_file:
                        problem = replace(problem, message=f"'{file.name}': {problem.message}", location=link)
                    elif whole_file and not file.exists():
                        problem = replace(problem, message=problem.message + neighbour([file]))
                    self.problems.append(problem)
        return self.documents[file]

    def overridden(self, document: Document | None, kind: str) -> Document | None:
        """Return the document with the overrides of the command line."""
        if document is None:
            return None
        try:
            return apply_overrides(document, kind, self.overrides)
        except ConfigError as error:
            self.problems += error.problems
            return None

    def follow(self, document: Document, path: Steps) -> Document | None:
        """Return the document that the string at `path` leads to; anything but a string is an error of its model."""
        text = at(document.data, *path)
        if not isinstance(text, str) or not text:
            return None
        place = document.value_place(path)
        try:
            file = replace(self.lookup, folder=document.file.parent).find(text)
        except ValueError as error:
            self.problems.append(ValidationError.from_exception(error, place))
            return None
        return self.open(file, place)

    def validated(self, document: Document | None, kind: str, link: Location | None = None) -> Any:
        """Return the section `kind` of `document` as its model, None if it has errors."""
        if document is None:
            return None
        model = self.models[kind]
        if not (isinstance(document.data, dict) and document.data.keys() == {kind}):
            for problem in _at_the_top(document, kind, model, link):
                (self.warnings if problem.warning else self.problems).append(problem)
            if not isinstance(document.data, dict) or kind not in document.data:
                return None
        before, written = len(self.problems), document
        if MOVED_KEYS.keys() & document.keys.keys():
            document, problems = with_moved_keys(document)
            self.warnings += [problem for problem in problems if problem.code == "renamed-key"]
            self.problems += [problem for problem in problems if problem.code != "renamed-key"]
        section = at(document.data, kind)
        conflicts = list(model.conflicts(section))
        self.problems += [to_validation_error(each, document, kind) for each in conflicts if not each.warning]
        lookup = replace(self.lookup, folder=document.file.parent)
        try:
            validated = _adapter(model).validate_python(section, context=lookup)
        except pydantic.ValidationError as error:
            wrong = list(problems_of(error, model, document, kind))
            for path, to in MOVED_KEYS.items():
                if path in written.keys and path not in document.keys:  # by the name that is in the file
                    wrong = [
                        replace(each, message=re.sub(rf"\b{to[-1]}\b", str(path[-1]), each.message, count=1))
                        for each in wrong
                    ]
            self.problems += wrong
            again = with_known_keys(error, model, document, kind) if self.corrects else None
            if again is None or len(self.problems) != before + len(wrong):
                return None
            try:
                validated = _adapter(model).validate_python(at(again.data, kind), context=lookup)
            except pydantic.ValidationError:
                return None
            self.corrected += wrong
            document = self.documents[document.file] = again
            before = len(self.problems)
        if len(self.problems) != before:
            return None
        self.warnings += [to_validation_error(each, document, kind) for each in conflicts if each.warning]
        for key in model.without_effect.keys() & section.keys():
            remark = f": {model.without_effect[key]}" if model.without_effect[key] else " yet"
            place = document.key_place((kind, key))
            self.warnings.append(ValidationError(f"'{key}' has no effect{remark}.", place, code="no-effect"))
        return validated.placed(document, (kind,))

    def with_constants(self, document: Document, algorithm: AlgorithmSpec | None) -> AlgorithmSpec | None:
        """Return `algorithm` with the constants in the files that the modules in `document` name."""
        files: dict[Step, list[Document]] = {}
        for path, _ in entries(document.data, "algorithm", "modules"):
            for where, name, grid in grids(document.data, path):
                if name == OTHER_HYPERPARAMETERS and isinstance(at(grid, "values"), list):
                    links = [link for link, _ in entries(document.data, *where, "values")]
                    files[path[-1]] = [file for link in links if (file := self._constants(document, link))]
        if algorithm is None:
            return None
        modules = (module.with_constants(files.get(n, ())) for n, module in enumerate(algorithm.modules))
        return replace(algorithm, modules=tuple(modules))

    def _constants(self, document: Document, path: Steps) -> Document | None:
        """Return the file of constants that the text at `path` leads to."""
        text = at(document.data, *path)
        if not isinstance(text, str):
            message = f"expected the path of a yaml file of hyperparameters, found {described(text)}."
            self.problems.append(ValidationError(message, document.value_place(path), code="wrong-type"))
            return None
        linked = self.follow(document, path)
        if linked is None:
            return None
        if not isinstance(linked.data, dict):
            message = f"expected 'name: value' lines, found {described(linked.data)}."
            self.problems.append(ValidationError(message, linked.value_place(()), code="wrong-type"))
            return None
        for where, value in entries(linked.data):
            if isinstance(value, dict) and value.keys() == {"values"}:
                message = f"'{where[-1]}' lists values to try; a file of other_hyperparameters holds one value of each."
                remedy = "Write 'name: value' here, or move it to hyperparameters."
                self.problems.append(
                    ValidationError(f"{message} {remedy}", linked.key_place(where), code="misplaced-key")
                )
        return linked


def _at_the_top(document: Document, kind: str, model: type[Spec], link: Location | None) -> Iterator[ValidationError]:
    """Check that a file is of the expected type, and has no other keys beside its section."""
    data = document.data
    if not isinstance(data, dict):
        yield ValidationError(
            f"expected '{kind}:' at the top of the file, found {described(data)}.",
            document.value_place(()),
            code="missing-key",
        )
    elif kind not in data:
        yield _not_of(data, document, kind, link)
    for key in data if isinstance(data, dict) and kind in data else ():
        place = document.key_place((key,))
        if key == kind:
            continue
        if key in FILE_KINDS:
            yield ValidationError(
                f"'{key}' is beside '{kind}'. Give it a file of its own.", place, code="misplaced-key"
            )
        elif key in model.known_keys():
            yield ValidationError(f"key '{key}' is beside '{kind}'. Indent it below.", place, code="misplaced-key")
        elif home := home_of(key, kind):
            yield ValidationError(f"unknown key '{key}' at the top of the file.{home}", place, code="misplaced-key")
        else:
            yield ValidationError(f"'{key}' is beside '{kind}' and is not read.", place, warning=True, code="no-effect")


def _not_of(data: Mapping[str, object], document: Document, kind: str, link: Location | None) -> ValidationError:
    """Why a file with these `data` is not of the kind that is needed, judged by the keys at its top."""
    if other := next((key for key in data if key in FILE_KINDS), None):
        if link:
            message = f"'{document.file.name}' is {_ARTICLES[other]} file; {_ARTICLES[kind]} file belongs here."
            return ValidationError(message, link, code="wrong-file-kind")
        message = f"this is {_ARTICLES[other]} file; {_ARTICLES[kind]} file is needed, which has '{kind}:' at its top."
        return ValidationError(message, document.key_place((other,)), code="wrong-file-kind")
    for key in data:
        if hint := closest(key, [kind]):
            return ValidationError(
                f"unknown key '{key}' at the top of the file.{hint}", document.key_place((key,)), code="unknown-key"
            )
    place = document.value_place(())
    if any(key in FILE_KINDS[kind].known_keys() for key in data):
        return ValidationError(
            f"'{kind}:' is missing at the top of the file. Write it there and indent the rest below.",
            place,
            code="missing-key",
        )
    return ValidationError(
        f"'{kind}:' is missing at the top of the file. Is this {_ARTICLES[kind]} file?", place, code="missing-key"
    )
