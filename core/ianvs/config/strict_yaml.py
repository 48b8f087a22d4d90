"""Strict YAML with the place of every value.

PyYAML scans, parses and composes. A plain scalar has its meaning in the core schema of YAML 1.2.2, section 10.3.2: in
YAML 1.1, which PyYAML implements, `1e-3` is a string, `no` is false, `10:30` is 630 and `2024-01-01` a date. Content
that PyYAML silently accepts (equal keys, foreign tags, further documents) is an error with a place.
"""

import copy
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from yaml.composer import ComposerError
from yaml.reader import ReaderError

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import ConfigError, Location, ValidationError
from ianvs.base.secrets import hide_secrets

Step = str | int
"""A key of a mapping or a position in a list."""

Steps = tuple[Step, ...]
"""Path of a value in a document, as in ("rank", "sort_by", 0, "accuracy")."""

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_NODES = 100_000  # after aliases are expanded

Scalar = str | int | float | bool | None

_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Scalar]], ...] = (
    (re.compile(r"null|Null|NULL|~|"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"0o[0-7]+"), lambda text: int(text, 8)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.(nan|NaN|NAN)"), lambda text: math.nan),
)
_PLAIN = "plain"
_TAG = "tag:yaml.org,2002:"
_TAG_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
}


@dataclass(frozen=True)
class Document:
    """A file's plain data (dict, list, str, int, float, bool, None) and the places of its keys and values.

    `problems` are errors after which the rest could still be read: a repeated key is dropped, the first one stays.
    """

    file: Path
    data: object
    keys: Mapping[Steps, Location]
    values: Mapping[Steps, Location]
    problems: tuple[ValidationError, ...] = ()

    def value_place(self, path: Steps) -> Location:
        """Return the location of the value at `path`; for a missing value, that of the nearest section around it."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Location(self.file))

    def key_place(self, path: Steps) -> Location:
        """Return the location of the key of `path`; for an entry of a list, that of its value."""
        while path and path not in self.values:
            path = path[:-1]
        return self.keys.get(path) or self.value_place(path)


def read(file: Path) -> Document:
    """Return the document in `file`. Raises ConfigError if it can't be read or is not valid YAML."""
    if file.is_dir():
        raise _refusal("this is a folder. Name a yaml file in it.", Location(file), "wrong-path-type")
    if not file.exists():
        raise _refusal("there is no such file.", Location(file), "missing-file")
    if not file.is_file():
        raise _refusal("this is not a regular file.", Location(file), "wrong-path-type")
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            message = f"{size / 1e6:.0f} MB is too much for a configuration file. Is it the right file?"
            raise _refusal(message, Location(file), "unreadable-file")
        raw = file.read_bytes()
    except OSError as error:
        raise _refusal(f"the file can't be read: {error.strerror}.", Location(file), "unreadable-file") from None
    try:
        return parse(raw.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", errors="replace")
        place = Location.in_text(file, before, len(before))
        raise _refusal("the file is not UTF-8 text. Save it as UTF-8.", place, "invalid-encoding") from None


def parse(text: str, file: Path, *, as_written: bool = False) -> Document:
    """Read the YAML document in `text`.

    Args:
        text: The content of a file.
        file: Where it came from, for messages.
        as_written: Every scalar, keys included, is the text that the file has: for files of other tools, whose
            readers disagree on what `yes`, `1e3` or a date means.

    Returns:
        The data with the places of keys and values.

    Raises:
        ConfigError: The text is not valid YAML.
    """
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_syntax_problem(error, file)]) from None
    except ReaderError as error:
        message = f"the character U+{int(error.character):04X} is not allowed in YAML. Remove it."
        raise _refusal(message, Location.in_text(file, text, int(error.position)), "invalid-encoding") from None
    if node is None:
        raise _refusal("the file is empty.", Location(file), "empty-file")
    builder = _Builder(file, as_written)
    data = builder.build(node, ())
    return Document(file, data, builder.keys, builder.values, tuple(builder.problems))


