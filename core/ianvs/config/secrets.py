"""Which hyperparameters and options hold a secret, by their name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["HIDDEN", "hide_secrets", "is_secret", "without_secrets"]

HIDDEN = "***"
"""What stands in every output instead of the value of a secret."""

_SHORTEST_SECRET = 4  # hiding every "1" of a message because of `token: 1` would hide the message
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = re.compile(r"secrets?|passwords?|passwd|credentials?|(api|access|private|secret)key|authtoken")
_OFTEN = re.compile(r"key|token")
# Attention has keys and text has tokens: a name that counts or measures them is nobody's secret.
_MEASURES = re.compile(
    r"size|dims?|dimension|length|len|counts?|num|number|n|max|min|ratio|rate|dropout|heads?|layers?|limit|budget"
)


def is_secret(name: str) -> bool:
    """Whether values of this name must never be shown: `api_key`, `hfToken`, `db.password`; not `max_token`.

    A name is taken apart at underscores, other punctuation, digits and capitals. One part has to be key, token, secret,
    password, passwd, credential or apikey; key and token do not count beside a part that measures (`key_size`).
    """
    parts = [part.lower() for part in _PARTS.findall(name)]
    if any(map(_ALWAYS.fullmatch, parts)):
        return True
    return any(map(_OFTEN.fullmatch, parts)) and not any(map(_MEASURES.fullmatch, parts))


def without_secrets(hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with `***` for values of keys, tokens and passwords, nested ones too."""
    return {name: HIDDEN if is_secret(name) else _without(value) for name, value in hyperparameters.items()}


def _without(value: object) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(value)
    return [_without(part) for part in value] if isinstance(value, list | tuple) else value


def hide_secrets(text: str, hyperparameters: Mapping[str, Any]) -> str:
    """`text` without the values of hyperparameters that are named like secrets: messages like to quote them."""
    for secret in sorted(set(_secrets(hyperparameters)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(value: object, named_so: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _secrets(part, named_so or is_secret(str(key)))
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _secrets(part, named_so)
    elif named_so and value is not None and not isinstance(value, bool) and len(str(value)) >= _SHORTEST_SECRET:
        yield str(value)
