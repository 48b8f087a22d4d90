"""The json forms in which instruction data come.

messages        {"messages": [{"role": "system" | "user" | "assistant", "content": "..."}, ...]} (Continual-News)
ShareGPT        {"system": "...", "conversation": [{"human": "...", "assistant": "..."}, ...]}
LLaVA, CoIN     {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}, ...]}
CoIN, test      {"question_id": 1, "text": "...", "answer": "..."}
Alpaca          {"system": "...", "instruction": "...", "input": "...", "output": "..."}
query-response  {"system": "...", "query": "...", "response": "...", "history": [["...", "..."], ...]}

ianvs finds them by the entry points `ianvs.conversation_forms` in pyproject.toml.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ianvs.data.conversation_forms import Form, Slip, text_at
from ianvs.data.records import json_kind
from ianvs.errors import closest, one_line

__all__ = ["FORMS"]

_ROLES = {"system": "system", "user": "user", "assistant": "assistant"}
_SPEAKERS = {"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant"}


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
    record: Mapping[str, Any], field: str, role_key: str, text_key: str, roles: Mapping[str, str]
) -> tuple[str | None, list[str], list[str]]:
    """A list of messages, each with a role."""
    items = _items(record, field)
    system = _system(record)
    user: list[str] = []
    assistant: list[str] = []
    for position in range(len(items)):
        where = (field, position)
        message = _object(items, position, field, f"'{role_key}' and '{text_key}'")
        written = text_at(message, role_key, where)
        role = roles.get(written)
        if role is None:
            told = f"{role_key} '{written}' is not known.{closest(written, roles)} There are: {one_line(list(roles))}."
            raise Slip(told, *where, role_key)
        text = text_at(message, text_key, where)
        if role == "system":
            if position:
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
        raise Slip("is a conversation without an assistant turn: there is nothing to learn or to examine.", field)
    if len(user) > len(assistant):
        message_ = "ends with a message of the user; every turn needs a reply. Add it, or take the message out."
        raise Slip(message_, field, len(items) - 1)
    return system, user, assistant


def _messages(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    return _dialogue(record, "messages", "role", "content", _ROLES)


def _from_and_value(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    return _dialogue(record, "conversations", "from", "value", _SPEAKERS)


def _sharegpt(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    items = _items(record, "conversation")
    turns = [_object(items, position, "conversation", "'human' and 'assistant'") for position in range(len(items))]
    said = [
        [text_at(turn, who, ("conversation", position)) for position, turn in enumerate(turns)]
        for who in ("human", "assistant")
    ]
    return _system(record), said[0], said[1]


def _alpaca(record: Mapping[str, Any]) -> tuple[str | None, list[str], list[str]]:
    more = text_at(record, "input", ()) if record.get("input") is not None else ""
    asked = "\n".join(filter(None, (text_at(record, "instruction", ()), more)))
    user, assistant = _history(record)
    return _system(record), [*user, asked], [*assistant, text_at(record, "output", ())]


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
    return None, [text_at(record, "text", ())], [answer]


FORMS = (
    Form("messages", ("messages",), _messages),
    Form("ShareGPT", ("conversation",), _sharegpt),
    Form("LLaVA", ("conversations",), _from_and_value),
    Form("Alpaca", ("instruction",), _alpaca),
    Form("query-response", ("query", "response"), _query_response),
    Form("CoIN test", ("question_id", "text"), _question_and_answer),
)
