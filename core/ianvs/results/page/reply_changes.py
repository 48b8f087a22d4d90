"""Which words of a reply are new since the one before."""

from __future__ import annotations

import difflib
import re

__all__ = ["changed_words"]

_PIECES = re.compile(r"\S+\s*")
_LONGEST = 400  # words that are compared


def changed_words(before: str | None, after: str) -> list[tuple[str, bool]]:
    """Pieces of `after`, in order and complete, and whether they are new; None before: nothing is.

    Words are compared with the blanks between them left out.
    """
    if before is None or before == after:
        return [(after, False)] if after else []
    old, new = before.split(), _PIECES.findall(after)
    start = after[: len(after) - len(after.lstrip())]
    if len(old) > _LONGEST or len(new) > _LONGEST:
        return [(after, True)]
    matcher = difflib.SequenceMatcher(None, old, [word.rstrip() for word in new], autojunk=False)
    pieces = [(start, False)] if start else []
    for kind, _, _, first, last in matcher.get_opcodes():
        if last > first:
            said = "".join(new[first:last])
            if kind == "equal":
                pieces.append((said, False))
            else:  # the blank after a word is not what changed
                pieces.append((said.rstrip(), True))
                if said != said.rstrip():
                    pieces.append((said[len(said.rstrip()) :], False))
    return pieces
