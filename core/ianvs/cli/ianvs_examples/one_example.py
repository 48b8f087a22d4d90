"""One job of a checkout of KubeEdge Ianvs: copied, migrated, given tiny data, validated and run, within limits.

All happens in a copy, in processes of `ianvs` itself: what a maintainer sees here, a user sees there.
"""

import csv
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.base.secrets import hide_secrets
from ianvs.testenv.ianvs_layouts.tiny_data import UnknownLayoutError, made, shrunk
from ianvs.testenv.ianvs_layouts.tiny_weights import stand_ins

NOT_COPIED = (".git", "docs", "workspace", "__pycache__")
_MISSING = re.compile(r"imports '([\w.]+)', which is not to be found\. (.*)")
_BESIDE = re.compile(r"It lies in (.*): set PYTHONPATH")
_PLACE = re.compile(r"^\S.*?:\d+:\d+: ")
_TRIES = 4  # each adds the folders of the packages that the one before missed


@dataclass(frozen=True)
class Example:
    """How it went with a job; a row of the table."""

    job: str  # its file, relative to the checkout
    paradigm: str = ""
    starts: bool = False  # validated without an error
    finishes: bool = False  # every configuration has finite scores
    configurations: int = 0
    scores: str = ""  # of the first metric that is not the same for all, else of the first: smallest .. largest
    changed: str = ""  # in the copy, beside paths and data
    whose: str = ""  # what is missing: checkout, package, data, service, limit or ours
    missing: str = ""  # in one line
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Limits:
    """What a job may take: seconds of the whole, megabytes (10^6 bytes) of each of its cases."""

    seconds: float
    memory_mb: float


def tried(job: Path, checkout: Path, folder: Path, limits: Limits) -> Example:
    """`job` (relative to `checkout`) in a copy below `folder`, which keeps log.txt and the leaderboard."""
    copy = folder / "checkout"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    try:
        return _tried(job, copy, folder, limits)
    except IanvsError as error:
        return Example(str(job), whose="checkout", missing=_first(str(error), copy))
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _tried(job: Path, copy: Path, folder: Path, limits: Limits) -> Example:
    files = {
        file.resolve(): yaml.safe_load(file.read_text("utf-8")) for file in ianvs.migrate(copy / job, copy / ".run")
    }
    by_kind = {kind: (file, data[kind]) for file, data in files.items() for kind in data}
    file, root = by_kind["benchmarkingjob"]
    algorithms = [data["algorithm"] for data in files.values() if "algorithm" in data]
    exam = by_kind["testenv"][1]
    paradigm = algorithms[0]["paradigm_type"]
    row = Example(str(job), paradigm)
    try:
        exam["dataset"] = made(exam["dataset"], f"{job} {exam['dataset']}", paradigm, copy / ".data")
    except UnknownLayoutError as error:
        return _row(row, whose="data", missing=str(error))
    environment, stand_in = _environment(copy, (copy / job).parent)
    changed = [*shrunk(exam, algorithms), *stand_in]
    root["workspace"] = str(folder / "workspace")
    root["working_directory"] = str(copy)  # where plugins write what they name by a relative path
    for path, data in files.items():
        path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    row = _row(row, changed="; ".join(changed))
    log = folder / "log.txt"
    for _ in range(_TRIES):
        status, said = _ianvs(("validate", "-f", str(file), "--device", "cpu"), environment, limits, log)
        beside = [one for found in _BESIDE.findall(said) for one in _folders(found, copy / job)]
        if status == 0 or not beside:
            break
        environment["PYTHONPATH"] = os.pathsep.join([*dict.fromkeys(beside), environment["PYTHONPATH"]])
    if status != 0:
        return _row(row, **_why(said, status, copy))
    row = _row(row, starts=True)
    options = ("--jobs", "1", "--device", "cpu", "--quiet", "--set", f"limits.memory_mb={limits.memory_mb}")
    status, said = _ianvs(("run", "-f", str(file), *options), environment, limits, log)
    found = _scores(folder / "workspace" / root["name"], [metric["name"] for metric in exam["metrics"]])
    if status == 0 and found is not None:
        configurations, scores = found
        return _row(row, finishes=True, configurations=configurations, scores=scores)
    if status == 0:
        return _row(row, whose="data", missing="it ends, but no score is a finite number on tiny data")
    return _row(row, **_why(said, status, copy))


