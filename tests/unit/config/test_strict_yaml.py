"""Strict reading: what is in a file, where it stands, and what is refused."""

import itertools
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.errors import ConfigError, Location
from ianvs.config.strict_yaml import parse, read
from tests.errors import errors_of, recorded

FILE = Path("file.yaml")


def test_merge_keys_add_what_a_mapping_lacks():
    text = (
        "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: *a, y: 5}\nd: {<<: [*a, *b], w: 6}\ne: {<<: {<<: *b, y: 7}}\n"
    )
    data = parse(text, FILE).data
    assert data["c"] == {"x": 1, "y": 5}
    assert data["d"] == {"w": 6, "x": 1, "y": 2, "z": 4}
    assert data["e"] == {"y": 7, "z": 4}


def slips(text):
    """Code and location of what is wrong; messages are compared with the snapshot."""
    try:
        return recorded(parse(text, FILE).problems)
    except ConfigError as error:
        return recorded(error.problems)


def test_keys_and_values_have_places_of_their_own():
    document = parse("rank:\n  sort_by:\n    - accuracy:  descend\n    - {BWT: ascend}\n", FILE)
    assert document.data == {"rank": {"sort_by": [{"accuracy": "descend"}, {"BWT": "ascend"}]}}
    assert document.keys["rank", "sort_by", 0, "accuracy"] == Location(FILE, 3, 7)
    assert document.values["rank", "sort_by", 0, "accuracy"] == Location(FILE, 3, 18)
    assert document.values["rank", "sort_by", 1] == Location(FILE, 4, 7)
    assert document.keys["rank", "sort_by", 1, "BWT"] == Location(FILE, 4, 8)


def test_what_is_not_in_the_file_stands_at_the_nearest_thing_that_is():
    document = parse("a:\n  b: 1\n", FILE)
    assert document.value_place(("a", "c", 0)) == Location(FILE, 2, 3)
    assert document.key_place(("a", "c")) == Location(FILE, 1, 1)


def test_an_alias_is_expanded_and_found_where_it_stands():
    document = parse("a: &x [1, 2]\nb: *x\n", FILE)
    assert document.data == {"a": [1, 2], "b": [1, 2]}
    assert document.values["b",] == Location(FILE, 2, 4)
    assert document.values["b", 1] == Location(FILE, 1, 11)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc: #-{}[]'\"\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc: ", max_size=4), inner, max_size=3),
    max_leaves=12,
)


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
    assert slips("name: a\nrank: 1\nname: b\n") == [("duplicate-key", "file.yaml:3:1")]


def test_the_first_of_two_equal_keys_stays_so_that_the_rest_can_be_checked():
    assert parse("a: 1\na: 2\nb: 3\n", FILE).data == {"a": 1, "b": 3}


def test_a_key_that_is_no_text_is_refused():
    assert slips("1: a\n1: b\n") == [("unsupported-yaml", "file.yaml:1:1"), ("duplicate-key", "file.yaml:2:1")]
    assert slips("true: a\n") == [("unsupported-yaml", "file.yaml:1:1")]
    assert slips("?\n: a\n") == [("unsupported-yaml", "file.yaml:1:2")]
    assert slips("? [a]\n: b\n") == [("unsupported-yaml", "file.yaml:1:3")]


def test_words_that_were_true_and_false_in_yaml_1_1_are_keys_like_any_other():
    assert parse("on: 1\nno: 2\n'<<': 3\n", FILE).data == {"on": 1, "no": 2, "<<": 3}


def test_all_slips_of_a_file_are_reported_at_once():
    assert len(slips("a: 1\na: 2\n1: x\n<<: 5\nb: !tag 3\n")) == 4


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("a: &x [1]\nc:\n  <<: *x\n", "unsupported-yaml", "3:3"),
        ("a: 1\n---\nb: 2\n", "unsupported-yaml", "2:1"),
        ("a: !!python/object:os.system x\n", "unsupported-yaml", "1:4"),
        ("a: !!int x\n", "unsupported-yaml", "1:4"),
        ("a:\n\t- b\n", "invalid-yaml", "2:1"),
        ("a: 'x\nb: 1\n", "invalid-yaml", "3:1"),
        ("a: [1, 2\nb: 3\n", "invalid-yaml", "2:2"),
        ("a: {b: 1\n", "invalid-yaml", "2:1"),
        ("a: [\n", "invalid-yaml", "2:1"),
        ("a:\n  b: 1\n c: 2\n", "invalid-yaml", "3:2"),
        ("a: 1\n- b\n", "invalid-yaml", "2:1"),
        ("a: @x\n", "invalid-yaml", "1:4"),
        ("a: *.txt\n", "invalid-yaml", "1:5"),
        ("a: *x\n", "invalid-yaml", "1:4"),
        ("operator: >=\n", "invalid-yaml", "1:12"),
        ('a: "C:\\data"\n', "invalid-yaml", "1:8"),
        ("a: 1\n  b: 2\n", "invalid-yaml", "2:4"),
        ("a: 1\nb: x\x00y\n", "invalid-encoding", "2:5"),
        ("[" * 1000, "unsupported-yaml", "1:65"),
        ("a: &x [*x]\n", "unsupported-yaml", "1:8"),
        (f"a: {'9' * 5000}\n", "out-of-range", "1:4"),
    ],
)
def test_what_is_not_understood_is_one_readable_line(text, code, at):
    assert slips(text) == [(code, f"file.yaml:{at}")]


def test_an_explicit_text_tag_makes_text():
    assert parse("a: !!str 1\nb: !!float 3\n", FILE).data == {"a": "1", "b": 3.0}


def test_an_alias_bomb_is_refused_quickly():
    names = "abcdefghi"
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in itertools.pairwise(names)]
    started = time.process_time()
    [(code, _)] = slips("\n".join(lines))
    assert code == "unsupported-yaml"
    assert time.process_time() - started < 5


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n"])
def test_an_empty_file_is_refused(text):
    assert slips(text) == [("empty-file", "file.yaml")]


def test_files_that_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nname: caf" + b"\xe9\n")
    (tmp_path / "big.yaml").write_bytes(b"# " + b"x" * 2_000_000)
    for name, error in {
        "folder": ("wrong-path-type", "folder"),
        "gone.yaml": ("missing-file", "gone.yaml"),
        "latin.yaml": ("invalid-encoding", "latin.yaml:2:10"),
        "big.yaml": ("unreadable-file", "big.yaml"),
    }.items():
        assert errors_of(read, Path(name)) == [error]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(tmp_path / "a.yaml").data == {"a": 1}
