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
from jsonschema import Draft202012Validator

from ianvs.cli.command_line import GROUPS, command_line
from ianvs.cli.parser import subparsers_of
from ianvs.cli.schema import KINDS, file_schema
from ianvs.config.load import files_of_job
from ianvs.config.strict_yaml import parse
from tests.documents import DOCUMENTS

ROOT = DOCUMENTS.parent
PAGES = [*sorted(DOCUMENTS.glob("*.md")), ROOT / "README.md"]
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(ianvs [^`\n]+)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\.\.\.|\[")  # in a command that a sentence quotes
LOOKS = ("list", "show", "jobs", "metrics", "schema", "completion")


def page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def yaml_blocks() -> Iterator[Any]:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in FENCED.finditer(text):
            if block[2] in ("yaml", "yml"):
                line = text[: block.start()].count("\n") + 1
                yield pytest.param(textwrap.dedent(block[3]), id=f"{page(path)}:{line}")


def commands(of_sentences: bool = False) -> Iterator[Any]:
    """Commands of blocks, or those that sentences quote, by their page."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        blocks = [block[3] for block in FENCED.finditer(text) if block[2] in ("sh", "bash")]
        lines = [*re.findall(r"^ {4,7}(ianvs .+)$", text, re.MULTILINE), *"\n".join(blocks).splitlines()]
        found = INLINE.findall(text) if of_sentences else [part for line in lines for part in line.split("&&")]
        for command in sorted({re.split(" +# ", part)[0].strip() for part in found}):
            if command.startswith("ianvs "):
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
        dropped = ("required", "if", "then", "else")
        return {name: without_required(part) for name, part in schema.items() if name not in dropped}
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
def test_a_block_of_yaml_fits_the_schema(block: str, tmp_path: Path) -> None:
    for text in re.split(r"^---$", block, flags=re.MULTILINE):
        kind, whole = as_file(parse(text, tmp_path).data)
        errors = Draft202012Validator(excerpt_schema(kind)).iter_errors(whole)
        assert [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors] == []


def command_of(given: list[str]) -> str:
    return given[0] if given[0] in " ".join(GROUPS).split() else "run"


@pytest.mark.parametrize("command", [*commands()])
def test_a_command_is_understood_and_its_files_exist(command: str) -> None:
    given = words(command)
    options, unknown = command_line().parse_known_args([command_of(given), *given[given[0] == command_of(given) :]])
    assert not unknown
    job = getattr(options, "file", None) or getattr(options, "job", None)
    if isinstance(job, str) and job.startswith(("configs/", "examples/")) and given[0] != "migrate":
        assert files_of_job(ROOT / job)


@pytest.mark.parametrize("command", [*commands(of_sentences=True)])
def test_a_command_in_a_sentence_has_a_known_name_and_known_options(command: str) -> None:
    given = words(command)
    parser = subparsers_of(command_line())[command_of(given)]
    for word in given:
        parser = subparsers_of(parser).get(word, parser)
    below = subparsers_of(parser).values() if any(map(PLACEHOLDER.search, given)) else ()
    options = {"--help", "--version"}.union(*(each._option_string_actions for each in (parser, *below)))
    assert [word for word in given if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in options] == []


@pytest.mark.parametrize("command", [param for param in commands() if words(param.values[0])[0] in LOOKS])
def test_a_command_that_only_looks_runs(command: str) -> None:
    given = words(command)
    if PLACEHOLDER.search(command) or given[0] == "validate" or given[-1].endswith(".json"):
        pytest.skip("it names files of the reader")
    run = [sys.executable, "-m", "ianvs", *given]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
