"""Names made from content."""

import hashlib
import json


def canonical(value: object) -> str:
    """Return the one json text of `value`: key order and the spelling of numbers don't show."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def digest(value: object) -> str:
    """20 hexadecimal digits of the sha256 of `value`'s canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:20]
