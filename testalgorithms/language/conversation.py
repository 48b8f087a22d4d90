"""Conversations, and how a chat template turns them into tokens of which only some are learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.base.kept_pictures import Picture, Pictures
from ianvs.testalgorithms.language.sight import MARK, Sight

PLAIN_TEMPLATE = (
    "{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ m['content'] + '\\n\\n' }}"
    "{% elif m['role'] == 'user' %}{{ 'User: ' + m['content'] + '\\n' }}"
    "{% else %}{{ 'Assistant: ' + m['content'] + eos_token + '\\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"
)
"""For tokenizers that bring no template of their own. One whose texts begin with a mark gets that mark in front."""

SETTINGS = {"date_string": "26 Jul 2024"}
"""What a template may ask: of those that tell the model the date, not that of the day of the run."""

AT_ONCE = {**SETTINGS, "enable_thinking": False}
"""The same, without thinking aloud before a reply."""


@dataclass(frozen=True)
class Conversation:
    """What a user says, turn by turn, and what the assistant is to reply; no replies where they are asked for.

    A plain text has no turn of a user, and one reply. unlearnt: turns, from 0 on, whose replies are not to be learnt.
    pictures: one for each mark <image> in what the user says, uint8 (H, W, 3) or as they were written (`Picture`).
    """

    user: tuple[str, ...]
    replies: tuple[str, ...] = ()
    system: str | None = None
    unlearnt: tuple[int, ...] = ()
    pictures: tuple[Any, ...] = ()

    def messages(self, turns: int, replies: Sequence[str] | None = None) -> list[dict[str, str]]:
        """The first `turns` user turns with the replies between them (and after them, if there are as many)."""
        said = self.replies if replies is None else replies
        messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        for turn in range(turns):
            messages.append({"role": "user", "content": self.user[turn]})
            if turn < len(said):
                messages.append({"role": "assistant", "content": said[turn]})
        return messages


def conversations_of(x: Sequence[Any], y: Sequence[Any] | None = None) -> list[Conversation]:
    """Samples as the benchmark hands them: x[i] = {"system": text or None, "user": [...]}, y[i] = [reply, ...].

    "unlearnt" in x[i] lists turns whose replies are not to be learnt, "pictures" those of its marks.
    """
    replies = [()] * len(x) if y is None else [tuple(map(str, said)) for said in y]
    return [
        Conversation(
            tuple(map(str, asked["user"])),
            said,
            asked.get("system"),
            unlearnt=tuple(asked.get("unlearnt", ())),
            pictures=_kept(asked.get("pictures", ())),
        )
        for asked, said in zip(x, replies, strict=True)
    ]


def _kept(pictures: Any) -> tuple[Picture, ...]:
    return pictures.kept if isinstance(pictures, Pictures) else tuple(map(Picture.of, pictures))


def texts_of(conversations: Sequence[Conversation]) -> list[str]:
    """All that is said in them."""
    return [text for c in conversations for text in (c.system or "", *c.user, *c.replies)]


@dataclass(frozen=True)
class Encoded:
    """tokens of a whole conversation; `learnt[i]` says whether token i is the assistant's (its end mark included).

    pictures: in the order of their tokens, which begin and end at `spans`.
    """

    tokens: tuple[int, ...]
    learnt: tuple[bool, ...]
    pictures: tuple[Any, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    def cut(self, length: int) -> Encoded:
        """The first `length` tokens. Where that is within a picture, those before it, and nothing is to be learnt."""
        whole = sum(end <= length for _, end in self.spans)
        if whole < len(self.spans) and self.spans[whole][0] < length:
            length = self.spans[whole][0]
            return Encoded(self.tokens[:length], (False,) * length, self.pictures[:whole], self.spans[:whole])
        return Encoded(self.tokens[:length], self.learnt[:length], self.pictures[:whole], self.spans[:whole])


def _parts(text: str) -> list[dict[str, str]]:
    """What is said as parts, which a template sets apart by itself."""
    first, *others = text.split(MARK)
    found = [{"type": "text", "text": first}] if first else []
    for part in others:
        rest = part.removeprefix("\n")
        found += [{"type": "image"}, *([{"type": "text", "text": rest}] if rest else [])]
    return found


def _quick(tokenizer: Any) -> Callable[..., Any] | None:
    """What makes tokens of a text without transformers' bookkeeping, which costs more than they do; None: nothing."""
    if not getattr(tokenizer, "is_fast", False) or tokenizer.split_special_tokens:
        return None
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    encode: Callable[..., Any] = tokenizer.backend_tokenizer.encode
    return encode


