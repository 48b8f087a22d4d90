"""reports/ianvs_examples: each example that does not finish has a sentence by hand, and the table says the same."""

from __future__ import annotations

import csv
from pathlib import Path

REPORT = Path(__file__).parents[3] / "reports" / "ianvs_examples"


def test_the_cause_why_an_example_does_not_finish_is_given_by_hand_too():
    with (REPORT / "examples.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["job"]: row for row in csv.DictReader(file) if row["finishes"] != "True"}
    lines = (REPORT / "reasons.md").read_text(encoding="utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| examples/")]
    by_hand = {job: (cause, why) for job, cause, why in cells}
    assert len(rows) > 20 and set(by_hand) == set(rows)
    assert all(why.endswith(".") for _, why in by_hand.values())
    for job, row in rows.items():
        assert row["cause"].split()[0].rstrip(",") == by_hand[job][0], job
