"""One job of a checkout of KubeEdge Ianvs: copied, migrated, given tiny data, validated and run, within limits.

All happens in a copy, in processes of `ianvs` itself: what a maintainer sees here, a user sees there.
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
from dataclasses import asdict, dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from threading import Event
from time import monotonic

import pandas as pd
import yaml

from ianvs.base.secrets import hide_secrets
from ianvs.cli.ianvs_examples.failure_owner import failed, refused
from ianvs.processes.engines.forked import PARENT_DEATH_SIGNAL, prctl
from ianvs.running.planning.named_files import content
from ianvs.store.keys import digest
from ianvs.testenv.ianvs_layouts.tiny_data import UnknownLayoutError, made, shrunk
from ianvs.testenv.ianvs_layouts.tiny_weights import stand_ins

NOT_COPIED = (".git", "docs", "workspace", "__pycache__")
_BESIDE = re.compile(r"It lies in (.*): set PYTHONPATH")
_TRIES = 4  # each adds the folders of the packages that the one before missed


@dataclass(frozen=True)
class Example:
    """How it went with a job; a row of the table."""

    job: str  # its file, relative to the checkout
    paradigm: str = ""
    starts: bool = False  # passed all checks
    finishes: bool = False  # a metric is finite in every configuration, and not the same in all
    configurations: int = 0
    scores: str = ""  # of this metric: smallest to largest
    changed: str = ""  # in the copy, beside paths and data
    whose: str = ""  # what is missing: checkout, package, data, weights, service, limit or ours
    missing: str = ""  # in one line
    seconds: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What a job may take: seconds of the whole, megabytes (10^6 bytes) of each of its cases."""

    seconds: float
    memory_mb: float


def tried(job: Path, checkout: Path, below: Path, limits: Limits, again: bool, stop: Event) -> Example:
    """What is stored of the job if its example's files are the same, else what trying it in a copy shows.

    job: relative to `checkout`. Its folder in `below` keeps example.json, log.txt and the workspace. stop: whether the
    command is being ended; then KeyboardInterrupt is raised, and nothing is stored.
    """
    folder = below / re.sub(r"\W+", "_", str(job.with_suffix("")))
    stored, copy = folder / "example.json", folder / "checkout"
    example = checkout.joinpath(*job.parts[:2]) if len(job.parts) > 2 else (checkout / job).parent
    packages = sorted(f"{package.name} {package.version}" for package in distributions())
    key = digest([asdict(limits), sys.executable, packages, content(example)])  # all that decides how it goes
    if stored.is_file() and not again and (record := json.loads(stored.read_bytes()))["key"] == key:
        return Example(**record["example"])
    begun = monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    try:
        row = _tried(job, copy, folder, limits)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    if stop.is_set():
        raise KeyboardInterrupt
    row = replace(row, seconds=round(monotonic() - begun, 1))
    stored.write_text(json.dumps({"key": key, "example": asdict(row)}, indent=1) + "\n", encoding="utf-8")
    return row


def _tried(job: Path, copy: Path, folder: Path, limits: Limits) -> Example:
    # From the copy, since paths lead on from where Ianvs is called: here it may be the checkout itself, or another one.
    command = ("migrate", str(copy / job), "--out", str(copy / ".run"))
    status, output = _ianvs(command, os.environ, limits, folder / "log.txt")
    if status:
        return _lacking(Example(str(job)), *refused(output, copy))
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
    environment, stand_in = _environment(copy, (copy / job).parent)
    changed = [*shrunk(exam, algorithms), *stand_in]
    root["workspace"] = str(folder / "workspace")
    root["working_directory"] = str(copy)  # where plugins write what they name by a relative path
    row = replace(row, changed="; ".join(changed))
    rows: list[dict[str, float]] = []
    for draw in (0, 1):
        if draw:  # of one configuration: do its scores follow the data?
            exam["dataset"] = made(written, words, paradigm, copy / ".data", draw, copy / ".run")
        for path, data in files.items():
            path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        status, output = _run(file, job, copy, environment, limits)
        if status == 2:
            return _lacking(row, *refused(output, copy))
        row = replace(row, starts=True)
        if status == 124:
            return _lacking(row, "limit", "it took longer than --seconds")
        if status != 0:
            return _lacking(row, *failed(folder / "workspace", copy))
        rows += _scores(folder / "workspace" / root["name"], [metric["name"] for metric in exam["metrics"]])
        if len(rows) > 1:
            break
        shutil.rmtree(folder / "workspace")  # a case with an equal index would count as finished
    over = "2 sets of tiny data" if draw else f"{len(rows)} configurations"
    return _judged(replace(row, configurations=1 if draw else len(rows)), rows, over)


