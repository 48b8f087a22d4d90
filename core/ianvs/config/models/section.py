"""Sections of a file as frozen dataclasses, which pydantic fills and the rest of the package uses."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import cache
from inspect import signature
from typing import Annotated, ClassVar, NamedTuple, Self, TypeVar, cast, get_type_hints

from pydantic import ConfigDict, Field, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ianvs.base.errors import Location
from ianvs.config.models.base import ConfigProblem, Name, at, leaves
from ianvs.config.strict_yaml import Document, Steps

# Fields that a file must not set have names that no file can contain.
_OPTIONS = "<options>"
OfOptions = Field(validation_alias=_OPTIONS)
Options = Annotated[Mapping[str, object], OfOptions]
"""The keys of a section that are its options, with their values."""

NoKey = Field(validation_alias="<nothing>")
"""Marks a field without a key in the file."""

T = TypeVar("T")


Several = Annotated[tuple[T, ...], Field(min_length=1, strict=False)]
"""A list of one entry or more."""

NotEmpty = Field(min_length=1)
_FORMS: dict[str, type | tuple[type, ...]] = {
    "<text>": str,
    "<list>": list,
    "<mapping>": dict,
    "<truth>": bool,  # before numbers, since Python's bool is an int
    "<number>": (int, float),
}


@dataclass(frozen=True)
class ByYamlType:
    """The forms of a value in a file, where they differ from the type of the field.

    Errors are those of the form that the file uses.
    """

    text: object = None
    list: object = None
    mapping: object = None
    number: object = None
    truth: object = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        forms = {f"<{name}>": handler.generate_schema(form) for name, form in vars(self).items() if form is not None}
        return core_schema.tagged_union_schema(forms, _form) if len(forms) > 1 else next(iter(forms.values()))


def _form(value: object) -> str:
    return next((name for name, form in _FORMS.items() if isinstance(value, form)), "<other>")


NULL_IS_ABSENT = "a key without a value is as a missing one"
"""Marks a field: by default, null is an error."""


class Key(NamedTuple):
    """A key of a section.

    Attributes:
        field: The name of the field; "" if the key has no effect.
        form: The annotated type of the value.
        description: For messages.
        nullable: Whether it may have no value, as if it were missing.
    """

    field: str
    form: object
    description: str = ""
    nullable: bool = False


@dataclass(frozen=True)
class Spec:
    """A section with a fixed set of keys. Constructed directly it is an ordinary dataclass without checks.

    A key is one field, with a `validation_alias` if the file has another name for it; an InitVar if its value ends up
    in other fields.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=True)
    without_effect: ClassVar[Mapping[str, str]] = {}  # keys of Ianvs that are accepted without effect, with messages
    has_options: ClassVar[bool] = False  # whether unknown keys are options
    by_name: ClassVar[bool] = False  # whether a string is its `name`
    places_of_keys: ClassVar[bool] = False  # whether `places` has those of keys, in place of those of values

    @staticmethod
    def conflicts(data: object) -> Iterable[ConfigProblem]:
        """Find keys that exclude each other or have no effect, in `data` of any shape."""
        return ()

    @classmethod
    @cache
    def known_keys(cls) -> Mapping[str, Key]:
        """Return the keys by their names in a file."""
        hints = get_type_hints(cls, include_extras=True)
        keys = {}
        for name in signature(cls).parameters:
            hint = hints[name].type if isinstance(hints[name], InitVar) else hints[name]
            info = FieldInfo.from_annotation(hint)
            key = str(info.validation_alias or name)
            if not key.startswith("<"):
                nullable = NULL_IS_ABSENT in getattr(hint, "__metadata__", ())
                keys[key] = Key(name, hint, info.description or "", nullable)
        return keys | {name: Key("", object) for name in cls.without_effect if name not in keys}

    @classmethod
    def options_in(cls, given: Mapping[str, object]) -> Collection[str]:
        """Return the keys that are options, which are checked elsewhere."""
        return [key for key in given if key not in cls.known_keys()] if cls.has_options else ()

    @classmethod
    def arguments(cls, given: object) -> object:
        """Convert the contents of a file to arguments for pydantic."""
        if cls.by_name and isinstance(given, str):
            given = {"name": given}
        if not isinstance(given, dict):
            if cls.by_name:
                raise PydanticCustomError("wrong_form", "{expected}", {"expected": "text or a mapping"})
            return given
        options, values = cls.options_in(given), dict(given)
        for name, key in cls.known_keys().items():
            if not key.field or (key.nullable and values.get(name, name) is None):
                values.pop(name, None)
        if not options:
            return values
        fields_of_section = {key: value for key, value in values.items() if key not in options}
        return {**fields_of_section, _OPTIONS: {key: given[key] for key in options}}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler.resolve_ref_schema(handler(source))
        # Fields are strict. A strict dataclass would accept only an instance, no mapping.
        without_ref = {name: value for name, value in schema.items() if name != "ref"}
        lenient = cast("CoreSchema", {**without_ref, "strict": False})
        return core_schema.no_info_before_validator_function(cls.arguments, lenient, ref=str(schema["ref"]))

    def placed(self, document: Document, path: Steps) -> Self:
        """Return a copy with the locations in its file: it was read at `path` of `document`.

        The own place of a `PlacedSpec` is its key, or the name of a `NamedSpec`. That of a key is its value, and that
        of an option the option's name.
        """
        parts: dict[str, object] = {}
        for name, key in self.known_keys().items():
            value = getattr(self, key.field, None)
            if isinstance(value, Spec):
                parts[key.field] = value.placed(document, (*path, name))
            elif isinstance(value, Mapping) and all(isinstance(part, Spec) for part in value.values()):
                parts[key.field] = {inner: part.placed(document, (*path, name, inner)) for inner, part in value.items()}
            elif isinstance(value, tuple) and value and isinstance(value[0], Spec):
                where = leaves(document.data, *path, name)
                parts[key.field] = tuple(part.placed(document, at) for part, (at, _) in zip(value, where, strict=True))
        if isinstance(self, PlacedSpec):
            given = at(document.data, *path)
            given = given if isinstance(given, dict) else {}
            at_key = given if self.places_of_keys else self.options_in(given)
            places = {
                key: document.key_place((*path, key)) if key in at_key else document.value_place((*path, key))
                for key in given
            }
            parts["place"] = document.key_place(path)
            if self.by_name:
                parts["place"] = places["name"] = document.value_place((*path, "name"))
            parts["places"] = places
        return replace(self, **parts)


@dataclass(frozen=True, kw_only=True)
class PlacedSpec(Spec):
    """A section with its location, for later checks."""

    place: Annotated[Location | None, NoKey] = field(default=None, compare=False, repr=False)
    places: Annotated[Mapping[str, Location], NoKey] = field(default_factory=dict, compare=False, repr=False)  # by key


@dataclass(frozen=True)
class NamedSpec(PlacedSpec):
    """Something by name, which may be given as a string. Further keys of a mapping are options, checked elsewhere."""

    has_options: ClassVar = True
    by_name: ClassVar = True

    name: Name
