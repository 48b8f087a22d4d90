"""What stands below a leaderboard of how the exam was kept from the learners."""

from __future__ import annotations

import pytest

from ianvs.base.types import SEALING_VERSION, Sealing
from ianvs.results.report.statements import sealing_note
from ianvs.store import as_record
from tests.errors import printed

WHOLE = Sealing("normal", "forks", True, version=SEALING_VERSION)
OPEN = Sealing("open", "forks", True, ("writes",), version=SEALING_VERSION)
OLD = Sealing("normal", "forks", True)


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        ([WHOLE], ""),
        ([Sealing("strict", "new processes", True, version=SEALING_VERSION)], ""),
        ([WHOLE, OPEN], "sealing: open"),
        ([Sealing("strict", "forks", True, ("signals", "writes"), version=SEALING_VERSION)], ""),
        ([Sealing("normal", "forks", True, ("a_wall_to_come",), version=SEALING_VERSION)], "a_wall_to_come"),
        ([WHOLE, Sealing("none")], ""),
    ],
    ids=["whole", "strict", "open", "lacks two", "lacks one of a later version", "none"],
)
def test_it_begins_with_the_weakest_of_all_cases(found: list[Sealing], missing: str) -> None:
    note = sealing_note(set(found), "ianvs")
    assert missing in note
    printed(note)


def test_rules_of_before_are_named() -> None:
    assert "version 1" in sealing_note({OLD}, "ianvs") and "version 1" in sealing_note({OLD, WHOLE}, "ianvs")
    assert sealing_note({OLD}, "ianvs") != sealing_note({OLD, WHOLE}, "ianvs")
    assert "version" not in sealing_note({WHOLE}, "ianvs")


def test_what_was_stored_before_is_read_and_counts_as_the_first_version() -> None:
    assert as_record(Sealing, {"how": "strict", "copies": "forks", "closed": True}, "x").version == 1
    assert hash(as_record(Sealing, {**vars(OPEN), "missing": ["writes"]}, "x")) == hash(OPEN)
