"""Whether a plugin's train() changes weights, judged from its syntax tree."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

_TRAINING = re.compile(r"\boptim(izers?)?\b|GradientTape|\. fit \(|Trainer \(|\. train \( data =")
_SAYS = re.compile(r"(print|log(ger|ging)?\.\w+|\w*\.?logger\.\w+)\(", re.IGNORECASE)


def trains_weights(files: Iterable[Path], source: str) -> bool:
    """Return whether a class in `files` has a train() that does more than print, and `source` has an optimizer.

    source: all code of the example, because the code that train() calls may be in any of its files.
    """
    return bool(_TRAINING.search(_code(source))) and any(map(_has_training, files))


def _code(source: str) -> str:
    """Return the tokens of `source`, separated by blanks, without comments and strings, which may mention
    optimizers.
    """
    words = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NAME, tokenize.OP):
                words.append(token.string)
    except (tokenize.TokenError, SyntaxError):  # of Python 2, or several files with one that does not end
        return source
    return " ".join(words)


def _has_training(file: Path) -> bool:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    methods = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "train")
    return any(not all(map(_idle, method.body)) for method in methods)


def _idle(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing: a docstring, `pass`, a message, or a return of nothing computed."""
    if isinstance(statement, ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant | ast.Name | ast.Attribute)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or bool(_SAYS.match(ast.unparse(statement.value)))
    return isinstance(statement, ast.Pass)
