"""The data of an exam: a built-in source, or files of several forms."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ianvs.base.errors import InvalidValue, Location, ValidationError, one_line
from ianvs.base.split_words import role_of
from ianvs.base.tool_files import is_of_tool
from ianvs.config.models.base import (
    FilePath,
    Name,
    at,
    leaves,
    path_text,
)
from ianvs.config.models.class_tree import ClassTree, tree_misfits
from ianvs.config.models.image_keys import ImageSize, MaskValues, ValueRange, class_name
from ianvs.config.models.section import (
    NULL_IS_ABSENT,
    ByYamlType,
    NamedSpec,
    NoKey,
    NotEmpty,
    Options,
    PlacedSpec,
    Several,
)
from ianvs.config.paths import Lookup
from ianvs.config.strict_yaml import Document, Steps

SOURCE_FORMS = {"index": "index", "data": "data", "data_info": "data", "url": None}
"""Suffixes of the keys `train_*`, `test_*`, and the form of their files; None: determined by the file's suffix."""

_OF_FILES = {
    "label",
    "input",
    "domain",
    "label_separator",
    *(f"{part}_{ending}" for part in ("train", "test") for ending in SOURCE_FORMS),
}
"""Keys of a dataset in files that a built-in source may have as options."""

_TEST_PARTS = ("test", "validation")  # names below a root, of which the first existing one counts
_INDEX_SUFFIXES = (".txt", ".csv", ".json")
_DATA_SUFFIXES = (".jsonl", ".npz", ".npy")
_WRONG = object()


@dataclass(frozen=True)
class SourceSpec:
    """One file or folder of samples."""

    path: Path
    # "index": a list of samples; "data": the samples themselves (npz, csv, jsonl, a folder of class folders). A named
    # source may have others.
    form: str
    domain: str | None = None  # the domain of all its samples, if the file maps domains to paths
    place: Location | None = field(default=None, compare=False, repr=False)


def _legacy_form(path: Path) -> str | None:
    """Return "index" or "data" for the path of a `train_url`, by its suffix; None if the suffix does not tell."""
    if path.suffix in _INDEX_SUFFIXES:
        return "index"
    return "data" if path.suffix in _DATA_SUFFIXES or path.is_dir() else None


def _downloads(value: bool, info: ValidationInfo) -> bool:
    return value and info.data.get("name", "") is not None  # the files exist already


def _root(value: object, info: "ValidationInfo[Lookup]") -> Path | None:
    lookup = info.context
    if lookup.root or value is None:
        return lookup.root
    try:
        return lookup.find(value, "folder")
    except ValueError:
        if not info.data.get("download"):
            _refuse_file(str(value), lookup)
            raise
        return lookup.find(value, "new")  # the download creates it


def _refuse_file(text: str, lookup: Lookup) -> None:
    """Raise InvalidValue with the remedy for a file in place of a root, such as a zip."""
    try:
        lookup.find(text, "file")
    except ValueError:
        return
    raise InvalidValue(
        f"'{text}' is a file; `root` is a folder with train and test in it. Write `train_data: {text}` in its "
        f"place, and `test_share: 0.2`, or `test_data: {text}` if the file has both parts (folders train and test, a "
        "column split).",
        "wrong-path-type",
    )


def _pictures(value: object, info: "ValidationInfo[Lookup]") -> Path | str | None:
    if value is None or value == "ignore":
        return value
    return info.context.find(value, "folder", below=info.data.get("root"))


def _path(value: object, info: "ValidationInfo[Lookup]") -> Path:
    part, _, ending = str(info.field_name).partition("_")
    root = info.data.get("root", _WRONG)
    if root is _WRONG or (root and not root.is_dir()):  # files below a wrong root can't be checked
        return Path(path_text(value))
    path = info.context.find(value, "any" if ending in ("data", "url") else "file", below=root)
    if ending == "url" and _legacy_form(path) is None and path.exists():
        raise InvalidValue(f"whether '{value}' is an index is not clear. Write {part}_index or {part}_data.")
    return path


