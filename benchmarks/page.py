"""What a page of many rows costs: its size, and in Chromium, where there is one, the time until it is seen.

    python benchmarks/page.py [--rows 400 2000] [--chromium /usr/bin/chromium]

Prints of pages with so many rows (a grid of ten methods, three seeds, six rounds, eight settings): seconds to write,
MB, ms to the first sight, and ms of a sort and of a filter, until the browser has laid out what they leave. Medians of
five. Without Chromium or playwright it prints time and size alone.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ianvs.base.types import CaseResult, RoundResult, ScoreMatrix, TestCase
from ianvs.config.spec import RankSpec
from ianvs.exam.metrics.registry import find
from ianvs.results.page.replies import ExamQuestions
from ianvs.results.page.write_page import page_text
from ianvs.results.report.leaderboard import build_leaderboard
from ianvs.results.report.row_scores import PassedScores

ROUNDS, SEEDS, METHODS, SETTINGS = 6, 3, 10, 8
ACT = """async (act) => {
  const took = [];
  for (let n = 0; n < 5; n++) {
    const start = performance.now();
    if (act === "sort") document.querySelectorAll("table.board thead button")[3].click();
    else {
      const box = document.getElementById("filter");
      box.value = n % 2 ? "" : "method_1|method_2 accuracy>0.3";
      box.dispatchEvent(new Event("input"));
    }
    document.body.getBoundingClientRect();
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
    took.push(performance.now() - start);
  }
  return took;
}"""


def cases(rows: int) -> Iterator[CaseResult]:
    """Results that never ran."""
    draw = np.random.default_rng(0)
    names = tuple(f"round {k}" for k in range(ROUNDS))
    for n in range(rows):
        settings = {f"setting_{k}": float(draw.integers(1, 50)) / 10**k for k in range(SETTINGS)} | {"number": n}
        for seed in range(SEEDS):
            values = draw.random((ROUNDS + 1, ROUNDS))
            case = TestCase(
                f"{n:032x}{seed}", f"{n:032x}", f"method_{n % METHODS}", "incrementallearning",
                (("basemodel", "Network"),), settings, seed,
            )  # fmt: skip
            rounds = tuple(
                RoundResult(k, name, train_seconds=float(draw.random()), eval_seconds=0.1, peak_memory_bytes=3e8)
                for k, name in enumerate(("untrained", *names))
            )
            score = {"accuracy": float(values[-1].mean()), "BWT": float(draw.normal())}
            matrix = ScoreMatrix(values, "accuracy", names, names)
            told = {"rounds": rounds, "matrices": {"accuracy": matrix}, "metrics": score}
            yield CaseResult(case, "finished", "made up", names, Path("none", "cases", case.id), **told)


def page(rows: int) -> str:
    metrics = [found for name in ("accuracy", "BWT") if (found := find(name)) is not None]
    passed, every = PassedScores(SEEDS), list(cases(rows))
    rank = RankSpec((("accuracy", True),))
    table = build_leaderboard(passed.watch(every), rank, metrics, ["accuracy", "BWT"], SEEDS)
    return page_text(table, passed, every, ExamQuestions(Path("none")))


def in_browser(file: Path, chromium: str) -> str:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        sights, opened = [], None
        for _ in range(5):
            opened = browser.new_page(viewport={"width": 1280, "height": 900})
            opened.goto(file.as_uri())
            seen = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            opened.wait_for_function(seen)
            sights.append(opened.evaluate(seen))
        assert opened is not None
        acts = {act: statistics.median(opened.evaluate(ACT, act)) for act in ("sort", "filter")}
        browser.close()
    return f"first sight {statistics.median(sights):.0f} ms, " + ", ".join(f"{k} {v:.0f} ms" for k, v in acts.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[400, 2000])
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    parser.add_argument("--chromium", default=found)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for rows in given.rows:
            start, file = time.perf_counter(), Path(folder, f"{rows}.html")
            file.write_text(page(rows), encoding="utf-8")
            said = f"{rows} rows: {time.perf_counter() - start:.1f} s to write, {file.stat().st_size / 1e6:.2f} MB"
            seen = given.chromium and find_spec("playwright")
            print(said + (f", {in_browser(file, given.chromium)}" if seen else ""), flush=True)


if __name__ == "__main__":
    main()
