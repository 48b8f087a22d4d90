"""What was stored by an earlier version of a method can still be read, and says so."""

from pathlib import Path

import ianvs
from ianvs import api
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

INLINE = "seeds: [0, 1]\nengine: inline"


def test_a_report_shows_what_an_earlier_method_has_stored_and_marks_it_until_it_is_run_again(tmp_path: Path) -> None:
    job = write_job(tmp_path, job=INLINE)
    before = ianvs.run(job)
    (tmp_path / "plugin.py").write_text(edited(MAJORITY, "seed / 1000", "seed / 999"))
    for _ in range(2):  # the mark is stored with what is reported, and stands there once
        found = api.report(job)
        assert [case.case.id for case in found] == [case.case.id for case in before]
        assert found.leaderboard_frame["accuracy"].equals(before.leaderboard_frame["accuracy"])
        [mark] = [str(note) for note in found.notes if note.kind == "version"]
        assert "before these changed: plugin.py. `ianvs run` makes the results anew." in mark
        assert "plugin.py. \\`ianvs run\\`" in (tmp_path / "ws/test/rank/leaderboard.md").read_text()
    assert not [note for note in ianvs.run(job).notes if note.kind == "version"]
    assert "before these changed" not in (tmp_path / "ws/test/rank/leaderboard.md").read_text()


def test_compare_says_which_methods_are_others(tmp_path: Path) -> None:
    job = write_job(tmp_path / "a", job=INLINE)
    ianvs.run(job)
    other = write_job(tmp_path / "b", job=INLINE, plugin=edited(MAJORITY, "seed / 1000", "seed / 999"))
    ianvs.run(other)
    said = str(ianvs.compare([tmp_path / "a/ws", tmp_path / "b/ws"]).contrasts[0].rows[0].pair.differs)
    assert "source plugin.py" in said
