"""What a number is in a table: the same to all readers, and no more than people mean."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ianvs.config.spec import DatasetSpec, DataTypeSpec, SourceSpec
from ianvs.exam.data import csv_files
from ianvs.exam.data.cells import CLASS_INDEX, number_of
from ianvs.exam.data.csv_files import read_csv
from ianvs.exam.data.labels import class_lists
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.sources import read_parts

NO_NUMBERS = [
    "1_0",
    "1_000",
    "１２",
    "٣",
    "0x10",
    "1d5",
    "",
    " ",
    "1 2",
    "--1",
    "1e",
    "nan_",
    "infin",
    "true",
    "1,5",
    "½",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number(text):
    with pytest.raises(ValueError, match=r"number|convert"):
        number_of(text)


def test_numbers():
    assert [number_of(cell) for cell in ("1e5", " -.5", "+2.", "inf", 3, 2.5, True)] == [
        1e5,
        -0.5,
        2,
        np.inf,
        3,
        2.5,
        1,
    ]
    assert np.isnan(number_of(" nan "))
    with pytest.raises(ValueError, match="large"):
        number_of(10**400)


def test_class_indices():
    assert [
        CLASS_INDEX.fullmatch(text) is not None for text in ("0", "-1", "10", "1_0", "٣", "１２", "", "1.0", "²")
    ] == [True] * 3 + [False] * 6


def spec_of(path, **more):
    source = (SourceSpec(path, "data"),)
    return DatasetSpec(train=source, test=source, **more)


def outcome(path):
    try:
        return np.asarray(read_csv([path], path, spec_of(path), "train").x).tolist()
    except SourceError as error:
        return [str(problem) for problem in error.problems]


CELLS = st.one_of(
    st.sampled_from(
        [*(text for text in NO_NUMBERS if "," not in text), "1e5", "nan", "-inf", "Infinity", "1e400", "1e-400"]
    ),
    st.text(st.sampled_from("0123456789.+-eEnaif_x ١２"), max_size=6),
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CELLS, min_size=1, max_size=3))
def test_both_readers_of_csv_agree(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    path.write_text("a,b,label\n" + "".join(f"{cell},1,cat\n" for cell in cells))
    careful = outcome(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "WORTH_ARROW", 0)
        np.testing.assert_equal(outcome(path), careful)


@pytest.mark.parametrize("cell", ["1_0", "１２", "٣"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "regression"])
def test_other_digits_are_refused_with_their_line(cell, form, tmp_path):
    kind = DataTypeSpec("regression") if form == "regression" else None
    path = tmp_path / ("t.jsonl" if form == "jsonl" else "t.csv")
    record = {"a": 1, "label": cell} if kind else {"a": cell, "label": "cat"}
    if form == "jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in ({"a": 1, "label": "cat"}, record)))
    else:
        path.write_text(f"a,label\n1,{1 if kind else 'cat'}\n{record['a']},{record['label']}\n")
    with pytest.raises(SourceError) as caught:
        read_parts(spec_of(path, data_type=kind))
    assert caught.value.problems[0].place.line == (2 if form == "jsonl" else 3)


def test_a_number_of_json_that_no_float_holds_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"a": {10**400}, "label": "cat"}}\n')
    with pytest.raises(SourceError):
        read_parts(spec_of(path))


def test_labels_with_other_digits_are_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n1,1_0\n2,２\n")
    spec = spec_of(path)
    assert class_lists(read_parts(spec), spec).names == ("1_0", "２")
