"""Text of authors where it is shown: nothing in it acts, and what can be seen stays as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.visible_text import visible
from ianvs.results.report.charts.svg import tag
from ianvs.results.report.document import Cell, TableColumn
from ianvs.results.report.latex import escaped
from ianvs.results.report.markdown import aligned


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("a\rb\x08c\x9bd", "a\\rb\\x08c\\x9bd"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("\u2066a\u2069 z\u200bero\ufeff\u00ad", "\\u2066a\\u2069 z\\u200bero\\ufeff\\xad"),
        ("\ud800 \u2028", "\\ud800 \\u2028"),
        ("line\n\tnext, naïve ± 東京 \u00a0 שלום e\u0301", "line\n\tnext, naïve ± 東京 \u00a0 שלום e\u0301"),
    ],
)
def test_what_acts_or_is_not_seen_is_written_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_of_it_is_left_and_to_show_it_again_changes_nothing(text: str) -> None:
    shown = visible(text)
    assert not {unicodedata.category(one) for one in shown if one not in "\n\t"} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(shown) == shown


NAME = "ewc\x1b[31m\u202etxt\u200b"


def test_each_form_of_a_report_shows_a_name_so() -> None:
    column = TableColumn(NAME, (Cell(NAME, NAME),))
    shown = [aligned([column], "github", str), escaped(NAME), str(tag("text", NAME, title=NAME))]
    assert not any(bad in text for text in shown for bad in "\x1b\u202e\u200b")
    assert all("x1b" in text and "u202e" in text and "u200b" in text for text in shown)
