"""The json forms of instruction data.

messages        {"messages": [{"role": "system" | "user" | "assistant", "content": "..."}, ...]} (Continual-News)
ShareGPT        {"system": "...", "conversation": [{"human": "...", "assistant": "..."}, ...]}
LLaVA, CoIN     {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}, ...]}, or
                with "role" and "content" in place of "from" and "value"
CoIN, test      {"question_id": 1, "text": "...", "answer": "..."}
Alpaca          {"system": "...", "instruction": "...", "input": "...", "output": "..."}
Dolly           {"instruction": "...", "context": "...", "response": "...", "category": "..."}
query-response  {"system": "...", "query": "...", "response": "...", "history": [["...", "..."], ...]}
prompt-completion  {"prompt": "...", "completion": "..."}, or both of them lists of messages (TRL)
prompt-response {"prompt": "...", "response": "..."}
TRACE           {"prompt": "...", "answer": "..."}
Super-NI        {"Definition": "...", "input": "...", "output": ["...", ...]}, an instance of a task; or flat,
                {"definition": "...", "inputs": "...", "targets": "..."}
choices         {"question": "...", "choices": ["...", ...], "answer": "B" or 1} (MMLU), or, with "answerKey",
                {"question": "...", "choices": {"text": [...], "label": [...]}, "answerKey": "B"} (ARC)
question-answer {"question": "...", "answer": "... #### 72"} (GSM8K), {"question": "...", "answer": ["...", ...]} (NQ),
                {"context": "...", "question": "...", "answers": {"text": ["...", ...]}} (SQuAD)
text            {"text": "..."}, to go on with pre-training

The content of a message may be a list of parts, [{"type": "text", "text": "..."}, ...]. Tool calls and their results
are converted to the form of Qwen 2.5 and Hermes: in the assistant's reply, and as the user's next turn.
ianvs finds them by the entry points `ianvs.conversation_forms` in pyproject.toml.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any

from ianvs.base.errors import closest, one_line
from ianvs.base.lazy_images import MARK
from ianvs.config.strict_yaml import Steps
from ianvs.exam.data.conversation_forms import Form, content_at, text_at
from ianvs.exam.data.records import RecordError, json_kind

_ROLES = MappingProxyType(
    {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
)
_SPEAKERS = MappingProxyType(
    {**_ROLES, "human": "user", "gpt": "assistant", "function_call": "call", "observation": "tool"}
)
_QUESTION = ("context", "question"), "question"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ABOUT = frozenset({"id", "domain", "topic", "meta", "metadata", "source", "url", "title", "timestamp", "date"})
"""Keys that are allowed besides the text of a corpus."""

_Turns = tuple[str | None, list[str], list[str]]
"""The system prompt, what the user says, what the assistant replies."""


def _system(record: Mapping[str, Any]) -> str | None:
    """Return the system prompt that is stored outside the turns; None if there is none, or an empty one."""
    return (text_at(record, "system", ()) or None) if record.get("system") is not None else None


def _items(record: Mapping[str, Any], field: str, keys: str) -> list[Mapping[str, Any]]:
    items = record[field]
    if not isinstance(items, list):
        raise RecordError(f"'{field}' is {json_kind(items)}; expected an array.", field)
    if not items:
        raise RecordError(f"'{field}' is empty; expected what user and assistant say in turn.", field)
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise RecordError(
                f"{field}[{position}] is {json_kind(item)}; expected an object with {keys}.", field, position
            )
    return items


def _dialogue(
    record: Mapping[str, Any],
    fields: Sequence[str],
    role_key: str = "role",
    text_key: str = "content",
    roles: Mapping[str, str] = _ROLES,
) -> _Turns:
    """Return the turns of lists of messages, each with a role; a list continues in the next field."""
    messages: list[tuple[Mapping[str, Any], Steps]] = []
    for field in fields:
        items = _items(record, field, f"'{role_key}' and '{text_key}'")
        messages += [(item, (field, position)) for position, item in enumerate(items)]
    system = _system(record)
    user: list[str] = []
    assistant: list[str] = []
    before = ""
    for number, (message, where) in enumerate(messages):
        written = text_at(message, role_key, where)
        role = roles.get(written)
        if role is None:
            problem = (
                f"{role_key} '{written}' is not known.{closest(written, roles)} There are: {one_line(list(roles))}."
            )
            raise RecordError(problem, *where, role_key)
        calls = [] if role != "assistant" else message.get("tool_calls") or []
        text = "" if calls and not message.get(text_key) else content_at(message, text_key, where)
        if role == "tool":
            if before not in ("tool", "assistant"):
                raise RecordError(
                    "a tool's result follows the assistant's call of it; there is none before this one.", *where
                )
            text = f"<tool_response>\n{text}\n</tool_response>"
            if before == "tool":
                text = f"{user.pop()}\n{text}"
            role = "user"
            before = "tool"
        else:
            before = "assistant" if role in ("assistant", "call") else role
        if role == "system":
            if number:
                raise RecordError("a system message stands first; this one comes later.", *where)
            system = text or None
        elif role == "user":
            if len(user) > len(assistant):
                raise RecordError(
                    "two messages of the user follow each other; the assistant's reply is missing.", *where
                )
            user.append(text)
        else:
            if len(user) == len(assistant):
                raise RecordError("this reply of the assistant has no message of the user before it.", *where)
            parts = [f"<tool_call>\n{text}\n</tool_call>"] if role == "call" else [text, *_calls(calls, where)]
            assistant.append("\n".join(filter(None, parts)))
    if not assistant:
        none = "is a conversation without an assistant turn: there is nothing to learn or to examine."
        raise RecordError(none, fields[-1])
    if len(user) > len(assistant):
        message_ = "ends with a message of the user; every turn needs a reply. Add it, or take the message out."
        raise RecordError(message_, *messages[-1][1])
    return system, user, assistant


def _of_weight_0(
    record: Mapping[str, Any], fields: Sequence[str], role_key: str = "role", roles: Mapping[str, str] = _ROLES
) -> list[int]:
    """Return the turns whose replies have weight 0 (the key of OpenAI, Mistral and axolotl), as read by `_dialogue`."""
    placed = [((field, position), message) for field in fields for position, message in enumerate(record[field])]
    replies = [(where, message) for where, message in placed if roles[message[role_key]] in ("assistant", "call")]
    for where, message in replies:
        if message.get("weight") not in (None, 0, 1):
            problem = f"'weight' is {message['weight']!r}; expected 1, or 0 for a reply that is not to be learnt."
            raise RecordError(problem, *where, "weight")
    return [turn for turn, (_, message) in enumerate(replies) if message.get("weight", 1) == 0]


def _calls(calls: Any, where: Steps) -> list[str]:
    """Return tool calls as texts. Their arguments are an object, or json in a text."""
    written = []
    for position, call in enumerate(calls if isinstance(calls, list) else [calls]):
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RecordError(f"tool_calls[{position}] names no function; expected an object with 'name'.", *where)
        arguments = function.get("arguments")
        with suppress(json.JSONDecodeError):
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        text = json.dumps({"name": function["name"], "arguments": arguments or {}}, ensure_ascii=False)
        written.append(f"<tool_call>\n{text}\n</tool_call>")
    return written


def _sharegpt(record: Mapping[str, Any]) -> _Turns:
    turns = [*enumerate(_items(record, "conversation", "'human' and 'assistant'"))]
    user = [text_at(turn, "human", ("conversation", position)) for position, turn in turns]
    assistant = [text_at(turn, "assistant", ("conversation", position)) for position, turn in turns]
    return _system(record), user, assistant


def _turn(record: Mapping[str, Any], fields: Sequence[str], reply: str, history: bool = False) -> _Turns:
    """Return one turn: the texts of `fields`, of which the first is required, and the one of `reply`."""
    user, assistant = _history(record) if history else ([], [])
    return _system(record), [*user, _texts(record, fields, fields[0])], [*assistant, text_at(record, reply, ())]


def _texts(record: Mapping[str, Any], fields: Sequence[str], needed: str) -> str:
    """Return the non-empty texts of the fields, each on its own line."""
    texts = [text_at(record, field, ()) for field in fields if field == needed or record.get(field) is not None]
    return "\n".join(filter(None, texts))


def _dolly(record: Mapping[str, Any]) -> _Turns:
    if "output" in record:
        raise RecordError("has 'response' and 'output', which both are a reply. Keep one of them.", "output")
    return _turn(record, ("instruction", "context"), "response")


def _completion(record: Mapping[str, Any]) -> _Turns:
    prompt, completion = record["prompt"], record["completion"]
    if isinstance(prompt, list) and isinstance(completion, list):
        return _dialogue(record, ("prompt", "completion"))
    if isinstance(prompt, list) != isinstance(completion, list):
        kind, other = json_kind(prompt), json_kind(completion)
        raise RecordError(
            f"'prompt' is {kind}, 'completion' {other}; both are texts, or both lists of messages.", "completion"
        )
    return _turn(record, ("prompt",), "completion")


def _instance(record: Mapping[str, Any]) -> _Turns:
    """Return the turn of an instance of a task; tasks have no system prompt."""
    parts, replies = (
        value if isinstance(value, list) else [value] for value in (record["Definition"], record["output"])
    )
    if not replies:
        raise RecordError("'output' is empty; expected the right replies, of which the first is taken.", "output")
    definition = "\n".join(text_at({"Definition": part}, "Definition", ()) for part in parts)
    fields = {"system": None, "Definition": definition, "output": replies[0]}
    return _turn({**record, **fields}, ("Definition", "input"), "output")


def _flat_instance(record: Mapping[str, Any]) -> _Turns:
    return _turn({**record, "system": None}, ("definition", "inputs"), "targets")


def _history(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Turns before the last one: [[what the user said, the reply], ...]."""
    turns = record.get("history") or []
    if not isinstance(turns, list):
        raise RecordError(f"'history' is {json_kind(turns)}; expected an array of [question, reply] pairs.", "history")
    for position, turn in enumerate(turns):
        if not (isinstance(turn, list) and len(turn) == 2 and all(isinstance(text, str) for text in turn)):
            raise RecordError(f"history[{position}] is no pair of texts, [question, reply].", "history", position)
    return [turn[0] for turn in turns], [turn[1] for turn in turns]


