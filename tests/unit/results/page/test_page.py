"""What the page holds, and that nothing in it is more than text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.types import Failure
from ianvs.results.report.charts.points import rank_bar
from ianvs.results.report.ranking_table import ranking_table
from tests.errors import printed
from tests.unit.results.page.page_cases import learned, page_of, square
from tests.unit.results.page.reading import Element, read, tables
from tests.unit.results.report.report_cases import board, failed, result, suite

EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]>--><!--",
    "</script></style>'\"&amp;",
    "{{ 7*7 }}",
)


def attributes(page: Element) -> list[tuple[str, str, str]]:
    return [(one.name, key, value) for one in page.all() for key, value in one.attributes.items()]


def test_every_cell_of_the_leaderboard_is_there_in_its_order() -> None:
    table = board(suite(), (("accuracy", True),), seeds=2)
    (found,) = tables(read(page_of(suite(), 2, table)))
    ranking = ranking_table(table)
    assert found[0] == [column.title for column in ranking.columns]
    names = [row.name for row in ranking.rows]
    texts = [names if column.kind == "algorithm" else column.texts for column in ranking.columns]
    assert found[1:] == [list(cells) for cells in zip(*texts, strict=True)]


def test_rows_without_a_rank_are_marked() -> None:
    (table,) = read(page_of(suite(), 2)).all("table", class_="board")
    marks = [row.attributes.get("class") for row in table.all("tr") if list(row.all("td"))]
    assert marks == ["bound", "best", None, None, "lacking"]


def test_each_exam_has_a_table_and_pictures_of_its_own() -> None:
    cases = [
        replace(one, case=replace(one.case, testenv=exam, id=f"{one.case.id}{exam}", row=f"{one.case.row}{exam}"))
        for exam in ("first exam", "second exam")
        for one in (learned("a"), learned("b"))
    ]
    page = read(page_of(cases))
    assert [len(table) for table in tables(page)] == [3, 3]
    headings = [heading.text for heading in page.all("h3")]
    assert headings == ["first exam", "second exam"] * 2
    ids = [value for _, key, value in attributes(page) if key == "id"]
    assert len(ids) == len(set(ids))


def test_what_every_row_says_is_told_once_and_its_column_can_be_shown() -> None:
    page = read(page_of([learned("a"), learned("b")]))
    (told,) = page.all("li", class_="same")
    assert "Dataset digits" in " ".join(told.text.split())
    hidden = [next(head.all("button")).text for head in page.all("th") if "data-off" in head.attributes]
    assert {"Dataset", "Round", "Seeds", "Status", "Time"} <= set(hidden)
    assert not {"Rank", "Algorithm", "accuracy"} & set(hidden)


def test_numbers_sort_by_their_value_and_rows_without_a_rank_keep_their_place() -> None:
    page = read(page_of(suite(), 2))
    (table,) = page.all("table", class_="board")
    rows = [list(row.all("td")) for row in table.all("tr") if list(row.all("td"))]
    heads = tables(page)[0][0]
    assert [row[0].attributes["data-n"] for row in rows] == ["0", "1", "2", "3", "4"]
    values = [row[heads.index("accuracy")].attributes.get("data-n") for row in rows]
    assert values[-1] is None
    assert [float(value or 0) for value in values[:-1]] == pytest.approx([0.98, 0.95, 0.91, 0.21])


def test_each_metric_tells_its_definition_source_and_direction() -> None:
    page = read(page_of(suite(), 2))
    heads = {next(head.all("button")).text: head for head in page.all("th") if list(head.all("button"))}
    button = next(heads["accuracy"].all("button"))
    (about,) = heads["accuracy"].all("span", id=button.attributes["aria-describedby"])
    lines = [line.text for line in about.children if isinstance(line, Element)]
    assert len(lines) == 4 and "correct / all" in lines[2] and "folklore" in lines[3]
    printed("\n".join(lines))
    assert "Lower is better." in heads["lost"].text


def test_nothing_is_fetched_and_no_script_but_its_own_runs() -> None:
    text = page_of(
        [*suite(), learned("a"), learned("a", 1), learned("b"), learned("b", 1)], 2, command="ianvs -f job.yaml"
    )
    page = read(text)
    for name, key, value in attributes(page):
        if key in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            assert value.startswith(("#", "data:image/png;base64,")), (name, key, value)
        assert not key.startswith("on"), (name, key)
        assert key != "style", "a strict policy allows no style attributes"
    (style,) = page.all("style")
    assert not re.search(r"@import|url\(|expression\(", style.text)
    assert not list(page.all("link"))
    data, script = page.all("script")
    assert data.attributes["type"] == "application/json"
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|WebSocket|eval\(|innerHTML", script.text)
    policy = next(page.all("meta", **{"http-equiv": "Content-Security-Policy"})).attributes["content"]
    for kind, content in (("style", style.text), ("script", script.text)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_names_are_shown_as_text(evil: str) -> None:
    matrix = square(2, rounds=(evil, "b"), tests=(evil, "c"))
    cases = [
        learned(evil, matrix=matrix, hyperparameters={"note": evil}, modules=(("basemodel", evil),)),
        learned("other", matrix=matrix, hyperparameters={"note": "x"}),
        failed("third", message=evil),
        replace(result("fourth"), notes=(evil,), remark=evil),
    ]
    harmless = read(page_of([learned("a", matrix=square(2)), learned("other"), failed("third"), result("fourth")]))
    text = page_of(cases, title=evil, command=evil, provenance={"python": evil, "configuration": {evil: [evil]}})
    page = read(text)
    assert len(list(page.all("script"))) == 2
    assert len(list(page.all("img"))) == len(list(harmless.all("img")))
    assert next(page.all("h1")).text == evil
    heads, *rows = tables(page)[0]
    assert evil in [row[heads.index("Algorithm")] for row in rows]
    stored = json.loads(next(page.all("script", type="application/json")).text)
    assert stored["names"][0] == [[evil, "b"], [evil, "c"]]
    assert evil in [code.text for code in page.all("code")]


def test_failures_come_with_the_end_of_their_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("\n".join([*(f"line {n}" for n in range(100)), "the last", "\x1b[31mred <b>"]))
    broken = result(
        "hub",
        status="failed",
        failure=Failure("exception", "OSError", "no", log),
    )
    text = page_of([broken, learned("a")])
    (found,) = read(text).all("details", class_="failed")
    (shown,) = found.all("pre")
    lines = shown.text.splitlines()
    assert lines[-2:] == ["the last", "\\x1b[31mred <b>"]
    assert "line 99" in lines
    assert "line 1" not in lines
    assert "OSError: no" in found.text


def test_a_log_that_is_gone_leaves_the_message() -> None:
    page = read(page_of([failed("a", message="out of cheese"), learned("b")]))
    (found,) = page.all("details", class_="failed")
    assert "out of cheese" in found.text
    assert not list(found.all("pre"))


def test_the_configuration_and_the_citation_can_be_copied() -> None:
    page = read(page_of([learned("a")], provenance={"configuration": {"name": "cheese", "seeds": [0, 1]}}))
    for button in page.all("button", class_="copy"):
        assert len(list(page.all("pre", id=button.attributes["data-copy"]))) == 1
    (configuration,) = page.all("pre", id="configuration")
    assert configuration.text == "name: cheese\nseeds:\n- 0\n- 1\n"
    (bibtex,) = page.all("pre", id="bibtex")
    cff = (Path(__file__).parents[4] / "CITATION.cff").read_text()
    version = re.search(r"^version: (.+)$", cff, re.M)
    assert version is not None
    assert f"version={{{version.group(1)}}}" in "".join(bibtex.text.split())
    assert bibtex.text.count("{") == bibtex.text.count("}")


def test_a_board_without_rows_and_one_without_scores_are_pages_too() -> None:
    assert "0 rows" in read(page_of([], table=board([]))).text
    page = read(page_of([result("a", accuracy=None, lost=None)]))
    assert len(tables(page)[0]) == 2


def test_scores_that_are_large_infinite_or_missing_are_drawn_as_far_as_they_go() -> None:
    grown = replace(square(3, 1), values=square(3, 1).values * 1e6)
    values = square(3, 2).values.copy()
    values[2, 1], values[3, 0] = np.inf, np.nan
    broken = replace(
        learned("broken", matrix=replace(square(3), values=values)), metrics={"accuracy": np.inf, "lost": None}
    )
    text = page_of([learned("grown", matrix=grown), broken, learned("single", rounds=1), learned("usual", rounds=3)])
    page = read(text)
    assert len(tables(page)[0]) == 5
    drawn = [value for _, key, value in attributes(page) if key in ("d", "x", "y", "width", "height", "points")]
    assert not [value for value in drawn if "nan" in value.lower() or "inf" in value.lower()]
    stored = json.loads(next(page.all("script", type="application/json")).text)["of"]
    tenth = {which: (unit, numbers) for which, (_, unit, numbers) in stored.items()}
    unit, numbers = next((unit, numbers) for unit, numbers in tenth.values() if unit > 1)
    np.testing.assert_allclose(np.array(numbers) * unit / 1000, grown.values.ravel(), atol=unit / 2000)


def test_a_rank_interval_is_as_long_as_it_says() -> None:
    # Six ranks on 84 pixels are 14 each: ranks 2 to 4 begin at 14 and are 42 long; rank 3 is in the middle of its 14.
    bar = read(str(rank_bar(2, 4, 3, 6)))
    (reach,) = bar.all("rect", class_="reach")
    assert (float(reach.attributes["x"]), float(reach.attributes["width"])) == (14, 42)
    (place,) = bar.all("circle")
    assert float(place.attributes["cx"]) == 35
    assert next(bar.all("svg")).attributes["aria-label"] == "rank 2 to 4 of 6"


def test_rank_intervals_stand_in_the_table_and_differences_below_it() -> None:
    accuracies = {"a": (0.90, 0.91, 0.92), "b": (0.89, 0.91, 0.91), "c": (0.10, 0.11, 0.12)}
    cases = [result(name, seed, value) for name, values in accuracies.items() for seed, value in enumerate(values)]
    table = board(cases, (("accuracy", True),), seeds=3)
    page = read(page_of(cases, 3, table))
    pictures = [svg.attributes["aria-label"] for svg in page.all("svg", class_="ranks")]
    told = [row.standing for row in table.rows if row.standing]
    assert pictures == [
        f"rank {one.low} to {one.high} of 3" if one.high > one.low else f"rank {one.low} of 3" for one in told
    ]
    assert len(pictures) == 3
    assert any("differences" in summary.text for summary in page.all("summary"))


def test_above_25_rounds_heatmaps_have_no_text_in_their_cells_and_stay_small() -> None:
    def heat(rounds: int) -> list[Element]:
        return list(read(page_of([learned("a", rounds=rounds), learned("b", rounds=rounds)])).all("svg", class_="heat"))

    small, large, huge = heat(25), heat(26), heat(120)
    assert len(list(small[0].all("rect"))) == 26 * 25 + 25  # a frame around what was just taught
    assert sum(bool(re.fullmatch(r"\d\.\d\d", one.text)) for one in small[0].all("text")) == 26 * 25
    for one in (*large, *huge):
        assert not list(one.all("rect"))
        assert not [said for said in one.all("text") if "." in said.text]
        assert max(float(one.attributes["width"]), float(one.attributes["height"])) <= 400
    assert len(large) == 3  # and the difference of the second to the first


def test_forty_rows_of_fifty_rounds_are_a_page_that_opens() -> None:
    cases = [learned(f"method {n}", rounds=50) for n in range(40)]
    text = page_of(cases)
    assert len(text.encode()) < 10e6 * 40 / 300 + 200_000
    page = read(text)
    stored = json.loads(next(page.all("script", type="application/json")).text)
    which, unit, numbers = next(iter(stored["of"].values()))
    assert unit == 1
    first = next(one for one in cases if one.case.algorithm == tables(page)[0][1][1])
    assert numbers == (first.matrices["accuracy"].values.ravel() * 1000).round().astype(int).tolist()
    assert stored["names"][which][0] == list(first.matrices["accuracy"].rounds)
