"""The line under a leaderboard that says how well the exam was sealed."""

from __future__ import annotations

from collections.abc import Collection

from ianvs.base.types import Sealing

__all__ = ["sealing_note"]


def sealing_note(found: Collection[Sealing], contract: str) -> str:
    """Of the weakest of all cases; "" where none has ended. contract: of the plugins."""
    if not found:
        return ""
    if any(one.how == "handed" for one in found):
        return (
            f"Not sealed: plugins under `contract: {contract}` are handed the exam's files; metrics ran in processes "
            "of their own (docs/trust.md)."
        )
    if any(one.how == "none" for one in found):
        return "Not sealed: learners ran in the process that holds the exam (docs/trust.md)."
    strictly = "Strictly sealed" if all(one.how == "strict" for one in found) else "Sealed"
    said = [
        f"{strictly}: learners ran in processes of their own, which were handed one round's data at a time",
        "the kernel closed the files of the exam, the data and other cases to them"
        if all(one.closed for one in found)
        else "but the kernel did not close the files of the exam to them (no Landlock)",
        "answers came from copies that were thrown away"
        if all(one.copies != "none" for one in found)
        else "answers came from copies that were thrown away, but for the learners that are marked",
    ]
    return "; ".join(said) + " (docs/trust.md)."
