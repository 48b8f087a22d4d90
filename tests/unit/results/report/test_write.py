"""What `rank/` holds after a run, and that a second run leaves it alone."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace
from html import unescape
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.results.report.build_document import write_reports
from ianvs.results.report.charts.svg import PAGE
from ianvs.results.report.leaderboard import build_leaderboard
from ianvs.results.report.markdown import _escape
from ianvs.results.report.ranking_table import _decimals
from ianvs.results.report.row_tables import csv_text, to_frame
from ianvs.results.stats import Summary
from tests.unit.results.report.report_cases import METRICS, WORKSPACE, board, cells, failed, matrix, result, suite

SVG = "{http://www.w3.org/2000/svg}"
PAGES = {"selected_rank.csv", "statistics.csv", "notes.csv", "leaderboard.md", "leaderboard.tex"}
EVERYTHING = RankSpec((), save_mode="selected_and_all_and_picture")


def write(results: list[CaseResult], folder: Path, spec: RankSpec = EVERYTHING, seeds: int = 2) -> tuple[Path, ...]:
    table = build_leaderboard(results, spec, METRICS, ["accuracy", "lost"], seeds, WORKSPACE)
    return write_reports(table, results, spec, folder, title="Cheese", command="ianvs -f job.yaml")


def pictured() -> list[CaseResult]:
    return [
        result("a b/c", 0, hyperparameters={"rate": 0.1}, matrices={"accuracy": matrix([[0, 0], [1, 0], [0.5, 1]])}),
        result("a b/c", 1, hyperparameters={"rate": 0.1}, matrices={"accuracy": matrix([[0, 0], [1, 0], [0.7, 1]])}),
    ]


def test_the_csv_comes_back_from_pandas_with_the_same_types_and_values(tmp_path: Path) -> None:
    write(suite(), tmp_path)
    found = pd.read_csv(tmp_path / "rank" / "all_rank.csv")
    expected = to_frame(board(suite(), seeds=2))
    rank = expected.pop("Rank").map(str)
    assert list(found.pop("Rank")) == list(rank) == ["bound", "1", "2", "3", "-"]
    pd.testing.assert_frame_equal(found, expected)
    assert found["Learning_rate"].dtype == "float64"
    assert found["Learning_rate"].tolist() == [0.001] * 5
    assert found["Epoch"].dtype == "int64"
    assert found["Seeds"].dtype == "int64"


def test_without_bounds_ranks_are_numbers(tmp_path: Path) -> None:
    write([result("a"), result("b")], tmp_path, seeds=1)
    assert pd.read_csv(tmp_path / "rank" / "all_rank.csv")["Rank"].tolist() == [1, 1]


def test_lists_and_mappings_are_compact_json_and_truth_values_stay() -> None:
    table = board(
        [result("a", hyperparameters={"layers": [32, 64], "opt": {"b": 1, "a": None}, "on": True, "off": None})]
    )
    assert cells(table, "Layers") == ["[32,64]"]
    assert cells(table, "Opt") == ['{"b":1,"a":null}']
    assert cells(table, "On") == [True]
    assert cells(table, "Off") == ["null"]


def test_small_numbers_are_shown_as_numbers() -> None:
    text = csv_text(board([result("a", hyperparameters={"rate": 1e-3, "size": 100.0, "name": "a,b"})]))
    assert ',0.001,100.0,"a,b",' in text


def test_a_second_run_touches_no_file(tmp_path: Path) -> None:
    paths = write(pictured(), tmp_path)
    for path in paths:
        os.utime(path, (1, 1))
    assert write(pictured(), tmp_path) == paths
    assert [path.stat().st_mtime for path in paths] == [1.0] * len(paths)


def test_a_new_result_replaces_rows_and_adds_no_duplicates(tmp_path: Path) -> None:
    write([result("a", hyperparameters={"rate": 1e-3})], tmp_path, seeds=1)
    write([result("a", hyperparameters={"rate": 1e-3}), result("b", 0, 0.9)], tmp_path, seeds=1)
    assert pd.read_csv(tmp_path / "rank" / "all_rank.csv")["Algorithm"].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("selected_only", PAGES),
        ("selected_and_all", {*PAGES, "all_rank.csv"}),
    ],
)
def test_the_save_mode_decides_what_is_written(mode: str, names: set[str], tmp_path: Path) -> None:
    write(pictured(), tmp_path, RankSpec((), save_mode=mode))
    assert {path.name for path in (tmp_path / "rank").iterdir()} == names


def test_the_selected_csv_is_cut_and_the_other_is_not(tmp_path: Path) -> None:
    write(suite(), tmp_path, RankSpec((), metrics=("lost",), hyperparameters=("memory",)))
    selected, everything = (pd.read_csv(tmp_path / "rank" / f"{name}_rank.csv") for name in ("selected", "all"))
    assert "accuracy" not in selected and "accuracy" in everything
    assert "Learning_rate" not in selected and "Learning_rate" in everything
    assert "Memory" in selected


def heatmap_of(results: list[CaseResult], folder: Path) -> Path:
    (path,) = (p for p in write(results, folder) if p.name.startswith("a-b-c-"))
    return path


def test_the_picture_of_a_row_is_its_mean_matrix_under_a_safe_name(tmp_path: Path) -> None:
    path = heatmap_of(pictured(), tmp_path)
    assert path.parent == tmp_path / "rank" / "pictures"
    assert path.suffix == ".svg"
    assert set(path.stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    svg = ElementTree.parse(path).getroot()
    assert 400 < float(svg.attrib["width"]) < 800
    assert 200 < float(svg.attrib["height"]) < 600
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert texts[0] == "a b/c: accuracy"
    assert "rate=0.1" in str(texts[1]) and "2 seeds" in str(texts[1])
    assert [text for text in texts if re.fullmatch(r"[01]\.\d\d", text or "")][:6] == [
        *("0.00", "0.00", "1.00", "0.00", "0.60", "1.00")
    ]


def test_pictures_stand_alone_in_whatever_draws_them(tmp_path: Path) -> None:
    evil = '<script>alert(1)</script> & \x1b]]> "q"'
    some = [replace(one, case=replace(one.case, algorithm=name)) for name in (evil, "b") for one in pictured()]
    found = [path for path in write(some, tmp_path) if path.suffix == ".svg"]
    kinds = {path.stem.partition("-")[0] for path in found}
    assert kinds >= {"intervals", "kept", "learning", "stability", "peak_memory_mb"}
    for path in found:
        text = path.read_text()
        svg = ElementTree.fromstring(text)
        assert svg.tag == f"{SVG}svg"
        assert not list(svg.iter(f"{SVG}script"))
        assert "var(" not in text  # programs that make PDF or PNG of it know no variables
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_picture_has_the_colours_of_the_page() -> None:
    css = (files("ianvs.results.page") / "assets" / "page.css").read_text()
    light = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", css[: css.index("@media")]))
    assert {name: light[name] for name in PAGE} == PAGE


def test_a_picture_is_drawn_anew_when_a_score_changes(tmp_path: Path) -> None:
    path = heatmap_of(pictured(), tmp_path)
    before = path.read_bytes()
    changed = [
        pictured()[0],
        result("a b/c", 1, hyperparameters={"rate": 0.1}, matrices={"accuracy": matrix([[0, 0], [1, 0], [0, 0]])}),
    ]
    write(changed, tmp_path)
    assert path.read_bytes() != before


def test_a_row_that_lacks_a_case_has_no_picture(tmp_path: Path) -> None:
    assert not [p for p in write(pictured()[:1], tmp_path) if p.parent.name == "pictures"]


def test_a_score_that_one_seed_lacks_has_no_picture(tmp_path: Path) -> None:
    whole, other = pictured()
    assert not [p for p in write([whole, replace(other, matrices={})], tmp_path) if p.parent.name == "pictures"]


def test_the_heatmap_method_draws_without_the_save_mode(tmp_path: Path) -> None:
    spec = RankSpec((), visualization_method="draw_heatmap_picture")
    assert [p for p in write(pictured(), tmp_path, spec) if p.parent.name == "pictures"]


def test_two_hundred_rows_are_written(tmp_path: Path) -> None:
    results = [result("a", s, i / 400, hyperparameters={"i": i, f"own_{i % 7}": s}) for i in range(200) for s in (0,)]
    write(results, tmp_path, RankSpec(()), seeds=1)
    assert len(pd.read_csv(tmp_path / "rank" / "all_rank.csv")) == 200


def test_the_markdown_page_of_a_worked_example(tmp_path: Path) -> None:
    results = [
        result("joint", 0, 0.99, 0.0, bound=True),
        result("joint", 1, 0.97, 0.0, bound=True),
        result("a|b", 0, 0.9, 0.1, {"rate": 0.001}),
        result("a|b", 1, 0.8, 0.3, {"rate": 0.001}),
        result("ewc", 0, 0.9, 0.1),
        failed("ewc", 1, "no <cheese>"),
    ]
    write(results, tmp_path, RankSpec(()))
    assert (tmp_path / "rank" / "leaderboard.md").read_text() == Path(__file__).with_name(
        "leaderboard_golden.md"
    ).read_text()


def test_no_cell_of_the_csv_begins_a_formula_and_numbers_stay_numbers() -> None:
    evil = ['=HYPERLINK("http://x")', "+1+cmd|' /C calc'!A0", "-1+2", "@SUM(A1)", "\t=1", "\r=1"]
    board_ = board(
        [result(text, hyperparameters={"=own": text, "rate": -0.3, "written": "-0.3"}, lost=-0.25) for text in evil]
    )
    rows = list(csv.DictReader(io.StringIO(csv_text(board_), newline="")))
    assert [row["Algorithm"] for row in rows] == [f"'{text}".replace("\r", "\n") for text in evil]
    assert {(row["Rate"], row["Written"], row["lost"]) for row in rows} == {("-0.3", "-0.3", "-0.25")}
    for row in rows:
        for cell in (*row, *row.values()):
            assert cell in ("", "-", "-0.3", "-0.25") or cell[0] not in "=+-@\t\r"


def test_names_and_remarks_are_no_markup_on_the_page(tmp_path: Path) -> None:
    evil = (
        "![p](http://evil.example/p.png) [l](http://evil.example) <img src=x> <b>b</b> a|b `c` _d_ **e** ~~f~~ &lt; "
        "http://evil.example www.evil.example $x$ [r]: <http://evil.example>"
    )
    results = [
        replace(result(evil, hyperparameters={evil: evil, "rate": rate}, matrices=pictured()[0].matrices), remark=evil)
        for rate in (1, 2)
    ]
    write([*results, failed(f"# {evil}", message=evil)], tmp_path, RankSpec(()), seeds=1)
    page = (tmp_path / "rank" / "leaderboard.md").read_text()
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(page)
    assert not set(re.findall(r"<(\w+)", html)) & {"a", "img", "b", "em", "strong", "del", "math"}
    assert len({len(re.findall("<t[dh]", row)) for row in re.findall("<tr>.*?</tr>", html, re.DOTALL)}) == 2
    shown = unescape(re.sub("<[^>]*>", "", html))
    assert shown.count(evil.replace("`c`", "c")) >= 8
    assert not re.search(r"https?://|www\.", page)  # github makes links of these without any brackets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`ianvs run --only a_b` completes it", "`ianvs run --only a_b` completes it"),
        ("max_{j<=i} R[i][j] * 2", "max_{j<=i} R[i][j] * 2"),
        ("per_class_accuracy[0]", "per_class_accuracy[0]"),
        ("a ` b", "a \\` b"),  # half of a pair
        ("``a`` b", "\\`\\`a\\`\\` b"),
        ("`a|b`", "\\`a\\|b\\`"),  # a cell would end there
        ("[a](b) <b> *c* _d_", "\\[a\\](b) \\<b> \\*c\\* \\_d_"),
    ],
)
def test_markdown_has_backslashes_only_where_they_are_needed(text: str, shown: str) -> None:
    assert _escape(text) == shown
    rendered = unescape(re.sub("<[^>]*>", "", MarkdownIt("commonmark").render(_escape(text))))
    assert rendered.strip() == (text.replace("`", "") if shown == text else text)


def test_a_small_cost_beside_a_larger_one_does_not_read_zero() -> None:
    costs = [Summary(mean, None, 1) for mean in (0.0043, 0.0131)]
    assert _decimals(costs, precise=2, small_below=1.0) == 4
    assert _decimals([Summary(2.5, None, 1)], precise=2, small_below=1.0) == 2
