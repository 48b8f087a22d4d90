"""The page in a real browser. Needs Chromium and the packages of the extra `test`; skipped where they are not."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.unit.results.page.page_cases import learned, page_of
from tests.unit.results.report.report_cases import failed, result

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="playwright is not installed"),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything that reacts: 14 rows, a small and a failed one, a configuration."""
    cases = [
        learned(f"method {n}", seed, rounds=4, hyperparameters={"rate": n / 10}) for n in range(14) for seed in (0, 1)
    ]
    cases += [learned("joint", seed, rounds=4, bound=True) for seed in (0, 1)]
    cases += [failed("broken", seed) for seed in (0, 1)]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_of(cases, 2, title="Cheese", provenance={"configuration": {"name": "cheese"}}))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, file: Path) -> Iterator[Any]:
    """The open page. Fails at the end for a console error, and for a request to anywhere."""
    yield from opened(browser, file, viewport={"width": 1280, "height": 900})


def opened(browser: Any, file: Path, **options: Any) -> Iterator[Any]:
    context = browser.new_context(**options)
    page = context.new_page()
    told: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    yield page
    context.close()
    assert told == []
    assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]


def algorithms(page: Any) -> list[str]:
    """As they stand in the first table, those that are hidden left out."""
    rows = page.locator("table.board tbody tr:visible td.n .name")
    return [str(text) for text in rows.all_inner_texts()]


def column(page: Any, title: str) -> Any:
    return page.locator("table.board thead button", has_text=title).first


def test_a_click_sorts_and_another_turns_it_round_missing_last(page: Any) -> None:
    start = algorithms(page)
    assert start[-1] == "broken"
    page.evaluate("location.hash = 'show=Rate'")
    column(page, "Rate").click()
    rising = algorithms(page)
    # joint and the failed row have no rate.
    assert rising[:3] == ["method 0", "method 1", "method 2"]
    assert rising[10] == "method 10"
    assert set(rising[-2:]) == {"joint", "broken"}
    column(page, "Rate").click()
    falling = algorithms(page)
    assert falling[:2] == ["method 13", "method 12"]
    assert set(falling[-2:]) == {"joint", "broken"}
    assert page.locator("th[aria-sort=descending]").all_inner_texts() == ["Rate"]
    column(page, "lost").click()  # of which less is better
    assert page.locator("th[aria-sort=ascending]").all_inner_texts() == ["lost"]
    column(page, "Rank").click()
    assert algorithms(page) == start


def test_the_keyboard_filters_sorts_and_ticks(page: Any) -> None:
    page.locator("#filter").focus()
    page.keyboard.type("Bound JOI")
    assert algorithms(page) == ["joint"]
    assert page.locator("#found").inner_text() == "1 of 16 rows"
    page.locator("#filter").fill("method")
    assert len(algorithms(page)) == 14
    for _ in range(20):
        if page.evaluate("document.activeElement.textContent") == "accuracy":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the best first
    assert page.locator("th[aria-sort=descending]").all_inner_texts() == ["accuracy"]
    scores = page.locator("table.board tbody tr:visible td[data-n]:nth-child(3)").evaluate_all(
        "cells => cells.map((cell) => Number(cell.dataset.n))"
    )
    assert scores == sorted(scores, reverse=True)
    box = page.locator("table.board tbody input").first
    box.focus()
    page.keyboard.press("Space")
    assert not box.is_checked()
    page.locator(".menu summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#columns").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#columns").is_visible()
    assert page.evaluate("document.activeElement.textContent") == "Columns"


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ('"method 1"', {"method 1", *(f"method {n}" for n in range(10, 14))}),
        ("joint|broken", {"joint", "broken"}),
        ("-method -joint", {"broken"}),
        ("rate>=1.2", {"method 12", "method 13"}),
        ("rate<.3 rate!=.1", {"method 0", "method 2"}),
        ("rank=bound", {"joint"}),
        ("rank<=1", {"method 7"}),
    ],
)
def test_what_a_filter_leaves(page: Any, said: str, rows: set[str]) -> None:
    page.locator("#filter").fill(said)
    assert set(algorithms(page)) == rows


def test_a_filter_over_a_column_that_is_not_there_says_so(page: Any) -> None:
    page.locator("#filter").fill("acuracy>0.5")
    assert "no column “acuracy”" in page.locator("#found").inner_text()
    assert len(algorithms(page)) == 16


