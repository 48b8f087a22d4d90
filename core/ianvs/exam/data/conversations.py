"""Reads conversations of users and an assistant from the JSON forms of instruction data."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Location, ValidationError, closest, one_line
from ianvs.base.lazy_images import Pictures
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.conversation_forms import Conversation, Forms, text_at
from ianvs.exam.data.conversation_pictures import IGNORE, PictureFiles
from ianvs.exam.data.dataset import Table
from ianvs.exam.data.grids import ABOUT, DOMAIN_COLUMN, LABEL_COLUMNS, PATH_COLUMNS, SAMPLE_COLUMNS, TEXT_COLUMN
from ianvs.exam.data.index import rows_listing
from ianvs.exam.data.listing import Listing, SourceError, column, summary
from ianvs.exam.data.records import RecordError, Records


def holds_conversations(records: Records, spec: DatasetSpec) -> bool:
    """Return whether any record has the form of a conversation, or probably should: objects in a list are turns.

    If `spec` names columns of a table, only if no table could have them.
    """
    if spec.columns:
        return True
    forms, of_table = Forms(), spec.input is not None or spec.label is not None

    def is_one(record: Mapping[str, object]) -> bool:
        if of_table:
            return any(form.when is None for form in forms.matching(record)) or _has_turns(record)
        without = {name: value for name, value in record.items() if name != spec.domain} if spec.domain else record
        return forms.sure_of(without) or _is_meant_as_conversation(without, forms)

    return any(isinstance(record, dict) and is_one(record) for record in records.values)


def read_conversations(records: Records, spec: DatasetSpec) -> Listing:
    """Return a listing of x: (N,) Conversation, see `user_turns`, and y: (N,) lists of replies.

    A domain is the value of the field `spec.domain`, or of `domain` if that key is not set. Images are in the folder
    `spec.pictures`, else beside the file. With `spec.skip_bad` faulty records are left out, and a warning counts them.
    Raises SourceError with the line of each problem.
    """
    if spec.domain is not None and not any(
        isinstance(record, dict) and spec.domain in record for record in records.values
    ):
        fields = list(records.values[0]) if isinstance(records.values[0], dict) else []
        has_none = f"{records.path.name} has no field '{spec.domain}'.{closest(spec.domain, fields)}"
        place = spec.places.get("domain", Location(records.path))  # the mistake is in the testenv, not in the data
        raise SourceError.single(f"{has_none} It has: {one_line(fields)}.", place, "missing-column")

    lines, columns, domain = records.lines, spec.columns, spec.domain
    files = None if spec.pictures == IGNORE else PictureFiles(Path(spec.pictures or records.path.parent))
    conversations: list[Conversation] = []
    domains: list[str] = []
    problems: list[ValidationError] = []
    first: dict[str, int] = {}  # the position of each id
    good: list[int] = []
    forms = Forms()
    for index, record in enumerate(records.values):
        try:
            conversation = conversation_of(_renamed(record, columns, domain) if columns else record, forms, files)
            domain_name = _domain(record, domain)
            if (before := first.setdefault(_record_name(record), index)) != index and _record_name(record):
                where = f" on line {lines[before]}" if lines[before] else ""
                told_twice = f"the id {_record_name(record)!r} occurs twice, first{where}."
                raise RecordError(
                    f"{told_twice} Take one of the two out, or give each an id of its own.",
                    "id",
                    code="duplicate-entry",
                )
        except RecordError as error:
            problems.append(records.error(index, error))
        else:
            conversations.append(conversation)
            domains.append(domain_name)
            good.append(index)
    if problems and not (spec.skip_bad and good):
        raise SourceError(summary(_merge_equal_messages(problems)))
    replies = column([list(conversation.assistant) for conversation in conversations])
    lines = tuple(lines[index] for index in good)
    listing = rows_listing(records.path, lines, "conversation", column(conversations), "replies", replies, domains)
    listing = replace(listing, given=column([_record_name(records.values[index]) for index in good]))
    return listing.noted(_skipped_warning(problems, len(good)), _marks(conversations, forms))


def _renamed(record: Any, columns: Mapping[Any, str], domain: str | None) -> Any:
    """Return a record whose fields in `columns` are renamed to prompt and completion. Raises RecordError."""
    if not isinstance(record, dict):
        return record
    for name in columns.values():
        if name not in record:
            hint = f"{closest(name, record)} It has: {one_line(list(record)) or 'nothing'}."
            raise RecordError(f"has no '{name}', which `columns` names.{hint}")
    beside = ("id", "topic", "image", "images", "fact", "feedback", DOMAIN_COLUMN, domain)
    further = {name: value for name, value in record.items() if name in beside}
    fields = {"prompt": "prompt", "reply": "completion", "system": "system", "topic": "topic"}
    return further | {fields[part]: record[name] for part, name in columns.items()}


def with_system_prompts(listing: Listing, spec: DatasetSpec) -> Listing:
    """Return the conversations with `spec`'s system prompt of their domain, where they have none."""
    if spec.system_prompt is None or listing.form != "conversation":
        return listing
    given = spec.system_prompt
    pairs = zip(listing.x, listing.domains.tolist(), strict=True)
    prompts = (
        (conversation, given.get(domain) if isinstance(given, Mapping) else given) for conversation, domain in pairs
    )
    # A text to go on training with has no turns.
    x = [
        replace(conversation, system=prompt)
        if prompt and conversation.user and not conversation.system
        else conversation
        for conversation, prompt in prompts
    ]
    return replace(listing, x=column(x))


