"""`ianvs plot`: charts of stored results for a paper."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ianvs.base.errors import shown_path
from ianvs.cli.parser import add_command, add_job, settings_of, to_path


def add_plot(commands: argparse._SubParsersAction[Any]) -> None:
    about = "charts for a paper: a score over the rounds, and over a hyperparameter, with bands; svg and pdf"
    parser = add_command(commands, "plot", about, _plot)
    add_job(parser)
    about = "rounds, or a hyperparameter with several values; default: all of these"
    parser.add_argument("--over", metavar="WHAT", help=about)
    about = "a score, or a column of the leaderboard; default: what it is sorted by, over rounds the first score"
    parser.add_argument("--metric", metavar="NAME", help=about)
    about = "default: both, or svg alone where the extra `pdf` is not installed"
    parser.add_argument("--format", dest="formats", choices=("svg", "pdf"), action="append", help=about)
    parser.add_argument("--out", type=to_path, metavar="DIR", help="default: rank/plots of the job in its workspace")


def _plot(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.results.plots import FORMATS, pdf_blocker

    formats, why = options.formats or FORMATS, ""
    if options.formats is None and (why := pdf_blocker()):
        formats = ("svg",)
    chosen = {"over": options.over, "metric": options.metric, "formats": formats}
    for path in api.plot(options.file, options.out, **chosen, **settings_of(options)):
        print(shown_path(path))
    if why:
        print(f"No PDF was written. {why}", file=sys.stderr)
    return 0
