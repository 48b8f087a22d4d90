"""The json forms in which instruction data come.

messages        {"messages": [{"role": "system" | "user" | "assistant", "content": "..."}, ...]} (Continual-News)
ShareGPT        {"system": "...", "conversation": [{"human": "...", "assistant": "..."}, ...]}
LLaVA, CoIN     {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}, ...]}
CoIN, test      {"question_id": 1, "text": "...", "answer": "..."}
Alpaca          {"system": "...", "instruction": "...", "input": "...", "output": "..."}
Dolly           {"instruction": "...", "context": "...", "response": "...", "category": "..."}
query-response  {"system": "...", "query": "...", "response": "...", "history": [["...", "..."], ...]}
prompt-completion  {"prompt": "...", "completion": "..."}, or both of them lists of messages (TRL)
TRACE           {"prompt": "...", "answer": "..."}
Super-NI        {"Definition": "...", "input": "...", "output": ["...", ...]}, an instance of a task; or flat,
                {"definition": "...", "inputs": "...", "targets": "..."}

What a message says may be a list of parts, [{"type": "text", "text": "..."}, ...].
ianvs finds them by the entry points `ianvs.conversation_forms` in pyproject.toml.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ianvs.base.errors import closest, one_line
from ianvs.config.strict_yaml import Steps
from ianvs.exam.data.conversation_forms import Form, Slip, content_at, text_at
from ianvs.exam.data.conversation_pictures import MARK
from ianvs.exam.data.records import json_kind

_ROLES = MappingProxyType({"system": "system", "user": "user", "assistant": "assistant"})
_SPEAKERS = MappingProxyType({**_ROLES, "human": "user", "gpt": "assistant"})


def _system(record: Mapping[str, Any]) -> str | None:
    """The system prompt beside the turns; None where there is none, or an empty one."""
    return (text_at(record, "system", ()) or None) if record.get("system") is not None else None


def _items(record: Mapping[str, Any], field: str) -> list[Any]:
    items = record[field]
    if not isinstance(items, list):
        raise Slip(f"'{field}' is {json_kind(items)}; expected an array.", field)
    if not items:
        raise Slip(f"'{field}' is empty; expected what user and assistant say in turn.", field)
    return items


def _object(items: list[Any], position: int, field: str, keys: str) -> Mapping[str, Any]:
    item = items[position]
    if not isinstance(item, dict):
        raise Slip(f"{field}[{position}] is {json_kind(item)}; expected an object with {keys}.", field, position)
    return item


def _dialogue(
    record: Mapping[str, Any],
    fields: Sequence[str],
    role_key: str = "role",
    text_key: str = "content",
    roles: Mapping[str, str] = _ROLES,
) -> tuple[str | None, list[str], list[str]]:
    """Lists of messages, each with a role, that go on from one field to the next."""
    messages: list[tuple[Mapping[str, Any], Steps]] = []
    for field in fields:
        items = _items(record, field)
        keys = f"'{role_key}' and '{text_key}'"
        messages += [(_object(items, position, field, keys), (field, position)) for position in range(len(items))]
    system = _system(record)
    user: list[str] = []
    assistant: list[str] = []
    for number, (message, where) in enumerate(messages):
        written = text_at(message, role_key, where)
        role = roles.get(written)
        if role is None:
            told = f"{role_key} '{written}' is not known.{closest(written, roles)} There are: {one_line(list(roles))}."
            raise Slip(told, *where, role_key)
        text = content_at(message, text_key, where)
        if role == "system":
            if number:
                raise Slip("a system message stands first; this one comes later.", *where)
            system = text or None
        elif role == "user":
            if len(user) > len(assistant):
                raise Slip("two messages of the user follow each other; the assistant's reply is missing.", *where)
            user.append(text)
        else:
            if len(user) == len(assistant):
                raise Slip("this reply of the assistant has no message of the user before it.", *where)
            assistant.append(text)
    if not assistant:
        none = "is a conversation without an assistant turn: there is nothing to learn or to examine."
        raise Slip(none, fields[-1])
    if len(user) > len(assistant):
        message_ = "ends with a message of the user; every turn needs a reply. Add it, or take the message out."
        raise Slip(message_, *messages[-1][1])
    return system, user, assistant


def _sharegpt(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    items = _items(record, "conversation")
    turns = [_object(items, position, "conversation", "'human' and 'assistant'") for position in range(len(items))]
    said = [
        [text_at(turn, who, ("conversation", position)) for position, turn in enumerate(turns)]
        for who in ("human", "assistant")
    ]
    return _system(record), said[0], said[1]


def _alpaca(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    user, assistant = _history(record)
    asked = _below(text_at(record, "instruction", ()), record, "input")
    return _system(record), [*user, asked], [*assistant, text_at(record, "output", ())]


def _dolly(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    if "output" in record:
        raise Slip("has 'response' and 'output', which both are a reply. Keep one of them.", "output")
    asked = _below(text_at(record, "instruction", ()), record, "context")
    return _system(record), [asked], [text_at(record, "response", ())]


def _below(instruction: str, record: Mapping[str, Any], field: str) -> str:
    """An instruction with what it is about below it, if there is something."""
    more = text_at(record, field, ()) if record.get(field) is not None else ""
    return "\n".join(filter(None, (instruction, more)))


def _completion(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    prompt, completion = record["prompt"], record["completion"]
    if isinstance(prompt, list) and isinstance(completion, list):
        return _dialogue(record, ("prompt", "completion"))
    if isinstance(prompt, list) != isinstance(completion, list):
        one, other = json_kind(prompt), json_kind(completion)
        raise Slip(f"'prompt' is {one}, 'completion' {other}; both are texts, or both lists of messages.", "completion")
    return _system(record), [text_at(record, "prompt", ())], [text_at(record, "completion", ())]


def _trace(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    return _system(record), [text_at(record, "prompt", ())], [text_at(record, "answer", ())]


def _instance(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    definition, right = record["Definition"], record["output"]
    if isinstance(definition, list):
        definition = "\n".join(text_at({"Definition": part}, "Definition", ()) for part in definition)
    if isinstance(right, list):
        if not right:
            raise Slip("'output' is empty; expected the right replies, of which the first is taken.", "output")
        reply = text_at({"output": right[0]}, "output", ())
    else:
        reply = text_at(record, "output", ())
    return None, [_below(text_at({"Definition": definition}, "Definition", ()), record, "input")], [reply]


def _flat_instance(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    return None, [_below(text_at(record, "definition", ()), record, "inputs")], [text_at(record, "targets", ())]


def _query_response(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    user, assistant = _history(record)
    return _system(record), [*user, text_at(record, "query", ())], [*assistant, text_at(record, "response", ())]


def _history(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Turns before the last one: [[what the user said, the reply], ...]."""
    turns = record.get("history") or []
    if not isinstance(turns, list):
        raise Slip(f"'history' is {json_kind(turns)}; expected an array of [question, reply] pairs.", "history")
    for position, turn in enumerate(turns):
        if not (isinstance(turn, list) and len(turn) == 2 and all(isinstance(text, str) for text in turn)):
            raise Slip(f"history[{position}] is no pair of texts, [question, reply].", "history", position)
    return [turn[0] for turn in turns], [turn[1] for turn in turns]


