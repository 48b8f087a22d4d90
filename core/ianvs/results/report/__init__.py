"""Results of cases -> a ranked leaderboard -> terminal, csv, markdown, pictures, frames."""

from ianvs.results.report.build_document import write_reports
from ianvs.results.report.leaderboard import Chosen, Leaderboard, build_leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.row_tables import cases_frame, rounds_frame, to_frame
from ianvs.results.report.terminal import render

__all__ = [
    "Chosen",
    "Leaderboard",
    "LeaderboardRow",
    "build_leaderboard",
    "cases_frame",
    "render",
    "rounds_frame",
    "to_frame",
    "write_reports",
]
