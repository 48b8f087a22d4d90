"""Recognises secrets by names and by patterns, and removes them from texts.

A value is a secret by its name (`api_key`, `db.password`); in any text, patterns find tokens of the usual
services, JSON web tokens, PEM blocks, passwords in URLs and connection strings.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"
"""Replaces the value of a secret in every output."""

_SHORTEST_SECRET = 4  # hiding every "1" of a message because of `token: 1` would hide the message
_SHORTEST_LINE = 8  # of a secret with several lines, in characters
# Values that are settings or types of ranges, whatever their name.
_WORDS = frozenset(["auto", "basic", "choice", "default", "false", "log_uniform", "none", "null", "true", "uniform"])
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = re.compile(
    r"secrets?|passwords?|passwd|pwd|pw|passphrases?|credentials?|bearer|auth|authorization|pat|dsn|jwt|cookies?"
    r"|(api|access|private|secret|auth)keys?|(api|access|auth|bearer)tokens?"
)
_PASSWORD = re.compile(r"secrets?|passwords?|passwd|pwd|pw|passphrases?")  # which may be a number
_SERVICE = (
    "wandb|openai|anthropic|huggingface|hf|hub|github|gitlab|slack|comet|neptune|mistral|cohere|replicate|azure|aws|gcp"
)
_OF_SERVICE = re.compile(_SERVICE)  # `wandb: KEY`
# Otherwise attention has keys and text has tokens.
_PLURAL = re.compile(
    rf"^tokens$|\b(api|access|private|secret|auth|bearer|refresh|user|login|{_SERVICE}) (keys|tokens)\b"
)
_LOOKS_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+=-]{20,}")  # as keys of services, but not names of models
_OFTEN = re.compile(r"key|token|pass|session|signature")
# A name that counts or measures keys and tokens is no secret.
_MEASURES = re.compile(
    r"size|dims?|dimension|length|len|counts?|num|number|n|max|min|ratio|rate|dropout|heads?|layers?|limit|budget"
)
_KINDS = re.compile(r"modes?|types?|methods?|schemes?|kinds?")  # as a last part: RAY_AUTH_MODE is "token"
_NO_PASSWORD = re.compile(r"\b(all|backward|band|first|forward|high|low|multi|one|second|single|two) pass\b")
_OF_VARIABLE = re.compile(r"env|envvar|var|variable")
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
_VARIABLE = re.compile(r"(\$\{\w+)(:-[^}]*)?\}")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_USERINFO = re.compile(r"(?<=://)(?P<secret>[^\s/?#'\"]+)(?=@)")


@lru_cache(maxsize=4096)  # a report asks for the few names of thousands of cases
def is_secret(name: str) -> bool:
    """Return whether values of this name must never be shown: `api_key`, `hfToken`, `db.password`, `pat`; not
    `max_token`.

    A name is taken apart at underscores, other punctuation, digits and capitals. One part has to be key, token, secret,
    password, passphrase, pass, pw, credential, bearer, auth, pat, dsn, jwt, cookie, session, signature or the like, or
    two of them api keys, or the name is tokens; key, token, pass, session and signature do not count beside a part that
    measures (`key_size`), and a name that ends in mode, type, method, scheme or kind is none (`auth_mode`).
    """
    parts = [part.lower() for part in _PARTS.findall(name)]
    if parts and _KINDS.fullmatch(parts[-1]):
        return False
    if any(map(_ALWAYS.fullmatch, parts)) or _PLURAL.search(" ".join(parts)):
        return True
    others = _NO_PASSWORD.sub("", " ".join(parts)).split()
    return any(map(_OFTEN.fullmatch, others)) and not any(map(_MEASURES.fullmatch, others))


def _hides(name: str, value: object) -> bool:
    """Return whether `value` is a secret by its name. Truth values are none, numbers only of passwords, and the name of
    a variable that holds one is none either (`api_key_env: OPENAI_API_KEY`).
    """
    if value is None or isinstance(value, bool):
        return False
    is_named = is_secret(name)
    if not is_named and not isinstance(value, str):
        return False
    parts = [part.lower() for part in _PARTS.findall(name)]
    if not is_named:
        of_service = _OF_SERVICE.fullmatch("".join(parts[-1:])) is not None
        return of_service and _LOOKS_RANDOM.fullmatch(str(value)) is not None
    values = value if isinstance(value, list | tuple) and value else [value]
    if all(isinstance(entry, int | float) for entry in values):
        return any(map(_PASSWORD.fullmatch, parts))
    named = _OF_VARIABLE.fullmatch(parts[-1])
    return not (named and all(isinstance(entry, str) and _VARIABLE_NAME.fullmatch(entry) for entry in values))


def without_secrets(value: Any, secret: bool = False) -> Any:
    """Return a record with `***` for keys, tokens, passwords and texts that look like one; also nested ones.

    A value that a file gives as `${NAME}` is shown so: the variable's name is no secret, a default beside it may be.

    Args:
        value: Values by name, or a part of them.
        secret: Whether the part's name makes it a secret.
    """
    if isinstance(value, list | tuple | set | frozenset) and (
        not secret or (value and all(_VARIABLE.fullmatch(str(part)) for part in value))
    ):
        return [without_secrets(part, secret) for part in value]
    if secret:
        return _VARIABLE.sub(r"\1}", str(value)) if _VARIABLE.fullmatch(str(value)) else HIDDEN
    if isinstance(value, Mapping):
        return {_shown_name(str(name)): without_secrets(part, _hides(key, part)) for name, key, part in _named(value)}
    return redacted(value) if isinstance(value, str) else value


def without_secret(argument: str) -> str:
    """Hide secrets in a word of a command line. In NAME=VALUE, the name may make the value a secret."""
    name, equals, value = argument.partition("=")
    return f"{name}={HIDDEN}" if equals and _hides(name, value) else str(redacted(argument))


def _named(values: Mapping[str, object]) -> Iterator[tuple[str, str, object]]:
    """Yield (key, name that decides on secrecy, value). In {name: api_key, value: ...} that is the name beside it."""
    beside = values.get("name") if "value" in values else None
    for key, value in values.items():
        yield key, beside if key == "value" and isinstance(beside, str) else str(key), value


# --- in texts -----------------------------------------------------------------------------------------------------


def hide_secrets(
    text: str, *given: Mapping[str, object], environment: Mapping[str, str] = _NOTHING, others: Iterable[str] = ()
) -> str:
    """Hide whatever looks like a secret in `text`, and the secrets of `given` in any form: messages often quote them.

    given, environment: as in `secrets_of`. others: further secrets.
    """
    secrets = secrets_of(*given, environment=environment).union(others) if given or environment else others
    return str(redacted(text, forms_of(secrets) if secrets else ()))


_PLAIN = {int, float, bool, type(None)}  # most parts of a record: not looked into


def redacted(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return the text, or the record with all of its texts, without secrets. secrets: as from `forms_of`."""
    if isinstance(value, str):
        spans = secret_spans(value, secrets)
        return replaced(value, spans) if spans else value
    if isinstance(value, Mapping):
        return {name: part if type(part) in _PLAIN else redacted(part, secrets) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [part if type(part) in _PLAIN else redacted(part, secrets) for part in value]
    return value


def secrets_of(*given: Mapping[str, object], environment: Mapping[str, str] = _NOTHING) -> frozenset[str]:
    """Return values that are secrets by their names, and parts of others that look like one.

    given: hyperparameters or options. environment: variables; of these not paths, nor what a desktop calls its session,
    but those that `given` names (`api_key_env: MINE`).
    """
    renamed = [(re.sub("session", "", name, flags=re.IGNORECASE), value) for name, value in environment.items()]
    variables = [{name: value} for name, value in renamed if not value.startswith("/")]
    secrets = set()
    parts: list[tuple[object, str, bool]] = [(values, "", False) for values in (*given, *variables)]
    while parts:
        value, name, secret = parts.pop()
        if isinstance(value, Mapping):
            parts += [(part, key, secret or _hides(key, part)) for _, key, part in _named(value)]
        elif isinstance(value, list | tuple | set | frozenset):
            parts += [(part, name, secret) for part in value]
        elif value is not None and not isinstance(value, bool) and not _VARIABLE.fullmatch(str(value)):
            text, named = str(value), not secret and is_secret(name) and str(value) in environment
            text = environment[text] if named else text
            logins = [login.partition(":")[2] for login in _USERINFO.findall(text)]
            secrets |= {*logins, *(text[start:end] for start, end in secret_spans(text)), *[text] * (secret or named)}
    return frozenset(each for each in secrets if len(each) >= _SHORTEST_SECRET and each.lower() not in _WORDS)


def forms_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the forms of secrets in texts: plain, escaped as in repr() or JSON, quoted for a URL, in base 64; also the
    single lines of a longer one."""
    forms = set()
    for secret in secrets:
        lines = [line.strip() for line in secret.splitlines()]
        for part in (secret, *(line for line in lines if len(line) >= _SHORTEST_LINE and line[:5] != "-----")):
            code = base64.b64encode(part.encode("utf-8", "surrogateescape")).decode()
            forms |= {part, repr(part)[1:-1], json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]}
            forms |= {quoted(part, safe, errors="replace") for quoted in (quote, quote_plus) for safe in ("", "/")}
            forms |= {code.rstrip("="), code.rstrip("=").replace("+", "-").replace("/", "_")}
    return tuple(forms)


def secret_spans(text: str, secrets: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Return [start, end) of all secrets in a text, in order, not overlapping. secrets: as from `forms_of`."""
    present = (secret for secret in secrets if secret in text)
    spans = [match.span() for secret in present for match in re.finditer(re.escape(secret), text)]
    lowered = text.lower()
    for markers, looks, has in _LOOKS:
        if any(marker in lowered for marker in markers):
            spans += [match.span("secret") for match in looks.finditer(text) if has.search(match["secret"])]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def replaced(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """`text` with *** for each span."""
    parts, before = [], 0
    for start, end in spans:
        parts += [text[before:start], HIDDEN]
        before = end
    return "".join([*parts, text[before:]])


_shown_name = lru_cache(maxsize=4096)(redacted)  # a report shows the few names of thousands of cases
_BEGIN = r"(?:(?<![\w-])|(?<=\\[nrt]))"  # of a word, maybe after an escaped end of a line
_VALUE = r"(?P<secret>(?<=')[^'\n]+|(?<=\")[^\"\n]+|[^\s;,&'\"<>()\[\]{}\\]+)"
_PEM = r"[\w+/=\s\\:,-]"
_ANY, _DIGIT = r"", r"\d"
_NO_WORDS = r"[A-Za-z0-9]{16}|(?=[A-Za-z0-9]{10})[A-Za-z0-9]*?(?:\d|[a-z][A-Z])"  # `sk-learn-contrib` is no token
_NO_CODE = r"(?i)^(?!none$|null$|true$|false$|[/.$*])"  # nor is `password=None` a password
_LOOKS = tuple(
    (markers, re.compile(looks, re.ASCII), re.compile(has))
    for markers, looks, has in (
        (
            ("gh", "glpat-", "xox", "xapp-"),
            _BEGIN + r"(?P<secret>(?:gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-)[\w-]{10,})",
            _ANY,
        ),
        (("wandb",), r"(?i:\bwandb(?:[_-]api[_-]key)?\b)['\"]?[ ]?[:=][ ]?['\"]?(?P<secret>[0-9a-f]{40})\b", _ANY),
        (("sk-", "sk_", "hf_"), _BEGIN + r"(?P<secret>(?:sk-|sk_(?:live|test)_|hf_)[\w-]{10,})", _NO_WORDS),
        (("akia", "asia", "aiza"), _BEGIN + r"(?P<secret>A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,})(?![\w-])", _ANY),
        (("eyj",), _BEGIN + r"(?P<secret>eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?)", _ANY),
        # Of a PEM block without an end all that follows of its alphabet.
        (
            ("-----begin ",),
            rf"(?P<secret>-----BEGIN [A-Z0-9 ]+-----{_PEM}*?(?:-----END [A-Z0-9 ]+-----|(?!{_PEM})))",
            _ANY,
        ),
        (("://",), _USERINFO.pattern, _ANY),
        (
            ("=",),
            r"(?:[?&;#]|\\u0026)(?i:[\w.%-]{0,60}(?:token|key|secret|pass(?:word|wd)?|pwd|auth|sig(?:nature)?|jwt|session))"
            r"=(?P<secret>[^\s&;#'\"<>\\]+)",
            _ANY,
        ),
        (
            ("pass", "pwd", "key", "secret", "token"),
            r"(?i:\b(?:pass(?:word|wd|phrase)|pwd|(?:api|secret|access|account|sharedaccess)[_-]?key|client[_-]?secret"
            rf"|(?:auth|access)[_-]?token))[ ]?=[ ]?['\"]?{_VALUE}",
            _NO_CODE,
        ),
        (("bearer ", "basic "), r"\b(?i:bearer|basic) (?P<secret>[\w.~+/-]{8,}=*)", _DIGIT),
    )
)
"""(lower-case words, one of which is needed; the pattern; a further condition). Time is linear in the text's length."""
