"""A metric from one workspace to the next."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ianvs
from ianvs.cli import main
from ianvs.results.comparing.comparison_text import records_csv
from ianvs.results.comparing.history import (
    History,
    HistoryLine,
    Point,
    draw_history,
    history_picture,
    history_text,
)
from ianvs.results.stats import Summary
from tests.contract.results.comparing.small_jobs import PLUGIN, run
from tests.edits import edited
from tests.errors import errors_of, printed

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = {"plain": "[0.0, 0.1]"}


def git(folder: Path, *arguments: str, date: str = "2026-01-01T00:00:00Z") -> str:
    environment = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits of one job; the later one ran first, and the workspaces lie beside the repository."""
    folder = tmp_path_factory.mktemp("history")
    job = folder / "repository"
    job.mkdir()
    git(job, "init", "--quiet")
    changed = edited(PLUGIN, "self.noise * random", "2 * self.noise * random")
    commits = {}
    for date, plugin in (("2026-03-01T00:00:00Z", PLUGIN), ("2026-04-01T00:00:00Z", changed)):
        (job / "plugin.py").write_text(plugin)
        git(job, "add", "plugin.py")
        git(job, "commit", "--quiet", "-m", date, date=date)
        commits[date] = git(job, "rev-parse", "HEAD")
    for name, date, plugin in (("later", "2026-04-01T00:00:00Z", changed), ("early", "2026-03-01T00:00:00Z", PLUGIN)):
        git(job, "checkout", "--quiet", "--force", commits[date])
        (job / ".git" / "info" / "exclude").write_text("*\n")
        run(job, PLAIN, [0, 1], plugin=plugin, metrics="[{name: accuracy}]")
        (job / "ws").rename(folder / name)
    return folder


