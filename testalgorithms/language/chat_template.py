"""Conversion of conversations to tokens by a chat template, and selection of the assistant's tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.conversation import Conversation, Encoded
from ianvs.testalgorithms.language.sight import MARK, Sight

PLAIN_TEMPLATE = (
    "{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ m['content'] + '\\n\\n' }}"
    "{% elif m['role'] == 'user' %}{{ 'User: ' + m['content'] + '\\n' }}"
    "{% else %}{{ 'Assistant: ' + m['content'] + eos_token + '\\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"
)
"""For tokenizers without a template. If a tokenizer's texts begin with a special token, that is added in front."""

SETTINGS = {"date_string": "26 Jul 2024"}
"""Arguments of a template: a fixed date for templates that tell the model the date, not that of the run."""

AT_ONCE = {**SETTINGS, "enable_thinking": False}
"""The same, without thinking before a reply."""

_GENERATION = re.compile(r"\{%-?\s*generation\b")


class _Layout(NamedTuple):
    """A rendered conversation. spans: begin and end of each reply in it."""

    text: str
    spans: list[tuple[int, int]]


class ChatTemplate:
    """A tokenizer with a chat template: the model's own, or a plain one.

    The tokens of a conversation are those of `apply_chat_template(tokenize=True)`. What the assistant says is what the
    template marks by `{% generation %}`, as TRL takes it; without such marks what is between a prompt and the
    conversation that goes on after its reply. Of a template that rewrites earlier turns (Qwen3's takes thoughts out)
    each turn is learnt separately, after the prompt that asks for its reply.
    """

    def __init__(self, tokenizer: Any, stops: Sequence[int] = (), sight: Sight | None = None) -> None:
        """Find out how the template ends replies, and whether it takes a system prompt.

        Args:
            tokenizer: Of transformers. It gets a plain template if it has none.
            stops: Ids that end a reply besides the tokenizer's end of text and the template's end of turn.
            sight: Of a model that sees; tokens of images take the place of the marks in what the user says.

        Raises:
            PluginError: Nothing ends a text of this tokenizer.
        """
        self.tokenizer, self.sight, self._in_parts = tokenizer, sight, False
        self._quick = getattr(tokenizer, "is_fast", False) and not tokenizer.split_special_tokens
        if self._quick:  # without transformers' bookkeeping, which costs more than the tokens do
            tokenizer.backend_tokenizer.no_truncation()
            tokenizer.backend_tokenizer.no_padding()
        if not getattr(tokenizer, "chat_template", None):
            tokenizer.chat_template = ("{{ bos_token }}" if self._start() else "") + PLAIN_TEMPLATE
        if tokenizer.eos_token_id is None and not stops:
            raise PluginError(
                "the tokenizer has no end-of-text token, so a reply would never end. Set its eos_token.",
                code="refused-arguments",
            )
        self._marks_replies = bool(_GENERATION.search(str(tokenizer.chat_template)))
        self._takes_system = True
        self._settings: dict[str, Any] = AT_ONCE
        probe = Conversation(("a",), ("b",), "c")
        self._in_parts = self._wants_parts()
        try:
            self._render(probe.messages(1), False)
        except Exception as error:  # jinja2's TemplateError of templates that know no such role
            if type(error).__module__.split(".")[0] != "jinja2":
                raise
            self._takes_system = False
        if not self._is_steady(AT_ONCE) and self._is_steady(SETTINGS):
            self._settings = SETTINGS
        special = {*tokenizer.all_special_ids}
        special |= {t for t, token in tokenizer.added_tokens_decoder.items() if token.special}
        text, [(start, _)] = self._of_turn(probe)
        ending = self._ids(text[start:])
        end_of_turn = [t for t in ending if t in special]
        ends = {tokenizer.eos_token_id, *end_of_turn[:1], *stops}
        self.stops: tuple[int, ...] = tuple(sorted(int(t) for t in ends if t is not None))
        self._ends_replies = any(t in self.stops for t in ending)
        self.pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.stops[0])

    def learnable(self, conversation: Conversation) -> list[tuple[Conversation, Encoded]]:
        """Return the conversation with its tokens.

        Several, one for each turn, if the template rewrites earlier turns.
        """
        if not conversation.user:
            return [(conversation, self._of_text(conversation))]
        if (layout := self._layout(conversation)) is not None:
            return [(conversation, self._encoded(conversation, layout))]
        turns = [turn for turn in range(len(conversation.replies)) if turn not in conversation.unlearnt]
        parts = [conversation.up_to(turn) for turn in turns]
        return [(part, self._encoded(part, self._of_turn(part))) for part in parts]

    def encode(self, conversation: Conversation) -> Encoded:
        """Return the tokens of a conversation with its replies, and which of them the model is to learn.

        If the template rewrites earlier turns, only the last reply: `learnable` has the others.
        """
        return self.learnable(conversation)[-1][1]

    def encoded_prompt(self, conversation: Conversation, replies: Sequence[str]) -> Encoded:
        """Return `prompt` with its images."""
        tokens = self.prompt(conversation, replies)
        return self._with_pictures(tokens, [False] * len(tokens), conversation.pictures)

    def prompt(self, conversation: Conversation, replies: Sequence[str]) -> list[int]:
        """Return the tokens up to the beginning of reply number `len(replies)`; `replies` are the earlier ones."""
        text = self._render(conversation.messages(len(replies) + 1, replies), True)
        if not replies or self._ends_replies:
            return self._ids(text, conversation.pictures)
        so_far = replace(conversation, user=conversation.user[: len(replies)], replies=tuple(replies), unlearnt=())
        done = self._layout(so_far)
        if done is None or not text.startswith(done.text):
            return self._ids(text, conversation.pictures)
        before = self._encoded(so_far, done)  # with the ends put there
        return [*before.tokens, *self._ids(text[len(done.text) :], conversation.pictures[len(before.pictures) :])]

    def text(self, tokens: Sequence[int]) -> str:
        """Return a generated reply as text, up to its first end token."""
        ended = next((i for i, token in enumerate(tokens) if token in self.stops), len(tokens))
        return self._decoded(tokens[:ended])

    def ended(self, tokens: Sequence[int]) -> list[int]:
        """Return a generated reply with its first end token, without the padding after it."""
        last = next((i for i, token in enumerate(tokens, start=1) if token in self.stops), len(tokens))
        return list(tokens[:last])

    # Layout of a conversation.

    def _layout(self, conversation: Conversation) -> _Layout | None:
        """Return the rendered conversation with its replies; None if a turn changes when the conversation continues."""
        turns = len(conversation.replies)
        if self._marks_replies:
            text, spans = self._marked(conversation.messages(turns))
            if len(spans) == turns:
                return _Layout(text, spans)
        whole = self._render(conversation.messages(turns), False)
        bounds = []
        for turn, reply in enumerate(conversation.replies):
            prompt = self._render(conversation.messages(turn + 1, conversation.replies[:turn]), True)
            done = whole
            if turn + 1 < turns:  # the last turn may be followed by the end of the whole conversation
                through_reply = self._render(conversation.messages(turn + 1, conversation.replies[: turn + 1]), False)
                done = whole[: _shared(whole, through_reply)]
            if not done.startswith(prompt) or len(done) < len(prompt) + len(reply.strip()):
                return None
            bounds.append((len(prompt), len(done)))
        return _Layout(whole, bounds)

    def _of_turn(self, conversation: Conversation) -> _Layout:
        """Return the last reply after its prompt, with the text that the template puts after a reply."""
        turn, replies = len(conversation.replies) - 1, conversation.replies
        prompt = self._render(conversation.messages(turn + 1, replies[:turn]), True)
        whole = self._render(conversation.messages(turn + 1), False)
        if not whole.startswith(prompt):
            at = whole.rfind(replies[-1].strip())
            if at < 0:
                raise PluginError(
                    f"the chat template leaves out the reply {replies[-1][:60]!r}. Set another by chat_template: FILE.",
                    code="refused-arguments",
                )
            whole = prompt + whole[at:]
        return _Layout(whole, [(len(prompt), len(whole))])

    def _wants_parts(self) -> bool:
        """Return whether the template of a vision model takes lists of parts, with a mark for each image."""
        if self.sight is None:
            return False
        self._in_parts = True
        try:
            return self.sight.mark in self._render([{"role": "user", "content": f"{MARK}\na"}], False)
        except Exception:  # a template that joins texts may raise any error
            return False

    def _is_steady(self, settings: dict[str, Any]) -> bool:
        """Return whether, with these settings, earlier messages are unchanged when the conversation continues."""
        before, self._settings = self._settings, settings
        try:
            return self._layout(Conversation(("a", "b"), ("c", "d"))) is not None
        finally:
            self._settings = before

    def _of_text(self, conversation: Conversation) -> Encoded:
        """Return a plain text unchanged, after the token with which the template's texts begin."""
        ids = [*self._ids("".join(conversation.replies)), self.stops[0]]
        start = self._start()
        return Encoded((*start, *ids), (False,) * len(start) + (True,) * len(ids))

    def _encoded(self, conversation: Conversation, layout: _Layout) -> Encoded:
        ids, places = self._placed(layout.text, layout.spans, conversation.pictures)
        tokens: list[int] = []
        learnt: list[bool] = []
        at, first = 0, len(conversation.replies) - len(places)
        for turn, (begin, end) in enumerate(places, start=first):
            reply, reply_ids = conversation.replies[turn], ids[begin:end]
            spoken = self._spoken(reply_ids, reply)
            if not self._marks_replies:
                self._require_readable(reply_ids[:spoken], reply)
            if not spoken or reply_ids[spoken - 1] not in self.stops:
                spoken = len(reply_ids) + 1
                if ids[end : end + 1] and ids[end] in self.stops:  # the template does not count it as the assistant's
                    end += 1
                    reply_ids = ids[begin:end]
                else:
                    reply_ids = [*reply_ids, self.stops[0]]
            tokens += [*ids[at:begin], *reply_ids]
            spoken = 0 if turn in conversation.unlearnt else spoken
            learnt += [False] * (begin - at) + [i < spoken for i in range(len(reply_ids))]
            at = end
        tokens += ids[at:]
        learnt += [False] * (len(tokens) - len(learnt))
        return self._with_pictures(tokens, learnt, conversation.pictures)

    def _with_pictures(self, tokens: list[int], learnt: list[bool], pictures: Sequence[Any]) -> Encoded:
        """Return the first images, as many as have tokens. Raises PluginError if there are fewer."""
        spans = () if self.sight is None else self.sight.spans(tokens, pictures)
        if len(spans) > len(pictures) or any(any(learnt[start:end]) for start, end in spans):
            raise PluginError(
                f"a conversation has {len(pictures)} images and {len(spans)} marks {MARK}; the model needs an image "
                "for each mark. Add the images, and write other uses of the mark in another way.",
                code="refused-arguments",
            )
        return Encoded(tuple(tokens), tuple(learnt), tuple(pictures[: len(spans)]), spans)

    # Texts and tokens.

    def _render(self, messages: list[dict[str, Any]], ask: bool) -> str:
        rendered: str = self.tokenizer.apply_chat_template(
            self._taken(messages), tokenize=False, add_generation_prompt=ask, **self._settings
        )
        return rendered

    def _marked(self, messages: list[dict[str, Any]]) -> tuple[str, list[tuple[int, int]]]:
        """Return the rendered conversation, and the spans that its template marks as the assistant's."""
        from transformers.utils.chat_template_utils import render_jinja_template

        special = self.tokenizer.special_tokens_map
        [text], [spans] = render_jinja_template(
            [self._taken(messages)],
            chat_template=self.tokenizer.get_chat_template(),
            return_assistant_tokens_mask=True,
            **{**special, **self._settings},
        )
        return text, [(start, end) for start, end in spans]

    def _taken(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return messages in the form that the template takes."""
        if not self._takes_system and messages and messages[0]["role"] == "system":
            first = {"role": "user", "content": messages[0]["content"] + "\n\n" + messages[1]["content"]}
            messages = [first, *messages[2:]]
        if self._in_parts:
            return [{**message, "content": _parts(message["content"])} for message in messages]
        if self.sight is not None and self.sight.written != MARK:
            return [
                {**message, "content": message["content"].replace(MARK, self.sight.written)} for message in messages
            ]
        return messages

    def _start(self) -> list[int]:
        """Return the token at the beginning of a text, if the tokenizer adds one."""
        mark = self.tokenizer.bos_token_id
        return [mark] if mark is not None and self.tokenizer("a")["input_ids"][:1] == [mark] else []

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(
            list(ids),
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,  # " ," stays as it was written
        )
        return text.strip()

    def _shown(self, text: str, pictures: Sequence[Any]) -> str:
        """Return the text with the tokens of an image in place of each mark, as far as there are images."""
        if self.sight is None or self.sight.mark not in text:
            return text
        first, *others = text.split(self.sight.mark)
        shown = [self.sight.text(picture) for picture in pictures[: len(others)]]
        shown += [self.sight.mark] * (len(others) - len(shown))
        return first + "".join(mark + rest for mark, rest in zip(shown, others, strict=True))

    def _ids(self, text: str, pictures: Sequence[Any] = ()) -> list[int]:
        text = self._shown(text, pictures)
        if self._quick:
            return list(self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _placed(
        self, text: str, spans: Sequence[tuple[int, int]], pictures: Sequence[Any]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the tokens of a text, and those that belong to spans of its characters: all that begin in one, or
        before.

        If a tokenizer does not report the positions of its tokens, the text up to each border is tokenized.
        """
        if not self._quick:
            ids, parts = self._ids(text, pictures), [(text[:start], text[:end]) for start, end in spans]
            return ids, [tuple(_shared(ids, self._ids(border, pictures)) for border in both) for both in parts]
        if self.sight is not None:
            spans = [tuple(len(self._shown(text[:at], pictures)) for at in span) for span in spans]
        encoding = self.tokenizer.backend_tokenizer.encode(self._shown(text, pictures), add_special_tokens=False)
        ends = [end for _, end in encoding.offsets]
        placed, at = list[tuple[int, int]](), 0
        for start, end in spans:
            begin = next((i for i in range(at, len(ends)) if ends[i] > start), len(ends))
            at = next((i for i in range(begin, len(ends)) if ends[i] > end), len(ends))
            placed.append((begin, at))
        return list(encoding.ids), placed

    def _spoken(self, ids: list[int], reply: str) -> int:
        """Return how many of a reply's tokens are learned: up to its end token; all, if the template has none."""
        marks = [i for i, token in enumerate(ids) if token in self.stops]
        whole = next((i for i in marks if self._decoded(ids[:i]) == reply.strip()), None) if marks[1:] else None
        return (marks[-1] if whole is None else whole) + 1 if marks else len(ids)

    def _require_readable(self, ids: list[int], reply: str) -> None:
        """Require that the learned tokens are the whole reply.

        A token that also holds the end of the prompt is learned, too.
        """
        decoded = self._decoded(ids)
        if decoded == reply:
            return
        wanted = self._decoded(self._ids(reply))  # tokens need not reproduce every space
        if not decoded.endswith(wanted):
            raise PluginError(
                f"the chat template makes {decoded[:60]!r} of the reply {wanted[:60]!r}. Set another by chat_template: "
                "FILE.",
                code="refused-arguments",
            )


def _shared(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return the length of the common beginning of two sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (item, other) in pairs if item != other), min(len(first), len(second)))


def _parts(text: str) -> list[dict[str, str]]:
    """Return a message as parts, which a template separates itself."""
    first, *others = text.split(MARK)
    parts = [{"type": "text", "text": first}] if first else []
    for part in others:
        rest = part.removeprefix("\n")
        parts += [{"type": "image"}, *([{"type": "text", "text": rest}] if rest else [])]
    return parts or [{"type": "text", "text": ""}]
