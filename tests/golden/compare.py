"""Compare every stored answer of two trees of ianvs: same machine, same interpreter, same torch, one seed.

    python tests/golden/compare.py OLD NEW [--jobs a,b] [--quick] [--work DIR]

OLD and NEW are checkouts, or revisions of this repository; these are checked out for the comparison and removed
afterwards. Each job of `configs/` runs once in each tree with seed 0. Cases are matched by exam, algorithm, resolved
hyperparameters and seed, and then array by array: labels, what else is stored of each sample, scores.

Exit status: 0 all equal, 1 something differs, 2 wrong usage or something couldn't run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import yaml

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.golden.differences import CannotCompareError, Key, compare_answers, load_answers

__all__ = ["JOBS", "Tree", "main"]

JOBS = (
    *("digits_class_incremental", "methods_digits", "scenarios_digits", "clear_drift", "lifelong_digits"),
    *("federated_digits", "joint_inference_digits", "digits_hierarchy", "digits_prequential", "detection_shapes"),
    *("memory_town", "mdil_ss_streets"),
)
SEED = 0
_READER = Path(__file__).resolve().parent / "read_answers.py"
_REPOSITORY = Path(__file__).resolve().parents[2]
_PLUGIN = """
from pathlib import Path

import ianvs

used = Path(ianvs.__file__).resolve()
assert used.is_relative_to({core!r}), f"this process uses {{used}}"


class Constant:
    def train(self, train_data, valid_data=None): ...

    def predict(self, data):
        return [0] * len(data)

    def save(self, path): ...

    def load(self, path): ...
"""
_CHECK_JOB = {
    "benchmarkingjob.yaml": {
        "benchmarkingjob": {
            "name": "which_tree",
            "testenv": "./testenv.yaml",
            "test_object": {"type": "algorithms", "algorithms": [{"name": "constant", "url": "./algorithm.yaml"}]},
            "rank": {"sort_by": [{"accuracy": "descend"}]},
        }
    },
    "testenv.yaml": {
        "testenv": {
            "dataset": {"name": "digits"},
            "scenario": {"name": "class-incremental", "rounds": 2},
            "metrics": [{"name": "accuracy"}],
        }
    },
    "algorithm.yaml": {
        "algorithm": {
            "paradigm_type": "incrementallearning",
            "modules": [{"type": "basemodel", "name": "Constant", "url": "./plugin.py"}],
        }
    },
}


class Tree:
    """A checkout, with the environment in which its ianvs and its entry points come before any installed ones.

    Args:
        root: The checkout.
        work: Folder for workspaces and logs.

    Raises:
        CannotCompareError: It is no checkout of ianvs.
    """

    def __init__(self, root: Path, work: Path) -> None:
        self.root, self.work = root.resolve(), work
        if not (self.root / "core" / "ianvs" / "__init__.py").is_file():
            raise CannotCompareError(f"{root} is neither a checkout of ianvs nor a revision of this repository")
        work.mkdir(parents=True, exist_ok=True)
        metadata = work / "metadata"
        self._write_metadata(metadata)
        path = os.pathsep.join([str(metadata), str(self.root / "core")])
        self.environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def _write_metadata(self, folder: Path) -> None:
        """Write the entry points of the tree's pyproject.toml where importlib.metadata looks first."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text())["project"]
        groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
        lines = []
        for group, points in groups.items():
            lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items()), ""]
        # Our distribution has had two names: an installed one of the other name would bring its entry points, too.
        points = "\n".join(lines)
        others = {name: "" for name in _installed() if name != project["name"]}
        for name, text in {project["name"]: points, **others}.items():
            info = folder / f"{name.replace('-', '_')}-{project['version']}.dist-info"
            info.mkdir(parents=True, exist_ok=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n")
            (info / "entry_points.txt").write_text(text)

    def _python(self, *arguments: str | Path, log: Path) -> int:
        with log.open("w") as output:
            command = [sys.executable, "-P", *map(str, arguments)]
            return subprocess.run(
                command, cwd=self.root, env=self.environment, stdout=output, stderr=subprocess.STDOUT
            ).returncode

    def _ianvs(self, job: Path, workspace: Path, log: Path, *options: str) -> int:
        settings = ("--set", f"seeds=[{SEED}]", "--device", "cpu", *options)
        return self._python("-m", "ianvs", "-f", job, "--workspace", workspace, *settings, log=log)

    def check_processes(self) -> None:
        """Run a small job whose plugin refuses an ianvs from elsewhere, in every process that imports it.

        Raises:
            CannotCompareError: A process that this tree's ianvs starts uses another tree.
        """
        folder, log = self.work / "which_tree", self.work / "which_tree.log"
        folder.mkdir(exist_ok=True)
        for name, content in _CHECK_JOB.items():
            (folder / name).write_text(yaml.safe_dump(content))
        (folder / "plugin.py").write_text(_PLUGIN.format(core=str(self.root / "core")))
        if self._ianvs(folder / "benchmarkingjob.yaml", folder / "workspace", log):
            raise CannotCompareError(f"{self.root}: a check that all processes use this tree failed:\n{_tail(log)}")

    def answers(self, job: str, *, quick: bool) -> dict[Key, np.ndarray]:
        """Run a job with one seed and return everything that it stored.

        Args:
            job: Name of a folder in configs/.
            quick: Only the first algorithm, with the reference runs that it needs.

        Raises:
            CannotCompareError: The job is missing, was interrupted, or its results can't be read.
        """
        path = self.root / "configs" / job / "benchmarkingjob.yaml"
        if not path.is_file():
            raise CannotCompareError(f"{self.root} has no job '{job}'")
        listed = yaml.safe_load(path.read_text())["benchmarkingjob"]
        only = ("--only", listed["test_object"]["algorithms"][0]["name"]) if quick else ()
        workspace, log, out = (self.work / f"{job}{end}" for end in ("", ".log", ".npz"))
        shutil.rmtree(workspace, ignore_errors=True)  # a run would take over what an earlier state of core answered
        status = self._ianvs(path, workspace, log, *only)
        if status not in (0, 1):  # 1: a case failed, which its stored status says
            raise CannotCompareError(f"{job} in {self.root} ended with status {status}:\n{_tail(log)}")
        if self._python(_READER, workspace, listed["name"], out, log=log):
            raise CannotCompareError(f"the answers of {job} in {self.root} can't be read:\n{_tail(log)}")
        return load_answers(out)


def _installed() -> set[str]:
    """Names of the installed distributions that bring parts of ianvs."""
    return {
        distribution.metadata["Name"]
        for distribution in distributions()
        if any(point.value.startswith("ianvs.") for point in distribution.entry_points)
    }


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def checked_out(name: str, folder: Path) -> Iterator[Path]:
    """The folder `name`, or a temporary worktree of the revision `name`.

    Raises:
        CannotCompareError: It is neither.
    """
    if Path(name).is_dir():
        yield Path(name)
        return
    git = ("git", "-C", str(_REPOSITORY))
    added = subprocess.run([*git, "worktree", "add", "--detach", str(folder), name], capture_output=True, text=True)
    if added.returncode:
        raise CannotCompareError(f"{name} is neither a folder nor a revision: {added.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", str(folder)], capture_output=True)


