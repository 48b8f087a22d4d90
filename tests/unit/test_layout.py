"""How the code is laid out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_name_of_a_module_occurs_twice() -> None:
    found = [path for top in ("core/ianvs", "testenv", "testalgorithms") for path in (ROOT / top).rglob("*.py")]
    # A link is not followed twice; every method has a basemodel.py, as in Ianvs.
    own = {path.resolve() for path in found}
    names = Counter(path.name for path in own if path.name not in ("__init__.py", "basemodel.py"))
    assert [name for name, count in names.items() if count > 1] == []
