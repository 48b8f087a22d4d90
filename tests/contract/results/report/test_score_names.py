"""Columns over the score matrix say of which score they are; errors rank by what they mean."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import ianvs
from ianvs import api
from ianvs.base.errors import shown_path
from ianvs.cli.command_line import main
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job

WRONG = """
def wrong(y_true, y_pred):
    return 100 * float((y_true != y_pred).mean())

wrong.higher_is_better = False
"""

NEAREST = '''
import numpy as np


class Nearest:
    """Nearest class mean; `forgets`: keeps the classes of the last round alone."""

    def __init__(self, forgets=False):
        self.forgets, self.means = forgets, {}

    def train(self, train_data, valid_data=None):
        x, y = np.stack(list(train_data.x)).reshape(len(train_data.y), -1), np.array(train_data.y)
        self.means = ({} if self.forgets else self.means) | {int(c): x[y == c].mean(0) for c in np.unique(y)}

    def predict(self, data):
        if not self.means:
            return [0] * len(data)
        x = np.stack(list(data.x)).reshape(len(data), -1)
        names, means = list(self.means), np.stack(list(self.means.values()))
        return [names[i] for i in ((x[:, None] - means) ** 2).sum(2).argmin(1)]

    def save(self, path):
        np.save(path.with_suffix(".npy"), self.means, allow_pickle=True)
        return path.with_suffix(".npy")

    def load(self, path):
        self.means = np.load(path, allow_pickle=True).item()
'''


def job(folder: Path, metrics: str, sort_by: str = "[{accuracy: descend}]", **settings: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(WRONG)
    exam = f"dataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: [{metrics}]"
    settings = {"hyperparameters": "", "job": "engine: inline"} | settings
    return write_job(folder, testenv=exam, sort_by=sort_by, **settings)


def both(folder: Path, metrics: str, sort_by: str) -> ianvs.Results:
    """Of a learner that forgets everything and one that doesn't."""
    grid = "- forgets: {values: [true, false]}"
    return ianvs.run(job(folder, metrics, sort_by, plugin=NEAREST, name="Nearest", hyperparameters=grid))


def titles(results: ianvs.Results) -> list[str]:
    return [column.title for column in results.leaderboard.columns if column.kind == "metric"]


@pytest.mark.parametrize(
    ("metric", "sort_by"), [("FM", "ascend"), ("BWT", "descend"), ("AA", "ascend"), ("AIA", "ascend")]
)
def test_who_forgets_everything_is_not_first_by_an_error(tmp_path, metric, sort_by):
    results = both(tmp_path, f"{{name: wrong, url: ./mine.py}}, {metric}", f"[{{{metric}: {sort_by}}}]")
    first, last = results.leaderboard.rows
    assert [row.hyperparameters["forgets"] for row in (first, last)] == [False, True]
    lost = {"FM": 1, "BWT": -1}.get(metric)
    if lost:
        assert lost * (last.metrics[metric].mean or 0) > 90  # percent: it forgot all


def test_an_average_of_errors_is_an_error_and_less_of_it_is_better(tmp_path):
    results = both(tmp_path, "{name: wrong, url: ./mine.py}, AA, FM", "[{AA: ascend}]")
    for row in results.leaderboard.rows:
        assert row.metrics["AA"].mean == pytest.approx(row.metrics["wrong"].mean)
    better = {c.key: c.higher_is_better for c in results.leaderboard.columns if c.kind == "metric"}
    assert better == {"wrong": False, "AA": False, "FM": False}
    loaded = ianvs.load_results(tmp_path / "ws").leaderboard
    assert loaded.rows == results.leaderboard.rows
    assert loaded.columns == results.leaderboard.columns


def test_with_one_score_titles_are_plain(tmp_path):
    results = ianvs.run(job(tmp_path, "mIoU, BWT, {name: FWT, of: mIoU}", "[{mIoU: descend}]"))
    assert titles(results) == ["mIoU", "BWT", "FWT"]


