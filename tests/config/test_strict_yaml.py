"""Strict reading: what is in a file, where it stands, and what is refused."""

import itertools
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ianvs.base.errors import ConfigError, Place
from ianvs.config.strict_yaml import parse, read

FILE = Path("file.yaml")


def slips(text):
    """The lines that a user sees."""
    try:
        return [str(problem) for problem in parse(text, FILE).problems]
    except ConfigError as error:
        return [str(problem) for problem in error.problems]


def test_keys_and_values_have_places_of_their_own():
    document = parse("rank:\n  sort_by:\n    - accuracy:  descend\n    - {BWT: ascend}\n", FILE)
    assert document.data == {"rank": {"sort_by": [{"accuracy": "descend"}, {"BWT": "ascend"}]}}
    assert document.keys["rank", "sort_by", 0, "accuracy"] == Place(FILE, 3, 7)
    assert document.values["rank", "sort_by", 0, "accuracy"] == Place(FILE, 3, 18)
    assert document.values["rank", "sort_by", 1] == Place(FILE, 4, 7)
    assert document.keys["rank", "sort_by", 1, "BWT"] == Place(FILE, 4, 8)


def test_what_is_not_in_the_file_stands_at_the_nearest_thing_that_is():
    document = parse("a:\n  b: 1\n", FILE)
    assert document.value_place(("a", "c", 0)) == Place(FILE, 2, 3)
    assert document.key_place(("a", "c")) == Place(FILE, 1, 1)


def test_an_alias_is_expanded_and_found_where_it_stands():
    document = parse("a: &x [1, 2]\nb: *x\n", FILE)
    assert document.data == {"a": [1, 2], "b": [1, 2]}
    assert document.values["b",] == Place(FILE, 2, 4)
    assert document.values["b", 1] == Place(FILE, 1, 11)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc: #-{}[]'\"\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc: ", max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(PLAIN, st.booleans())
def test_what_pyyaml_writes_is_read_back_and_every_part_has_a_place(data, flow):
    document = parse(yaml.safe_dump(data, default_flow_style=flow), FILE)
    assert document.data == data

    def check(value, path):
        assert path in document.values
        if isinstance(value, dict):
            for key, item in value.items():
                assert (*path, key) in document.keys
                check(item, (*path, key))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                check(item, (*path, index))

    check(data, ())


def test_a_duplicate_key_is_refused():
    assert slips("name: a\nrank: 1\nname: b\n") == [
        "file.yaml:3:1: key 'name' is given twice, first on line 1. Keep one."
    ]


def test_the_first_of_two_equal_keys_stays_so_that_the_rest_can_be_checked():
    assert parse("a: 1\na: 2\nb: 3\n", FILE).data == {"a": 1, "b": 3}


def test_a_key_that_is_no_text_is_refused():
    assert slips("1: a\n1: b\n") == [
        "file.yaml:1:1: key 1 is not text. Put it in quotes: '1'.",
        "file.yaml:2:1: key '1' is given twice, first on line 1. Keep one.",
    ]
    assert slips("true: a\n")[0].startswith("file.yaml:1:1: key true is not text.")
    assert slips("?\n: a\n") == ["file.yaml:1:2: key (nothing) is not text. Write 'key: value'."]
    assert slips("? [a]\n: b\n") == ["file.yaml:1:3: a list or mapping is used as a key. Keys are text."]


def test_words_that_were_true_and_false_in_yaml_1_1_are_keys_like_any_other():
    assert parse("on: 1\nno: 2\n'<<': 3\n", FILE).data == {"on": 1, "no": 2, "<<": 3}


