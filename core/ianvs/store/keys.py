"""Names derived from content."""

import hashlib
import json


def canonical(value: object) -> str:
    """Return the canonical json text of `value`, independent of key order and the spelling of numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def digest(value: object) -> str:
    """Return 20 hexadecimal digits of the sha256 of `value`'s canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:20]
