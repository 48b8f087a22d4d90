"""Writes all reports of a job into its workspace."""

from collections.abc import Sequence
from typing import Any

from ianvs.base.errors import IanvsError
from ianvs.base.garbage import not_collecting
from ianvs.results.page.write_page import write_page
from ianvs.results.report.build_document import write_reports
from ianvs.results.stored import Results, record_of
from ianvs.store import JobStore


def write_all_reports(results: Results, again: str, page_only: bool = False, running: Sequence[str] = ()) -> None:
    """Record the results, and write the leaderboard, the page and the files of rank/.

    Args:
        results: What to report.
        again: The command that writes them once the disk has room.
        page_only: Write report.html alone.
        running: Sentences about running cases.

    Raises:
        IanvsError: They can't be written.
    """
    store = JobStore(results.workspace, results.name)
    with not_collecting():
        leaderboard = results.leaderboard  # first, so that unreadable files are reported before anything is written
    try:
        store.write(record_of(results))
        provenance = (store.read() or {}).get("provenance") or results.provenance
        command = str(provenance["command"])
        about: dict[str, Any] = {"title": results.name, "command": command, "provenance": provenance}
        if not page_only:
            write_reports(leaderboard, results.reported, results.rank, store.folder, **about)
        with not_collecting():
            selected = leaderboard.select(results.rank)
            about |= {"workspace": results.workspace, "running": running}
            write_page(selected, results.passed, results.reported, results.of_rows, store.folder, **about)
    except OSError as error:
        raise IanvsError(
            f"the reports can't be written: {error.strerror} ({error.filename}). What is finished is stored; "
            f"`{again}` writes them once there is room.",
            code="unwritable-file",
        ) from error
