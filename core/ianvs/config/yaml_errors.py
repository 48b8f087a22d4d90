"""PyYAML's complaints, said to the person who wrote the file."""

from __future__ import annotations

from pathlib import Path

import yaml

from ianvs.base.errors import Place, Problem

__all__ = ["Refused", "place_of", "syntax_problem"]


class Refused(yaml.MarkedYAMLError):
    """A refusal of ours in the middle of PyYAML's work; `problem` is the whole sentence."""


def place_of(file: Path, mark: yaml.Mark) -> Place:
    return Place(file, mark.line + 1, mark.column + 1)


def syntax_problem(error: yaml.MarkedYAMLError, file: Path) -> Problem:
    """One line about `error`, at the place to look at."""
    mark = error.problem_mark or error.context_mark
    opened = error.context_mark
    message = error.problem or ""
    if not isinstance(error, Refused):
        message = _message(message, error.context or "", opened.line + 1 if opened else 0)
    return Problem(message, place_of(file, mark) if mark else Place(file))


def _message(problem: str, context: str, opened: int) -> str:
    if "found character '\\t'" in problem:
        return "a tab stands where YAML allows only blanks. Use blanks."
    if problem == "mapping values are not allowed here":
        return "unexpected ':'. Put a value with ': ' in quotes, or mend the line before: its ':', its indentation."
    if problem == "could not find expected ':'":
        return f"the key on line {opened} has no ':' after it. Write 'key: value'."
    if "found unexpected end of stream" in problem:
        return f"the quote opened on line {opened} is never closed."
    if "while parsing a flow node" in context:
        return "a value is missing here. Write it, or close the '[' or '{' before it."
    if "while parsing a flow" in context:
        opening, closing = ("[", "]") if "sequence" in context else ("{", "}")
        return f"the '{opening}' opened on line {opened} is not closed here. Add a ',' or a '{closing}'."
    if "block scalar" in context:
        return "'>' and '|' begin a block of text in YAML. Put an operator in quotes, as in '>='."
    if "expected <block end>, but found '-'" in problem:
        return f"a '- ' entry among the keys that began on line {opened}. Indent it below the key that it belongs to."
    if "expected <block end>" in problem:
        return f"this does not line up with what began on line {opened}. Indent entries of one level alike."
    if "that cannot start any token" in problem:
        return f"a value can't begin with {problem.split()[2]}. Put the value in quotes."
    if "unknown escape character" in problem:
        return "a backslash in double quotes begins an escape. Use single quotes, or write '\\\\'."
    if "undefined alias" in problem or "scanning an alias" in context:
        return "'*' begins an alias, and its anchor is nowhere before. Put a value that begins with '*' in quotes."
    if problem == "second occurrence":
        return f"this anchor was given before, on line {opened}. Choose another name."
    if "document start" in problem:
        return "'%' begins a directive of YAML. Put the value in quotes."
    return f"not valid YAML: {problem or context}."
