"""Every YAML block of the documents fits the schema, and every command of `ianvs` that they show is understood.

Commands that only look are run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ianvs.base.package import job_path, shipped_jobs
from ianvs.cli.command_line import GROUPS, command_line
from ianvs.cli.schema import KINDS, file_schema
from ianvs.config.load import files_of_job
from tests.documents import DOCUMENTS

ROOT = DOCUMENTS.parent
PAGES = [*sorted(DOCUMENTS.glob("*.md")), ROOT / "README.md"]
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?: {4,7})?(ianvs .+?)(?: +# .*)?$", re.MULTILINE)
INLINE = re.compile(r"`(ianvs [^`\n]+)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\.\.\.|\[")  # in a command that a sentence quotes
LOOKS = ("list", "show", "jobs", "metrics", "schema", "completion", "validate")


def page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def yaml_blocks() -> Iterator[Any]:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in FENCED.finditer(text):
            if block[2] in ("yaml", "yml"):
                line = text[: block.start()].count("\n") + 1
                yield pytest.param(textwrap.dedent(block[3]), id=f"{page(path)}:{line}")


def commands() -> Iterator[Any]:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        quoted = [match[1] for match in INLINE.finditer(text) if not PLACEHOLDER.search(match[1])]
        shown = {part.strip() for match in COMMAND.finditer(text) for part in match[1].split("&&")}
        for command in sorted({*shown, *quoted}):
            yield pytest.param(command, id=f"{page(path)}: {command}")


def words(command: str) -> list[str]:
    """The arguments of a command, without what the shell does with its output."""
    given = shlex.split(re.split(r" [|>] ", command)[0])[1:]
    return [word for word in given if word not in ("[C", "...]")]


@cache
def excerpt_schema(kind: str) -> dict[str, Any]:
    """The schema of a file of which a block may show a part: no key is required."""
    return dict(without_required(file_schema(kind)))


def without_required(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {name: without_required(part) for name, part in schema.items() if name != "required"}
        return {name: part for name, part in kept.items() if name not in ("if", "then", "else")}
    return [without_required(part) for part in schema] if isinstance(schema, list) else schema


def keys_in(schema: Any) -> set[str]:
    """The keys that a section may have, by whichever of its forms."""
    forms = [part for name in ("allOf", "anyOf", "oneOf") for part in schema.get(name, [])]
    return {*schema.get("properties", {})}.union(*map(keys_in, forms))


def as_file(content: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(kind, content of a file) of a block, which may be a part of one."""
    schemas = {kind: file_schema(kind) for kind in KINDS}
    tops = {next(iter(schema["properties"])): kind for kind, schema in schemas.items()}
    if content.keys() <= tops.keys() and len(content) == 1:
        return tops[next(iter(content))], content
    for top, kind in tops.items():
        if content.keys() <= keys_in(schemas[kind]["properties"][top]):
            return kind, {top: content}
    if content.keys() <= keys_in(schemas["algorithm"]["$defs"]["ModuleSpec"]):
        return "algorithm", {"algorithm": {"modules": [content]}}
    if content.keys() <= keys_in(schemas["testenv"]["$defs"]["DatasetSpec"]):
        return "testenv", {"testenv": {"dataset": content}}
    raise AssertionError(f"keys of no file: {sorted(content)}")


@pytest.mark.parametrize("block", [*yaml_blocks()])
def test_a_block_of_yaml_fits_the_schema(block: str) -> None:
    for content in yaml.safe_load_all(block):
        kind, whole = as_file(content)
        errors = Draft202012Validator(excerpt_schema(kind)).iter_errors(whole)
        assert [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors] == []


@pytest.mark.parametrize("command", [*commands()])
def test_a_command_is_understood_and_its_files_exist(command: str) -> None:
    given = words(command)
    if given[:1] != ["--help"] and given[:1] != ["--version"] and given[0] not in " ".join(GROUPS).split():
        given.insert(0, "run")
    try:
        options, unknown = command_line().parse_known_args(given)
    except SystemExit as ended:
        assert ended.code == 0, command  # --help, --version
        return
    assert not unknown
    job = getattr(options, "file", None) or getattr(options, "job", None)
    if isinstance(job, str) and job.startswith(("configs/", "examples/")):
        assert files_of_job(ROOT / job)
    elif isinstance(job, str) and job.startswith(("digits", "pretrained", "coin")):
        assert job in shipped_jobs() and files_of_job(job_path(Path(job)))


@pytest.mark.parametrize(
    "command", [param for param in commands() if words(param.values[0])[:1] and words(param.values[0])[0] in LOOKS]
)
def test_a_command_that_only_looks_runs(command: str, tmp_path: Path) -> None:
    given = words(command)
    if PLACEHOLDER.search(command) or (given[0] == "validate" and "configs/" not in command):
        pytest.skip("it names files of the reader")
    run = [sys.executable, "-m", "ianvs", *given, *(["--workspace", str(tmp_path)] if given[0] == "validate" else [])]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
