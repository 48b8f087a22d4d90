"""The known name that somebody most probably meant by a misspelt one."""

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

_FEWEST = 4  # characters of a name that may be misspelt
_SHORT = 4  # names of up to so many characters must share their first letter or their end with the proposal
_PREFIX = 5  # characters of a name that is the beginning of the other; among few choices _SHORT are enough
_FEW_CHOICES = 40  # of up to so many choices, similar letters are a sign of a misspelling; among more, of chance
_MIN_RATIO = 0.76  # of difflib, from which letters are similar


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Find the choice that `name` is most probably a misspelling of.

    A choice is near if it differs in few letters (one, or one of four), if one of the two names is the beginning of the
    other, or if one has all words of the other. Of few choices, one of similar letters is near, too. Case, hyphens,
    underscores, dots and blanks make no difference.

    Args:
        name: The unknown name.
        choices: The known names. Of equally near ones the first wins; of those that differ only in case, the last.

    Returns:
        The choice, or None if none is near.
    """
    return _nearest(name, tuple(choices))


@lru_cache(64)  # an error may be that of many rows
def _nearest(name: str, choices: tuple[str, ...]) -> str | None:
    folded = {_plain(choice): choice for choice in choices}
    given = _plain(name)
    if given in folded:
        return folded[given]
    few = len(folded) <= _FEW_CHOICES
    ranks = ((_rank(name, given, choice, plain, few), plain) for plain, choice in folded.items())
    ranked = [(rank, plain) for rank, plain in ranks if rank is not None]
    if ranked:
        return folded[min(ranked, key=lambda each: each[0])[1]]
    alike = difflib.get_close_matches(given, folded, 1, _MIN_RATIO) if few else ()
    return folded[alike[0]] if alike else None


def _rank(name: str, given: str, choice: str, plain: str, few: bool) -> tuple[int, float] | None:
    """Return how near `choice` is to `name`, as (type of match, distance); the smallest is the nearest.

    Types of match: 0, a misspelling; 1, `name` is the beginning of `choice`; 2, one has all words of the other; 3,
    `choice` is the beginning of `name`. None if `choice` is not near.
    """
    most = max(1, max(len(given), len(plain)) // 4)
    begins_alike = given[:1] == plain[:1] if len(given) <= _SHORT else True
    if len(given) < _FEWEST:
        begins_alike = begins_alike and len(given) == len(plain) > 2 and (few or sorted(given) == sorted(plain))
    # An edit changes two letters of the set at most.
    if abs(len(given) - len(plain)) <= most and len({*given} ^ {*plain}) <= 2 * most:
        ends_so = len(given) >= _FEWEST and len(plain) > 2 and given.endswith(plain)
        if (begins_alike or ends_so) and (distance := edit_distance(given, plain)) <= most:
            return 0, distance / max(len(given), len(plain))
    if len(given) >= (_SHORT if few else _PREFIX) and plain.startswith(given):
        return 1, len(plain) / len(given)
    ours, theirs = _words(name), _words(choice)
    if ours and theirs and (set(theirs) < set(ours) or (set(ours) < set(theirs) and len(ours) > 1)):
        return 2, abs(len(ours) - len(theirs)) + (0 if ours[-1] == theirs[-1] else 0.5)
    if len(plain) >= _PREFIX and given.startswith(plain):
        return 3, len(given) / len(plain)
    return None


def _plain(text: str) -> str:
    return re.sub(r"[-_. ]", "", text.casefold()) or text


@lru_cache(4096)
def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text.casefold()) if word]


def edit_distance(name: str, other: str) -> int:
    """Return the fewest insertions, deletions, substitutions and swaps of neighbours that turn `name` into `other`."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(name, 1):
        row = [i]
        for j, theirs in enumerate(other, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != theirs)))
            if i > 1 and j > 1 and letter == other[j - 2] and name[i - 2] == theirs:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]
