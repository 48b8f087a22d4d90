"""Slips: small mistakes in source code. Where they can be made, and how one is put into a file.

Four kinds: a comparison turned, an argument dropped, an integer off by one, a sign turned. Each stays in one line and
changes what the code does: nothing in annotations, docstrings, `__all__`, messages or blocks for type checkers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["KINDS", "Slip", "find_slips", "line_of", "put_slip"]

KINDS = ("comparison", "argument", "off-by-one", "sign")
_TURNED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_REPORTING = {"print", "warn", "warning", "info", "debug", "error", "exception", "log", "Problem", "ConfigError"}
_TEXT = (ast.JoinedStr, ast.List, ast.Tuple, ast.Set, ast.Dict)  # `-` has no meaning, or another one, there


@dataclass(frozen=True)
class Slip:
    """A slip, in a form that finds its line again in a tree that has changed elsewhere.

    Attributes:
        function: Qualified name of the innermost function.
        before, after: The line without indentation.
        occurrence: Which of the equal lines in the function it is, from 0.
        line: Line number when the slip was chosen.
    """

    file: str
    function: str
    kind: str
    before: str
    after: str
    occurrence: int
    line: int
    id: int = 0


def find_slips(source: str, file: str) -> list[Slip]:
    """Find the slips that can be made in `source`, the text of `file`; `put_slip` refuses the few that don't parse."""
    lines = source.splitlines()
    found: dict[tuple[int, str], Slip] = {}
    for function, first, _, node in _nodes(ast.parse(source)):
        for kind, start, end, text in _edits(node, lines):
            number = node.lineno if isinstance(node, ast.expr) else 0
            line = lines[number - 1]
            encoded = line.encode()
            after = (encoded[:start] + text.encode() + encoded[end:]).decode()
            if after == line:
                continue
            before = line.strip()
            earlier = [other.strip() for other in lines[first - 1 : number - 1]].count(before)
            found.setdefault((number, after), Slip(file, function, kind, before, after.strip(), earlier, number))
    return sorted(found.values(), key=lambda slip: (slip.line, slip.after))


def line_of(source: str, slip: Slip) -> int | None:
    """Line number, from 1, of a slip's line as it was before; None if it is no longer there."""
    lines = source.splitlines()
    for name, first, last in _functions(ast.parse(source)):
        same = [number for number in range(first, last + 1) if lines[number - 1].strip() == slip.before]
        if name == slip.function and len(same) > slip.occurrence:
            return same[slip.occurrence]
    return None


def put_slip(source: str, slip: Slip) -> str | None:
    """The source with the slip in it; None if its line is no longer there, or it doesn't parse."""
    number = line_of(source, slip)
    if number is None:
        return None
    lines = source.splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(slip.before, slip.after, 1)
    changed = "".join(lines)
    return changed if _parses(changed) else None


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{node.name}."
            if not isinstance(node, ast.ClassDef):
                yield f"{prefix}{node.name}", node.lineno, node.end_lineno or node.lineno
        yield from _functions(node, inner)


def _nodes(
    tree: ast.AST, prefix: str = "", function: tuple[str, int, int] | None = None
) -> Iterator[tuple[str, int, int, ast.AST]]:
    """Expressions inside functions where a slip changes what is done: (function, its first and last line, node)."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "type_params", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or _is_left_out(node):
                continue
            inner, around = prefix, function
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{prefix}{node.name}."
                if not isinstance(node, ast.ClassDef):
                    around = f"{prefix}{node.name}", node.lineno, node.end_lineno or node.lineno
            if around is not None and name != "defaults":
                yield *around, node
            yield from _nodes(node, inner, around)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):  # positions inside f-strings are wrong up to 3.11
        return True
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in _REPORTING
    return False


def _edits(node: ast.AST, lines: Sequence[str]) -> Iterator[tuple[str, int, int, str]]:
    """(kind, start, end, new text) in the line of `node`; columns count bytes, as those of ast do."""
    if not isinstance(node, ast.expr) or node.lineno != node.end_lineno:
        return
    line = lines[node.lineno - 1].encode()
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        old, new = _TURNED[type(node.ops[0])]
        if span := _operator(line, node.left, node.comparators[0], old):
            yield "comparison", *span, new
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield "argument", *_with_comma(line, keyword.col_offset, keyword.end_col_offset or 0), ""
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "off-by-one", node.col_offset, node.end_col_offset or 0, str(node.value + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sides = (node.left, node.right)
        if any(isinstance(side, _TEXT) or isinstance(getattr(side, "value", None), str) for side in sides):
            return
        old, new = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
        if span := _operator(line, *sides, old):
            yield "sign", *span, new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.col_offset, node.col_offset + 1, ""


def _operator(line: bytes, left: ast.expr, right: ast.expr, text: str) -> tuple[int, int] | None:
    start, end = left.end_col_offset or 0, right.col_offset
    pattern = r"\s+".join(re.escape(word) for word in text.split())
    found = re.search(pattern.encode(), line[start:end])
    return None if found is None else (start + found.start(), start + found.end())


def _with_comma(line: bytes, start: int, end: int) -> tuple[int, int]:
    if before := re.search(rb",\s*$", line[:start]):
        return before.start(), end
    after = re.match(rb"\s*,\s*", line[end:])
    return start, end + (after.end() if after else 0)