def _row(row: Example, **facts: Any) -> Example:
    return Example(**{**row.as_dict(), **facts})


def _environment(copy: Path, code: Path) -> tuple[dict[str, str], list[str]]:
    """That of a machine without the network and without a card, and what stands in for these."""
    given, said = stand_ins(code, copy / ".weights")
    path = os.pathsep.join(filter(None, (given.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", ""))))
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **given, **fixed, "PYTHONPATH": path}, said


def _folders(said: str, job: Path) -> Sequence[str]:
    """Of the folders named, that which is nearest to the job."""
    folders = [Path(one) for one in said.split(", ")]
    return [str(max(folders, key=lambda one: len(os.path.commonpath([one, job]))))]


def _ianvs(command: Sequence[str], environment: Mapping[str, str], limits: Limits, log: Path) -> tuple[int, str]:
    """(exit status, what it said) of a command of ours; 124: it was ended for the time it took."""
    whole = [sys.executable, "-m", "ianvs", *command]
    process = subprocess.Popen(
        whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(environment), start_new_session=True,
        preexec_fn=_no_core, cwd=log.parent / "checkout", text=True, errors="replace",
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=limits.seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # it ends its cases
        try:
            said, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
        status = 124
    said = hide_secrets(said, environment=os.environ)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ ianvs {' '.join(command)}\n{said}\n")
    return status, said


def _no_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _scores(folder: Path, metrics: Sequence[str]) -> tuple[int, str] | None:
    """(configurations, a metric with its smallest and largest value); None: one has no score that is a number."""
    table = folder / "rank" / "all_rank.csv"
    if not table.is_file():
        return None
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [_number(row.get(name, "")) for row in rows] for name in metrics}
    finite = {name: values for name, values in columns.items() if values and all(map(math.isfinite, values))}
    if not finite:
        return None
    name = next((name for name, values in finite.items() if len(set(values)) > 1), next(iter(finite)))
    low, high = min(finite[name]), max(finite[name])
    return len(rows), f"{name} {low:.4g}" + (f" to {high:.4g}" if high > low else "")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _why(said: str, status: int, copy: Path) -> dict[str, str]:
    """Whose it is that a command ended in an error, and what is missing, in one line."""
    if status == 124:
        return {"whose": "limit", "missing": "it took longer than --seconds"}
    lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
    if packages := list(dict.fromkeys(name.partition(".")[0] for line in lines for name, _ in _MISSING.findall(line))):
        return {"whose": "package", "missing": f"packages: {', '.join(packages)}"}
    if re.search(r"^Traceback", said, re.MULTILINE) and not re.search(r"^Failed: ", said, re.MULTILINE):
        return {"whose": "ours", "missing": _first(lines[-1], copy)}  # a command of ours says errors in a line
    placed = [line for line in lines if _PLACE.match(line)]
    error = [line for line in lines if re.match(r"[\w.]*(Error|Exception|NotFound)\b|.* failed:|.*Error:", line)]
    message = _first((placed or error or lines or [f"exit status {status}"])[-1 if not placed else 0], copy)
    for words, whose in _WHOSE:
        if re.search(words, message, re.IGNORECASE):
            return {"whose": whose, "missing": message}
    return {"whose": "checkout", "missing": message}


_WHOSE = (
    (r"memory", "limit"),
    (r"api[_ ]?key|connection|resolve|max retries|OpenAI|offline", "service"),
    (r"the data are missing|record", "data"),
    (r"internal error|ianvs/(running|exam|kubeedge|results)/", "ours"),
)


def _first(message: str, copy: Path) -> str:
    line = next((line for line in message.splitlines() if line.strip()), "")
    short = line.replace(f"{copy.resolve()}/", "").replace(f"{copy}/", "").replace("|", "/").strip()
    return short if len(short) <= 260 else f"{short[:257]}..."
