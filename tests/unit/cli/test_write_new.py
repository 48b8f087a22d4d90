"""What `ianvs new` writes, and where it writes nothing."""

from ianvs.cli.scaffold import write_new
from tests.errors import errors_of


def test_a_file_that_exists_stays(tmp_path):
    assert write_new(tmp_path, {"metric.py": "first"}) == [tmp_path / "metric.py"]
    assert errors_of(write_new, tmp_path, {"metric.py": "second"}) == [("existing-output", "")]
    assert (tmp_path / "metric.py").read_text().strip() == "first"


def test_a_folder_below_a_file_can_not_be_written(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert errors_of(write_new, tmp_path / "file" / "new", {"metric.py": ""}) == [("unwritable-file", "")]
