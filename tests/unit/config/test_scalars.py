"""Plain scalars mean what YAML 1.2 says."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.strict_yaml import parse, resolve_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1.e3", 1000.0),
        (".5", 0.5),
        ("-1E+4", -10000.0),
        ("+.5e1", 5.0),
        ("1.", 1.0),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("-12", -12),
        ("+3", 3),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("null", None),
        ("Null", None),
        ("~", None),
        ("", None),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("+.Inf", math.inf),
    ],
)
def test_numbers_truth_and_nothing_are_those_of_the_core_schema(text, value):
    resolved = resolve_scalar(text)
    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number_has_three_spellings(text):
    assert math.isnan(resolve_scalar(text))


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "yes",
        "on",
        "off",
        "No",
        "YES",
        "y",
        "n",
        "10:30",
        "1:20:30",
        "2024-01-01",
        "1_000",
        "0b101",
        "0o8",
        "0x",
        "tRUE",
        "nULL",
        "nan",
        "inf",
        ".iNF",
        "e3",
        "1e",
        "1e+",
        ".",
        "-",
        "+",
        "1.2.3",
        "--1",
        "0x1G",
        "-0x1F",
        "١٢",
        "<<",
        "=",
    ],
)
def test_what_only_looks_special_is_text(text):
    assert resolve_scalar(text) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_in_any_notation_is_the_same_float(number):
    for text in (repr(number), f"{number:.17e}", f"{number:.17E}", f"{number:.17g}"):
        assert float(resolve_scalar(text)) == number


@given(st.integers())
def test_an_integer_in_any_base_is_the_same_integer(number):
    assert resolve_scalar(str(number)) == number
    assert resolve_scalar(hex(abs(number))) == abs(number)
    assert resolve_scalar(oct(abs(number))) == abs(number)


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_./:-]*", fullmatch=True))
def test_a_plain_word_stays_text(word):
    if word.lower() not in ("true", "false", "null"):
        assert resolve_scalar(word) == word


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=20))
def test_quoted_text_is_never_anything_else(tmp_path_factory, text):
    quoted = text.replace("'", "''")
    assert parse(f"a: '{quoted}'", tmp_path_factory.getbasetemp()).data == {"a": text}
