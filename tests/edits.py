"""Changing a text in a test, so that a change that changes nothing is noticed."""

from __future__ import annotations

__all__ = ["edited"]


def edited(text: str, *changes: str, count: int = -1) -> str:
    """`text` after changes, old and new by turns: each `old` has to be there, and is replaced `count` times or all."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, f"there is no {old!r} to be replaced in:\n{text}"
        text = text.replace(old, new, count)
    return text