def drawn(page: Any) -> set[str]:
    """Ids of the rows in the learning curves."""
    lines = page.locator("figure.card", has_text="Learning: accuracy").locator("g.series:not(.off)")
    return set(lines.evaluate_all("lines => lines.map((line) => line.dataset.row)"))


def test_one_selection_rules_table_and_charts(page: Any) -> None:
    assert len(drawn(page)) == 10
    page.locator("#filter").fill("joint|-method")
    page.locator("#filter").fill('"method 1"')
    assert len(drawn(page)) == 5  # 1 and 10 to 13
    legend = page.locator("figure.card", has_text="Learning: accuracy").locator("ul.legend li")
    assert set(legend.all_inner_texts()) == set(algorithms(page))
    intervals = page.locator("svg[data-step]").first
    tall = float(intervals.get_attribute("height"))
    page.locator("table.board tbody input").first.uncheck()
    assert len(drawn(page)) == 4
    assert float(intervals.get_attribute("height")) == tall - 24
    assert page.locator(".maps").first.locator("figure:visible").count() == 4
    page.locator("#ticked").check()
    assert len(algorithms(page)) == 4


def test_the_selection_stands_in_the_address_and_comes_back_from_it(browser: Any, page: Any) -> None:
    page.evaluate("location.hash = 'show=Rate'")
    page.locator("#filter").fill("method rate<1")
    column(page, "Rate").click()
    column(page, "Rate").click()
    page.locator("table.board tbody input").first.uncheck()
    page.locator(".menu summary", has_text="Columns").click()
    page.locator("#columns label", has_text="Dataset").locator("input").check()
    page.locator("#columns label", has_text="lost").locator("input").uncheck()
    page.get_by_role("link", name="Provenance").click()  # which only scrolls
    before, rows, address = drawn(page), algorithms(page), page.evaluate("location.hash")
    assert all(part in address for part in ("q=method", "sort=-Rate", "show=Dataset", "hide=lost", "row="))
    again = page.context.new_page()
    again.goto(page.url)
    assert (drawn(again), algorithms(again)) == (before, rows)
    heads = again.locator("table.board th:visible").all_inner_texts()
    assert "Dataset" in heads
    assert "lost" not in heads
    again.evaluate("location.hash = ''")
    again.wait_for_function("document.querySelectorAll('table.board tbody tr').length === 16")


def test_what_the_table_shows_is_copied(browser: Any, file: Path) -> None:
    for page in opened(browser, file, permissions=["clipboard-read", "clipboard-write"]):
        page.locator("#filter").fill("joint")
        page.locator(".menu summary", has_text="Columns").click()
        for title in page.locator("#columns label").all_inner_texts():
            page.locator("#columns label", has_text=title).locator("input").first.set_checked(
                title.strip() in ("Rank", "accuracy")
            )
        page.keyboard.press("Escape")
        score = page.locator("table.board tbody td:visible").last.inner_text()
        wanted = {
            "for a spreadsheet": f"Rank\tAlgorithm\taccuracy\nbound\tjoint\t{score}",
            "as Markdown": f"| Rank | Algorithm | accuracy |\n| --- | --- | --- |\n| bound | joint | {score} |",
        }
        for name, text in wanted.items():
            page.locator(".menu summary", has_text="Copy").click()
            page.get_by_role("button", name=name).click()
            page.locator("#found").get_by_text("Copied").wait_for()
            assert page.evaluate("navigator.clipboard.readText()") == text
        page.locator(".menu summary", has_text="Copy").click()
        page.get_by_role("button", name="as LaTeX").click()
        copied, deadline = "", time.monotonic() + 120
        while "joint &" not in copied and time.monotonic() < deadline:
            page.wait_for_timeout(50)
            copied = page.evaluate("navigator.clipboard.readText()")
        latex = score.replace("±", "$\\pm$")
        assert f"bound & joint & {latex} \\\\" in copied
        page.locator(".menu summary", has_text="Copy").click()
        with page.expect_download() as got:
            page.get_by_role("button", name="save as CSV").click()
        assert got.value.path().read_text() == f"Rank,Algorithm,accuracy\nbound,joint,{score}\n"


