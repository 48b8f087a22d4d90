"""Two workspaces beside each other: what is the same, what differs and in what, what got better and worse."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import ianvs
from ianvs.cli import main
from ianvs.results.comparing.comparison import Comparison, compare_sides
from ianvs.results.comparing.comparison_text import comparison_text
from ianvs.results.comparing.pairing import case_differences
from ianvs.results.comparing.sides import CaseFacts, Side, SideRow
from ianvs.results.stats import Summary
from tests.contract.results.comparing.small_jobs import PLUGIN, run
from tests.edits import edited
from tests.errors import errors_of, printed

CHECKOUT = Path(__file__).parents[4]


def row(algorithm: str = "ewc", values: dict[str, list[float | None]] | None = None, **more: object) -> SideRow:
    """values: by metric, of seeds 0, 1, ..."""
    found = {name: tuple(each) for name, each in (values or {}).items()}
    seeds = tuple(range(max(map(len, found.values()), default=0)))
    means = {
        name: Summary(float(np.mean(each)), float(np.std(each, ddof=1)) if len(each) > 1 else None, len(each))
        for name, each in found.items()
        if None not in each
    }
    given = {"testenv": "", "settings": {}, "status": "finished", **more}
    return SideRow(algorithm, means=means, seeds=seeds, values=found, **given)  # type: ignore[arg-type]


def side(*rows: SideRow, name: str = "a", metrics: dict[str, bool | None] | None = None, **more: object) -> Side:
    return Side(name, rows, metrics or {"accuracy": True, "FM": False}, **more)  # type: ignore[arg-type]


def compared(before: list[SideRow], after: list[SideRow]) -> Comparison:
    return compare_sides([side(*before), side(*after, name="b")])


def only(comparison: Comparison, metric: str = "accuracy"):
    [change] = [c for c in comparison.contrasts[0].rows[0].changes if c.metric == metric]
    return change


def test_differences_are_paired_by_seed_as_scipy_pairs_them() -> None:
    before, after = [0.90, 0.80, 0.85, 0.70], [0.93, 0.82, 0.90, 0.74]
    change = only(compared([row(values={"accuracy": before})], [row(values={"accuracy": after})]))
    theirs = scipy.stats.ttest_rel(after, before)
    assert change.difference.mean == pytest.approx(0.035)
    assert change.difference.p == pytest.approx(theirs.pvalue)
    assert (change.difference.low, change.difference.high) == pytest.approx(theirs.confidence_interval(0.95))
    assert (change.pairs, change.verdict, change.difference.separated) == (4, "better", True)


def test_only_seeds_that_both_have_are_pairs() -> None:
    before = row(values={"accuracy": [0.5, 0.6, 0.9]})
    after = replace(row(values={"accuracy": [0.7, 0.95]}), seeds=(1, 2))
    change = only(compared([before], [after]))
    assert (change.before, change.after, change.pairs) == (pytest.approx(0.75), pytest.approx(0.825), 2)
    assert change.difference.mean == pytest.approx(0.075)


def test_means_of_other_seeds_are_compared_as_welch_does() -> None:
    a, b = [0.9, 0.8, 0.85], [0.7, 0.75, 0.60, 0.71]
    after = replace(row(values={"accuracy": b}), seeds=(10, 11, 12, 13))
    change = only(compared([row(values={"accuracy": a})], [after]))
    theirs = scipy.stats.ttest_ind(b, a, equal_var=False)
    assert change.pairs == 0
    assert change.difference.p == pytest.approx(theirs.pvalue)
    assert (change.difference.low, change.difference.high) == pytest.approx(theirs.confidence_interval(0.95))
    assert change.verdict == "worse"


@pytest.mark.parametrize(
    ("metric", "before", "after", "verdict"),
    [
        ("accuracy", [0.5, 0.6], [0.6, 0.8], "better"),
        ("accuracy", [0.5, 0.6], [0.5, 0.5], "worse"),
        ("FM", [0.5, 0.6], [0.5, 0.5], "better"),
        ("FM", [0.5], [0.7], "worse"),
        ("FM", [0.5, 0.5], [0.5, 0.5], "equal"),
    ],
)
def test_better_and_worse_are_by_the_direction_of_the_metric(
    metric: str, before: list[float], after: list[float], verdict: str
) -> None:
    assert only(compared([row(values={metric: before})], [row(values={metric: after})]), metric).verdict == verdict


def test_rows_are_found_again_by_content_by_cases_and_as_the_only_one_of_an_algorithm() -> None:
    case = CaseFacts("c1", {"exam_id": "e"}, {})
    before = [
        row("ewc", settings={"Strength": "1"}),
        row("ewc", settings={"Strength": "2"}),
        row("old name", cases={0: case}),
        row("lwf", settings={"Alpha": "1"}),
        row("gone"),
    ]
    after = [
        row("lwf", settings={"Alpha": "3"}),
        row("new name", cases={0: case}),
        row("ewc", settings={"Strength": "2"}),
        row("ewc", settings={"Strength": "3"}),
        row("fresh"),
    ]
    [contrast] = compared(before, after).contrasts
    found = [(r.pair.before.algorithm, r.pair.after.algorithm, r.pair.after.settings) for r in contrast.rows]
    assert found == [
        ("ewc", "ewc", {"Strength": "3"}),
        ("ewc", "ewc", {"Strength": "2"}),
        ("old name", "new name", {}),
        ("lwf", "lwf", {"Alpha": "3"}),
    ]
    assert contrast.rows[3].pair.differs == ("Alpha 1 -> 3",)
    assert [r.algorithm for r in contrast.only_first] == ["gone"]
    assert [r.algorithm for r in contrast.only_other] == ["fresh"]


def test_an_exam_without_a_name_is_found_by_its_cases() -> None:
    cases = {0: CaseFacts("c1", {"exam_id": "e"}, {})}
    other = {0: CaseFacts("c2", {"exam_id": "f"}, {})}
    after = [row("ewc", testenv="online", cases=cases), row("ewc", testenv="offline", cases=other)]
    [contrast] = compared([row("ewc", cases=cases)], after).contrasts
    assert [r.pair.after.testenv for r in contrast.rows] == ["online"]
    assert [r.testenv for r in contrast.only_other] == ["offline"]


def test_what_two_cases_differ_in_is_said_in_words() -> None:
    algorithm = {"version": 3, "source": {"a.py": "1", "b.py": "2"}, "threads": 1}
    exam = {"version": 3, "dataset": "x", "scenario": {"rounds": 5}}
    identity = {"exam_id": "e", "exam": exam, "algorithm": algorithm, "hyperparameters": {"rate": 1}, "seed": 0}
    provenance = {
        "packages": {"torch": "2.4", "ray": None},
        "python": "3.11.1",
        "cpu": {"model": "Zen"},
        "git": {"commit": "a" * 40, "dirty": False},
    }
    other = {
        **identity,
        "exam": {**exam, "dataset": "y"},
        "algorithm": {**algorithm, "source": {"a.py": "1", "b.py": "3"}, "threads": 2},
        "hyperparameters": {"rate": 2},
    }
    later = {**provenance, "packages": {"torch": "2.5"}, "git": {"commit": "b" * 40, "dirty": True}}
    found = case_differences(CaseFacts("1", identity, provenance), CaseFacts("2", other, later))
    assert found[:5] == ["source b.py", "threads", "data", "rate 1 -> 2", "torch 2.4 -> 2.5"]
    printed("\n".join(found))
    assert case_differences(CaseFacts("1", identity, provenance), CaseFacts("1", identity, provenance)) == []
    [unwritten] = case_differences(CaseFacts("1", identity, {}), CaseFacts("2", identity, later))
    printed(unwritten)


def test_worse_by_more_than_the_limit_is_found_in_either_direction_and_rounding_is_not() -> None:
    found = compared([row(values={"accuracy": [0.92], "FM": [0.1]})], [row(values={"accuracy": [0.91], "FM": [0.15]})])
    assert found.worse("accuracy", 0.01) == []
    [worse] = found.worse("accuracy", 0.005)
    printed(str(worse))
    assert len(found.worse("FM", 0.04)) == 1
    assert found.worse("FM", 0.06) == []


def test_a_metric_that_a_row_has_no_more_is_worse_and_what_can_not_be_judged_is_an_error() -> None:
    found = compared([row(values={"accuracy": [0.9]})], [row(status="1 of 1 failed")])
    [gone] = found.worse("accuracy", 0.5)
    printed(str(gone))
    assert errors_of(found.worse, "acuracy", 0.1) == [("unknown-metric", "")]
    apart = compared([row("a", {"FM": [1.0]})], [row("b", {"FM": [1.0]})])
    assert errors_of(apart.worse, "FM", 0.1) == [("unfit-results", "")]


def test_a_row_that_is_gone_or_new_is_listed() -> None:
    text = comparison_text(compared([row("a"), row("b", settings={"Rate": "1"})], [row("a"), row("c")]))
    printed("\n".join(line for line in text.splitlines() if "Only" in line))
    assert "b (Rate=1)" in text


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds; and the same job after its plugin was edited for the worse, with a row less and a row more."""
    folder = tmp_path_factory.mktemp("jobs")
    run(folder / "old", {"plain": "[0.0, 0.1]", "gone": "[0.2]"}, [0, 1, 2], metrics="[{name: accuracy}]")
    changed = edited(PLUGIN, "self.noise * random", "(self.noise + 0.1 * (self.noise > 0)) * random")
    run(
        folder / "edited",
        {"plain": "[0.0, 0.1]", "new": "[0.3]"},
        [0, 1, 2],
        plugin=changed,
        metrics="[{name: accuracy}]",
    )
    return folder


