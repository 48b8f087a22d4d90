"""Throughput and remaining time of reading, as text."""

import time

_SAID = 10.0  # seconds between two reports


class Throughput:
    """Reports the progress of reading as text, at most every few seconds."""

    def __init__(self, done: int = 0) -> None:
        """done: bytes that were read before."""
        self._before = done
        self._began = self._last = time.monotonic()

    def text(self, done: int, total: int) -> str:
        """Return "1.2 of 193 GB, 80 MB/s, about 40 min left"; "" if the last report is too recent."""
        now = time.monotonic()
        if now - self._last < _SAID:
            return ""
        self._last = now
        rate = max(1, done - self._before) / (now - self._began)
        left = (total - done) / rate
        time_left = f"{left / 60:.0f} min" if left >= 120 else f"{left:.0f} s"
        return f"{format_bytes(done)} of {format_bytes(total)}, {format_bytes(rate)}/s, about {time_left} left"


def format_bytes(count: float) -> str:
    """Return a number of bytes for people: "193 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            break
        count, unit = count / 1000, {"bytes": "kB", "kB": "MB", "MB": "GB", "GB": "TB"}[unit]
    return f"{count:.3g} {unit}"
