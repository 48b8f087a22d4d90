"""What stands below a leaderboard of how the exam was kept from the learners."""

from __future__ import annotations

import pytest

from ianvs.base.types import SEALING_VERSION, Sealing
from ianvs.results.report.statements import sealing_note
from ianvs.store import as_record

WHOLE = Sealing("normal", "forks", True, version=SEALING_VERSION)
OPEN = Sealing("open", "forks", True, ("writes",), version=SEALING_VERSION)
OLD = Sealing("normal", "forks", True)


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        ([WHOLE], "Sealed: "),
        ([Sealing("strict", "new processes", True, version=SEALING_VERSION)], "Strictly sealed: "),
        ([WHOLE, OPEN], "Not sealed: `sealing: open`"),
        (
            [Sealing("strict", "forks", True, ("signals", "writes"), version=SEALING_VERSION)],
            "Not sealed against signals that end other processes and what learners leave outside of their own ",
        ),
        (
            [Sealing("normal", "forks", True, ("a wall of a name to come",), version=SEALING_VERSION)],
            "Not sealed against a wall",
        ),
        ([WHOLE, Sealing("none")], "Not sealed: "),
    ],
)
def test_it_begins_with_the_weakest_of_all_cases(found: list[Sealing], begins: str) -> None:
    assert sealing_note(set(found), "ianvs").startswith(begins)


def test_rules_of_before_are_named() -> None:
    assert "the cases were sealed by version 1" in sealing_note({OLD}, "ianvs")
    assert "some cases were sealed by version 1" in sealing_note({OLD, WHOLE}, "ianvs")
    assert "version" not in sealing_note({WHOLE}, "ianvs")


def test_what_was_stored_before_is_read_and_counts_as_the_first_version() -> None:
    assert as_record(Sealing, {"how": "strict", "copies": "forks", "closed": True}, "x").version == 1
    assert hash(as_record(Sealing, {**vars(OPEN), "missing": ["writes"]}, "x")) == hash(OPEN)
