"""Published numbers beside ours."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

import ianvs
from ianvs.config.spec import PublishedSpec, RankSpec
from ianvs.results.report.build_document import document_of
from ianvs.results.report.leaderboard import Leaderboard, build_leaderboard
from ianvs.results.report.markdown import markdown
from ianvs.results.report.row_tables import csv_text
from ianvs.results.report.terminal import render
from ianvs.running.inspector import Inspector
from ianvs.running.planning.plan import make_plan
from tests.contract.running.scheduler.test_validate_like_run import model
from tests.edits import edited
from tests.errors import errors_of, printed, recorded
from tests.jobs import write_job
from tests.unit.results.report.report_cases import METRICS, WORKSPACE, cells, failed, result

TABLE = "Brie et al. 2020, table 9"


def spec(
    mean: float, std: float | None = None, n: int | None = None, margin: float | None = None, percent: bool = False
) -> PublishedSpec:
    unit = "percent" if percent else "fraction"
    return PublishedSpec(mean=mean, std=std, n=n, margin=margin, unit=unit, source=TABLE)


def board(**accuracy: PublishedSpec) -> Leaderboard:
    """Three seeds of a and of b, with mean 0.8 and 0.6 and spread 0.01; what is published of their accuracy."""
    results = [result(name, s, mean + (s - 1) / 100) for name, mean in (("a", 0.8), ("b", 0.6)) for s in range(3)]
    published = {name: {"accuracy": one} for name, one in accuracy.items()}
    return build_leaderboard(results, RankSpec(()), METRICS, ["accuracy", "lost"], 3, WORKSPACE, published=published)


def verdicts(**accuracy: PublishedSpec) -> list[object]:
    return cells(board(**accuracy), "accuracy_agrees")


def test_a_row_says_what_is_published_and_whether_it_is_equal() -> None:
    table = board(a=spec(80.43, 1.89, 10, percent=True), b=spec(0.7, 0.02, 10))
    assert cells(table, "accuracy_published") == [pytest.approx(0.8043), 0.7]
    assert cells(table, "accuracy_published_std") == [pytest.approx(0.0189), 0.02]
    unclear, differs = cells(table, "accuracy_agrees")
    assert "(-0.004, -0.024 to 0.015; " in str(unclear) and differs == "differs (-0.100, -0.120 to -0.080)"
    printed(str(unclear))


def test_a_published_percentage_keeps_its_digits() -> None:
    assert csv_text(board(a=spec(99.4, 0.7, 10, percent=True))).count(",0.994,0.007,") == 1  # 99.4 / 100 is more


def test_the_margin_is_of_the_entry_in_its_unit() -> None:
    one_point = verdicts(a=spec(80.4, 0.2, 10, percent=True), b=spec(0.602, 0.002, 10))
    assert ["14 seeds" in str(one_point[0]), "9 seeds" in str(one_point[1])] == [True, True]
    printed("\n".join(map(str, one_point)))
    assert verdicts(a=spec(80.4, 0.2, 10, margin=3, percent=True), b=spec(0.602, 0.002, 10, margin=0.03)) == [
        "equal (-0.004, -0.028 to 0.020)",
        "equal (-0.002, -0.026 to 0.022)",
    ]


def test_a_verdict_has_as_many_decimals_as_a_tenth_of_the_margin_needs() -> None:
    assert verdicts(a=spec(0.8, 0.001, 10, margin=0.2)) == ["equal (+0.00, -0.02 to 0.02)", None]
    assert "(+0.00000, -0.02" in str(verdicts(a=spec(0.8, 0.001, 10, margin=0.0005))[0])


def test_a_spread_that_no_number_of_our_seeds_outweighs_is_told() -> None:
    verdict, none = verdicts(a=spec(0.79, 0.05, 5))
    assert "(+0.010, -0.051 to 0.071; " in str(verdict) and none is None
    printed(str(verdict))


def test_columns_are_there_only_for_metrics_that_somebody_published() -> None:
    titles = [column.title for column in board(a=spec(0.8)).columns]
    start = titles.index("accuracy_std")
    assert titles[start + 1 : start + 5] == ["accuracy_published", "accuracy_published_std", "accuracy_agrees", "lost"]
    assert not [title for title in titles if title.startswith("lost_p")]
    assert cells(board(a=spec(0.8)), "accuracy_published") == [0.8, None]


def test_what_is_not_known_of_the_spread_is_said() -> None:
    both = list(map(str, verdicts(a=spec(0.79, 0.01), b=spec(0.59))))
    assert len(set(both)) == 2 and all("(+0.010, -0.015 to 0.035; " in verdict for verdict in both)
    printed("\n".join(both))


def test_one_seed_has_no_verdict() -> None:
    published = {"a": {"accuracy": spec(0.79, 0.01, 5)}}
    table = build_leaderboard([result("a", 0)], RankSpec(()), METRICS, ["accuracy", "lost"], 1, published=published)
    assert [str(cell).split(" (")[0] for cell in cells(table, "accuracy_agrees")] == ["no verdict"]
    printed(str(cells(table, "accuracy_agrees")[0]))


def test_a_row_that_lacks_a_case_agrees_with_nothing() -> None:
    published = {"a": {"accuracy": spec(0.8, 0.1, 10)}}
    table = build_leaderboard(
        [result("a", 0), failed("a", 1)], RankSpec(()), METRICS, ["accuracy", "lost"], 2, published=published
    )
    assert cells(table, "accuracy_agrees") == [None]
    assert cells(table, "accuracy_published") == [0.8]


def test_the_csv_the_page_and_the_terminal_carry_it() -> None:
    table = board(a=spec(80.43, 1.89, 10, percent=True))
    first = next(csv.DictReader(io.StringIO(csv_text(table))))
    assert float(first["accuracy_published"]) == pytest.approx(0.8043)
    assert [first["accuracy_agrees"]] == cells(table, "accuracy_agrees")[:1]
    stream = io.StringIO()
    render(table, Console(file=stream, width=200, force_terminal=True, color_system=None), explain=True)
    for text in (markdown(document_of(table)), stream.getvalue()):
        assert "0.804 ± 0.019" in text
        assert re.search(rf"0\.8043 ± 0\.0189.*{TABLE}", text.replace("\n", " "))
        assert "Welch" in text


def test_a_narrow_terminal_shows_the_verdict_without_its_interval() -> None:
    stream = io.StringIO()
    render(board(a=spec(0.7, 0.02, 10)), Console(file=stream, width=80, force_terminal=True, color_system=None))
    [row] = [line for line in stream.getvalue().splitlines() if " a " in line and "0.800" in line]
    assert "differs" in row
    assert "differs (" not in row
    [left_out] = [line for line in stream.getvalue().replace("\n", " ").split(". ") if "Not shown here" in line] or [""]
    assert "accuracy_agrees" not in left_out


def test_columns_that_are_not_selected_take_theirs_along() -> None:
    selected = board(a=spec(0.8)).select(RankSpec((), metrics=("lost",)))
    assert not [column.title for column in selected.columns if column.title.startswith("accuracy")]


def with_published(path: Path, published: str) -> Path:
    path.write_text(
        edited(path.read_text(), "url: ./algorithm.yaml}", f"url: ./algorithm.yaml, published: {published}}}")
    )
    return path


def test_a_job_carries_it_through_run_and_load_and_it_is_no_part_of_a_case(tmp_path: Path) -> None:
    bare = write_job(tmp_path, hyperparameters="", job="engine: inline")
    job = ianvs.validate(bare)
    before = [case.id for case, _ in make_plan(job, Inspector(job, inline=True)).cases()]
    path = with_published(bare, f"{{accuracy: {{mean: 20, std: 1, n: 3, unit: percent, source: '{TABLE}'}}}}")
    ran = ianvs.run(path)
    assert [result.case.id for result in ran] == before
    loaded = ianvs.load_results(tmp_path / "ws")
    assert cells(loaded.leaderboard, "accuracy_published") == cells(ran.leaderboard, "accuracy_published") == [0.2]
    assert cells(loaded.leaderboard, "accuracy_agrees") == cells(ran.leaderboard, "accuracy_agrees")
    record = json.loads((tmp_path / "ws" / "test" / "job.json").read_text())
    assert TABLE in json.dumps(record)


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ("{acuracy: {mean: 0.8, source: x}}", ("unknown-column", "benchmarkingjob.yaml:9:61")),
        ("{accuracy: {mean: 0.8}}", ("missing-key", "benchmarkingjob.yaml:9:61")),
        ("{accuracy: {mean: 0.8, source: x, sdt: 1}}", ("unknown-key", "benchmarkingjob.yaml:9:94")),
        ("{accuracy: {mean: much, source: x}}", ("wrong-type", "benchmarkingjob.yaml:9:78")),
        ("{accuracy: {mean: 0.8, std: 0, source: x}}", ("out-of-range", "benchmarkingjob.yaml:9:88")),
        ("{accuracy: {mean: 0.8, std: 1, n: 1, source: x}}", ("out-of-range", "benchmarkingjob.yaml:9:94")),
        ("{accuracy: {mean: 0.8, margin: 0, source: x}}", ("out-of-range", "benchmarkingjob.yaml:9:91")),
        ("{accuracy: {mean: 0.8, margin: .inf, source: x}}", ("out-of-range", "benchmarkingjob.yaml:9:91")),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, monkeypatch, published: str, expected: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = with_published(write_job(tmp_path, plugin=model(), name="Model", hyperparameters=""), published)
    assert errors_of(ianvs.validate, path) == [expected]


def test_a_grid_of_several_settings_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = with_published(write_job(tmp_path), "{accuracy: {mean: 0.8, source: x}}")
    assert errors_of(ianvs.validate, path) == [("invalid-published", "benchmarkingjob.yaml:9:61")]


def test_several_testenvs_are_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = with_published(write_job(tmp_path, hyperparameters=""), "{accuracy: {mean: 0.8, source: x}}")
    text = (tmp_path / "testenv.yaml").read_text()
    (tmp_path / "other.yaml").write_text(edited(text, "rounds: 5", "rounds: 2"))
    path.write_text(edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
    assert errors_of(ianvs.validate, path) == [("invalid-published", "benchmarkingjob.yaml:9:61")]


def test_a_percentage_that_does_not_say_so_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = with_published(write_job(tmp_path, hyperparameters=""), "{accuracy: {mean: 80.4, source: x}}")
    assert recorded(ianvs.validate(path).warnings) == [("doubtful-unit", "benchmarkingjob.yaml:9:78")]