def _sources(given: Path | list[Path] | dict[str, Path], info: ValidationInfo) -> tuple[SourceSpec, ...]:
    form = SOURCE_FORMS[str(info.field_name).partition("_")[2]]
    paths = given if isinstance(given, list) else [given] if isinstance(given, Path) else given.values()
    domains = given if isinstance(given, dict) else [None] * len(paths)
    return tuple(
        SourceSpec(path, form or str(_legacy_form(path)), domain) for path, domain in zip(paths, domains, strict=True)
    )


def split_words(text: str) -> list[str]:
    """Return the words of a text, which blanks or commas separate."""
    return text.replace(",", " ").split()


def _words(value: object) -> object:
    return split_words(value) if isinstance(value, str) else value


_Path = Annotated[Path, BeforeValidator(_path)]
Sources = Annotated[
    tuple[SourceSpec, ...],
    ByYamlType(_Path, Annotated[list[_Path], NotEmpty], Annotated[dict[str, _Path], NotEmpty]),
    AfterValidator(_sources),
    NULL_IS_ABSENT,
]
"""A path, a list of paths, or a mapping from domains to paths."""

Words = Annotated[Several[Name], BeforeValidator(_words), NULL_IS_ABSENT]
"""Names in a list or in one text, separated by blanks or commas."""

Collections = Annotated[
    tuple[str, ...],
    ByYamlType(text=Name, list=Annotated[list[Name], NotEmpty]),
    AfterValidator(lambda given: (given,) if isinstance(given, str) else tuple(given)),
    NULL_IS_ABSENT,
]
"""Names of collections of samples, such as ImageNet-21k: one, or a list."""


def _column_names(given: str | list[str]) -> str | tuple[str, ...]:
    if isinstance(given, str):
        return given
    if twice := next((name for name in given if given.count(name) > 1), None):
        raise ValueError(f"the column '{twice}' is listed twice. Keep one.")
    return tuple(given)


ColumnNames = Annotated[
    str | tuple[str, ...] | None,
    ByYamlType(text=Name, list=Annotated[list[Annotated[Name, BeforeValidator(class_name)]], NotEmpty]),
    AfterValidator(_column_names),
    NULL_IS_ABSENT,
]
"""The name of a column of a table, or a list of names."""

ConversationPart = Literal["prompt", "reply", "system", "topic"]
"""Roles of a field of a conversation."""

_Names = Several[Annotated[str, BeforeValidator(class_name)]]
ClassNames = Annotated[
    tuple[str, ...] | Mapping[str, tuple[str, ...]],
    ByYamlType(list=_Names, mapping=Annotated[dict[str, _Names], NotEmpty]),
]
"""A list of names, or a mapping from domains to such lists."""


def _with_reply(given: dict[ConversationPart, str]) -> dict[ConversationPart, str]:
    if missing := {"prompt", "reply"} - given.keys():
        raise ValueError(f"names no {' and no '.join(sorted(missing))}; write columns: {{prompt: ..., reply: ...}}.")
    return given


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(PlacedSpec):
    """A frozen network whose features replace images. The keys are those of a learner."""

    network: Annotated[Name, Field(description="the name of a network, such as resnet18")]
    weights: Name | None = None
    picture_size: Annotated[int, Field(ge=1)] | None = None
    interpolation: Literal["bilinear", "bicubic"] | None = None
    crop: Annotated[float, Field(gt=0, le=1)] | Literal["none"] | None = None
    scale: Literal["symmetric", "unit", "imagenet"] | None = None
    download: bool = False
    pretrained_on: Collections = field(default=(), repr=False)  # needed if the weights' name does not imply it


