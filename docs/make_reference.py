"""Generated pages of the reference: commands, YAML keys, metrics, the catalogue of methods.

The build of the site calls `pages()`. To read them without a site: python docs/make_reference.py FOLDER
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ianvs.cli.catalogue.name_registry import KINDS, listed
from ianvs.cli.command_line import command_line
from ianvs.cli.parser import subparsers_of
from ianvs.cli.schema import KINDS as FILES
from ianvs.cli.schema import file_schema
from ianvs.exam.metrics.metric_names import ALIASES
from ianvs.exam.metrics.table import describe

_LEVELS = {
    "score": "Scores of one evaluation",
    "matrix": "Over a score matrix or a curve",
    "stream": "Of a test-then-train stream",
    "system": "Measured by the runner",
}
MEANINGS: Mapping[str, Mapping[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "key_meanings.yaml").read_text(encoding="utf-8")
)
"""By section and key."""


def pages() -> dict[str, str]:
    """Markdown by file name."""
    return {"cli.md": commands(), "yaml.md": yaml_keys(), "metric_list.md": metrics(), "catalogue.md": catalogue()}


def commands() -> str:
    """Every command with its options, from the parser."""
    parts = [
        "# Commands",
        "After this page you know every command and option. JOB is a job file, its folder, or a shipped job.",
    ]
    for name, parser in subparsers_of(command_line()).items():
        parts += [f"## ianvs {name}", _of_parser(parser)]
        for inner, inner_parser in subparsers_of(parser).items():
            parts += [f"### ianvs {name} {inner}", _of_parser(inner_parser)]
    return "\n\n".join(parts) + "\n"


def _of_parser(parser: argparse.ArgumentParser) -> str:
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    arguments = [  # argparse has no public list of them
        action for action in parser._actions if not isinstance(action, hidden) and action.help != argparse.SUPPRESS
    ]
    rows = [f"| `{_named(action)}` | {_cell(action.help or '')} |" for action in arguments]
    table = "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""
    return "\n\n".join(filter(None, [parser.description or "", f"```text\n{usage}\n```", table]))


def _named(action: argparse.Action) -> str:
    return " ".join(filter(None, (", ".join(action.option_strings), _metavar(action))))


def _metavar(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    named = action.metavar or ("" if not action.option_strings else action.dest.upper())
    return " ".join(named) if isinstance(named, tuple) else named or action.dest


def yaml_keys() -> str:
    """Every key of the three files, with type and default, from the schema."""
    parts = [
        "# YAML keys",
        "After this page you know every key of the three files. `ianvs schema job` serves editors.",
    ]
    done: set[str] = set()
    for kind, key in FILES.items():
        schema = file_schema(kind)
        parts += [f"## {key}.yaml", *_section(key, schema["properties"][key], schema["$defs"], done)]
    return "\n\n".join(parts) + "\n"


def _section(name: str, schema: Mapping[str, Any], sections: Mapping[str, Any], done: set[str]) -> Iterator[str]:
    """The table of a section, then those of the sections that it names."""
    own = _object(schema)
    inner, rows = [], []
    for key, value in own.get("properties", {}).items():
        if "without effect" in value.get("description", "") or key.startswith("<"):
            continue
        text = MEANINGS.get(name, {}).get(key, "")
        default = value.get("default")
        default = "" if default in (None, "", []) or isinstance(default, dict) else f"`{str(default).lower()}`"
        rows.append(f"| `{key}` | {_cell(_form(value))} | {_cell(default)} | {_cell(text)} |")
        inner += [reference for reference in _references(value) if reference not in done]
    if rows:
        yield "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows])
    for reference in dict.fromkeys(inner):
        if reference not in done and _object(sections[reference]).get("properties"):
            done.add(reference)
            yield f"### {_heading(reference)}"
            yield from _section(_heading(reference), sections[reference], sections, done)


def _object(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a schema that has the properties of a section."""
    if "properties" in schema and "type" in schema:
        return schema
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            if isinstance(part, dict) and (found := _object(part)):
                return found
    return schema if "additionalProperties" in schema and "properties" in schema else {}


def _heading(reference: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", reference.removesuffix("Spec").strip("_")).lower()


def _form(value: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in value:
        return _heading(value["$ref"].rpartition("/")[2])
    if "enum" in value or "const" in value:
        return ", ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    for word in ("anyOf", "oneOf", "allOf"):
        if word in value:
            forms = [_form(part) for part in value[word] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(filter(None, forms)))
    kind = value.get("type", "")
    if kind == "array":
        return f"list of {_form(value.get('items', {})) or 'values'}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
    return names.get(kind, str(kind))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def metrics() -> str:
    """Every metric with its formula and source, from the registry."""
    parts = [
        "# List of metrics",
        "After this page you know every metric's formula and source. [Metrics](metrics.md) explains R and options.",
    ]
    rows = describe()
    for level, title in _LEVELS.items():
        table = ["| name | meaning | formula | source | needs | better |", "|---|---|---|---|---|---|"]
        for row in (row for row in rows if row["level"] == level):
            names = " ".join(f"`{name}`" for name in (row["name"], *row["aliases"]))
            cells = (
                names,
                row["summary"],
                f"`{row['formula']}`",
                row["source"],
                ", ".join(row["needs"]),
                row["better"],
            )
            table.append("| " + " | ".join(_cell(str(cell)) for cell in cells) + " |")
        parts += [f"## {title}", "\n".join(table)]
    in_papers = [f"| `{alias}` | `{target}` | {source} |" for alias, (target, source) in ALIASES.items()]
    parts += ["## Names in papers", "\n".join(["| name | here | used by |", "|---|---|---|", *in_papers])]
    return "\n\n".join(parts) + "\n"


def catalogue() -> str:
    """Everything that a file can name, with the first line of its docstring."""
    parts = [
        "# Catalogue",
        "After this page you know everything that a file can name. `ianvs show NAME` prints the options.",
    ]
    for kind in KINDS:
        if kind in ("metrics", "jobs"):
            continue
        rows = [f"| `{entry.name}` | {_cell(entry.summary)} | {_source(entry.value)} |" for entry in listed(kind)]
        parts += [
            f"## {kind.replace('_', ' ').capitalize()}",
            "\n".join(["| name | what it is | code |", "|---|---|---|", *rows]),
        ]
    return "\n\n".join(parts) + "\n"


def _source(value: str) -> str:
    module = value.partition(":")[0].removeprefix("ianvs.")
    for top in ("testalgorithms", "testenv"):
        path = Path(__file__).parents[1] / f"{module.replace('.', '/')}.py"
        if module.startswith(top) and path.is_file():
            return f"[{module.rpartition('.')[0]}](../{module.replace('.', '/')}.py)"
    return ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for file, text in pages().items():
        (Path(sys.argv[1]) / file).write_text(text, encoding="utf-8")
