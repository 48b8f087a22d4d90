"""A command is found without the others, which are neither imported nor made."""

from __future__ import annotations

import pytest

from ianvs.cli.command_line import GROUPS, command_line
from ianvs.cli.parser import subparsers_of


@pytest.mark.parametrize("names", GROUPS)
def test_a_group_adds_the_commands_that_it_names(names: str) -> None:
    first, *_ = names.split()
    assert list(subparsers_of(command_line(first))) == names.split()


def test_without_a_name_there_are_all_commands_in_the_order_of_the_help() -> None:
    assert list(subparsers_of(command_line())) == " ".join(GROUPS).split()
