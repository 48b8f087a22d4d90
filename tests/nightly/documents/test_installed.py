"""What is installed: the same from a checkout (editable) and from a wheel, wherever one stands."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.edits import edited
from tests.jobs import MAJORITY, write_job

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    return next(folder.glob("ianvs_bench-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A python whose own ianvs is the wheel's; everything else is that of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # All folders of packages: those that an environment has from another one by a .pth are not found through it.
    others = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "others.pth").write_text("\n".join(others))
    return python


@pytest.fixture(params=["wheel", "editable"])
def python(request: pytest.FixtureRequest) -> Path:
    return Path(sys.executable) if request.param == "editable" else request.getfixturevalue("installed")


def ianvs(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "ianvs", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_wheel_puts_one_name_beside_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"ianvs", "ianvs_bench"}
    assert len({name.split("/")[0] for name in names}) == 2  # ianvs, ianvs_bench-VERSION.dist-info
    assert len(names) == len(set(names))
    for carried in ("testalgorithms/ewc/basemodel.py", "testenv/__init__.py", "configs/clear10/benchmarkingjob.yaml"):
        assert f"ianvs/{carried}" in names
    for asset in ("page.html.j2", "page.css", "page.js", "CITATION.cff"):
        assert f"ianvs/results/page/assets/{asset}" in names
    assert "ianvs/results/report/charts/chart.css" in names
    assert not [name for name in names if "__pycache__" in name or "/workspace/" in name]


def test_a_job_that_ships_is_known_by_its_name_anywhere(python: Path, tmp_path: Path) -> None:
    listed = ianvs(python, tmp_path, "jobs")
    assert "digits_class_incremental" in listed.stdout
    checked = ianvs(python, tmp_path, "validate", "-f", "digits_class_incremental")
    assert (checked.returncode, checked.stderr) == (0, "")
    shown = ianvs(python, tmp_path, "jobs", "digits_class_incremental").stdout
    assert "benchmarkingjob:" in shown
    assert "testenv:" in shown
    assert "algorithm:" in shown


def test_a_name_that_nothing_has_is_told_with_the_closest_one(python: Path, tmp_path: Path) -> None:
    said = ianvs(python, tmp_path, "-f", "digits_clas_incremental")
    assert said.returncode == 2
    assert "'digits_class_incremental'" in said.stderr


def test_a_folder_with_a_job_in_it_is_that_job(python: Path, tmp_path: Path) -> None:
    write_job(tmp_path / "mine", engine="local")
    assert ianvs(python, tmp_path, "validate", "-f", "mine").returncode == 0


@pytest.mark.parametrize("kind", ["job", "algorithm", "metric", "dataset", "paradigm"])
def test_what_new_writes_is_understood_where_nothing_else_is(installed: Path, tmp_path: Path, kind: str) -> None:
    assert ianvs(installed, tmp_path, "new", kind, "mine").returncode == 0
    planned = ianvs(installed, tmp_path, "plan", "-f", "mine")
    assert (planned.returncode, planned.stderr) == (0, "")


@pytest.mark.parametrize("own", ["core.py", "core/__init__.py", "testalgorithms.py", "configs/__init__.py"])
def test_a_plugin_beside_its_authors_own_core_runs(python: Path, tmp_path: Path, own: str) -> None:
    name = own.removesuffix(".py").removesuffix("/__init__")
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).write_text("FACTOR = 1\n")
    write_job(
        tmp_path, plugin=f"from {name} import FACTOR\nassert FACTOR == 1\n{MAJORITY}", job="seeds: [0]", engine="local"
    )
    ran = ianvs(python, tmp_path, "-f", "benchmarkingjob.yaml")
    assert ran.returncode == 0, ran.stderr


def test_built_in_methods_have_one_identity_wherever_they_are_installed(installed: Path, tmp_path: Path) -> None:
    write_job(tmp_path)
    text = (tmp_path / "algorithm.yaml").read_text()
    built_in = edited(text, "name: Majority\n", "name: EWC\n", "      url: ./plugin.py\n", "")
    assert built_in != text
    (tmp_path / "algorithm.yaml").write_text(built_in.partition("      hyperparameters")[0])
    plans = [ianvs(p, tmp_path, "plan", "-f", "benchmarkingjob.yaml") for p in (Path(sys.executable), installed)]
    assert plans[0].returncode == 0, plans[0].stderr
    assert plans[0].stdout == plans[1].stdout
