"""The words by which a column or a folder says of which part of a dataset a sample is."""

from collections.abc import Iterable, Mapping

TRAIN_WORDS = ("train", "training")
TEST_WORDS = ("test", "testing")
VALIDATION_WORDS = ("val", "valid", "validation", "dev")
_ROLES = {
    **dict.fromkeys(TRAIN_WORDS, "train"),
    **dict.fromkeys(TEST_WORDS, "test"),
    **dict.fromkeys(VALIDATION_WORDS, "validation"),
}
LEFT_OUT = ""


def role_of(word: str) -> str | None:
    """Return "train", "test" or "validation" for a word of any case, None for any other word."""
    return _ROLES.get(word.strip().casefold())


def parts_by_word(words: Iterable[str]) -> Mapping[str, str] | None:
    """Return the part, "train" or "test", of each word; None if one of them names no part.

    Validation samples are the test part of data without test samples. Beside test samples they are `LEFT_OUT`.
    """
    roles = {word: role_of(word) for word in words}
    validation = LEFT_OUT if "test" in roles.values() else "test"
    parts = {word: validation if role == "validation" else role for word, role in roles.items()}
    named = {word: part for word, part in parts.items() if part is not None}
    return named if len(named) == len(parts) else None