def test_two_real_jobs(jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, changed = jobs / "old" / "ws", jobs / "edited" / "benchmarkingjob.yaml"
    found = ianvs.compare([old, changed])
    [contrast] = found.contrasts
    still, worse = contrast.rows
    assert (still.pair.same, still.pair.seeds) == ((), (0, 1, 2))
    assert still.pair.differs == worse.pair.differs == ("source plugin.py",)
    assert still.changes[0].verdict == "equal"
    values = [
        [result.metrics["accuracy"] for result in ianvs.load_results(ws) if result.case.hyperparameters["noise"] == 0.1]
        for ws in (old, jobs / "edited" / "ws")
    ]
    theirs = scipy.stats.ttest_rel(values[1], values[0])
    assert worse.changes[0].verdict == "worse"
    assert worse.changes[0].difference.p == pytest.approx(theirs.pvalue)
    assert [one.algorithm for one in contrast.only_first] == ["gone"]
    assert [one.algorithm for one in contrast.only_other] == ["new"]

    files = ["--json", str(tmp_path / "c.json"), "--csv", str(tmp_path / "c.csv")]
    assert main(["compare", str(old), str(changed), *files]) == 0
    text = capsys.readouterr().out
    assert "source plugin.py" in text and "gone" in text and "new" in text
    told = json.loads((tmp_path / "c.json").read_text())["comparisons"][0]["rows"][1]
    assert told["metrics"][0]["difference"] == pytest.approx(
        theirs.statistic * np.std(np.subtract(*values), ddof=1) / 3**0.5
    )
    with (tmp_path / "c.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["verdict"] for line in lines] == ["equal", "worse"]

    assert main(["compare", str(old), str(changed), "--fail-if-worse", "accuracy:0.0"]) == 1
    capsys.readouterr()
    assert main(["compare", str(old), str(changed), "--fail-if-worse", "accuracy:0.9"]) == 0
    assert main(["compare", str(changed), str(old), "--fail-if-worse", "accuracy:0.0"]) == 0
    assert main(["compare", str(old), str(changed), "--fail-if-worse", "f1:0.1"]) == 2
    printed(capsys.readouterr().err)
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(old), str(changed), "--fail-if-worse", "accuracy=0.1"])
    assert ended.value.code == 2