@dataclass(frozen=True)
class DataTypeSpec(NamedSpec):
    """The type of ambiguous labels: the name of a data type, or an author's with its file."""

    has_options: ClassVar = False

    name: Annotated[Name, Field(description="the name of a data type")]
    url: FilePath = None  # the author's file that defines it


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(PlacedSpec):
    """The data of an exam: a built-in source by name with options, an author's (`name`, `url`), or files."""

    name: Annotated[Name | None, Field(description="the name of a built-in source")] = None
    url: FilePath = None  # the author's file that defines `name`
    title: Annotated[Name | None, Field(description="what the leaderboard calls the data")] = None
    download: Annotated[bool, AfterValidator(_downloads)] = False  # before root, which need not exist then
    # Base of paths in index files and of torchvision's folders; paths of samples are searched below it.
    root: Annotated[Path | None, BeforeValidator(_root), Field(validate_default=True)] = None
    using: Words = ()  # domains to use, in order; () means all
    image_size: ImageSize | None = None  # height, width in pixels; None keeps each picture's own (all equal)
    value_range: ValueRange | None = None  # value range of images of more than 8 bits; None: there are none
    mask_values: MaskValues | None = None  # by class name; None: masks hold positions in the class list
    layout: Literal["NHWC", "NCHW"] | None = None  # layout of arrays of images; None: determined by their shape
    # Image files are decoded once into the cache, or whenever they are read; None: by their size (docs/data.md).
    storage: Literal["decoded", "encoded"] | None = None
    # Class names in the order of their index, for all domains or for each one; None: found in the labels.
    classes: ClassNames | None = None
    train_index: InitVar[Sources] = ()
    test_index: InitVar[Sources] = ()
    train_data: InitVar[Sources] = ()
    test_data: InitVar[Sources] = ()
    train_data_info: InitVar[Sources] = ()
    test_data_info: InitVar[Sources] = ()
    train_url: InitVar[Sources] = ()
    test_url: InitVar[Sources] = ()
    data_type: DataTypeSpec | None = None  # None: determined by the form of the labels
    label: ColumnNames = None  # the label's column in a table, or columns: one a class, or one a number
    input: ColumnNames = None  # the samples' column in a table, or the columns of numbers that are its features
    # Separator of several labels in one cell of a table, "none" for a single label; None: detected.
    label_separator: Name | None = None
    # Folder of the images of conversations; None: beside their file; "ignore" leaves them out.
    pictures: Annotated[Path | Literal["ignore"] | None, BeforeValidator(_pictures)] = None
    # Names of the fields of conversations, by role: {prompt: question, reply: answer}.
    columns: Annotated[dict[ConversationPart, Name], AfterValidator(_with_reply)] | None = None
    # The system prompt of conversations that have none; by domain where they differ.
    system_prompt: Annotated[
        str | dict[str, Name] | None, ByYamlType(text=Name, mapping=Annotated[dict[str, Name], NotEmpty])
    ] = None
    skip_bad: bool = False  # leave out records that are no conversations, with a warning on their number
    domain: Name | None = None  # the column or field that names a sample's domain; None: `domain`, if there is one
    # The share of the training data that becomes the test part, class by class, and the seed by which it is drawn.
    test_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    test_seed: Annotated[int, Field(ge=0)] = 0
    backbone: BackboneSpec | None = None  # features of this network in place of images
    # Collections that its samples were taken from; not part of the identity.
    made_of: Collections = field(default=(), repr=False)
    hierarchy: Annotated[  # a tree, or the path of a yaml file with one, which the loader reads
        ClassTree | None, ByYamlType(text=Name, mapping=dict[str, object]), AfterValidator(lambda given: None)
    ] = None
    options: Options = field(default_factory=dict)  # options of a named source, which checks them
    train: Annotated[tuple[SourceSpec, ...], NoKey] = ()
    test: Annotated[tuple[SourceSpec, ...], NoKey] = ()
    source: Annotated[str | None, NoKey] = None  # "module:Class" of a named source that no entry point names

    def __post_init__(self, *given: tuple[SourceSpec, ...]) -> None:
        object.__setattr__(self, "train", sum(given[0::2], self.train))
        object.__setattr__(self, "test", sum(given[1::2], self.test))
        if self.root is not None and self.name is None and not self.train and not self.test:
            object.__setattr__(self, "train", _find_parts(self.root, ("train",), self.test_share))
            if self.test_share is None:
                object.__setattr__(self, "test", _find_parts(self.root, _TEST_PARTS, None))

    def mismatched_settings(self, classes: Sequence[str]) -> list[ValidationError]:
        """Return the settings that do not fit the classes of the data."""
        return tree_misfits(self.hierarchy, classes, self.places.get("hierarchy"))

    @property
    def columns_of_settings(self) -> dict[str, object]:
        """Settings that metrics may name, besides the columns of the samples."""
        return {} if self.hierarchy is None else {"hierarchy": self.hierarchy}

    @classmethod
    def options_in(cls, given: Mapping[str, object]) -> Collection[str]:
        """Return the options of a source by name."""
        if given.get("name") is None:
            return ()
        of_files = _OF_FILES if given.get("url") is not None else {*_OF_FILES, "test_share", "test_seed"}
        return [key for key in given if key not in cls.known_keys() or key in of_files]

    def placed(self, document: Document, path: Steps) -> Self:
        """Return a copy with the locations in its file."""
        parts: dict[str, Any] = {}
        for part, sources in (("train", self.train), ("test", self.test)):
            keys = [(*path, f"{part}_{ending}") for ending in SOURCE_FORMS]
            given = [key for key in keys if at(document.data, *key)]
            paths = [where for key in given for where in [entry for entry, _ in leaves(document.data, *key)] or [key]]
            paths = paths or [(*path, "root")]  # below which they were found
            parts[part] = tuple(
                replace(source, place=document.value_place(at)) for source, at in zip(sources, paths, strict=False)
            )
        return replace(super().placed(document, path), **parts)