def test_all_slips_of_a_file_are_reported_at_once():
    assert len(slips("a: 1\na: 2\n1: x\n<<: {}\nb: !tag 3\n")) == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "3:3: merge keys ('<<') are not understood. Write the keys out."),
        ("a: 1\n---\nb: 2\n", "2:1: a second document begins here. Keep one in each file."),
        (
            "a: !!python/object:os.system x\n",
            "1:4: the tag '!!python/object:os.system' is not understood. Write a plain value.",
        ),
        ("a: !!int x\n", "1:4: this value does not fit its tag !!int. Remove the tag."),
        ("a:\n\t- b\n", "2:1: a tab stands where YAML allows only blanks. Use blanks."),
        ("a: 'x\nb: 1\n", "3:1: the quote opened on line 1 is never closed."),
        ("a: [1, 2\nb: 3\n", "2:2: the '[' opened on line 1 is not closed here. Add a ',' or a ']'."),
        ("a: {b: 1\n", "2:1: the '{' opened on line 1 is not closed here. Add a ',' or a '}'."),
        ("a: [\n", "2:1: a value is missing here. Write it, or close the '[' or '{' before it."),
        (
            "a:\n  b: 1\n c: 2\n",
            "3:2: this does not line up with what began on line 1. Indent entries of one level alike.",
        ),
        (
            "a: 1\n- b\n",
            "2:1: a '- ' entry among the keys that began on line 1. Indent it below the key that it belongs to.",
        ),
        ("a: @x\n", "1:4: a value can't begin with '@'. Put the value in quotes."),
        (
            "a: *.txt\n",
            "1:5: '*' begins an alias, and its anchor is nowhere before. Put a value that begins with '*' in quotes.",
        ),
        (
            "a: *x\n",
            "1:4: '*' begins an alias, and its anchor is nowhere before. Put a value that begins with '*' in quotes.",
        ),
        ("operator: >=\n", "1:12: '>' and '|' begin a block of text in YAML. Put an operator in quotes, as in '>='."),
        ('a: "C:\\data"\n', "1:8: a backslash in double quotes begins an escape. Use single quotes, or write '\\\\'."),
        (
            "a: 1\n  b: 2\n",
            "2:4: unexpected ':'. Put a value with ': ' in quotes, or mend the line before: its ':', its indentation.",
        ),
        ("a: 1\nb: x\x00y\n", "2:5: the character U+0000 is not allowed in YAML. Remove it."),
        ("[" * 1000, "1:65: nested more than 64 levels deep. Configurations are flat."),
        ("a: &x [*x]\n", "1:8: an alias that contains itself. Write the value out."),
        (f"a: {'9' * 5000}\n", "1:4: a number of too many digits. Put it in quotes if it is text."),
    ],
)
def test_what_is_not_understood_is_one_readable_line(text, line):
    assert slips(text) == [f"file.yaml:{line}"]


def test_an_explicit_text_tag_makes_text():
    assert parse("a: !!str 1\nb: !!float 3\n", FILE).data == {"a": "1", "b": 3.0}


def test_an_alias_bomb_is_refused_quickly():
    names = "abcdefghi"
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in itertools.pairwise(names)]
    started = time.process_time()
    (line,) = slips("\n".join(lines))
    assert "more than 100000 values once aliases are expanded" in line
    assert time.process_time() - started < 5


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n"])
def test_an_empty_file_is_refused(text):
    assert slips(text) == ["file.yaml: the file is empty."]


def test_files_that_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nname: caf" + b"\xe9\n")
    (tmp_path / "big.yaml").write_bytes(b"# " + b"x" * 2_000_000)
    for name, line in {
        "folder": "folder: this is a folder. Name a yaml file in it.",
        "gone.yaml": "gone.yaml: there is no such file.",
        "latin.yaml": "latin.yaml:2:10: the file is not UTF-8 text. Save it as UTF-8.",
        "big.yaml": "big.yaml: 2 MB is too much for a configuration file. Is it the right file?",
    }.items():
        with pytest.raises(ConfigError) as caught:
            read(Path(name))
        assert list(map(str, caught.value.problems)) == [line]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(tmp_path / "a.yaml").data == {"a": 1}
