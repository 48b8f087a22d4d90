"""Draws docs/leaderboard.svg, what a terminal shows of the main job, from what a workspace holds of it.

python docs/draw_leaderboard.py [workspace]
"""

import sys
from pathlib import Path

from rich.console import Console

import ianvs
from ianvs.results.report.terminal import render

NAME = "digits_class_incremental"


def main(workspace: str = "workspace") -> None:
    results = ianvs.load_results(workspace, job=NAME)
    console = Console(record=True, width=118, force_terminal=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    render(results.leaderboard, console)
    console.save_svg(
        str(Path(__file__).with_name("leaderboard.svg")),
        title=f"ianvs -f configs/{NAME}/benchmarkingjob.yaml",
        unique_id="leaderboard",  # else a change of one number changes every line
    )


main(*sys.argv[1:])