def require_domains_of_prompts(domains: Collection[str], spec: DatasetSpec) -> None:
    """Raise SourceError if `system_prompt` names a domain that no sample has."""
    for name in spec.system_prompt if isinstance(spec.system_prompt, Mapping) else ():
        if name not in domains:
            names = sorted({*domains} - {""})
            message = f"`system_prompt` names the domain '{name}', which no conversation has.{closest(name, names)}"
            place = spec.places.get("system_prompt", spec.place)
            text = f"{message} They have: {one_line(names) or 'none'}."
            raise SourceError.single(text, place, "unknown-domain")


def _merge_equal_messages(problems: Sequence[ValidationError]) -> list[ValidationError]:
    """Merge errors with the same message into one that states their number."""
    counts = Counter(problem.message for problem in problems)
    by_message: dict[object, ValidationError] = {}
    for problem in problems:
        if (count := counts[problem.message]) > 2:
            more = f"{problem.message} ({count - 1} more lines have the same problem.)"
            by_message.setdefault(problem.message, replace(problem, message=more))
        else:
            by_message[len(by_message)] = problem
    return list(by_message.values())


def _skipped_warning(problems: Sequence[ValidationError], good: int) -> list[ValidationError]:
    if not problems:
        return []
    first = problems[0]
    message = f"{len(problems)} of {len(problems) + good} records are left out by skip_bad; the first: {first.message}"
    return [replace(first, message=message, warning=True, code="doubtful-data")]


def _marks(conversations: Sequence[Conversation], forms: Forms) -> tuple[str, ...]:
    """Return marks of conversations that ianvs 0.2 read differently, since they change the fingerprint."""
    new = {form.name for form in forms.installed if form.when is not None}
    marks = {
        name
        for name in ("references", "unlearnt", "fact", "feedback")
        if any(getattr(conversation, name) for conversation in conversations)
    }
    return tuple(sorted(marks | ({conversation.form for conversation in conversations} & new)))


def samples_of(
    conversations: Sequence[Conversation], ids: Sequence[str], domains: Sequence[str] | None = None
) -> Table:
    """Convert conversations to samples. ids, domains: name and domain of each."""
    return Table(
        x=user_turns(conversations),
        y=column([list(conversation.assistant) for conversation in conversations]),
        ids=np.array(ids, dtype=str),
        domains=None if domains is None else np.array(domains, dtype=str),
        **extra_columns(conversations),
    )


def user_turns(conversations: Iterable[Conversation]) -> NDArray[Any]:
    """Return (N,) dicts {"id": str, "system": str | None, "user": [str, ...]}, the samples of a learner.

    If any conversation has images, also "pictures": one for each mark <image>, in order, (H, W, 3) uint8 each. If any
    has replies that are not trained on, also "unlearnt": their turns, from 0. An id is a digest of the conversation's
    content, so that it reveals nothing else: a number would reveal the round of a question that every round asks. Equal
    conversations have equal ids. Without user turns it is a digest of the text.
    """
    samples, conversations = list[dict[str, Any]](), list(conversations)
    pictured = any(conversation.pictures for conversation in conversations)
    for conversation in conversations:
        shown = [[picture.sha256 for picture in conversation.pictures]] if conversation.pictures else []
        content = json.dumps(
            [conversation.system, conversation.user, *shown] if conversation.user else [conversation.assistant]
        )
        name = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
        sample: dict[str, Any] = {"id": name, "system": conversation.system, "user": list(conversation.user)}
        sample |= {"pictures": Pictures(conversation.pictures)} if pictured else {}
        samples.append(sample | {"unlearnt": list(conversation.unlearnt)} if conversation.unlearnt else sample)
    return column(samples)


