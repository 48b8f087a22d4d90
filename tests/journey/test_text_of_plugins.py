"""What a plugin says acts nowhere: no escape of a terminal, no mark that turns text around, none that is not seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.cli import main
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

ACTS = ("\x1b", "\x9b", "\u202e", "\u2066", "\u200b", "\ufeff")
NAME = "".join(f"{mark}x" for mark in ACTS)
ESCAPED = ascii(NAME)[1:-1]  # as YAML in double quotes and Python read it
PLUGIN = edited(
    edited(MAJORITY, "bias=0,", "bias=0, mode='',", "self.bias,", "self.remark, self.bias,", count=1),
    *("= bias,", f'= "{ESCAPED}", bias,', "no luck in round {round}", f"no luck {ESCAPED}"),
)


def test_text_of_a_plugin_is_shown_as_escapes_in_every_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = f'- fail_in_round: {{values: [null, 2]}}\n- mode: {{values: ["{ESCAPED}", b]}}'
    job = write_job(tmp_path, plugin=PLUGIN, hyperparameters=grid, job="seeds: [0]", engine="local")
    main(["run", "-f", str(job)])
    main(["report", "-f", str(job), "--explain"])
    main(["status", "-f", str(job)])
    main(["plan", "-f", str(job)])
    shown = dict(enumerate(capsys.readouterr()))
    shown |= {path.name: path.read_text() for path in (tmp_path / "ws/test/rank").rglob("*.*") if path.suffix != ".csv"}
    assert {"leaderboard.md", "leaderboard.tex", "report.html"} <= {name for name in shown if isinstance(name, str)}
    assert not [(name, mark) for name, text in shown.items() for mark in ACTS if mark in text]
    for text in (shown[0], shown["leaderboard.md"], shown["report.html"]):
        assert "x1b" in text and "u202e" in text
