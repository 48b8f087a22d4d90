"""One job of a checkout of KubeEdge Ianvs: copied, migrated, given tiny data, validated and run, within limits.

All of this happens in a copy, with the commands of `ianvs` itself, so users see the same messages.
"""

import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import distributions
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pandas as pd
import yaml

from ianvs.base.errors import IanvsError
from ianvs.base.secrets import hide_secrets
from ianvs.cli.ianvs_examples.example_environment import Environment, Environments
from ianvs.cli.ianvs_examples.failure_owner import (
    cause_of_failure,
    cause_of_refusal,
    needs_more_than_packages,
    shortened,
)
from ianvs.cli.ianvs_examples.plugin_training import trains_weights
from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, prctl
from ianvs.running.planning.named_files import content_digest
from ianvs.store.keys import digest
from ianvs.testenv.ianvs_layouts.tiny_data import UnknownLayoutError, made, shrunk
from ianvs.testenv.ianvs_layouts.tiny_weights import checkpoints, source_text, stand_ins

NOT_COPIED = (".git", "docs", "workspace", "__pycache__")
_BESIDE = re.compile(r"It is in (.*): set PYTHONPATH")
_TRIES = 8  # each adds the packages, or the folders of packages, that were missing in the one before


@dataclass(frozen=True)
class Example:
    """The outcome of a job; a row of the table."""

    job: str  # its file, relative to the checkout
    paradigm: str = ""
    starts: bool = False  # passed all checks
    finishes: bool = False  # a metric is finite and not the same everywhere, and training (if any) changed a weight
    configurations: int = 0
    scores: str = ""  # a metric with its smallest and largest value
    weights: str = ""  # "changed" by train(), "not changed", or "" where nothing is trained
    random_weights: str = ""  # files or models that a library would have downloaded
    changed: str = ""  # changes in the copy, other than paths and data
    environment: str = ""  # requirements that were installed for it
    cause: str = ""  # what is missing: checkout, package, weights, service, card, limit or ours
    missing: str = ""  # in one line
    seconds: float = 0.0


@dataclass(frozen=True)
class Limits:
    """Limits of a job: seconds for all of it, megabytes (10^6 bytes) for each case."""

    seconds: float
    memory_mb: float


def run_example(
    job: Path,
    checkout: Path,
    below: Path,
    limits: Limits,
    again: bool,
    stop: Event,
    environments: Environments | None = None,
) -> Example:
    """Try a job in a copy and return the outcome, or return the stored outcome if the files of its example are
    unchanged.

    job: relative to `checkout`. Its folder in `below` keeps example.json, log.txt and the workspace. stop: set when the
    command is being ended; then KeyboardInterrupt is raised, and nothing is stored. environments: None: nothing is
    installed.
    """
    folder = below / re.sub(r"\W+", "_", str(job.with_suffix("")))
    stored, copy = folder / "example.json", folder / "checkout"
    example = checkout.joinpath(*job.parts[:2]) if len(job.parts) > 2 else (checkout / job).parent
    packages = sorted(f"{package.name} {package.version}" for package in distributions())
    lists = None if environments is None else dict(environments.lists)
    # Everything that the outcome depends on.
    key = digest([asdict(limits), sys.executable, packages, lists, content_digest(example)])
    if stored.is_file() and not again and (record := json.loads(stored.read_bytes()))["key"] == key:
        return Example(**record["example"])
    begun = monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    try:
        row = _tried(job, copy, folder, limits, environments)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    if stop.is_set():
        raise KeyboardInterrupt
    row = replace(row, seconds=round(monotonic() - begun, 1))
    stored.write_text(json.dumps({"key": key, "example": asdict(row)}, indent=1) + "\n", encoding="utf-8")
    return row


