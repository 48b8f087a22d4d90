"""Results of cases -> a ranked leaderboard -> terminal, csv, markdown, pictures, frames."""

from ianvs.report.chosen import Chosen
from ianvs.report.columns import Column
from ianvs.report.leaderboard import Leaderboard, build_leaderboard
from ianvs.report.leaderboard_row import LeaderboardRow
from ianvs.report.row_tables import cases_frame, rounds_frame, to_frame
from ianvs.report.terminal import render
from ianvs.report.write import write_reports

__all__ = [
    "Chosen",
    "Column",
    "Leaderboard",
    "LeaderboardRow",
    "build_leaderboard",
    "cases_frame",
    "render",
    "rounds_frame",
    "to_frame",
    "write_reports",
]
