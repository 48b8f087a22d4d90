"""Which job of a workspace is meant."""

from ianvs.results.stored.job_results import name_of_job
from tests.errors import errors_of


def test_the_only_job_needs_no_name_and_one_of_several_does(tmp_path):
    assert errors_of(name_of_job, tmp_path) == [("missing-results", "")]
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.json").write_text("{}")
        assert name_of_job(tmp_path, name) == name
        if name == "first":
            assert name_of_job(tmp_path) == "first"
    assert errors_of(name_of_job, tmp_path) == [("ambiguous-name", "")]
    assert errors_of(name_of_job, tmp_path, "third") == [("unknown-name", "")]
