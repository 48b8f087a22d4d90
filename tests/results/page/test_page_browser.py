"""The page in a real browser. Needs Chromium and the packages of the extra `test`; skipped where they are not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.results.page.page_cases import learned, page_of
from tests.results.report.report_cases import failed

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
    rows = page.locator("table.board tbody tr:visible td.row-name")
    return [str(text) for text in rows.all_inner_texts()]


def column(page: Any, title: str) -> Any:
    return page.locator("table.board thead button", has_text=title).first


def test_a_click_sorts_and_another_turns_it_round_missing_last(page: Any) -> None:
    start = algorithms(page)
    assert start[-1] == "broken"
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
    column(page, "Rank").click()
    assert algorithms(page) == start


def test_the_keyboard_sorts_and_filters(page: Any) -> None:
    page.locator("#filter").focus()
    page.keyboard.type("Bound JOI")
    assert algorithms(page) == ["joint"]
    assert page.locator("#found").inner_text() == "1 of 16 rows"
    for _ in "Bound JOI":
        page.keyboard.press("Backspace")
    page.keyboard.type("method")
    assert len(algorithms(page)) == 14
    page.keyboard.press("Tab")  # to what follows the filter: the columns' button, or the table
    for _ in range(8):
        if page.evaluate("document.activeElement.textContent") == "accuracy":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").all_inner_texts() == ["accuracy"]
    low = page.locator("table.board tbody tr:visible").first.locator("td[data-n]").nth(1).get_attribute("data-n")
    page.keyboard.press("Space")
    high = page.locator("table.board tbody tr:visible").first.locator("td[data-n]").nth(1).get_attribute("data-n")
    assert float(low) < float(high)


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


def test_constant_columns_come_and_go(page: Any) -> None:
    head = page.locator("table.board th", has_text="Dataset")
    assert not head.is_visible()
    page.locator("button.more").click()
    assert head.is_visible()
    page.locator("button.more").click()
    assert not head.is_visible()


def test_lines_are_switched_by_their_boxes(page: Any) -> None:
    figure = page.locator("figure.card", has_text="Learning: accuracy")
    assert figure.locator("g.series:visible").count() == 10
    figure.get_by_role("button", name="all").click()
    assert figure.locator("g.series:visible").count() == 15
    figure.get_by_role("button", name="none").click()
    assert figure.locator("g.series:visible").count() == 0
    figure.locator("input").first.focus()
    page.keyboard.press("Space")
    assert figure.locator("g.series:visible").count() == 1


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


def test_on_paper_what_is_closed_is_open(page: Any) -> None:
    # What Ctrl+P tells the page; the other way round it is as it was.
    closed = page.locator("details.card:not([open])")
    before = closed.count()
    assert before > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert closed.count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert closed.count() == before


@pytest.mark.parametrize("look", ["light", "dark"])
def test_an_accessibility_check_finds_nothing(browser: Any, file: Path, look: str) -> None:
    axe = find_spec("axe_core_python")
    if axe is None or not axe.submodule_search_locations:
        pytest.skip("axe-core-python is not installed")
    checks = (Path(axe.submodule_search_locations[0]) / "axe.min.js").read_text()
    for page in opened(browser, file, color_scheme=look):
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.evaluate(checks)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [(one["id"], one["impact"], one["nodes"][0]["html"][:120]) for one in found["violations"]] == []