def test_workspaces_stand_in_the_order_of_their_commits(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(repository / "repository")
    later, early = repository / "later", repository / "early"
    found = ianvs.history([later, early])
    assert (found.metric, found.by_commit) == ("accuracy", True)
    assert [point.name for point in found.points] == [str(early), str(later)]
    assert [point.moment.month for point in found.points] == [3, 4]
    assert [line.label for line in found.lines] == ["plain noise=0.0", "plain noise=0.1"]
    noisy = [
        np.mean(
            [r.metrics["accuracy"] for r in ianvs.load_results(workspace) if r.case.hyperparameters["noise"] == 0.1]
        )
        for workspace in (early, later)
    ]
    assert [value.mean for value in found.lines[1].values] == pytest.approx(noisy)
    monkeypatch.chdir(tmp_path)  # no repository: by when they ran
    found = ianvs.history([early, later])
    assert not found.by_commit
    moments = [point.moment for point in found.points]
    assert moments == sorted(moments)


def test_the_command_shows_writes_and_draws(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(repository / "repository")
    sides = [str(repository / "later"), str(repository / "early")]
    files = [tmp_path / name for name in ("h.json", "h.csv", "h.svg")]
    options = [
        part for name, file in zip(("--json", "--csv", "--picture"), files, strict=True) for part in (name, str(file))
    ]
    assert main(["history", *sides, "--metric", "accuracy", *options]) == 0
    assert capsys.readouterr().out
    records = json.loads(files[0].read_text())["records"]
    assert [float(line["mean"]) for line in csv.DictReader(io.StringIO(files[1].read_text()))] == [
        record["mean"] for record in records
    ]
    before = files[2].read_bytes()
    assert b"plain noise=0.1" in before
    assert main(["history", *sides, "--picture", str(files[2])]) == 0
    assert files[2].read_bytes() == before
    assert main(["history", *sides, "--metric", "f1"]) == 2
    printed(capsys.readouterr().err)
    assert main(["history", *sides, "--picture", "h.bmp"]) == 2
    assert main(["history", sides[0]]) == 2


def history(lines: int, exams: tuple[str, ...] = ("",)) -> History:
    points = tuple(Point(f"w{n}", f"{n}abcdef0", n == 1, None) for n in range(3))
    made = [
        HistoryLine(f"method {n}", exam, "", (Summary(0.5 + n / 100, 0.01, 3), None, Summary(0.6, None, 1)))
        for exam in exams
        for n in range(lines)
    ]
    return History("accuracy", True, points, tuple(made), True)


def test_no_two_lines_of_a_picture_look_the_same() -> None:
    picture = history_picture(history(75))
    samples = [str(line["sample"]) for line in picture.legend]
    assert len(samples) == len(set(samples)) == 75


def test_each_exam_has_axes_and_a_missing_mean_has_no_point(tmp_path: Path) -> None:
    file = draw_history(history(1, ("one", "two")), tmp_path / "h.svg")
    root = ElementTree.parse(file).getroot()
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [text for text in texts if text in ("one", "two")] == ["one", "two"]
    assert texts.count("method 0") == 1  # in the legend: it is the same line in both
    assert [text for text in texts if text in ("0abcdef", "1abcdef+", "2abcdef")] == 2 * [
        "0abcdef",
        "1abcdef+",
        "2abcdef",
    ]
    lines = [
        path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "line c0" and "L" in path.get("d")
    ]
    assert [line.count("L") for line in lines] == [1, 1]  # from the first workspace to the third
    bars = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("stroke-width") == "1"]
    assert [bar.count("V") for bar in bars] == [1, 1]  # only the first mean is of several seeds


def test_long_names_of_workspaces_stand_aslant_and_within_the_picture(tmp_path: Path) -> None:
    found = history(1)
    long = 2 * tuple(
        replace(point, commit="", name=f"workspace of {point.name} on the cluster") for point in found.points
    )
    drawn = history_picture(replace(found, points=long)).drawing
    assert drawn.count("rotate(-35)") == 6
    assert "workspace of w0 o…" in drawn
    root = ElementTree.parse(draw_history(replace(found, points=long), tmp_path / "h.svg")).getroot()
    assert float(root.get("width")) > 600


@pytest.mark.parametrize("name", ["h.png", "h.bmp"])
def test_another_form_is_refused_with_what_makes_it(name: str, tmp_path: Path) -> None:
    assert errors_of(draw_history, history(1), tmp_path / name) == [("invalid-argument", "")]


def test_a_blank_is_what_a_workspace_lacks_and_a_plus_marks_local_changes() -> None:
    text = history_text(history(1))
    assert text.splitlines()[0].split() == ["Algorithm", "0abcdef", "1abcdef+", "2abcdef"]
    assert text.splitlines()[2].split("  ")[0] == "method 0"
    assert "0.500 ± 0.010" in text
    assert records_csv(history(1).records()).splitlines()[2].endswith("accuracy,,,0")
    assert replace(history(1).points[0], commit="").label == "w0"


def test_a_changed_setting_goes_on_in_its_line_and_is_told(tmp_path: Path) -> None:
    """The same rows are paired as by `ianvs compare`."""
    for name, noise in (("a", "[0.0, 0.1]"), ("b", "[0.0, 0.3]"), ("c", "[0.0, 0.3]")):
        run(tmp_path, {"plain": noise}, [0], metrics="[{name: accuracy}]")
        (tmp_path / "ws").rename(tmp_path / name)
    workspaces = [tmp_path / name for name in "abc"]
    found = ianvs.history(workspaces)
    assert [line.label for line in found.lines] == ["plain noise=0.0", "plain noise=0.3"]
    assert [[value is not None for value in line.values] for line in found.lines] == [[True] * 3] * 2
    [changed] = [change for line in found.lines for change in line.changed]
    assert changed.startswith("noise 0.1 -> 0.3")
    assert any(line.startswith("plain noise=0.3") and changed in line for line in history_text(found).splitlines())
    [contrast] = ianvs.compare(workspaces[:2]).contrasts
    pairs = {(row.pair.before.settings["Noise"], row.pair.after.settings["Noise"]) for row in contrast.rows}
    assert pairs == {("0.0", "0.0"), ("0.1", "0.3")}


def test_one_workspace_is_no_history() -> None:
    assert errors_of(ianvs.history, []) == [("invalid-argument", "")]
