"""`--to tensorboard`: a folder of event files for each case, and one for the leaderboard."""

from pathlib import Path
from typing import Any

from ianvs.results.exports.case_runs import CaseRun, case_runs, leaderboard_markdown, matrix_table, notes_list
from ianvs.results.exports.exporting import require_package
from ianvs.results.stored import Results


def write(results: Results, folder: Path) -> None:
    """Write scalars by round, and training curves in steps of 1/100 round.

    The table HPARAMS has hyperparameters and final numbers; the rest is text.
    """
    with require_package("tensorboard", "tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    open_writer: Any = SummaryWriter  # without types
    for run in case_runs(results):
        with open_writer(str(folder / run.name)) as writer:
            _write_run(writer, run)
    with open_writer(str(folder / "leaderboard")) as writer:
        writer.add_text("leaderboard", leaderboard_markdown(results))
        writer.add_text("notes", notes_list(results))


def _write_run(writer: Any, run: CaseRun) -> None:
    moment = None if run.ended is None else run.ended.timestamp()
    for name, series in [*run.series.items(), *run.curves.items()]:
        for k, value in series:
            writer.add_scalar(name, value, k, walltime=moment)
    for score, matrix in run.result.matrices.items():
        writer.add_text(f"score/{score}", matrix_table(matrix), walltime=moment)
    tags = "\n".join(f"- **{name}**: {text}" for name, text in run.tags.items())
    writer.add_text("case", tags, walltime=moment)
    writer.add_hparams(dict(run.params), dict(run.numbers) or {"final/none": 0.0}, run_name=".", global_step=0)
