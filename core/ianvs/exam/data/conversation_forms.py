"""The JSON forms of conversations.

Forms are found by entry points. The fields of a record determine its form; other fields except its topic are ignored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ianvs.base.errors import closest, one_line
from ianvs.base.lazy_images import MARK, Picture
from ianvs.config.strict_yaml import Steps
from ianvs.exam.data.conversation_pictures import MARKS, PARTS, PictureFiles, has_parts, names_in
from ianvs.exam.data.records import RecordError, json_kind
from ianvs.plugins.loader import brought

GROUP = "ianvs.conversation_forms"
"""The group of entry points for forms, those of ianvs included; each names a tuple of `Form`."""

Turns = tuple[Any, ...]
_TEXT_PART = "text"


@dataclass(frozen=True)
class Conversation:
    """user[t] and assistant[t] are turn t + 1; a text to go on training with has no turn of a user, and one reply.

    pictures: one for each mark <image> in what the user says, in order; left_out: how many belong to it and are not
    taken. references: further right replies to the last turn. unlearnt: turns, from 0 on, whose replies are not to be
    learnt. form: the name of its form. fact: what it asks for, the same in all wordings. feedback: what is said of
    answers to it, where an exam tells that in words.
    """

    system: str | None
    user: tuple[str, ...]
    assistant: tuple[str, ...]
    topic: str = ""
    pictures: tuple[Picture, ...] = ()
    references: tuple[str, ...] = ()
    unlearnt: tuple[int, ...] = ()
    form: str = ""
    left_out: int = 0
    fact: str = ""
    feedback: str = ""


@dataclass(frozen=True)
class Form:
    """A form by the fields that tell it from the others; one with more of them goes before one with less.

    turns: what a record holds, (system prompt, what the user says, what the assistant replies), and perhaps the names
    of images in the order of their marks <image>; without these they are those of `image`, `images`, and the parts
    of messages. topic: the field that names a conversation's topic. replies: the field that may list several right ones
    (or hold {"text": such a list}), of which the first is learnt. unlearnt: turns, from 0 on, that are not learnt.
    when: of fields that other data have, too, what a record has to hold for its file to be one of conversations. Such a
    form gives way to others.
    """

    name: str
    fields: tuple[str, ...]
    turns: Callable[[Mapping[str, Any]], Turns]
    topic: str = "topic"
    replies: str = ""
    when: Callable[[Mapping[str, Any]], bool] | None = None
    unlearnt: Callable[[Mapping[str, Any]], list[int]] = lambda record: []

    def read(self, record: Mapping[str, Any], files: PictureFiles | None = None) -> Conversation:
        """files: where its images are; None leaves them out. Raises RecordError."""
        system, user, assistant, *pictures = self.turns(record)
        unlearnt = self.unlearnt(record)
        if assistant and len(unlearnt) == len(assistant):
            raise RecordError("no reply of it is to be learnt: all have the weight 0. Leave it out.")
        for turn, reply in enumerate(assistant, start=1):
            if not reply.strip():
                raise RecordError(f"the assistant's reply of turn {turn} is empty; nothing can be learnt from it.")
        names = [(name, ()) for name in pictures[0]] if pictures else names_in(record)
        pictured = bool(names) or has_parts(record)
        heard = [MARKS.sub("", text) for text in user] if pictured and files is None else user
        topic, right = record.get(self.topic), record.get(self.replies)
        return Conversation(
            system,
            tuple(heard),
            tuple(assistant),
            topic if isinstance(topic, str) else "",
            files.pictures(user, names) if pictured and files is not None else (),
            _further(right, self.replies),
            tuple(unlearnt),
            self.name,
            max(len(names), 1) if pictured and files is None else 0,
            *(str(record.get(field) or "") for field in ("fact", "feedback")),
        )


def _further(right: Any, field: str) -> tuple[str, ...]:
    """Return the distinct replies after the first one. Raises RecordError."""
    listed = right.get("text") if isinstance(right, dict) else right
    if not isinstance(listed, list):
        return ()
    for reply in listed:
        if not isinstance(reply, str):
            raise RecordError(f"'{field}' holds {json_kind(reply)}; expected an array of texts.", field)
    return tuple(list(dict.fromkeys(listed))[1:])


class Forms:
    """All forms that are installed at its creation.

    installed: ianvs's own first. asking: fields that say what is asked, and are no name of anything else.
    """

    def __init__(self) -> None:
        self.installed = [form for form, _ in brought(GROUP, Form)[0]]
        unconditional = [form for form in self.installed if form.when is None and len(form.fields) > 1]
        self.asking = {form.fields[0] for form in unconditional} - {"question_id"}
        self._matches: dict[tuple[str, ...], list[Form]] = {}  # by fields, which a file's records have in common

    def matching(self, record: Mapping[str, Any]) -> list[Form]:
        """Return the forms that match a record's fields: none if it is no conversation, two if it is ambiguous."""
        names = tuple(record)
        if names not in self._matches:
            matches = [form for form in self.installed if all(field in record for field in form.fields)]
            matches = [form for form in matches if form.when is None] or matches
            self._matches[names] = [
                form for form in matches if not any(set(form.fields) < set(other.fields) for other in matches)
            ]
        return self._matches[names]

    def sure_of(self, record: Mapping[str, Any]) -> bool:
        """Return whether a file with such a record certainly has conversations."""
        return any(form.when is None or form.when(record) for form in self.matching(record))


def text_at(record: Mapping[str, Any], field: str, where: Steps) -> str:
    """Return a required string field. Raises RecordError."""
    if field not in record:
        raise RecordError(
            f"has no '{field}'.{closest(field, record)} It has: {one_line(list(record)) or 'nothing'}.", *where
        )
    value = record[field]
    if not isinstance(value, str):
        raise RecordError(f"'{field}' is {json_kind(value)}; expected a text.", *where, field)
    return value


def content_at(message: Mapping[str, Any], field: str, where: Steps) -> str:
    """Return the text of a message, with the parts concatenated and marks for images. Raises RecordError."""
    parts = message.get(field)
    if not isinstance(parts, list):
        return text_at(message, field, where)
    texts = []
    for position, part in enumerate(parts):
        place = (*where, field, position)
        if not isinstance(part, dict):
            raise RecordError(
                f"{field}[{position}] is {json_kind(part)}; expected an object with 'type' and 'text'.", *place
            )
        kind = text_at(part, "type", place)
        if kind == _TEXT_PART:
            texts.append(text_at(part, "text", place))
        elif kind in PARTS:
            texts.append(f"{MARK}\n")
        else:
            types = (_TEXT_PART, *PARTS)
            message_text = f"a part of type '{kind}' can't be read.{closest(kind, types)} There are: {one_line(types)}."
            raise RecordError(message_text, *place, "type")
    return "".join(texts)