class ChatTemplate:
    """A tokenizer with a chat template: the model's own, or a plain one.

    A conversation is rendered as text and cut where the assistant begins and ends to speak; each segment becomes tokens
    by itself. So the tokens of a prompt are the same in training and when a reply is asked for, whatever the tokenizer
    would merge across a border, and what is learnt is known by construction.
    """

    def __init__(self, tokenizer: Any, stops: Sequence[int] = (), sight: Sight | None = None) -> None:
        """stops: ids that end a reply besides the tokenizer's end of text and the template's end of turn.

        sight: of a model that sees; tokens of pictures take the place of the marks in what the user says.
        """
        self.tokenizer, self.sight, self._in_parts = tokenizer, sight, False
        self._encoded = _quick(tokenizer)
        if not getattr(tokenizer, "chat_template", None):
            tokenizer.chat_template = ("{{ bos_token }}" if self._start() else "") + PLAIN_TEMPLATE
        if tokenizer.eos_token_id is None and not stops:
            raise PluginError(
                "the tokenizer has no end-of-text token, so a reply would never end. Set its eos_token.",
                code="refused-arguments",
            )
        self._takes_system = True
        self._settings: dict[str, Any] = AT_ONCE
        probe = Conversation(("a",), ("b",), "c")
        # A template of a model that sees may pass over what is no list of parts.
        self._in_parts = sight is not None and "a" not in self._render([{"role": "user", "content": "a"}], False)
        try:
            self._render(probe.messages(1), False)
        except Exception as error:  # jinja2's TemplateError of templates that know no such role
            if type(error).__module__.split(".")[0] != "jinja2":
                raise
            self._takes_system = False
        if not self._can_cut(AT_ONCE) and self._can_cut(SETTINGS):
            self._settings = SETTINGS
        special = {*tokenizer.all_special_ids}
        special |= {t for t, token in tokenizer.added_tokens_decoder.items() if token.special}
        end_of_turn = [t for t in self._ids(self._segments(probe)[1]) if t in special]
        ends = {tokenizer.eos_token_id, *end_of_turn[:1], *stops}
        self.stops: tuple[int, ...] = tuple(sorted(int(t) for t in ends if t is not None))
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.stops[0])

    def encode(self, conversation: Conversation) -> Encoded:
        """Tokens of a conversation with its replies, and which of them the model is to learn."""
        if not conversation.user:  # as it is, from the mark on that the template's texts begin with
            ids = [*self._ids("".join(conversation.replies)), self.stops[0]]
            start = self._start()
            return Encoded((*start, *ids), (False,) * len(start) + (True,) * len(ids))
        tokens: list[int] = []
        learnt: list[bool] = []
        for number, segment in enumerate(self._segments(conversation)):
            ids = self._ids(segment)
            spoken = self._spoken(ids) if number % 2 else 0
            if number % 2:
                self._require_readable(ids[:spoken], conversation.replies[number // 2])
                if not spoken or ids[spoken - 1] not in self.stops:
                    ids, spoken = [*ids, self.stops[0]], len(ids) + 1
            tokens += ids
            spoken = 0 if number // 2 in conversation.unlearnt else spoken
            learnt += [i < spoken for i in range(len(ids))]
        return self._with_pictures(tokens, learnt, conversation.pictures)

    def _with_pictures(self, tokens: list[int], learnt: list[bool], pictures: Sequence[Any]) -> Encoded:
        """The first pictures, as many as have tokens. Raises PluginError where there are not so many."""
        spans = () if self.sight is None else self.sight.spans(tokens)
        if len(spans) > len(pictures) or any(any(learnt[start:end]) for start, end in spans):
            raise PluginError(
                f"a conversation has {len(pictures)} pictures and {len(spans)} marks {MARK}, which a model that sees "
                "takes for one each. Give each mark of the user a picture, and write others in another way.",
                code="refused-arguments",
            )
        return Encoded(tuple(tokens), tuple(learnt), tuple(pictures[: len(spans)]), spans)

    def asked(self, conversation: Conversation, replies: Sequence[str]) -> Encoded:
        """`prompt` with its pictures."""
        tokens = self.prompt(conversation, replies)
        return self._with_pictures(tokens, [False] * len(tokens), conversation.pictures)

    def prompt(self, conversation: Conversation, replies: Sequence[str]) -> list[int]:
        """Tokens up to where reply number `len(replies)` begins; `replies` are those said so far."""
        said = replace(conversation, user=conversation.user[: len(replies)], replies=tuple(replies))
        tokens = list(self.encode(said).tokens) if replies else []
        done = "".join(self._segments(said)) if replies else ""
        text = self._render(conversation.messages(len(replies) + 1, replies), True)
        return tokens + self._ids(self._after(done, text))

    def text(self, tokens: Sequence[int]) -> str:
        """A generated reply as text, up to its first end mark."""
        ended = next((i for i, token in enumerate(tokens) if token in self.stops), len(tokens))
        return self._decoded(tokens[:ended])

    def ended(self, tokens: Sequence[int]) -> list[int]:
        """A generated reply with its first end mark, without what fills its row up to the length of others."""
        last = next((i for i, token in enumerate(tokens, start=1) if token in self.stops), len(tokens))
        return list(tokens[:last])

    def _start(self) -> list[int]:
        """The mark at the beginning of a text, of a tokenizer that has one and puts it there."""
        mark = self.tokenizer.bos_token_id
        return [mark] if mark is not None and self.tokenizer("a")["input_ids"][:1] == [mark] else []

    def _segments(self, conversation: Conversation) -> list[str]:
        """[prompt, reply, prompt, reply, ...]: the whole rendered conversation, cut."""
        segments, done = [], ""
        for turn, _ in enumerate(conversation.replies):
            asked = self._render(conversation.messages(turn + 1, conversation.replies[:turn]), True)
            segments.append(self._after(done, asked))
            done = self._render(conversation.messages(turn + 1, conversation.replies[: turn + 1]), False)
            segments.append(self._after(asked, done))
        return segments

    def _can_cut(self, settings: dict[str, Any]) -> bool:
        """Whether with these settings what was said stays as it is when the conversation goes on."""
        before, self._settings = self._settings, settings
        try:
            self._segments(Conversation(("a", "b"), ("c", "d")))
        except PluginError:
            return False
        finally:
            self._settings = before
        return True

    def _after(self, done: str, text: str) -> str:
        if not text.startswith(done):
            raise PluginError(
                "the model's chat template rewrites earlier turns when a conversation goes on, so what the assistant "
                "says can't be told apart. Use single-turn conversations, or set another template in the model folder.",
                code="refused-arguments",
            )
        return text[len(done) :]

    def _render(self, messages: list[dict[str, Any]], ask: bool) -> str:
        if not self._takes_system and messages and messages[0]["role"] == "system":
            first = {"role": "user", "content": messages[0]["content"] + "\n\n" + messages[1]["content"]}
            messages = [first, *messages[2:]]
        if self._in_parts:
            messages = [{**one, "content": _parts(one["content"])} for one in messages]
        rendered: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=ask, **self._settings
        )
        return rendered

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(
            list(ids),
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,  # " ," stays as it was written
        )
        return text.strip()

    def _ids(self, text: str) -> list[int]:
        if self.sight is None or MARK not in text:
            return self._plain_ids(text)
        first, *others = map(self._plain_ids, text.split(MARK))
        picture = [self.sight.token] * self.sight.patches
        return first + [token for part in others for token in (*picture, *part)]

    def _plain_ids(self, text: str) -> list[int]:
        if self._encoded is None:
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        return list(self._encoded(text, add_special_tokens=False).ids)

    def _spoken(self, ids: list[int]) -> int:
        """How many of a reply's tokens are learnt: up to its end mark; all, if the template has none."""
        marks = [i for i, token in enumerate(ids) if token in self.stops]
        return marks[-1] + 1 if marks else len(ids)

    def _require_readable(self, ids: list[int], reply: str) -> None:
        """What is learnt must be the reply: nothing of the prompt, nothing missing."""
        found = self._decoded(ids)
        if found == reply:
            return
        wanted = self._decoded(self._ids(reply))  # tokens need not bring back each space
        if found != wanted and wanted:
            raise PluginError(
                f"the chat template makes {found[:60]!r} of the reply {wanted[:60]!r}.", code="refused-arguments"
            )
