"""What a learner tells within a round: in the display, in what is stored, on the page, in exports."""

import io
import re

import pytest

import ianvs
from ianvs.api import export
from ianvs.cli import main
from ianvs.results.exports.case_runs import case_runs
from ianvs.results.exports.parquet_export import tables
from ianvs.running import progress
from ianvs.running.progress import PlainProgress, round_progress_text
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

TELLING = edited(
    edited(MAJORITY, "*, round, seed):", "*, round, seed, progress):"),
    "        for label in",
    """        for step in range(1, 301):
            progress(step / 300, loss=seed + 1 / (round * step), pace=float("nan"))
        progress(1.0, held_out_loss=float(round))
        for step in range(1, 301):
            progress(step / 300, loss=0.0)
        for label in""",
)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    return write_job(folder, plugin=TELLING, hyperparameters="", job="seeds: [0, 1]\njobs: 1")


@pytest.fixture(scope="module")
def lines(job):
    """What was printed while it ran, with a line for each report."""
    stream, minute = io.StringIO(), progress._MINUTE
    progress._MINUTE = 0.0
    try:
        ianvs.run(job, listener=PlainProgress(stream))
    finally:
        progress._MINUTE = minute
    return stream.getvalue()


@pytest.fixture(scope="module")
def results(job, lines):
    return ianvs.load_results(job.parent / "ws")


def test_a_run_in_lines_tells_how_far_a_round_is(lines):
    assert re.search(r"^majority, seed 0: round [1-5] of 5, \d+%, loss [01](\.\d+)?(e-05)?$", lines, re.M)
    assert re.search(r"^majority, seed 1: round [1-5] of 5, \d+%, loss [12](\.\d+)?$", lines, re.M)


def test_each_round_keeps_what_was_told_first_in_each_hundredth(results):
    for result in results:
        assert not result.rounds[0].curves
        for round_ in result.rounds[1:]:
            assert sorted(round_.curves) == ["held_out_loss", "loss"], "what is no number is left out"
            points = round_.curves["loss"]
            first = {100 * step // 300: step for step in range(300, 0, -1)}  # of each hundredth the first step
            wanted = [(step / 300, result.case.seed + 1 / (round_.index * step)) for _, step in sorted(first.items())]
            assert points == tuple(wanted)
            assert round_.curves["held_out_loss"] == ((1.0, float(round_.index)),)


def test_the_page_draws_them_over_the_rounds(job, results):
    assert main(["report", "-f", str(job)]) == 0
    rank = job.parent / "ws" / "test" / "rank"
    page = (rank / "report.html").read_text()
    assert "Training: loss" in page and "Training: held out loss" in page
    told = [one.split("|") for one in re.findall(r'data-values="([^"]+)"', page)]
    ends = [(one[0].split(": ")[1], one[-1].split(": ")[1]) for one in told]
    assert ("0.8333", "0.5007") in ends, "means of two seeds, every second point"


def test_exports_have_every_point(results, tmp_path):
    frame = tables(results)["curves"]
    assert len(frame) == sum(len(points) for r in results for k in r.rounds for points in k.curves.values())
    last = frame[(frame["quantity"] == "held_out_loss") & (frame["seed"] == 1)]
    assert last["value"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0] and set(last["share"]) == {1.0}
    run = next(iter(case_runs(results)))
    assert run.curves["train/held_out_loss"] == ((100, 1.0), (200, 2.0), (300, 3.0), (400, 4.0), (500, 5.0))


@pytest.mark.parametrize("to", ["parquet", "tensorboard", "mlflow", "wandb"])
def test_each_export_takes_them(job, results, tmp_path, to):
    pytest.importorskip({"parquet": "pyarrow"}.get(to, to))
    export(job, to=to, out=tmp_path / to)
    if to == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        folders = [folder for folder in (tmp_path / to).iterdir() if folder.name.startswith("majority")]
        read_back = EventAccumulator(str(folders[0])).Reload()
        assert [event.step for event in read_back.Scalars("train/held_out_loss")] == [100, 200, 300, 400, 500]


def test_the_same_words_follow_what_status_says():
    numbers = round_progress_text({"round": 2, "fraction": 0.353, "numbers": {"held_out_loss": 1.23456}})
    assert [part.strip() for part in numbers.split(",")] == ["", "35%", "held out loss 1.235"]
    assert round_progress_text({"round": 2, "doing": "evaluate"}) == ""
