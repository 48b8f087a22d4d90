"""Text of authors as it may be shown: nothing in it moves a cursor, turns around what follows, or has no width."""

import unicodedata

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))  # controls, format marks, halves of surrogates, separators of lines
_LAYOUT = frozenset("\n\t")


def visible(text: str) -> str:
    r"""Write characters that are not seen as escapes: those of terminals, bidirectional and zero-width marks.

    Args:
        text: A name or a message that a plugin, its data or a file has chosen.

    Returns:
        The text with `\x1b` or `\u202e` in place of such characters. Ends of lines and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if character not in _LAYOUT and unicodedata.category(character) in _UNSEEN
        else character
        for character in text
    )
