"""The pages of cases beside the page of a job."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from ianvs.base.types import CaseResult, Failure
from ianvs.results.page.write_page import write_page
from ianvs.results.report.row_scores import PassedScores
from tests.unit.results.page.page_cases import learned
from tests.unit.results.page.reading import read
from tests.unit.results.report.report_cases import board, failed


def written(cases: list[CaseResult], folder: Path) -> dict[str, str]:
    """The texts of the pages of cases, by what report.html calls their rows."""
    table = board(cases, (("accuracy", True),), 2)
    passed = PassedScores(2)
    kept = list(passed.watch(cases))

    def of_rows(keys: Collection[tuple[str, str]]) -> list[CaseResult]:
        return [result for result in kept if (result.case.row, result.case.algorithm) in keys]

    page, *_ = write_page(table, passed, kept, of_rows, folder, workspace=folder)
    links = read(page.read_text()).all("a", class_="name")
    return {link.text: (page.parent / link.attributes["href"]).read_text() for link in links}


def jobs_cases(folder: Path) -> list[CaseResult]:
    found = []
    for one in (
        learned("ewc", 0, hyperparameters={"strength": 7}),
        learned("ewc", 1, hyperparameters={"strength": 7}),
        failed("broken", 0),
    ):
        directory = folder / "cases" / one.case.id[-12:]
        directory.mkdir(parents=True)
        log = directory / "log.txt"
        log.write_text(f"first line\nlast line of {one.case.algorithm} {one.case.seed} <b>")
        failure = one.failure and Failure("exception", "RuntimeError", one.failure.message, log)
        found.append(replace(one, case=replace(one.case, id=directory.name), directory=directory, failure=failure))
    return found


def test_a_row_leads_to_its_cases_with_settings_matrices_and_logs(tmp_path: Path) -> None:
    pages = written(jobs_cases(tmp_path), tmp_path)
    assert set(pages) == {"ewc", "broken"}
    page = read(pages["ewc"])
    assert [heading.text for heading in page.all("h2")] == ["Seed 0: finished", "Seed 1: finished"]
    assert "of ewc 1 <b>" in page.text
    assert "strength7" in page.text
    assert len(list(page.all("svg", class_="heat"))) == 2
    assert "of broken 0" in read(pages["broken"]).text
    assert "Seed 0: failed" in read(pages["broken"]).text


def test_only_what_has_changed_is_written_again(tmp_path: Path) -> None:
    cases = jobs_cases(tmp_path)
    written(cases, tmp_path)
    files = sorted((tmp_path / "rank" / "cases").iterdir())
    for case in cases:
        os.utime(case.directory, (1, 1))
    for file in files:
        file.write_text("as it was")
    os.utime(cases[-1].directory)
    os.utime(next(file for file in files if file.name.startswith("broken")), (5, 5))
    assert {name: text == "as it was" for name, text in written(cases, tmp_path).items()} == {
        "ewc": True,
        "broken": False,
    }
