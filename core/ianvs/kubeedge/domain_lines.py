"""The domains that `using` names, and which lines of an index file belong to each."""

from collections.abc import Sequence
from pathlib import PurePosixPath


def has_domain_column(lines: Sequence[str], using: Sequence[str]) -> bool:
    """Return whether every line has three or more words and the last one is a domain of `using` in at least one."""
    rows = [line.split() for line in lines if line.strip()]
    return bool(rows) and all(len(row) > 2 for row in rows) and any(row[-1] in using for row in rows)


def without_domains(lines: Sequence[str], using: Sequence[str]) -> list[str]:
    """Return the lines without their column of domains, which plugins do not expect."""
    if not has_domain_column(lines, using):
        return list(lines)
    return [line.strip() and line.rsplit(maxsplit=1)[0] for line in lines]


def domain_lines(lines: Sequence[str], using: Sequence[str]) -> dict[str, list[str]]:
    """Cut an index by domain.

    Args:
        lines: As they are written, with the column of domains if there is one.
        using: The domains, in their order.

    Returns:
        The lines of each domain, without that column. The domain of a line is the last of its three or more words,
        else a folder of that name in its first path. Lines of other domains are left out. {} where no line names a
        domain.
    """
    column = has_domain_column(lines, using)
    parts: dict[str, list[str]] = {name: [] for name in using}
    for line, plain in zip(lines, without_domains(lines, using), strict=True):
        words = line.split()
        for name in parts.keys() & set(words[-1:] if column else PurePosixPath(words[0]).parts[:-1] if words else ()):
            parts[name].append(plain)
    return parts if any(parts.values()) else {}