def _question_and_answer(record: Mapping[str, Any]) -> _Turns:
    box = record.get("answer_bbox")  # the position in the image, for grounding, as numbers or text
    answer = text_at(record, "answer", ()) if box is None else box if isinstance(box, str) else json.dumps(box)
    question = text_at(record, "text", ())
    if record.get("image") and MARK not in question:  # added there by the authors' evaluation
        question = f"{MARK}\n{question}"
    return None, [question], [answer]


def _choice(record: Mapping[str, Any]) -> _Turns:
    """Return the question with its choices below it, each after its letter; the reply is the letter of the
    right one.
    """
    choices, key = record["choices"], "answer" if "answer" in record else "answerKey"
    labels = choices.get("label") if isinstance(choices, dict) else None
    texts = choices.get("text") if isinstance(choices, dict) else choices
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise RecordError(
            "'choices' is no array of texts, and no object with the arrays 'text' and 'label'.", "choices"
        )
    if len(texts) > len(_LETTERS) or (labels is not None and len(labels) != len(texts)):
        raise RecordError(f"'choices' has {len(texts)} texts, and not as many letters.", "choices")
    letters = list(_LETTERS[: len(texts)]) if labels is None else [str(label) for label in labels]
    right = record[key]
    if isinstance(right, int) and not isinstance(right, bool) and 0 <= right < len(texts):
        right = letters[right]  # the first is 0
    elif right not in letters and right in texts:
        right = letters[texts.index(right)]
    if right not in letters:
        expected = f"one of the letters {', '.join(letters)}, a number from 0 on, or the text of a choice"
        raise RecordError(f"'{key}' is {right!r}; expected {expected}.", key)
    lines = [f"{letter}. {text}" for letter, text in zip(letters, texts, strict=True)]
    return _system(record), ["\n".join([_texts(record, *_QUESTION), *lines, "Answer:"])], [right]


