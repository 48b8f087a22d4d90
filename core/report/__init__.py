"""Results of cases -> a ranked leaderboard -> terminal, csv, markdown, pictures, frames."""

from core.report.columns import Column
from core.report.leaderboard import Leaderboard, LeaderboardRow, build_leaderboard
from core.report.tables import cases_frame, rounds_frame, to_frame
from core.report.terminal import render
from core.report.write import write_reports

__all__ = [
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