def extra_columns(conversations: Sequence[Conversation]) -> dict[str, Any]:
    """Return the further columns of Table that any conversation has, by name.

    Strings are (N,), "" if missing; "references" is (N,) lists of further correct replies to the last turn.
    """
    columns = {
        to: np.array([getattr(conversation, name) for conversation in conversations], dtype=str)
        for name, to in ABOUT.items()
    }
    columns["references"] = column([list(conversation.references) for conversation in conversations])
    return {name: values for name, values in columns.items() if any(values)}


def notes_of(conversations: Sequence[Conversation], part: str) -> tuple[str, ...]:
    """Return messages about parts of the samples that were left out."""
    notes = {
        "left_out": "come with images, which are left out",
        "references": "have several right replies, of which the first is taught; in scores all count",
        **({"unlearnt": "have replies of weight 0, which are scored as others are"} if part == "test" else {}),
    }
    total = f"of the {len(conversations)} conversations of the {part} part"
    counts = (
        (sum(bool(getattr(conversation, name)) for conversation in conversations), note) for name, note in notes.items()
    )
    return tuple(f"{count} {total} {note}." for count, note in counts if count)


def conversation_of(record: object, forms: Forms, files: PictureFiles | None = None) -> Conversation:
    """Read a record in any of the `forms`. Raises RecordError with the path to the error."""
    if not isinstance(record, dict):
        raise RecordError(f"expected a record like {{...}}, found {type(record).__name__}.")
    matches = forms.matching(record)
    if len(matches) > 1:
        names = " and ".join(" with ".join(f"'{field}'" for field in form.fields) for form in matches)
        raise RecordError(
            f"has {names}, which are two forms of a conversation. Keep one of them.",
            matches[1].fields[-1],
            code="ambiguous-data",
        )
    if not matches:
        fields = {field for form in forms.installed for field in form.fields}
        hint = next(filter(None, (closest(name, fields) for name in record if name not in fields)), "")
        has = f"{one_line(list(record)) or 'nothing'}."
        has += "" if fields & record.keys() or not record else " None of these fields is known."
        which = one_line([" with ".join(form.fields) for form in forms.installed], len(forms.installed))
        other = (
            "Images are records with the path and the class, such as {'image': 'a.png', 'label': 'cat'}, or an object "
            "of lists of paths by class. Other data: name their columns by `input` and `label` in the dataset."
        )
        raise RecordError(f"is no conversation.{hint} It has: {has} A conversation has one of: {which}. {other}")
    return matches[0].read(record, files)


def _record_name(record: Mapping[str, object]) -> str:
    """Return the id of a record, "" for none."""
    name = record.get("id")
    return "" if name is None else str(name)


def _is_meant_as_conversation(record: Mapping[str, object], forms: Forms) -> bool:
    """Return whether a record of no known form is probably a conversation.

    It has turns, or a field that only holds questions, and no sample of a table; or it has nothing but strings, under
    names that no table uses.
    """
    if _has_turns(record):
        return True
    names = {name.casefold() for name in record}
    if names & {*SAMPLE_COLUMNS, *PATH_COLUMNS, TEXT_COLUMN}:
        return False
    texts = (isinstance(record[name], str | list) for name in forms.asking & record.keys())
    return any(texts) or (
        not names & {*LABEL_COLUMNS, "text"} and all(isinstance(value, str | None) for value in record.values())
    )


def _has_turns(record: Mapping[str, object]) -> bool:
    return any(isinstance(value, list) and value and isinstance(value[0], dict) for value in record.values())


def _domain(record: Mapping[str, object], field: str | None) -> str:
    if field is None and DOMAIN_COLUMN not in record:
        return ""
    name = field or DOMAIN_COLUMN
    value = record.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a year
    return text_at(record, name, ()).strip()