def run(old: str, new: str, jobs: Sequence[str], quick: bool, work: Path) -> bool:
    """Compare two trees, print what differs, and return whether anything does.

    Raises:
        CannotCompareError: Something couldn't run.
    """
    with tempfile.TemporaryDirectory(prefix="compare-") as temporary, ExitStack() as stack:
        trees = []
        for side, name in (("old", old), ("new", new)):
            root = stack.enter_context(checked_out(name, Path(temporary, side)))
            trees.append(Tree(root, work / side))
        for tree in trees:
            tree.check_processes()
        differs = False
        for job in jobs:
            began = time.monotonic()
            methods = compare_answers(*(tree.answers(job, quick=quick) for tree in trees))
            different = {name: method for name, method in methods.items() if method.different}
            differs |= bool(different)
            answers = sum(method.answers for method in methods.values())
            verdict = "DIFFERENT" if different else "equal"
            cases = sum(len(method.cases) for method in methods.values())
            print(f"{job}: {verdict} ({cases} cases, {answers} answers, {time.monotonic() - began:.0f} s)")
            for (exam, algorithm), method in different.items():
                print(f"  {algorithm}{f' in {exam}' if exam else ''}: {method.describe()}")
            sys.stdout.flush()
        return differs


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="folder of a checkout, or a git revision")
    parser.add_argument("new", metavar="NEW", help="the same, to be compared with it")
    parser.add_argument(
        "--jobs", default=",".join(JOBS), metavar="A,B", help="folders of configs/ (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="only the first algorithm of each job")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep workspaces and logs there")
    options = parser.parse_args(arguments)
    work = options.work or Path(tempfile.mkdtemp(prefix="compare-work-"))
    try:
        return int(run(options.old, options.new, options.jobs.split(","), options.quick, work.resolve()))
    except CannotCompareError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if options.work is None:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is temporary is removed
    sys.exit(main())
