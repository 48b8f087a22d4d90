"""What a json form of one conversation is, and what can be wrong with a record.

Forms are found by entry points; a record's fields tell which one it has, and others don't matter but `topic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ianvs.data.records import Step, json_kind
from ianvs.errors import closest, one_line
from ianvs.plugins.loader import brought

__all__ = ["GROUP", "Conversation", "Form", "Slip", "forms_of", "known_forms", "text_at"]

GROUP = "ianvs.conversation_forms"
"""The group of entry points by which packages bring forms, ianvs its own; each names a tuple of `Form`."""

_PICTURE = re.compile(r"<image>\n?")


class Slip(Exception):  # noqa: N818 - it becomes a Problem with a place
    """What is wrong with a record, and the steps to it."""

    def __init__(self, message: str, *steps: Step) -> None:
        super().__init__(message)
        self.message, self.steps = message, steps


@dataclass(frozen=True)
class Conversation:
    """user[t] and assistant[t] are turn t + 1. pictures: how many belong to it, which are left out."""

    system: str | None
    user: tuple[str, ...]
    assistant: tuple[str, ...]
    topic: str = ""
    pictures: int = 0


@dataclass(frozen=True)
class Form:
    """A form by the fields that tell it from the others."""

    name: str
    fields: tuple[str, ...]
    turns: Callable[[Mapping[str, Any]], tuple[str | None, list[str], list[str]]]

    def read(self, record: Mapping[str, Any]) -> Conversation:
        """Raises Slip."""
        system, user, assistant = self.turns(record)
        for turn, reply in enumerate(assistant, start=1):
            if not reply.strip():
                raise Slip(f"the assistant's reply of turn {turn} is empty; nothing can be learnt from it.")
        has_pictures = bool(record.get("image") or record.get("images"))
        marks = sum(len(_PICTURE.findall(said)) for said in user) if has_pictures else 0
        heard = [_PICTURE.sub("", said) for said in user] if marks else user
        pictures = max(marks, 1) if has_pictures else 0
        topic = record.get("topic")
        return Conversation(system, tuple(heard), tuple(assistant), topic if isinstance(topic, str) else "", pictures)


def forms_of(record: Mapping[str, Any]) -> list[Form]:
    """The forms that a record's fields tell: none for what is no conversation, two for what can't be decided."""
    return [form for form in known_forms() if all(field in record for field in form.fields)]


def known_forms() -> list[Form]:
    """All forms, ianvs's own first."""
    return [form for form, _ in brought(GROUP, Form)[0]]


def text_at(record: Mapping[str, Any], field: str, where: tuple[Step, ...]) -> str:
    """A field that has to be there and a text. Raises Slip."""
    if field not in record:
        raise Slip(f"has no '{field}'.{closest(field, record)} It has: {one_line(list(record)) or 'nothing'}.", *where)
    value = record[field]
    if not isinstance(value, str):
        raise Slip(f"'{field}' is {json_kind(value)}; expected a text.", *where, field)
    return value
