"""`ianvs metrics compute`: score matrices from json and csv, and what a slip in them is told."""

import json
from pathlib import Path

import pytest

from ianvs.exam.metrics import compute_file
from tests.errors import errors_of

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "metrics.json").read_text())["cases"]


def written(folder, content, name="scores.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def computed(folder, content, name="scores.json"):
    return compute_file(written(folder, content, name))


@pytest.mark.parametrize("case", GOLDEN)
def test_the_input_of_the_worked_values_gives_them_including_ianvss_own_row_zero(tmp_path, case):
    given = {"single_task" if name == "solo" else name: value for name, value in GOLDEN[case]["input"].items()}
    report = computed(tmp_path, given)
    expected = GOLDEN[case]["expected"]
    for name in ("GEM_ACC", "GEM_BWT", "GEM_FWT", "FM_from_j", "IM", "FWT_survey", "IANVS_BWT", "IANVS_FWT"):
        worked = expected[name][-1] if isinstance(expected[name], list) else expected[name]
        assert report[name] == pytest.approx(worked, abs=1e-12), name


def test_untrained_may_be_called_b(tmp_path):
    R = [[0.9, 0.3], [0.8, 0.88]]
    assert computed(tmp_path, {"R": R, "b": [0.1, 0.2]}) == computed(tmp_path, {"R": R, "untrained": [0.1, 0.2]})


def test_null_is_not_evaluated(tmp_path):
    report = computed(tmp_path, {"R": [[0.9, None], [0.8, 0.88]]})
    assert report["BWT"] == pytest.approx(-0.1)
    assert report["CLEAR_next_domain"] is None


CSV = {
    "numbers only": "0.9,0.3\n0.8,0.88\n",
    "header": "digits 0-1,digits 2-3\n0.9,0.3\n0.8,0.88\n",
    "names": "first,0.9,0.3\nsecond,0.8,0.88\n",
    "header and names": "model,a,b\nfirst,0.9,0.3\nsecond,0.8,0.88\n",
    "a data frame's": ",0,1\n0,0.9,0.3\n1,0.8,0.88\n",
    "numbered rounds": "Round,1,2\n1,0.9,0.3\n\n2,0.8,0.88\n",
    "from a spreadsheet": "\ufeffa, b\r\n0.9, 0.3\r\n0.8, 0.88\r\n",
}


@pytest.mark.parametrize("layout", CSV)
def test_a_csv_with_and_without_names_is_the_same_matrix(tmp_path, layout):
    assert computed(tmp_path, CSV[layout], "scores.csv") == computed(tmp_path, {"R": [[0.9, 0.3], [0.8, 0.88]]})


def test_named_rows_of_a_csv_are_references(tmp_path):
    text = "round,a,b\nuntrained,0.1,0.12\n1,0.9,0.3\n2,0.8,0.88\njoint,0.91,0.9\nsingle_task,,0.85\n"
    content = {
        "R": [[0.9, 0.3], [0.8, 0.88]],
        "untrained": [0.1, 0.12],
        "joint": [0.91, 0.9],
        "single_task": [None, 0.85],
    }
    assert computed(tmp_path, text, "scores.csv") == computed(tmp_path, content)


def test_an_empty_cell_of_a_csv_is_not_evaluated(tmp_path):
    report = computed(tmp_path, "0.9,\n0.8,0.88\n", "scores.csv")
    assert report == computed(tmp_path, {"R": [[0.9, None], [0.8, 0.88]]})


WITH_ROW_ZERO = [[0.1, 0.1], [0.9, 0.3], [0.8, 0.88]]


def test_a_row_too_many_is_not_guessed_to_be_the_untrained_model(tmp_path):
    assert errors_of(computed, tmp_path, {"R": WITH_ROW_ZERO}) == [("wrong-length", "")]


def test_two_rounds_on_one_test_set_are_accepted_once_it_is_said(tmp_path):
    assert errors_of(computed, tmp_path, {"R": [[0.5], [0.7]]}) == [("wrong-length", "")]
    assert computed(tmp_path, {"R": [[0.5], [0.7]], "untrained": None})["by_round"]["AA"] == [0.5, 0.7]
    assert computed(tmp_path, "r1,0.5\nr2,0.7\nuntrained,\n", "scores.csv")["AIA"] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"R": [[0.9, "high"], [0.8, 0.88]]}, [("invalid-value", "")]),
        ({"R": [[0.9, True], [0.8, 0.88]]}, [("invalid-value", "")]),
        ('{"R": [[0.9, Infinity], [0.8, 0.88]]}', [("invalid-value", "")]),
        ({"R": [[0.9], [0.8, 0.88]]}, [("wrong-length", "")]),
        ({"R": [0.9, 0.8]}, [("wrong-type", "")]),
        ({"R": []}, [("wrong-type", "")]),
        ({"R": [[]]}, [("empty-value", "")]),
        ([[0.9]], [("missing-key", "")]),
        ({"r": [[0.9]]}, [("missing-key", "")]),
        ({"R": [[0.9]], "jiont": [0.9]}, [("unknown-key", "")]),
        ({"R": [[0.9]], "single_task": [0.9, 0.8]}, [("wrong-length", "")]),
        ({"R": [[0.9]], "untrained": []}, [("wrong-length", "")]),
        ({"R": [[0.9]], "untrained": 0.1}, [("wrong-type", "")]),
        ({"R": [[0.9]], "b": [0.1], "untrained": [0.1]}, [("duplicate-key", "")]),
        ('{"R": [[0.9]], "R": [[0.8]]}', [("duplicate-key", "")]),
        ('{"R": [[0.9,]]}', [("unreadable-data", "")]),
    ],
)
def test_a_slip_in_a_json_file_is_told_with_the_file_and_the_entry(tmp_path, content, message):
    assert errors_of(computed, tmp_path, content) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.9,0.3\n0.8,0.88x\n", [("invalid-value", "")]),
        ("0.9x,0.3\n0.8,0.88\n", [("invalid-value", "")]),
        ("a,b\n0.9,0.3\n0.8x,0.88\n", [("invalid-value", "")]),
        ("0.9,0.3\n0.8\n", [("wrong-length", "")]),
        ("0.1,0.1\n0.9,0.3\n0.8,0.88\n", [("wrong-length", "")]),
        ("a,b\n", [("empty-value", "")]),
        ("\n", [("empty-file", "")]),
    ],
)
def test_a_slip_in_a_csv_file_is_told_with_its_line_and_never_taken_for_a_name(tmp_path, text, message):
    assert errors_of(computed, tmp_path, text, "scores.csv") == message


