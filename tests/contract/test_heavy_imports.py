"""Commands and checks that must not wait for heavy packages: each import costs every process that a run starts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.contract.datasets.clear_trees import release
from tests.jobs import write_job

ARRAYS = {"torch", "torchvision", "pandas", "sklearn", "scipy", "PIL"}
SPEC = "from pathlib import Path\nfrom ianvs.exam import data\nfrom ianvs.config.spec import DatasetSpec\n"
STEPS = {
    "commands of datasets": ("import ianvs.testenv.datasets.dataset_command", {*ARRAYS, "numpy", "yaml"}),
    "the command line": ("import ianvs.cli", {*ARRAYS, "numpy", "pydantic", "rich", "matplotlib", "yaml"}),
    "configuration": ("import ianvs.config", {*ARRAYS, "numpy"}),
    "a metric by its name": ("from ianvs.exam.metrics import find; assert find('AA')", ARRAYS),
    "digits": (
        f"{SPEC}import ianvs.exam.scenarios\nspec, cache = DatasetSpec(name='digits'), Path('cache')\n"
        "assert not data.check_dataset(spec).problems; data.fingerprint(spec, cache); data.load(spec, cache)",
        ARRAYS,
    ),
    "images": (
        f"{SPEC}spec = DatasetSpec(name='clear10', root=Path('clear'))\n"
        "assert not data.check_dataset(spec).problems; data.fingerprint(spec, Path('cache'))",
        ARRAYS,
    ),
    "provenance": ("from ianvs.results.stored.provenance import collect; collect()", ARRAYS - {"PIL"}),
    "a plan": (
        "from ianvs.cli import main; assert main(['plan', '-f', 'job/benchmarkingjob.yaml']) == 0",
        {"torch", "pandas", "sklearn", "matplotlib"},
    ),
    "the list of algorithms": ("assert main(['list', 'algorithms']) == 0", {"torch"}),
}
"""Code, and what it must not import. In one process, so each may import more than the one before."""

PROGRAM = """
import contextlib, io, json, sys
imported, names = {}, {}
for step, (code, heavy) in json.loads(sys.argv[1]).items():
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    imported[step] = [name for name in heavy if name in sys.modules]
print(json.dumps(imported))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("imports")
    release(folder / "clear")
    write_job(folder / "job")
    steps = json.dumps({step: (code, sorted(heavy)) for step, (code, heavy) in STEPS.items()})
    # -P: the folder of the process is not where it looks for modules.
    command = [sys.executable, "-P", "-c", PROGRAM, steps]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_it_imports_nothing_heavy(step: str, imported: dict[str, list[str]]) -> None:
    assert imported[step] == []