def test_of_the_first_score_a_title_is_plain_whatever_is_added(tmp_path):
    results = ianvs.run(job(tmp_path, "accuracy, f1, BWT, {name: AA, of: f1}"))
    assert titles(results) == ["accuracy", "f1", "BWT", "AA of f1"]
    [case] = results
    assert case.metrics["AA of f1"] == pytest.approx(case.metrics["f1"])
    with (tmp_path / "ws" / "test" / "rank" / "all_rank.csv").open() as stream:
        assert {"BWT", "BWT_std", "AA of f1"} <= set(next(csv.reader(stream)))
    page = (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    assert "\n- AA of f1: " in page and "\n- BWT: " in page


def test_of_a_score_that_is_not_the_first_a_title_says_so(tmp_path):
    assert titles(ianvs.run(job(tmp_path, "accuracy, {name: BWT, of: f1}"))) == ["accuracy", "BWT of f1"]


def test_one_metric_may_be_asked_for_of_two_scores(tmp_path):
    asked = "accuracy, f1, {name: AA, of: f1}, {name: AA, of: accuracy}"
    results = ianvs.run(job(tmp_path, asked, "[{AA of f1: descend}]"))
    [case] = results
    assert case.metrics["AA of f1"] == pytest.approx(case.metrics["f1"])
    assert case.metrics["AA"] == pytest.approx(case.metrics["accuracy"])
    assert results.leaderboard.sort_by == (("AA of f1", True),)
    assert ianvs.load_results(tmp_path / "ws").leaderboard.rows == results.leaderboard.rows


def test_a_rank_key_names_the_score_where_there_are_two(tmp_path):
    asked = "accuracy, f1, {name: BWT, of: f1}, {name: BWT, of: mIoU}"
    assert errors_of(ianvs.plan, job(tmp_path, asked, "[{BWT: descend}]")) == [
        ("unknown-column", f"{tmp_path}/benchmarkingjob.yaml:11:16")
    ]
    asked = "accuracy, f1, {name: BWT, of: f1}, {name: BWT, of: accuracy}"
    assert errors_of(ianvs.plan, job(tmp_path, asked, "[{FM of mIoU: descend}]")) == [
        ("unknown-column", f"{tmp_path}/benchmarkingjob.yaml:11:16")
    ]


def test_a_rank_key_may_be_the_bare_name_where_there_is_one(tmp_path):
    results = ianvs.run(job(tmp_path, "accuracy, f1, BWT", "[{BWT of accuracy: descend}]"))  # as earlier versions said
    assert results.leaderboard.sort_by == (("BWT", True),)
    assert results.leaderboard.rows[0].rank == 1


def test_selected_metrics_may_be_bare_names_or_columns(tmp_path):
    path = job(tmp_path, "accuracy, f1, {name: BWT, of: f1}, {name: BWT, of: accuracy}")
    for chosen, shown in (("BWT", ["BWT"]), ("BWT of f1", ["BWT of f1"])):
        selected = f"\n    selected_dataitem: {{metrics: [{chosen}]}}\n"
        one = path.with_name("one.yaml")
        one.write_text(path.read_text().rstrip() + selected)
        results = ianvs.run(one)
        board = results.leaderboard.select(results.rank)
        assert [column.title for column in board.columns if column.kind == "metric"] == shown


@pytest.mark.parametrize("twice", ["BWT, {name: BWT, of: accuracy}", "{name: BWT, of: accuracy}, BWT"])
def test_with_of_and_without_it_is_one_quantity(tmp_path, twice):
    [(code, place)] = errors_of(ianvs.plan, job(tmp_path, f"accuracy, {twice}"))
    assert (code, place.split(":")[1]) == ("duplicate-column", "4")
    again = job(tmp_path, "accuracy, {name: BWT, of: f1}, {name: BWT, of: f1}")
    assert errors_of(ianvs.plan, again) == [("duplicate-entry", f"{tmp_path}/testenv.yaml:4:51")]


def test_exams_that_ask_of_different_scores_are_each_ranked_by_their_own(tmp_path):
    path = job(tmp_path, "accuracy, AA", "[{AA: descend}]")
    first = (tmp_path / "testenv.yaml").read_text()
    other = edited(first, "metrics: [accuracy", "metrics: [f1", "rounds: 5", "rounds: 2")
    (tmp_path / "other.yaml").write_text(edited(other, "testenv:", "testenv:\n  name: two", count=1))
    path.write_text(edited(path.read_text(), "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
    rows = ianvs.run(path).leaderboard.rows
    assert [row.rank for row in rows] == [1, 1]
    assert [row.metrics["AA of f1"].mean is None for row in rows] == [True, False]


def test_a_report_names_metrics_that_are_not_computed_yet_and_a_run_says_that_it_only_scores(tmp_path, capsys):
    ianvs.run(job(tmp_path, "{name: accuracy}"))
    path = job(tmp_path, "{name: accuracy}, {name: wrong, url: ./mine.py}, {name: per_class_accuracy}")
    [note] = [note for note in api.report(path).job_notes if note.kind == "partial"]
    assert "wrong, per_class_accuracy" in note.text
    assert note.remedy == f"`ianvs -f {shown_path(path)}` computes them from the stored predictions, without training."
    assert main(["run", "-f", str(path)]) == 0
    told = capsys.readouterr()
    assert "1 case to score from what is stored; nothing is trained" in told.out + told.err
    assert not [note for note in api.report(path).job_notes if note.kind == "partial"]