def _question_and_answer(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    box = record.get("answer_bbox")  # of grounding: where in the picture, as numbers or as they are written
    answer = text_at(record, "answer", ()) if box is None else box if isinstance(box, str) else json.dumps(box)
    asked = text_at(record, "text", ())
    if record.get("image") and MARK not in asked:  # the authors' evaluation puts it there
        asked = f"{MARK}\n{asked}"
    return None, [asked], [answer]


_LLAVA = partial(_dialogue, fields=("conversations",), role_key="from", text_key="value", roles=_SPEAKERS)

FORMS = (
    Form("messages", ("messages",), partial(_dialogue, fields=("messages",))),
    Form("ShareGPT", ("conversation",), _sharegpt),
    Form("LLaVA", ("conversations",), _LLAVA),
    Form("Alpaca", ("instruction",), _alpaca),
    Form("Dolly", ("instruction", "response"), _dolly, topic="category"),
    Form("query-response", ("query", "response"), _query_response),
    Form("CoIN test", ("question_id", "text"), _question_and_answer),
    Form("prompt-completion", ("prompt", "completion"), _completion),
    Form("TRACE", ("prompt", "answer"), _trace),
    Form("Super-NI", ("Definition", "input", "output"), _instance, replies="output"),
    Form("Super-NI, flat", ("definition", "inputs", "targets"), _flat_instance),
)