def _tried(job: Path, copy: Path, folder: Path, limits: Limits, environments: Environments | None) -> Example:
    # From the copy, since paths lead on from where Ianvs is called: here it may be the checkout itself, or another one.
    command = (sys.executable, "migrate", str(copy / job), "--out", str(copy / ".run"))
    status, output = _ianvs(command, os.environ, limits, folder / "log.txt")
    if status:
        return _lacking(Example(str(job)), *cause_of_refusal(output, copy))
    written_files = (file.resolve() for file in sorted((copy / ".run").rglob("*.yaml")))
    files = {file: yaml.safe_load(file.read_text("utf-8")) for file in written_files}
    by_kind = {kind: (file, data[kind]) for file, data in files.items() for kind in data}
    file, root = by_kind["benchmarkingjob"]
    algorithms = [data["algorithm"] for data in files.values() if "algorithm" in data]
    exam = by_kind["testenv"][1]
    paradigm = algorithms[0]["paradigm_type"]
    row = Example(str(job), paradigm)
    written, words = exam["dataset"], f"{job} {exam['dataset']}"
    try:
        exam["dataset"] = made(written, words, paradigm, copy / ".data", 0, copy / ".run")
    except UnknownLayoutError as error:
        return _lacking(row, "ours", str(error))
    code, records = source_text((copy / job).parent), folder / "records"
    variables, stand_in = stand_ins(code, copy / ".weights", records)
    random_weights = checkpoints(algorithms, copy / ".weights")
    root["workspace"] = str(folder / "workspace")
    root["working_directory"] = str(_called_from(copy / job, copy))  # relative paths of plugins begin there
    run = _Runs(file, job, copy, code, _variables(variables), limits, environments)
    changed = [*shrunk(exam, algorithms), *stand_in]
    trains = paradigm not in _INFERENCE and trains_weights(_module_files(algorithms, file.parent), code)

    def about(row: Example) -> Example:
        random = dict.fromkeys([*random_weights, *_recorded(records / "random_weights")])
        weights = ("changed" if _recorded(records / "trained") else "not changed") if trains and row.starts else ""
        others = dict.fromkeys([*changed, *_recorded(records / "stand_ins")])
        packages = ", ".join(Path(line).name for line in run.environment.requirements)
        return replace(
            row, weights=weights, random_weights=", ".join(random), changed="; ".join(others), environment=packages
        )

    rows: list[dict[str, float]] = []
    for draw in (0, 1):
        if draw:  # of one configuration: do its scores follow the data?
            exam["dataset"] = made(written, words, paradigm, copy / ".data", draw, copy / ".run")
        for path, data in files.items():
            path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        try:
            status, output = run.run_job()
        except IanvsError as error:
            return about(_lacking(row, "package", shortened(f"packages that can't be installed: {error}", copy)))
        if status == 2:
            return about(_lacking(row, *cause_of_refusal(output, copy)))
        row = replace(row, starts=True)
        if status == 124:
            return about(_lacking(row, "limit", "it took longer than --seconds"))
        if status != 0:
            return about(_lacking(row, *cause_of_failure(folder / "workspace", copy)))
        rows += _scores(folder / "workspace" / root["name"], [metric["name"] for metric in exam["metrics"]])
        if len(rows) > 1:
            break
        shutil.rmtree(folder / "workspace")  # a case with an equal index would count as finished
    over = "2 sets of tiny data" if draw else f"{len(rows)} configurations"
    row = about(_judged(replace(row, configurations=1 if draw else len(rows)), rows, over))
    if row.finishes and row.weights == "not changed":
        return _lacking(replace(row, finishes=False), "checkout", "it ends, but its train() changed no weight")
    return row


def _called_from(job: Path, copy: Path) -> Path:
    """Return the folder in which Ianvs is started for a job, to which its paths are relative: the checkout or the
    job's own.
    """
    written = str(yaml.safe_load(job.read_text("utf-8"))["benchmarkingjob"].get("testenv"))
    return next((folder for folder in (copy, job.parent) if (folder / written).is_file()), copy)


_INFERENCE = ("jointinference", "multiedgeinference")  # paradigms in which nothing is trained


def _module_files(algorithms: Sequence[Mapping[str, Any]], base: Path) -> list[Path]:
    modules = (module for algorithm in algorithms for module in algorithm["modules"])
    return [base / module["url"] for module in modules if module.get("url")]


