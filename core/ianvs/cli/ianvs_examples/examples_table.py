"""The table of `ianvs examples`: as Markdown, as CSV, and as a badge."""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ianvs.base.errors import IanvsError, shown_path
from ianvs.cli.ianvs_examples.one_example import Example
from ianvs.results.comparing.comparison_text import records_csv

_COLUMNS = {
    "job": "job",
    "paradigm": "paradigm",
    "starts": "starts",
    "finishes": "finishes",
    "scores": "scores on tiny data",
    "weights": "weights",
    "random_weights": "random weights for",
    "changed": "changed in the copy",
    "environment": "installed for it",
    "cause": "cause",
    "missing": "what is missing",
}


def read_table(file: Path) -> dict[str, Example]:
    """Return the rows of an examples.csv by job.

    Raises:
        IanvsError: The file is missing, or is not such a table.
    """
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            table = csv.DictReader(stream)
            if "job" not in (table.fieldnames or ()):
                raise ValueError("no column job")
            return {row["job"]: _row(row) for row in table}
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError, csv.Error) as error:
        message = f"{shown_path(file)} is no table of `ianvs examples` ({error}). Name an examples.csv."
        raise IanvsError(message, code="missing-file" if isinstance(error, OSError) else "invalid-record") from None


def _row(texts: Mapping[str, str]) -> Example:
    values: dict[str, Any] = {name: texts[name] for name in ("job", "paradigm", "missing")}
    values |= {name: texts.get(name, "") for name in ("scores", "changed", "random_weights", "environment")}
    values["cause"] = texts["cause"] if "cause" in texts else texts["whose"]  # of an earlier version
    values["weights"] = texts.get("weights", "?")  # tables of earlier versions lack this column
    values |= {name: texts[name] == "True" for name in ("starts", "finishes")}
    return Example(**values, configurations=int(texts["configurations"]), seconds=float(texts["seconds"]))


def new_failures(rows: Iterable[Example], baseline: Mapping[str, Example]) -> list[Example]:
    """Return the jobs that no longer start or finish."""
    compared = ((row, baseline[row.job]) for row in rows if row.job in baseline)
    return [row for row, then in compared if (then.finishes and not row.finishes) or (then.starts and not row.starts)]


def write_table(rows: Sequence[Example], folder: Path, tried: str) -> str:
    """Write examples.md, examples.csv and badge.json (an endpoint of shields.io) to `folder` and return the totals in
    words.

    tried: what was tried, such as the commit.
    """
    finished = sum(row.finishes for row in rows)
    starting = sum(row.starts for row in rows)
    total = f"{finished} of {len(rows)} jobs finish, {starting} start"
    lacking = Counter(row.cause for row in rows if row.cause)
    because = ", ".join(f"{owner} {count}" for owner, count in lacking.most_common())
    about = f"{total}. Causes of failures: {because}." if because else f"{total}."
    lines = [
        f"# Examples of {tried}",
        "",
        "Written by `ianvs examples`. Data and weights are tiny and made up: scores say that it works, no more.",
        "",
        about,
        "",
        f"| {' | '.join(_COLUMNS.values())} |",
        f"|{'---|' * len(_COLUMNS)}",
        *(_line(row) for row in rows),
    ]
    (folder / "examples.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "examples.csv").write_text(records_csv(map(asdict, rows)), encoding="utf-8")
    color = "brightgreen" if finished == len(rows) else "yellow" if finished else "red"
    badge = {"schemaVersion": 1, "label": "examples", "message": f"{finished}/{len(rows)} finish", "color": color}
    (folder / "badge.json").write_text(json.dumps(badge) + "\n", encoding="utf-8")
    return about


def _line(row: Example) -> str:
    values = ({True: "yes", False: "no"}.get(value, value) for value in (getattr(row, name) for name in _COLUMNS))
    return f"| {' | '.join(str(value).replace('|', '/') for value in values)} |"