def _answer(record: Mapping[str, Any]) -> _Turns:
    key = "answers" if "answers" in record else "answer"
    right = record[key].get("text") if isinstance(record[key], dict) else record[key]
    if isinstance(right, list) and not right:
        raise RecordError(f"'{key}' is empty; leave a question out that has no answer.", key)
    reply = right[0] if isinstance(right, list) else right
    return _system(record), [_texts(record, *_QUESTION)], [text_at({key: reply}, key, ())]


def _is_solution(record: Mapping[str, Any]) -> bool:
    """Return whether it has steps with the number after #### (GSM8K), or several right answers (Natural Questions)."""
    answer = record["answer"]
    return "\n####" in answer if isinstance(answer, str) else isinstance(answer, list)


def _is_corpus(record: Mapping[str, Any]) -> bool:
    return isinstance(record["text"], str) and not record.keys() - _ABOUT - {"text"}


def _has_choices(record: Mapping[str, Any]) -> bool:
    return isinstance(record["choices"], list | dict)


def _conversations(record: Mapping[str, Any]) -> _Turns:
    """Return the turns of `from` and `value`, as in LLaVA, or of `role` and `content`, as in `messages`."""
    if _has_roles(record):
        return _dialogue(record, ("conversations",), roles=_SPEAKERS)
    return _dialogue(record, ("conversations",), role_key="from", text_key="value", roles=_SPEAKERS)


