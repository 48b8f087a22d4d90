"""What the documents show, to be run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["DOCUMENTS", "blocks", "python_of"]

DOCUMENTS = Path(__file__).parents[1] / "docs"


def blocks(document: str, section: str, language: str) -> list[str]:
    """The blocks of a language in a section of a document; section: its heading, "" for the whole document."""
    text = (DOCUMENTS / document).read_text(encoding="utf-8")
    if section:
        [text] = [part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith(f"{section}\n")]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def python_of(document: str, section: str = "") -> str:
    """The one file of python code in a section of a document."""
    [code] = blocks(document, section, "python")
    return code
