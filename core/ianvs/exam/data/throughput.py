"""Throughput and remaining time of reading, as text."""

REPORT_SECONDS = 10.0  # between two reports


def progress_text(done: int, total: int, rate: float) -> str:
    """Return "1.2 of 193 GB, 80 MB/s, about 40 min left". rate: bytes per second."""
    left = (total - done) / max(1, rate)
    time_left = f"{left / 60:.0f} min" if left >= 120 else f"{left:.0f} s"
    return f"{format_bytes(done)} of {format_bytes(total)}, {format_bytes(rate)}/s, about {time_left} left"


def format_bytes(count: float) -> str:
    """Return a number of bytes for people: "193 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            break
        count, unit = count / 1000, {"bytes": "kB", "kB": "MB", "MB": "GB", "GB": "TB"}[unit]
    return f"{count:.3g} {unit}"
