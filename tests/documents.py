"""What the documents show, to be run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["python_of"]

DOCUMENTS = Path(__file__).parents[1] / "docs"


def python_of(document: str) -> str:
    """The one file of python code in a document."""
    [code] = re.findall(r"```python\n(.*?)```", (DOCUMENTS / document).read_text(encoding="utf-8"), re.DOTALL)
    return str(code)