def test_an_earlier_page_tells_what_differs(page: Any, tmp_path: Path) -> None:
    rows = [result("method 0", seed, 0.25, 0.1, {"rate": 0.0}) for seed in (0, 1)]
    rows += [result("method 7", seed, 0.99, 0.1, {"rate": 0.7}) for seed in (0, 1)]
    rows += [result("old one", seed, 0.9, 0.1) for seed in (0, 1)]
    earlier = tmp_path / "last week.html"
    facts = {
        "configuration": {"name": "cheese", "list": [{"deep": {"rate": 0.5}}, {"deep": {"rate": 2}}], "seeds": [0, 1]}
    }
    earlier.write_text(page_of(rows, 2, provenance=facts))
    page.set_input_files("#earlier", earlier)
    told = page.locator("#compared")
    told.get_by_role("heading", name="What differs from last week.html").wait_for()
    lines = [line.split("\t") for line in told.locator("table").first.locator("tr").all_inner_texts()]
    found = {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines}
    now = page.locator("table.board tbody tr", has_text="method 7").locator("td[data-n]").all_inner_texts()
    assert found["method 7"]["accuracy"].startswith("0.990 ± 0.000 → ")
    assert found["method 7"]["accuracy"].split(" → ")[1].rpartition(" (")[0] in now
    assert "(-0." in found["method 7"]["accuracy"]
    assert found["method 7"]["Rank"] == "1 → 1 (1-14)"
    assert found["method 0"]["Rank"].startswith("3 → ")
    assert "old one (gone)" in found
    assert "method 5 (new)" in found
    settings = told.locator("table").nth(1).locator("tr").all_inner_texts()[1:]
    assert settings == ["list.1.deep.rate\t0.5\t-", "list.2.deep.rate\t2\t-", "seeds\t0, 1\t-"]
    told.get_by_role("button", name="Close").click()
    assert not told.is_visible()
    # A row is known by the page of its cases where its name has become longer.
    link = '<a class="name" href="cases/method-7-7.html">{}</a>'
    renamed = tmp_path / "renamed.html"
    renamed.write_text(earlier.read_text().replace('<span class="name">method 7</span>', link.format("method seven")))
    same = link.format("method 7").replace('"', "'")
    page.evaluate(
        f'[...document.querySelectorAll(".name")].find((one) => one.textContent === "method 7").outerHTML = "{same}"'
    )
    page.set_input_files("#earlier", renamed)
    told.get_by_role("heading", name="What differs from renamed.html").wait_for()
    assert not any("method seven" in line for line in told.locator("tbody th").all_inner_texts())
    # What is no page of ours is said to be none, and what is in it is not run.
    other = tmp_path / "other.html"
    other.write_text("<script>document.title = 'mine'</script><img src=x onerror='document.title = 1'>")
    page.set_input_files("#earlier", other)
    told.get_by_text("no leaderboard of ianvs").wait_for()
    assert "Cheese" in page.title()


def test_the_pointer_reads_the_nearest_value_of_a_line(page: Any) -> None:
    figure = page.locator("figure.card", has_text="Learning: accuracy")
    line = figure.locator("g.series:not(.off)").first
    values = line.get_attribute("data-values").split("|")
    for place in (0, len(values) - 1):
        line.dispatch_event("pointermove", {"clientX": 0 if place == 0 else 4000, "clientY": 300})
        tip = page.locator("#tip").inner_text()
        assert tip.startswith("method 7, ") and tip.endswith(f" {values[place]}")


def test_on_a_phone_rank_name_and_score_are_in_sight(browser: Any, file: Path) -> None:
    for page in opened(browser, file, viewport={"width": 390, "height": 800}):
        row = page.locator("table.board tbody tr").nth(1)
        ends = [
            box["x"] + box["width"] for box in (cell.bounding_box() for cell in row.locator("td:visible").all()[:3])
        ]
        assert row.locator("td:visible").nth(1).locator(".name").count() == 1
        assert max(ends) <= 390
        assert row.bounding_box()["y"] < 400
        wide = page.locator("figure.card svg:visible").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect().right)"
        )
        assert max(wide) <= 390


def test_heads_and_names_stay_in_sight(browser: Any, file: Path) -> None:
    for page in opened(browser, file, viewport={"width": 700, "height": 420}):
        table = page.locator(".board-scroll")
        table.evaluate("one => { one.scrollTop = 200; one.scrollLeft = 300; }")
        frame = table.bounding_box()
        head = page.locator("table.board th.n").bounding_box()
        assert abs(head["y"] - frame["y"]) < 2
        assert abs(head["x"] - frame["x"]) < 2


def test_a_column_explains_itself_to_pointer_and_keyboard(page: Any) -> None:
    tip = page.locator("#tip")
    column(page, "accuracy").hover()
    assert "Higher is better." in tip.inner_text()
    page.mouse.move(5, 5)
    assert not tip.is_visible()
    column(page, "lost").focus()
    assert "Lower is better." in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_columns_come_and_go(page: Any) -> None:
    head = page.locator("table.board th", has_text="Dataset")
    assert not head.is_visible()
    page.locator(".menu summary", has_text="Columns").click()
    box = page.locator("#columns label", has_text="Dataset").locator("input")
    box.check()
    assert head.is_visible()
    box.uncheck()
    assert not head.is_visible()
    assert page.evaluate("location.hash") == ""


