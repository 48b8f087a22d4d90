"""Recognises jobs of KubeEdge Ianvs. Every job is looked at, so little is imported here."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ianvs.base.errors import ConfigError, ValidationError
from ianvs.base.source_files import regular_files
from ianvs.config.contracts import mixed
from ianvs.config.models.base import at, entries
from ianvs.config.models.contract_name import NATIVE, contract_names
from ianvs.config.paths import Lookup
from ianvs.config.reading import Reading
from ianvs.config.strict_yaml import Document, read
from ianvs.kubeedge.yaml.path_lookup import FoundElsewhereError, KubeEdgeLookup, root_of
from ianvs.plugins.local_imports import parsed

IANVS = "ianvs"
"""The name of this contract in files."""

_REGISTRY = "sedna.common.class_factory"


def reading_of(job: Document, lookup: Lookup) -> Reading | None:
    """Return the reading of a job with algorithms under `contract: ianvs`; None for a native job.

    lookup: of the job's file. Raises ConfigError if a job has algorithms of both contracts.
    """
    finding = KubeEdgeLookup(**vars(lookup), job=lookup.folder)
    contracts = []
    for _, link in entries(job.data, "benchmarkingjob", "test_object", "algorithms"):
        if (file := _resolved(at(link, "url"), lookup, finding)) is None:
            continue
        try:
            algorithm = at(read(file).data, "algorithm")
        except ConfigError:
            continue  # reported when it is read completely
        beside = [replace(each, folder=file.parent) for each in (lookup, finding)]
        urls = [at(algorithm, "url"), *(at(module, "url") for _, module in entries(algorithm, "modules"))]
        files = [path for url in urls if (path := _resolved(url, *beside)) is not None]
        if (contract := contract_of(algorithm, files)) is not None:
            contracts.append((str(at(link, "name")), contract))
    theirs = [(name, contract) for name, contract in contracts if contract == IANVS]
    if not theirs:
        return None
    if message := mixed(theirs + [named for named in contracts if named not in theirs]):
        raise ConfigError(
            [
                ValidationError(
                    message, job.key_place(("benchmarkingjob", "test_object", "algorithms")), code="mixed-contracts"
                )
            ]
        )
    from ianvs.kubeedge.yaml.kubeedge_reading import KubeEdgeReading  # for other jobs it would only take time

    top = at(job.data, "benchmarkingjob")
    directory = at(top, "working_directory")
    if isinstance(directory, str) and directory:
        home = lookup.folder
        with suppress(ValueError):  # the model reports it
            home = lookup.find(directory, "folder")
        return KubeEdgeReading(replace(finding, start=home, home=home), home)
    links = [at(top, "testenv"), *(at(link, "url") for _, link in entries(top, "test_object", "algorithms"))]
    home = root_of(finding, [link for link in links if isinstance(link, str)])
    return KubeEdgeReading(replace(finding, home=home), home)


def _resolved(text: object, *lookups: Lookup) -> Path | None:
    """Return where a path leads by the first of the lookups that finds it; None for what leads nowhere."""
    if not isinstance(text, str):
        return None
    for lookup in lookups:
        try:
            return lookup.find(text, "any")
        except FoundElsewhereError as moved:
            return moved.path
        except ValueError:
            continue
    return None


def contract_of(algorithm: object, files: Sequence[Path]) -> str | None:
    """Return the contract of an `algorithm:`; None if neither the key `contract` nor any file determines it.

    files: existing files of its modules, or folders of packages; a module without a file is an installed class, or
    built in. A python file that imports sedna's ClassFactory makes it an algorithm of KubeEdge Ianvs.
    """
    name = at(algorithm, "contract")
    if isinstance(name, str) and name in contract_names():
        return name
    theirs = False
    for file in (each for path in files for each in (regular_files(path, "**/*.py") if path.is_dir() else [path])):
        with suppress(OSError):  # its import reports it in full
            # Most files don't contain the word and need no parsing.
            theirs |= b"class_factory" in file.read_bytes() and _REGISTRY in parsed(file).imports
    if theirs:
        return IANVS
    return NATIVE if files else None