_SHARD = re.compile(r"-\d{5}-of-\d{5}.*")  # follows the name of a split on Hugging Face's hub
_COMPRESSED = re.compile(r"\.(gz|zst)$")


def _find_parts(root: Path, names: Sequence[str], share: float | None) -> tuple[SourceSpec, ...]:
    """Find the first of the names below `root`, a file or folder; `root` itself if the test part is split off.

    In a dataset cached by Hugging Face's hub the snapshot of `main` is searched; a split may be several files in a
    folder `data`.
    """
    if (main := root / "refs" / "main").is_file():
        root = root / "snapshots" / main.read_text().strip()
    if (root / "data").is_dir() and any(_SHARD.search(path.name) for path in (root / "data").iterdir()):
        root = root / "data"
    inside = sorted(path for path in root.iterdir() if not is_of_tool(path.name))
    of_part = {name: [path for path in inside if _split_of(path) == name] for name in names}
    candidates = next(filter(None, of_part.values()), [root] if share else [])
    if len(candidates) > 1 and all(_SHARD.search(path.stem) for path in candidates):
        return tuple(SourceSpec(path, "data") for path in candidates)
    if len(candidates) != 1:
        has = one_line([path.name for path in candidates or inside], 5) or "nothing"
        why = f"has no {' or '.join(names)}" if not candidates else f"has {len(candidates)} for one part"
        raise InvalidValue(
            f"{root.name} {why}: it has {has}. Expected a folder or a file train and one test below `root`. If it "
            "holds the samples of both parts, such as a folder for each class, write `test_share: 0.2` beside `root`.",
            "missing-data",
        )
    if share is not None and any(_split_of(path) in _TEST_PARTS for path in inside):
        raise InvalidValue(f"test_share is given, and {root.name} has a test part. Keep one.", "conflicting-keys")
    return (SourceSpec(candidates[0], _legacy_form(candidates[0]) or "data"),)


def _split_of(path: Path) -> str:
    stem = _SHARD.sub("", Path(_COMPRESSED.sub("", path.name)).stem)
    return role_of(stem) or stem