def _lacking(row: Example, owner: str, missing: str) -> Example:
    return replace(row, whose=owner, missing=missing)


def _environment(copy: Path, code: Path) -> tuple[dict[str, str], list[str]]:
    """That of a machine without the network and without a card, and what stands in for these."""
    given, changes = stand_ins(code, copy / ".weights")
    path = os.pathsep.join(filter(None, (given.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", ""))))
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **given, **fixed, "PYTHONPATH": path}, changes


def _run(file: Path, job: Path, copy: Path, environment: dict[str, str], limits: Limits) -> tuple[int, str]:
    """(exit status, what was said) of `ianvs run`, again with the folders of packages that the try before missed."""
    options = ("--jobs", "1", "--device", "cpu", "--quiet", "--set", f"limits.memory_mb={limits.memory_mb}")
    for _ in range(_TRIES):
        status, output = _ianvs(("run", "-f", str(file), *options), environment, limits, copy.parent / "log.txt")
        # Of several folders that have a package, that which is nearest to the job.
        listings = (listed.split(", ") for listed in _BESIDE.findall(output))
        beside = [
            max(folders, key=lambda folder: len(os.path.commonpath([folder, copy / job]))) for folders in listings
        ]
        if status != 2 or not beside:
            break
        environment["PYTHONPATH"] = os.pathsep.join([*dict.fromkeys(beside), environment["PYTHONPATH"]])
    return status, output


def _ianvs(command: Sequence[str], environment: Mapping[str, str], limits: Limits, log: Path) -> tuple[int, str]:
    """(exit status, what it said) of a command of ours; 124: it was ended for the time it took."""
    whole = [sys.executable, "-m", "ianvs", *command]
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
        file.write(f"$ ianvs {' '.join(command)}\n{output}\n")
    return status, output


def _begin_child() -> None:
    """In a new process: it writes no core file, and ends with this command, however that ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _scores(folder: Path, metrics: Sequence[str]) -> list[dict[str, float]]:
    """Of each configuration its metrics; nan: none, or no number."""
    table = pd.read_csv(folder / "rank" / "all_rank.csv", dtype=str).reindex(columns=list(metrics))
    return [*table.apply(pd.to_numeric, errors="coerce").to_dict("records")]


def _judged(row: Example, rows: Sequence[Mapping[str, float]], over: str) -> Example:
    """Finished, if a metric is a finite number in all `rows`, and not the same in all: else nobody can tell."""
    columns = {name: [metrics[name] for metrics in rows] for name in rows[0]}
    finite = {name: values for name, values in columns.items() if all(map(math.isfinite, values))}
    if not finite:
        return _lacking(row, "ours", "it ends, but no score is a finite number on tiny data")
    name = next((name for name, values in finite.items() if len(set(values)) > 1), next(iter(finite)))
    low, high = min(finite[name]), max(finite[name])
    if low == high:
        return _lacking(row, "ours", f"it ends, but {name} is {low:.4g} in all of {over}")
    return replace(row, finishes=True, scores=f"{name} {low:.4g} to {high:.4g} in {over}")
