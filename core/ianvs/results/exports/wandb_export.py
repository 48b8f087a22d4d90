"""`--to wandb`: offline runs, one for each case; `wandb sync` sends them later, if that is wanted."""

import shutil
from pathlib import Path

from ianvs.results.exports.case_runs import CaseRun, case_runs, notes_list
from ianvs.results.exports.exporting import environment, require_package
from ianvs.results.report.row_tables import to_frame
from ianvs.results.stored import Results

_HIDDEN = {"WANDB_CACHE_DIR": ".cache", "WANDB_CONFIG_DIR": ".config", "WANDB_DATA_DIR": ".data"}  # deleted afterwards


def write(results: Results, folder: Path) -> None:
    """Write `folder`/wandb/offline-run-*: series by round as history, final numbers as summary, all else as config."""
    quiet = {
        "WANDB_MODE": "offline",
        "WANDB_ERROR_REPORTING": "false",  # disables its crash reports over the network
        **{name: str(folder / hidden) for name, hidden in _HIDDEN.items()},
    }
    with environment(**quiet):
        with require_package("wandb", "wandb"):
            import wandb
        settings = wandb.Settings(
            mode="offline",
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
        )
        try:
            for run in case_runs(results):
                _write_run(results, run, folder, settings)
            with wandb.init(
                project=results.name, dir=folder, name="leaderboard", id="leaderboard", settings=settings
            ) as board:
                table = to_frame(results.leaderboard).astype(object)
                board.log({"leaderboard": wandb.Table(dataframe=table.where(table.notna(), None).astype(str))})
                board.summary["notes"] = notes_list(results)
        finally:
            wandb.teardown()
            for hidden in _HIDDEN.values():
                shutil.rmtree(folder / hidden, ignore_errors=True)


def _write_run(results: Results, run: CaseRun, folder: Path, settings: object) -> None:
    import wandb

    with wandb.init(
        project=results.name,
        dir=folder,
        id=run.name[-120:],
        name=run.name,
        group=run.result.case.row,
        job_type=run.result.case.algorithm,
        config={**run.params, **{f"tag.{name}": text for name, text in run.tags.items()}},
        settings=settings,
    ) as logged:
        for k, values in run.by_round:
            logged.log(values, step=k)
        logged.define_metric("train/*", step_metric="train/hundredths")
        for name, series in run.curves.items():
            for at, value in series:
                logged.log({name: value, "train/hundredths": at})
        logged.summary.update(dict(run.numbers))
        logged.finish(exit_code=0 if run.result.status == "finished" else 1)
