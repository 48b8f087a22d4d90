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
from ianvs.plugins.loader import load_entry_points

GROUP = "ianvs.conversation_forms"
"""The group of entry points for forms, those of ianvs included; each names a tuple of `Form`."""

Turns = tuple[Any, ...]
_TEXT_PART = "text"


@dataclass(frozen=True)
class Conversation:
    """A conversation: user[t] and assistant[t] are turn t + 1. A text to continue training on has no user turn and one
    reply.

    Attributes:
        pictures: An image for each mark <image> in the user's turns, in order.
        left_out: Number of its images that are not used.
        references: Further correct replies to the last turn.
        unlearnt: Turns, from 0, whose replies are not trained on.
        form: Name of its form.
        fact: The fact that it asks for, equal for all wordings.
        feedback: Feedback to answers as text, for exams with `feedback: text`.
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
    """A form of conversations, recognised by its fields; one with more of them takes precedence.

    Attributes:
        turns: record -> (system prompt, user turns, assistant replies), perhaps with the names of the images in the
            order of their marks <image>; otherwise these are those of `image`, `images` and the parts of messages.
        topic: The field with a conversation's topic.
        replies: The field that may list several correct replies (or hold {"text": such a list}); the first is trained
            on.
        unlearnt: record -> turns, from 0, that are not trained on.
        when: Values that a record must have, for fields that other data have, too. Such a form has lower precedence.
    """

    name: str
    fields: tuple[str, ...]
    turns: Callable[[Mapping[str, Any]], Turns]
    topic: str = "topic"
    replies: str = ""
    when: Callable[[Mapping[str, Any]], bool] | None = None
    unlearnt: Callable[[Mapping[str, Any]], list[int]] = lambda record: []

    def read(self, record: Mapping[str, Any], files: PictureFiles | None = None) -> Conversation:
        """Read a record. `files` has its images; None leaves them out. Raises RecordError."""
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

    Attributes:
        installed: The forms, those of ianvs first.
        asking: Fields that hold a question and have no other meaning.
    """

    def __init__(self) -> None:
        self.installed = [form for form, _ in load_entry_points(GROUP, Form)[0]]
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