EXAMINED = {"samples": 10, "begun": 1, "ended": 0, "scores": [0.5, None]}
CURVE = [
    EXAMINED,
    {"samples": 20, "begun": 1, "ended": 1, "scores": [0.9, 0.3]},
    {"samples": 40, "begun": 2, "ended": 1, "scores": [0.2, 0.6]},
    {"samples": 60, "begun": 2, "ended": 2, "scores": [0.8, 0.88]},
]


def test_a_curve_in_the_file_is_what_online_measures_are_computed_from(tmp_path):
    R = [[0.9, 0.3], [0.8, 0.88]]
    report, without = computed(tmp_path, {"R": R, "curve": CURVE}), computed(tmp_path, {"R": R})
    assert (report["min_ACC"], without["min_ACC"]) == (0.2, 0.8)
    # .5 for 10 samples, .9 for 10, (.2 + .6) / 2 for 20, (.8 + .88) / 2 for 20
    assert report["A_AUC"] == pytest.approx((0.5 * 10 + 0.9 * 10 + 0.4 * 20 + 0.84 * 20) / 60)
    assert report["by_round"]["AAA"] == pytest.approx([0.7, report["AAA"]])
    assert report["BWT"] == without["BWT"]
    assert computed(tmp_path, {"R": R, "curve": None}) == without


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        ({"samples": 10}, [("wrong-type", "")]),
        ([], [("wrong-type", "")]),
        ([[0.5, 0.1]], [("wrong-type", "")]),
        ([EXAMINED | {"smaples": 10}], [("unknown-key", "")]),
        ([{"samples": 10, "begun": 1, "scores": [0.5, 0.1]}], [("missing-key", "")]),
        ([EXAMINED | {"samples": 10.5}], [("wrong-type", "")]),
        ([EXAMINED | {"begun": True}], [("wrong-type", "")]),
        ([EXAMINED | {"scores": [0.5]}], [("wrong-length", "")]),
        ([EXAMINED | {"scores": [0.5, "x"]}], [("invalid-value", "")]),
        ([EXAMINED | {"begun": 3}], [("out-of-range", "")]),
        ([EXAMINED | {"ended": 2}], [("out-of-range", "")]),
        ([EXAMINED | {"samples": -1}], [("invalid-value", "")]),
        ([*CURVE, EXAMINED | {"begun": 2, "ended": 2}], [("invalid-value", "")]),
    ],
)
def test_a_slip_in_a_curve_is_told_with_the_examination(tmp_path, curve, message):
    assert errors_of(computed, tmp_path, {"R": [[0.9, 0.3], [0.8, 0.88]], "curve": curve}) == message


def test_a_missing_file_and_another_format_are_told(tmp_path):
    assert errors_of(compute_file, tmp_path / "scores.json") == [("missing-file", "")]
    (tmp_path / "scores.xlsx").touch()
    assert errors_of(compute_file, tmp_path / "scores.xlsx") == [("wrong-path-type", "")]
