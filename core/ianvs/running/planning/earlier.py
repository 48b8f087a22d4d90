"""Cases that a job has stored, and that would be others now."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ianvs.base.errors import one_line


@dataclass(frozen=True)
class EarlierCase:
    """A case that was made before something changed.

    differences: what changed, in words. same_exam: whether none of that belongs to the exam.
    """

    case_id: str
    differences: tuple[str, ...]
    same_exam: bool

    @property
    def said(self) -> str:
        """As in "made by an earlier plugin.py"."""
        sources = [one.removeprefix("source ") for one in self.differences if one.startswith("source ")]
        others = [one for one in self.differences if not one.startswith("source ")]
        by = [f"by an earlier {one_line(one.split(', '), 3)}" for one in sources]
        return " and ".join([*by, *([f"before these changed: {', '.join(others)}"] if others else [])])


def said_of_earlier(found: Iterable[EarlierCase]) -> list[str]:
    """A sentence for each change, as "12 cases were made by an earlier plugin.py"."""
    counts = Counter(one.said for one in found)
    return [f"{count} case{' was' if count == 1 else 's were'} made {said}" for said, count in counts.items()]
