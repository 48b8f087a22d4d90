"""`ianvs new`: what it writes runs as it is, and it writes over nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.base.package import shipped_jobs
from ianvs.cli import main
from ianvs.cli.installed_commands import NEW_TEMPLATES
from tests.errors import printed
from tests.marks import slow

ONE_OF_EACH = ("digits_class_incremental", "clear10", "continual_news", "mdil_ss", "memory_town")  # kinds of data


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", [kind if kind == "job" else slow(kind) for kind in NEW_TEMPLATES])
def test_what_it_writes_runs_unchanged_and_is_ranked(kind: str, tmp_path: Path) -> None:
    assert main(["new", kind, "first-try"]) == 0
    results = ianvs.run("first-try", engine="inline", settings={"epochs": 2} if kind == "job" else {})
    assert results.exit_code == 0
    frame = results.leaderboard_frame
    assert len(frame) >= 2
    assert set(frame["Status"]) == {"finished"}
    assert (tmp_path / "workspace").is_dir()


@pytest.mark.parametrize("kind", NEW_TEMPLATES)
def test_nothing_of_the_template_is_left_in_names(kind: str, tmp_path: Path) -> None:
    main(["new", kind, "other"])
    for path in filter(Path.is_file, (tmp_path / "other").iterdir()):
        assert f"my_{kind}" not in path.read_text()
        assert f"my_{kind}" not in path.name
        assert f"My{kind.title()}" not in path.read_text()


def test_it_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "testenv.yaml").write_text("my work")
    assert main(["new", "job", "mine"]) == 2
    printed(capsys.readouterr().err)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["testenv.yaml"]
    assert (tmp_path / "mine" / "testenv.yaml").read_text() == "my work"


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        ("algorithm numpy", "'numpy'"),
        ("metric json", "'json'"),
        ("metric 1st", "'1st'"),
        ("dataset class", "'class'"),
        ("job cases", "'cases'"),
        ("job mine --from digits_clas_incremental", "'digits_class_incremental'"),
        ("job mine --from other/benchmarkingjob.yaml", "'other/benchmarkingjob.yaml'"),
    ],
)
def test_names_that_can_not_be(arguments: str, quoted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert quoted in error
    printed(error)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_that_name_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert main(["new", "algorithm", "mine"]) == 0
    assert (tmp_path / "mine" / "mine.py").is_file()


@pytest.mark.parametrize("name", [name if name in ONE_OF_EACH else slow(name) for name in sorted(shipped_jobs())])
def test_a_copy_of_a_shipped_job_stands_alone_and_is_the_same_job(name: str, tmp_path: Path) -> None:
    assert main(["new", "job", "copy", "--from", name]) == 0
    files = [path for path in (tmp_path / "copy").iterdir() if path.is_file()]
    text = {path.name: path.read_text() for path in files}
    assert not [file for file in text if "../" in text[file]]
    originals = [path.read_text() for path in shipped_jobs()[name].parent.glob("benchmarkingjob.yaml")]
    assert text["benchmarkingjob.yaml"].count("#") == originals[0].count("#")  # comments are kept
    assert text["benchmarkingjob.yaml"].endswith("$schema=.schema/job.json\n")
    try:
        planned = [(case.case.id, case.case.algorithm, case.case.testenv) for case in ianvs.plan(name)]
    except ConfigError as error:
        lacking = re.search("there is no folder|the variable MAMMOTH is not set", str(error))  # it is not here
        assert lacking is not None
        with pytest.raises(ConfigError, match=lacking[0]):
            ianvs.plan("copy")
        return
    assert [(case.case.id, case.case.algorithm, case.case.testenv) for case in ianvs.plan("copy")] == planned
