"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """state: "wrong" would break a run; "note" limits what can be done here. remedy: what to do, a sentence or more."""

    state: Literal["ok", "note", "wrong"]
    said: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.state:<6}{self.said}" + (f"\n      {self.remedy}" if self.remedy else "")