def described(value: object) -> str:
    """Return the type of a value in YAML terms."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        value = hide_secrets(value)
        return f"the text '{value if len(value) <= 40 else value[:37] + '...'}'"
    return "a mapping" if isinstance(value, dict) else "a list"


def resolve_scalar(text: str) -> Scalar:
    """Return the value of the plain scalar `text`; other text stays a string.

    Raises ValueError for an integer of more digits than Python converts.
    """
    for form, value in _FORMS:
        if form.fullmatch(text):
            return value(text)
    return text


def _refusal(message: str, location: Location, code: ErrorCode) -> ConfigError:
    return ConfigError([ValidationError(message, location, code=code)])


def _mark_place(file: Path, mark: yaml.Mark) -> Location:
    return Location(file, mark.line + 1, mark.column + 1)


_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
# By a part of PyYAML's message. The first match counts; {opened} is the line where the invalid part begins.
_SAID = {
    "found character '\\t'": "a tab stands where YAML allows only blanks. Use blanks.",
    "mapping values are not allowed here": "unexpected ':'. Put a value with ': ' in quotes, or mend the line before: "
    "its ':', its indentation.",
    "could not find expected ':'": "the key on line {opened} has no ':' after it. Write 'key: value'.",
    "found unexpected end of stream": "the quote opened on line {opened} is never closed.",
    "while parsing a flow node": "a value is missing here. Write it, or close the '[' or '{{' before it.",
    "while parsing a flow sequence": "the '[' opened on line {opened} is not closed here. Add a ',' or a ']'.",
    "while parsing a flow mapping": "the '{{' opened on line {opened} is not closed here. Add a ',' or a '}}'.",
    "block scalar": "'>' and '|' begin a block of text in YAML. Put an operator in quotes, as in '>='.",
    "expected <block end>, but found '-'": "a '- ' entry among the keys that began on line {opened}. Indent it below "
    "the key that it belongs to.",
    "expected <block end>": "this does not line up with what began on line {opened}. Indent entries of one level "
    "alike.",
    "that cannot start any token": "a value can't begin with {word}. Put the value in quotes.",
    "unknown escape character": "a backslash in double quotes begins an escape. Use single quotes, or write '\\\\'.",
    " alias": "'*' begins an alias, and its anchor is nowhere before. Put a value that begins with '*' in quotes.",
    "second occurrence": "this anchor was given before, on line {opened}. Choose another name.",
    "another document": "a second document begins here. Keep one in each file.",
    _TOO_DEEP: f"{_TOO_DEEP}. Configurations are flat.",
    "document start": "'%' begins a directive of YAML. Put the value in quotes.",
}


def _syntax_problem(error: yaml.MarkedYAMLError, file: Path) -> ValidationError:
    """Return one line about `error` with its location."""
    mark = error.problem_mark or error.context_mark
    problem, context = error.problem or "", error.context or ""
    template = next((text for part, text in _SAID.items() if part in f"{problem} {context}"), None)
    if template is None:
        message = f"not valid YAML: {problem or context}."
    else:
        opened = error.context_mark.line + 1 if error.context_mark else 0
        message = template.format(opened=opened, word="".join(problem.split()[2:3]))
    unsupported = any(part in problem for part in ("another document", _TOO_DEEP))
    code: ErrorCode = "unsupported-yaml" if unsupported else "invalid-yaml"
    return ValidationError(message, _mark_place(file, mark) if mark else Location(file), code=code)


class _Loader(yaml.SafeLoader):
    """Composes nodes: a plain scalar is tagged as such, and gets its value later."""

    yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}  # noqa: RUF012 - any text that is not quoted
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            if (node := copy.copy(super().compose_node(parent, index))) is not None:
                node.start_mark = mark  # an error in an alias is reported at the place of the alias
            return node
        if self._depth >= MAX_DEPTH:
            raise ComposerError(problem=_TOO_DEEP, problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and key.tag == _PLAIN


@dataclass
class _Builder:
    """Converts nodes to plain data and records places and errors."""

    file: Path
    as_written: bool
    keys: dict[Steps, Location] = field(default_factory=dict)
    values: dict[Steps, Location] = field(default_factory=dict)
    problems: list[ValidationError] = field(default_factory=list)
    nodes: int = 0

    def build(self, node: yaml.Node, path: Steps) -> object:
        place = _mark_place(self.file, node.start_mark)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _refusal(
                f"more than {MAX_NODES} values once aliases are expanded. Use fewer.", place, "unsupported-yaml"
            )
        if len(path) > MAX_DEPTH:
            raise _refusal("an alias that contains itself. Write the value out.", place, "unsupported-yaml")
        self.values[path] = place
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if node.tag != _TAG + ("map" if isinstance(node, yaml.MappingNode) else "seq"):
            self._unknown_tag(node, place)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Steps) -> dict[str, object]:
        data: dict[str, object] = {}
        first: dict[tuple[type, object], Location] = {}
        merges = any(key.value == "<<" for key, _ in node.value)
        for key_node, value_node in self._merged(node) if merges else node.value:
            place = _mark_place(self.file, key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem("a list or mapping is used as a key. Keys are text.", place)
                continue
            key = self._scalar(key_node, place)
            if earlier := first.get((type(key), key)):
                self._problem(
                    f"key '{key}' is given twice, first on line {earlier.line}. Keep one.", place, "duplicate-key"
                )
                continue
            first[type(key), key] = place
            if not isinstance(key, str):
                remedy = f"Put it in quotes: '{key_node.value}'." if key_node.value else "Write 'key: value'."
                self._problem(f"key {key_node.value or '(nothing)'} is not text. {remedy}", place)
                continue
            self.keys[*path, key] = place
            data[key] = self.build(value_node, (*path, key))
        return data

    def _merged(self, node: yaml.MappingNode, depth: int = 0) -> list[tuple[yaml.Node, yaml.Node]]:
        """Return the pairs of a mapping, followed by missing ones of `<<`, the first of several mappings first."""
        pairs = [pair for pair in node.value if not _is_merge(pair[0])]
        keys = {key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode)}
        for key, value in node.value:
            if not _is_merge(key):
                continue
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            if depth > MAX_DEPTH or not all(isinstance(source, yaml.MappingNode) for source in sources):
                message = "'<<' takes a mapping, or a list of mappings: `<<: *name`."
                self._problem(message, _mark_place(self.file, key.start_mark))
                continue
            for more, its in (pair for source in sources for pair in self._merged(source, depth + 1)):
                if isinstance(more, yaml.ScalarNode) and more.value not in keys:
                    keys.add(more.value)
                    pairs.append((more, its))
        return pairs

    def _scalar(self, node: yaml.Node, place: Location) -> Scalar:
        name = node.tag.removeprefix(_TAG)
        if name == "str" or self.as_written:
            return str(node.value)
        try:
            value = resolve_scalar(node.value)
        except ValueError:
            self._problem("a number of too many digits. Put it in quotes if it is text.", place, "out-of-range")
            return None
        if node.tag == _PLAIN:
            return value
        if name not in _TAG_TYPES:
            self._unknown_tag(node, place)
        elif not isinstance(value, _TAG_TYPES[name]) or (name != "bool" and isinstance(value, bool)):
            self._problem(f"this value does not fit its tag !!{name}. Remove the tag.", place)
        return float(value) if name == "float" and isinstance(value, int) else value

    def _unknown_tag(self, node: yaml.Node, place: Location) -> None:
        self._problem(f"the tag '{node.tag.replace(_TAG, '!!')}' is not understood. Write a plain value.", place)

    def _problem(self, message: str, place: Location, code: ErrorCode = "unsupported-yaml") -> None:
        self.problems.append(ValidationError(message, place, code=code))
