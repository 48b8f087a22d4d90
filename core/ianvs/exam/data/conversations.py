"""Conversations: what users and an assistant said in turn, read from the json forms that instruction data come in."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Place, Problem, closest, one_line
from ianvs.base.picture import Pictures
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.conversation_forms import Conversation, Forms, Slip, text_at
from ianvs.exam.data.conversation_pictures import IGNORE, PictureFiles
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.listing import Listing, SourceError, column, numbered_names, summary
from ianvs.exam.data.records import Records
from ianvs.exam.data.tables import DOMAIN_COLUMN, SAMPLE_COLUMNS, TEXT_COLUMN


def holds_conversations(records: Records) -> bool:
    """Whether any record has the form of a conversation, or seems to be meant as one: objects in a list are turns."""
    forms = Forms()
    return any(isinstance(record, dict) and (forms.of(record) or _is_meant(record, forms)) for record in records.values)


def read_conversations(records: Records, spec: DatasetSpec) -> Listing:
    """x: (N,) Conversation, see `user_turns`; labels: (N,) lists of replies.

    A domain is what the field holds that `spec.domain` names; without that key the field `domain`, if there is one.
    Raises SourceError with the line of each problem.
    """
    if spec.domain is not None and not any(isinstance(one, dict) and spec.domain in one for one in records.values):
        known = list(records.values[0]) if isinstance(records.values[0], dict) else []
        has_none = f"{records.path.name} has no field '{spec.domain}'.{closest(spec.domain, known)}"
        place = spec.places.get("domain", Place(records.path))  # a slip in the testenv, not in the data
        raise SourceError([Problem(f"{has_none} It has: {one_line(known)}.", place)])

    def told(index: int, slip: Slip) -> Problem:
        return Problem(slip.message, records.place(index, *slip.steps))

    known = spec.domain, spec.pictures
    return conversations_listing(records.values, records.path.stem, records.path, records.lines, told, *known)


def conversations_listing(
    records: Sequence[Any],
    stem: str,
    path: Path,
    lines: Sequence[int],
    told: Callable[[int, Slip], Problem],
    domain: str | None = None,
    pictures: Path | str | None = None,
) -> Listing:
    """`read_conversations` of records from anywhere. stem: of their names. told: what is said of a slip in one of them.

    path, lines: where they were written. domain: the field that names a domain; None: `domain`, if there is one.
    pictures: the folder that they are in, None beside `path`; IGNORE leaves them out.
    """
    files = None if pictures == IGNORE else PictureFiles(path.parent if pictures is None else Path(pictures))
    said: list[Conversation] = []
    domains: list[str] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}  # the position of each id
    forms = Forms()
    for index, record in enumerate(records):
        try:
            said.append(conversation_of(record, forms, files))
            domains.append(_domain(record, domain))
            if (before := first.setdefault(_given(record), index)) != index and _given(record):
                where = f" on line {lines[before]}" if lines[before] else ""
                told_twice = f"the id {_given(record)!r} stands there for the second time; it was given{where} before."
                raise Slip(f"{told_twice} Take one of the two out, or give each an id of its own.", "id")
        except Slip as slip:
            problems.append(told(index, slip))
    if problems:
        raise SourceError(summary(problems))
    return Listing(
        form="conversation",
        x=column(said),
        label_form="replies",
        labels=column([list(one.assistant) for one in said]),
        ids=numbered_names(stem, len(said)),
        domains=column(domains),
        sources=(path,),
        origins=np.zeros(len(said), dtype=np.int64),
        lines=np.array(lines, dtype=np.int64),
        given=column([_given(record) for record in records]),
    )


def samples_of(said: Sequence[Conversation], ids: Sequence[str], domains: Sequence[str] | None = None) -> Samples:
    """Conversations as samples. ids, domains: the name, and the domain, of each."""
    return Samples(
        x=user_turns(said),
        y=column([list(one.assistant) for one in said]),
        ids=np.array(ids, dtype=str),
        domains=None if domains is None else np.array(domains, dtype=str),
        topics=topics_of(said),
    )


def user_turns(said: Iterable[Conversation]) -> NDArray[Any]:
    """(N,) dicts {"id": str, "system": str | None, "user": [str, ...]}: what a learner is handed.

    Where any of them has pictures, also "pictures": those of its marks <image>, in order, (H, W, 3) uint8 each.

    An id is a digest of what stands beside it, so that it tells nothing else: numbers would betray, of a question that
    is asked in every round, which round it is from. Equal conversations have equal ids.
    """
    samples, said = list[dict[str, Any]](), list(said)
    pictured = any(one.pictures for one in said)
    for one in said:
        shown = [[picture.sha256 for picture in one.pictures]] if one.pictures else []
        content = json.dumps([one.system, one.user, *shown])
        name = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
        sample = {"id": name, "system": one.system, "user": list(one.user)}
        samples.append({**sample, "pictures": Pictures(one.pictures)} if pictured else sample)
    return column(samples)


def topics_of(said: Iterable[Conversation]) -> NDArray[np.str_] | None:
    """(N,) the topic of each conversation, "" where none is written; None where none has one."""
    topics = [one.topic for one in said]
    return np.array(topics, dtype=str) if any(topics) else None


def notes_of(said: Sequence[Conversation], part: str) -> tuple[str, ...]:
    """What was left out of the samples, in full sentences."""
    counts = {
        "come with pictures, which are left out": sum(1 for one in said if one.left_out),
        "have several right replies, of which the first is taken": sum(1 for one in said if one.replies),
    }
    of = f"of the {len(said)} conversations of the {part} part"
    return tuple(f"{count} {of} {what}." for what, count in counts.items() if count)


def conversation_of(record: object, forms: Forms, files: PictureFiles | None = None) -> Conversation:
    """A record in any of the `forms`. Raises Slip with the steps to what is wrong."""
    if not isinstance(record, dict):
        raise Slip(f"expected a record like {{...}}, found {type(record).__name__}.")
    found = forms.of(record)
    if len(found) > 1:
        names = " and ".join(" with ".join(f"'{field}'" for field in form.fields) for form in found)
        raise Slip(f"has {names}, which are two forms of a conversation. Keep one of them.", found[1].fields[-1])
    if not found:
        fields = {field for form in forms.known for field in form.fields}
        hint = next(filter(None, (closest(name, fields) for name in record if name not in fields)), "")
        has = one_line(list(record)) or "nothing"
        which = one_line([" with ".join(form.fields) for form in forms.known])
        raise Slip(f"is no conversation.{hint} It has: {has}. A conversation has one of: {which}.")
    return found[0].read(record, files)


def _given(record: Mapping[str, object]) -> str:
    """What a record goes by, "" for nothing."""
    name = record.get("id")
    return "" if name is None else str(name)


def _is_meant(record: Mapping[str, object], forms: Forms) -> bool:
    """Whether a record of no form has turns, or one of the fields that say what is asked, and no sample of a table."""
    if any(isinstance(value, list) and value and isinstance(value[0], dict) for value in record.values()):
        return True
    texts = (isinstance(record[name], str | list) for name in forms.asking & record.keys())
    return any(texts) and not any(name.casefold() in (*SAMPLE_COLUMNS, TEXT_COLUMN) for name in record)


def _domain(record: Mapping[str, object], field: str | None) -> str:
    if field is None and DOMAIN_COLUMN not in record:
        return ""
    name = field or DOMAIN_COLUMN
    value = record.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a year
    return text_at(record, name, ()).strip()