def _conversations_of_weight_0(record: Mapping[str, Any]) -> list[int]:
    role_key = "role" if _has_roles(record) else "from"
    return _of_weight_0(record, ("conversations",), role_key=role_key, roles=_SPEAKERS)


def _has_roles(record: Mapping[str, Any]) -> bool:
    turns = record["conversations"]
    first = turns[0] if isinstance(turns, list) and turns else None
    return isinstance(first, dict) and "role" in first and "from" not in first


_MESSAGES = partial(_dialogue, fields=("messages",))

FORMS = (
    Form("messages", ("messages",), _MESSAGES, unlearnt=partial(_of_weight_0, fields=("messages",))),
    Form("ShareGPT", ("conversation",), _sharegpt),
    Form("LLaVA", ("conversations",), _conversations, unlearnt=_conversations_of_weight_0),
    Form("Alpaca", ("instruction",), partial(_turn, fields=("instruction", "input"), reply="output", history=True)),
    Form("Dolly", ("instruction", "response"), _dolly, topic="category"),
    Form("query-response", ("query", "response"), partial(_turn, fields=("query",), reply="response", history=True)),
    Form("CoIN test", ("question_id", "text"), _question_and_answer),
    Form("prompt-completion", ("prompt", "completion"), _completion),
    Form("prompt-response", ("prompt", "response"), partial(_turn, fields=("prompt",), reply="response", history=True)),
    Form("TRACE", ("prompt", "answer"), partial(_turn, fields=("prompt",), reply="answer")),
    Form("Super-NI", ("Definition", "input", "output"), _instance, replies="output"),
    Form("Super-NI, flat", ("definition", "inputs", "targets"), _flat_instance),
    Form("choices", ("question", "choices", "answer"), _choice, topic="subject", when=_has_choices),
    Form("ARC", ("question", "choices", "answerKey"), _choice, topic="subject", when=_has_choices),
    Form("GSM8K", ("question", "answer"), _answer, replies="answer", when=_is_solution),
    Form("SQuAD", ("question", "answers"), _answer, replies="answers", when=lambda record: True),
    Form("text", ("text",), lambda record: (None, [], [text_at(record, "text", ())]), when=_is_corpus),
)