def test_a_workspace_against_its_own_report_is_equal_by_its_means(jobs: Path) -> None:
    workspace = jobs / "old" / "ws"
    for said in ("rank", "rank/all_rank.csv"):
        [contrast] = ianvs.compare([workspace, workspace / "small" / said]).contrasts
        assert [row.pair.before.name for row in contrast.rows] == [
            "plain (Noise=0.0)",
            "plain (Noise=0.1)",
            "gone (Noise=0.2)",
        ]
        assert {change.verdict for row in contrast.rows for change in row.changes} == {"equal"}
        assert {change.pairs for row in contrast.rows for change in row.changes} == {0}
        assert contrast.only_first == contrast.only_other == ()


def test_the_same_workspace_under_its_three_names_is_the_same(jobs: Path) -> None:
    workspace = jobs / "old" / "ws"
    names = [workspace, f"{workspace}:small", workspace / "small", jobs / "old" / "benchmarkingjob.yaml", jobs / "old"]
    found = ianvs.compare(names)
    assert len(found.contrasts) == 4
    rows = [row for one in found.contrasts for row in one.rows]
    assert all(not row.pair.differs and row.pair.same == (0, 1, 2) for row in rows)
    assert {change.verdict for row in rows for change in row.changes} == {"equal"}


def test_committed_reports_are_compared_by_their_means() -> None:
    report = CHECKOUT / "reports" / "digits_class_incremental"
    [contrast] = ianvs.compare([report, report / "all_rank.csv"]).contrasts
    assert len(contrast.rows) == 14
    assert not contrast.only_first
    directions = {change.metric: change.higher_is_better for row in contrast.rows for change in row.changes}
    assert directions["accuracy"] is True
    assert directions["FM"] is False


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ("empty", ("missing-results", "")),
        ("ws:smal", ("unknown-name", "")),
        ("nothing", ("missing-file", "")),
        ("odd.csv", ("unfit-results", "")),
    ],
)
def test_what_is_no_side_is_told_with_what_would_be_one(
    jobs: Path,
    tmp_path: Path,
    side: str,
    expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "ws").symlink_to(jobs / "old" / "ws")
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    assert errors_of(ianvs.compare, ["ws", side]) == [expected]
    assert main(["compare", "ws", side]) == 2
    assert capsys.readouterr().err


def test_fewer_than_two_are_no_comparison() -> None:
    assert errors_of(compare_sides, []) == [("invalid-argument", "")]
