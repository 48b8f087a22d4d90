"""Conversations and their tokens, of which only some are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ianvs.base.lazy_images import Picture, Pictures


@dataclass(frozen=True)
class Conversation:
    """What a user says, turn by turn, and what the assistant is to reply; no replies where they are asked for.

    A plain text has no turn of a user, and one reply. unlearnt: turns, from 0 on, whose replies are not to be learnt.
    pictures: one for each mark <image> in what the user says; given as uint8 (H, W, 3) or as they were written.
    """

    user: tuple[str, ...]
    replies: tuple[str, ...] = ()
    system: str | None = None
    unlearnt: tuple[int, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pictures", tuple(map(Picture.from_value, self.pictures)))

    def up_to(self, turn: int) -> Conversation:
        """Return the conversation up to the reply of `turn`, counted from 0; only that reply is to be learned."""
        others = tuple(range(turn)) + ((turn,) if turn in self.unlearnt else ())
        return replace(self, user=self.user[: turn + 1], replies=self.replies[: turn + 1], unlearnt=others)

    def messages(self, turns: int, replies: Sequence[str] | None = None) -> list[dict[str, str]]:
        """Return the first `turns` user turns with the replies between them (and after them, if there are as many)."""
        given = self.replies if replies is None else replies
        messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        for turn in range(turns):
            messages.append({"role": "user", "content": self.user[turn]})
            if turn < len(given):
                messages.append({"role": "assistant", "content": given[turn]})
        return messages


def conversations_of(x: Sequence[Any], y: Sequence[Any] | None = None) -> list[Conversation]:
    """Return conversations from samples of the benchmark: x[i] = {"system": text or None, "user": [...]}, y[i] =
    [reply, ...].

    "unlearnt" in x[i] lists turns whose replies are not to be learned, "pictures" the images of its marks.
    """
    replies = [()] * len(x) if y is None else [tuple(map(str, reply)) for reply in y]
    return [
        Conversation(
            tuple(map(str, question["user"])),
            reply,
            question.get("system"),
            unlearnt=tuple(question.get("unlearnt", ())),
            pictures=_pictures_of(question.get("pictures", ())),
        )
        for question, reply in zip(x, replies, strict=True)
    ]


def _pictures_of(pictures: Any) -> tuple[Picture, ...]:
    return pictures.encoded if isinstance(pictures, Pictures) else tuple(map(Picture.from_value, pictures))


def texts_of(conversations: Sequence[Conversation]) -> list[str]:
    """Return all texts in the conversations."""
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
        """Return the first `length` tokens. Where that is within an image, those before it, and nothing is to be
        learnt.
        """
        whole = sum(end <= length for _, end in self.spans)
        if whole < len(self.spans) and self.spans[whole][0] < length:
            length = self.spans[whole][0]
            return Encoded(self.tokens[:length], (False,) * length, self.pictures[:whole], self.spans[:whole])
        return Encoded(self.tokens[:length], self.learnt[:length], self.pictures[:whole], self.spans[:whole])
