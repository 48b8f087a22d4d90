"""Coverage by wing counts the lines that the chosen tests ran."""

from tests.slips import Coverage
from tests.wing_coverage import count_lines


def test_only_lines_that_the_chosen_tests_ran_count():
    ran = {"core/ianvs/store/files.py": {1: frozenset({"tests/unit/a.py::b"}), 2: frozenset({"tests/nightly/a.py::b"})}}
    coverage = Coverage(ran, {}, {})
    statements = {"core/ianvs/store/files.py": {1, 2, 3}, "core/ianvs/api.py": {7}}
    assert count_lines(coverage, ["tests/unit"], statements) == {".": [0, 1], "store": [1, 3]}
    assert count_lines(coverage, ["tests/"], statements)["store"] == [2, 3]
