"""YAML, Python and commands in the documents: they fit the schemas, import names that exist, and parse."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ianvs.cli.command_line import _parsed
from ianvs.cli.schema import KINDS, file_schema
from ianvs.config.strict_yaml import parse

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^(?:    |(?<=```sh\n))(?:\S+/)?(ianvs [^\n]*)$", re.MULTILINE)
BLOCK = re.compile(r"^( *)```(yaml|python)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SCHEMAS = {key: file_schema(kind) for kind, key in KINDS.items()}


def blocks(language: str) -> list[Any]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[2] == language:
                line = text.count("\n", 0, match.start()) + 1
                found.append(pytest.param(match[3], page, id=f"{page.relative_to(ROOT)}:{line}"))
    return found


def objects() -> Iterator[dict[str, Any]]:
    """Every kind of mapping that may stand in a file, as a schema that asks for nothing to be complete."""
    for key, schema in SCHEMAS.items():
        root = schema["properties"][key]
        for one in (*root.get("allOf", [root])[:1], *schema["$defs"].values(), *_branches(schema["$defs"].values())):
            if "properties" in one:
                yield {**{k: v for k, v in one.items() if k != "required"}, "$defs": schema["$defs"]}


def _branches(schemas: Any) -> Iterator[dict[str, Any]]:
    for one in schemas:
        for word in ("oneOf", "anyOf", "allOf"):
            yield from (branch for branch in one.get(word, ()) if isinstance(branch, dict))


def problems(value: Any) -> list[str]:
    """What is wrong with a block; with a part of a file only if it is a part of none."""
    if isinstance(value, list):
        return [problem for one in value if isinstance(one, dict) for problem in problems(one)]
    whole = [key for key in SCHEMAS if key in value]
    if whole:  # of which a document may show the keys that it speaks of
        found = Draft202012Validator(SCHEMAS[whole[0]]).iter_errors(value)
        return [one.message for one in found if not (one.validator == "required" and len(one.absolute_path) < 2)]
    fitting = [one for one in objects() if value.keys() <= one["properties"].keys()]
    told = [[error.message for error in Draft202012Validator(one).iter_errors(value)] for one in fitting]
    return min(told, key=len, default=[f"no file has {sorted(value)} beside each other"])


@pytest.mark.parametrize(("text", "page"), blocks("yaml"))
def test_yaml_in_documents_fits_the_files(text: str, page: Path) -> None:
    assert problems(parse(text, Path("block.yaml")).data) == []


@pytest.mark.parametrize(("text", "page"), blocks("python"))
def test_python_in_documents_compiles_and_imports_what_there_is(text: str, page: Path) -> None:
    for node in ast.walk(ast.parse(dedent(text))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            file = f"{(node.module or '').removeprefix('ianvs.').replace('.', '/')}.py"
            if file in page.read_text(encoding="utf-8"):
                continue  # the reader is told to write it
            module = importlib.import_module(node.module or "")
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            assert not missing
        elif isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)


def commands(page: Path) -> Iterator[list[str]]:
    """The arguments of each command in an indented or shell block, without comments and optional parts."""
    for line in COMMAND.findall(page.read_text(encoding="utf-8")):
        for command in re.sub(r"\s+#.*$| > .*$", "", line).split(" && "):
            words = shlex.split(command if "'" in command else command.partition("[")[0])
            if words[0] == "ianvs":
                yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_documents_have_arguments_that_exist(page: Path) -> None:
    for words in commands(page):
        _parsed(words)


def test_what_is_wrong_is_seen() -> None:
    assert problems({"testenv": {"dataset": {"name": "digits"}, "metrics": ["accuracy"], "metrcs": []}})
    assert problems({"scenario": {"name": "class-incremental", "rounds": 0}})
    assert problems({"rounds": 5, "seeds": [0]})
    assert not problems({"scenario": {"name": "class-incremental", "rounds": 5}})
    assert len(blocks("yaml")) > 40
    assert len(blocks("python")) > 10
    assert sum(len(list(commands(page))) for page in PAGES) > 60