def test_heatmaps_turn_into_differences_and_tell_their_numbers(page: Any) -> None:
    maps = page.locator(".maps").first
    assert not maps.locator(".of-difference svg").first.is_visible()
    maps.get_by_role("button", name="Difference").click()
    assert not maps.locator("figure .of-scores svg").first.is_visible()
    maps.get_by_role("button", name="Scores").click()
    first = maps.locator("figure").first
    first.locator("summary").click()
    cells = first.locator("td").all_inner_texts()
    drawn = first.locator(".of-scores text[fill]").all_text_contents()
    assert [f"{float(cell):.2f}" for cell in cells] == pytest.approx(drawn) or all(
        abs(float(a) - float(b)) <= 0.0051 for a, b in zip(cells, drawn, strict=True)
    )


def test_the_configuration_is_copied_or_selected(browser: Any, file: Path) -> None:
    for rights in (["clipboard-read", "clipboard-write"], []):
        for page in opened(browser, file, permissions=rights):
            page.locator("#origin details summary").last.click()
            if not rights:  # as in a browser that gives a page from a file no clipboard
                page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
            page.locator("#origin button.copy").click()
            told = page.locator("#origin output.copied")
            told.get_by_text("Copied." if rights else "Selected").wait_for()
            got = page.evaluate("navigator.clipboard.readText()" if rights else "getSelection().toString()")
            assert got.strip() == "name: cheese"


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_sideways(browser: Any, file: Path, look: str, width: int) -> None:
    for page in opened(browser, file, viewport={"width": width, "height": 800}, color_scheme=look):
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_paper_all_is_said_and_nothing_is_cut(page: Any) -> None:
    # What Ctrl+P tells the page; the other way round it is as it was.
    closed = page.locator(":is(#notes, #failures) details.card:not([open])")
    before = closed.count()
    assert before > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert closed.count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert closed.count() == before
    # Nothing is wider than the paper: 190 mm of 96 pixels an inch.
    page.set_viewport_size({"width": 718, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    wide = "[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    assert max(page.evaluate(wide)) <= 2
    assert page.pdf(format="A4", prefer_css_page_size=True).count(b"/Type /Page\n") <= 6


def test_a_page_like_that_of_the_main_job_prints_on_six_sheets(browser: Any, tmp_path: Path) -> None:
    # Two exams of six methods and a bound, five rounds, ten seeds, as `ianvs -f digits_class_incremental`.
    names = ("joint", "derpp", "replay", "gdumb", "ewc", "finetune", "lwf")
    cases = [
        replace(one, case=replace(one.case, testenv=exam, id=f"{one.case.id}{exam}", row=f"{one.case.row}{exam}"))
        for exam in ("class-incremental", "domain-incremental")
        for name in names
        for seed in range(10)
        for one in (learned(name, seed, rounds=5, bound=name == "joint"),)
    ]
    file = tmp_path / "report.html"
    file.write_text(page_of(cases, 10))
    for page in opened(browser, file):
        assert page.pdf(format="A4", prefer_css_page_size=True).count(b"/Type /Page\n") <= 6
        page.set_viewport_size({"width": 718, "height": 1000})
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        wide = "[...document.querySelectorAll('.scroll, .grid, .card')].map((one) => one.scrollWidth - one.clientWidth)"
        assert max(page.evaluate(wide)) <= 2
        # A score and its spread stay in one line where the table has room for them.
        heights = page.locator("table.board tbody tr").evaluate_all("all => all.map((one) => one.offsetHeight)")
        assert max(heights) < 22


@pytest.mark.parametrize("look", ["light", "dark"])
def test_an_accessibility_check_finds_nothing(browser: Any, file: Path, look: str) -> None:
    axe = find_spec("axe_core_python")
    if axe is None or not axe.submodule_search_locations:
        pytest.skip("axe-core-python is not installed")
    checks = (Path(axe.submodule_search_locations[0]) / "axe.min.js").read_text()
    for page in opened(browser, file, color_scheme=look):
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.set_input_files("#earlier", file)
        page.locator("#compared p").first.wait_for()
        page.evaluate(checks)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [(one["id"], one["impact"], one["nodes"][0]["html"][:120]) for one in found["violations"]] == []
