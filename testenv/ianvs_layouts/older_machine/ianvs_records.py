"""Lines about substituted resources and changed weights, in the folder at IANVS_RECORDS."""

import os


def record(topic: str, text: str) -> None:
    """Add a line to the file `topic`; does nothing if IANVS_RECORDS is not set."""
    folder = os.environ.get("IANVS_RECORDS")
    if folder:
        with open(os.path.join(folder, topic), "a", encoding="utf-8") as file:  # noqa: PTH118, PTH123
            file.write(f"{text}\n")
