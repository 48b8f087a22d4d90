"""Which hyperparameters and options hold a secret: by their name, or as a URL with a password in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

HIDDEN = "***"
"""What stands in every output instead of the value of a secret."""

_SHORTEST_SECRET = 4  # hiding every "1" of a message because of `token: 1` would hide the message
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = re.compile(
    r"secrets?|passwords?|passwd|pwd|passphrases?|credentials?|bearer|auth|authorization|pat|dsn"
    r"|(api|access|private|secret|auth)keys?|(api|access|auth|bearer)tokens?"
)
_PLURAL = re.compile(r"\b(api|access|private|secret) (keys|tokens)\b")  # alone, attention has keys and text has tokens
_OFTEN = re.compile(r"key|token")
# A name that counts or measures keys and tokens is nobody's secret.
_MEASURES = re.compile(
    r"size|dims?|dimension|length|len|counts?|num|number|n|max|min|ratio|rate|dropout|heads?|layers?|limit|budget"
)
_USERINFO = re.compile(r"(?<=://)[^\s/?#'\"]+(?=@)")
_VARIABLE = re.compile(r"(\$\{\w+)(:-[^}]*)?\}")


def is_secret(name: str) -> bool:
    """Whether values of this name must never be shown: `api_key`, `hfToken`, `db.password`, `pat`; not `max_token`.

    A name is taken apart at underscores, other punctuation, digits and capitals. One part has to be key, token, secret,
    password, passphrase, credential, bearer, auth, pat, dsn or the like, or two of them api keys; key and token do not
    count beside a part that measures (`key_size`).
    """
    parts = [part.lower() for part in _PARTS.findall(name)]
    if any(map(_ALWAYS.fullmatch, parts)) or _PLURAL.search(" ".join(parts)):
        return True
    return any(map(_OFTEN.fullmatch, parts)) and not any(map(_MEASURES.fullmatch, parts))


def without_secrets(values: Mapping[str, object]) -> dict[str, object]:
    """The same, with `***` for values of keys, tokens and passwords, and for who logs in at a URL; nested ones too.

    A value that a file gives as `${NAME}` is shown so: the variable's name is no secret, a default beside it may be.
    """
    return {name: _shown(value, is_secret(str(name))) for name, value in values.items()}


def _shown(value: object, secret: bool) -> object:
    if isinstance(value, list | tuple) and (not secret or (value and all(map(_is_variable, value)))):
        return [_shown(part, secret) for part in value]
    if secret:
        return _VARIABLE.sub(r"\1}", str(value)) if _is_variable(value) else HIDDEN
    if isinstance(value, Mapping):
        return without_secrets(value)
    return without_userinfo(value) if isinstance(value, str) else value


def _is_variable(value: object) -> bool:
    return isinstance(value, str) and _VARIABLE.fullmatch(value) is not None


def without_userinfo(text: str) -> str:
    """`text` without the names and passwords that stand before the host of a URL."""
    return _USERINFO.sub(HIDDEN, text)


def hide_secrets(text: str, hyperparameters: Mapping[str, object]) -> str:
    """`text` without the values of hyperparameters that are secrets: messages like to quote them."""
    for secret in sorted(set(_secrets(hyperparameters)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return without_userinfo(text)


def _secrets(value: object, named_so: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _secrets(part, named_so or is_secret(str(key)))
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _secrets(part, named_so)
    elif value is not None and not isinstance(value, bool) and not _is_variable(value):
        logins = _USERINFO.findall(value) if isinstance(value, str) else []
        found = [login.partition(":")[2] for login in logins] + [str(value)] * named_so
        yield from (secret for secret in found if len(secret) >= _SHORTEST_SECRET)