def _recorded(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines() if file.is_file() else []


def _lacking(row: Example, owner: str, missing: str) -> Example:
    return replace(row, cause=owner, missing=missing)


def _variables(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a machine without network and without GPU."""
    path = os.pathsep.join(filter(None, (given.get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", ""))))
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **given, **fixed, "PYTHONPATH": path}


@dataclass
class _Runs:
    """Runs of one job by `ianvs run`, in an environment to which missing packages are added."""

    file: Path
    job: Path
    copy: Path
    source: str
    variables: dict[str, str]
    limits: Limits
    environments: Environments | None
    environment: Environment = field(default_factory=Environment)

    def run_job(self) -> tuple[int, str]:
        """Run the job until no more packages, or folders of packages, are reported missing.

        Return (exit status, output).

        Raises:
            IanvsError: A package can't be installed.
        """
        if self.environments is not None and self.environment == Environment():
            self.environment = self.environments.first(self.job, self.copy, self.source)
        memory = f"limits.memory_mb={self.limits.memory_mb}"
        for _ in range(_TRIES):
            command = [self.environment.python, "run", "-f", str(self.file), "--jobs", "1", "--device", "cpu"]
            command += ["--quiet", "--set", memory, "--set", f"limits.check_seconds={self.limits.seconds}"]
            status, output = _ianvs(command, self.variables, self.limits, self.copy.parent / "log.txt")
            if status in (0, 124) or not self._more(output):  # imports inside functions fail only when these run
                break
        return status, output

    def _more(self, output: str) -> bool:
        """Add what the checks reported missing; return False if there is nothing to add, or if it would not help.

        If several folders have a package, the one nearest to the job is taken.
        """
        if needs_more_than_packages(output):
            return False
        home = self.copy / self.job
        beside = [
            max(listed.split(", "), key=lambda folder: len(os.path.commonpath([folder, home])))
            for listed in _BESIDE.findall(output)
        ]
        self.variables["PYTHONPATH"] = os.pathsep.join([*dict.fromkeys(beside), self.variables["PYTHONPATH"]])
        before = self.environment
        if self.environments is not None:
            self.environment = self.environments.next(before, output, self.job, self.copy)
        return bool(beside) or self.environment != before


def _ianvs(command: Sequence[str], environment: Mapping[str, str], limits: Limits, log: Path) -> tuple[int, str]:
    """Run a command of ours (its interpreter first) and return (exit status, output).

    124: it exceeded the time limit.
    """
    whole = [command[0], "-m", "ianvs", *command[1:]]
    process = subprocess.Popen(
        whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=dict(environment),
        cwd=log.parent / "checkout", start_new_session=True, preexec_fn=_begin_child,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limits.seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # it ends its cases
        try:
            output, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        status = 124
    output = hide_secrets(output, environment=os.environ)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(whole)}\n{output}\n")
    return status, output


def _begin_child() -> None:
    """Set up a new process: no core file, and it ends when this command ends in any way."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _scores(folder: Path, metrics: Sequence[str]) -> list[dict[str, float]]:
    """Return the metrics of each configuration; nan if one is missing or not a number."""
    table = pd.read_csv(folder / "rank" / "all_rank.csv", dtype=str).reindex(columns=list(metrics))
    return [*table.apply(pd.to_numeric, errors="coerce").to_dict("records")]


def _judged(row: Example, rows: Sequence[Mapping[str, float]], over: str) -> Example:
    """Mark the row as finished if a metric is finite in all `rows` and not the same in all.

    Otherwise say what is wrong.
    """
    columns = {name: [metrics[name] for metrics in rows] for name in rows[0]}
    finite = {name: values for name, values in columns.items() if all(map(math.isfinite, values))}
    if not finite:
        return _lacking(row, "ours", "it ends, but no score is a finite number on tiny data")
    name = next((name for name, values in finite.items() if len(set(values)) > 1), next(iter(finite)))
    low, high = min(finite[name]), max(finite[name])
    if low == high:
        return _lacking(row, "ours", f"it ends, but {name} is {low:.4g} in all of {over}")
    return replace(row, finishes=True, scores=f"{name} {low:.4g} to {high:.4g} in {over}")
