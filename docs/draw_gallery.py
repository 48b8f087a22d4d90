"""Writes docs/gallery/JOB.html, the page of a job for the site, from what a workspace holds of it.

python docs/draw_gallery.py WORKSPACE JOB

It is report.html without links to the pages of cases, which are not kept, and without the places of files on the
machine that made it: those of the checkout begin there, the workspace is called workspace.
"""

import json
import sys
from pathlib import Path

import ianvs
from ianvs.results.page.replies import ExamQuestions
from ianvs.results.page.write_page import page_text

GALLERY = Path(__file__).with_name("gallery")
MOST = 1_000_000  # bytes: it is committed


def without_places(provenance: dict[str, object], workspace: Path) -> dict[str, object]:
    """configs/JOB/benchmarkingjob.yaml is the file of every job of the gallery."""
    made = provenance["configuration"]
    assert isinstance(made, dict)
    text = json.dumps(provenance)
    for place, name in (
        (made["workspace"], "workspace"),
        (str(workspace), "workspace"),
        (f"{Path(made['file']).parents[2]}/", ""),
    ):
        text = text.replace(json.dumps(place)[1:-1], name)
    found: dict[str, object] = json.loads(text)
    return found


def main(workspace: str, job: str) -> None:
    results = ianvs.load_results(workspace, job=job)
    provenance = without_places(dict(results.provenance), results.workspace)
    text = page_text(
        results.leaderboard.select(results.rank),
        results.passed,
        results.reported,
        ExamQuestions(results.workspace),
        title=job,
        command=f"ianvs -f configs/{job}/benchmarkingjob.yaml",
        provenance=provenance,
    )
    if len(text) > MOST:
        sys.exit(f"the page of {job} is larger than {MOST} bytes")
    (GALLERY / f"{job}.html").write_text(text, encoding="utf-8")


main(*sys.argv[1:])
