"""Conditions of `--only`: rows as tables and charts name them."""

import pytest

from ianvs.base.types import TestCase
from ianvs.running.planning.case_conditions import fits


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("replay 200", True),
        ("replay .5", True),
        ("replay capacity 200, rate .5", True),
        ("replay capacity 200, rate .6", False),
        ("replay 100", False),
        ("ewc 200", False),
        ("replay 200,seed=1", False),
    ],
)
def test_a_row_is_chosen_by_the_name_that_tables_print(wanted: str, expected: bool) -> None:
    case = TestCase("abcdef", "row", "replay", "incrementallearning", (), {"capacity": 200, "rate": 0.5}, 0)
    assert fits(case, wanted) is expected
