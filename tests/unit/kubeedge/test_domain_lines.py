"""Which lines of an index belong to the domains of `using`."""

from __future__ import annotations

import pytest

from ianvs.kubeedge.domain_lines import domain_lines, without_domains

USING = ("CS", "SYN")


def test_a_domain_is_a_third_column_or_a_folder_of_the_first_path() -> None:
    column = ["a/1.png x/1.png SYN", "a/2.png x/2.png CS", "a/3.png x/3.png CR"]
    assert domain_lines(column, USING) == {"CS": ["a/2.png x/2.png"], "SYN": ["a/1.png x/1.png"]}
    assert without_domains(column, USING) == ["a/1.png x/1.png", "a/2.png x/2.png", "a/3.png x/3.png"]
    folders = ["rgb/SYN/1.png y/1.png", "CS/2.png y/2.png", "CR/3.png CS/3.png"]
    assert domain_lines(folders, USING) == {"CS": ["CS/2.png y/2.png"], "SYN": ["rgb/SYN/1.png y/1.png"]}
    assert without_domains(folders, USING) == folders


@pytest.mark.parametrize(
    "lines",
    [["a/1.png 0", "a/2.png 1"], ["rgb/1.png depth/1.png label/1.png"], ["CS.png 0"], [], [""]],
    ids=["no domain", "three paths", "a name that is no folder", "no line", "an empty line"],
)
def test_other_lines_name_no_domain_and_stay_as_they_are(lines: list[str]) -> None:
    assert domain_lines(lines, USING) == {}
    assert without_domains(lines, USING) == lines
