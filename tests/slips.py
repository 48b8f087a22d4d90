"""What the tests notice: put slips into lines that they cover, one at a time, and see whether a test fails.

    python tests/slips.py collect DATA [pytest arguments]        # once: runs the tests under coverage
    python tests/slips.py run DATA --table TABLE.md [--slips SLIPS.json] [--tests tests/unit ...]

`collect` notes which test covers which line, in the processes that tests start, too. Lines of processes that are killed
or may not write are lacking. `run` chooses 60 slips by a seed, or takes those of SLIPS.json where their lines still
exist, and runs the tests that cover each, those first that cover least, in a temporary copy of this tree.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import Queue

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tests.slip_contexts import CURRENT_TEST, FIRST_FAILURE, OUTCOMES
from tests.slip_places import KINDS, Slip, find_slips, line_of, put_slip

__all__ = ["Coverage", "choose_slips", "main", "select_tests"]

_ROOT = Path(__file__).resolve().parents[1]
_SOURCE = "core/ianvs"
_SETTINGS = """\
[run]
data_file = {data}
source = {source}
parallel = true
context = ${{{variable}-}}
patch = _exit, fork
sigterm = true
disable_warnings = no-data-collected, module-not-measured, module-not-imported, already-imported
"""
_WITHOUT = (".git", ".venv", "workspace", "site", "dist", "reports", "__pycache__", ".*_cache", ".hypothesis")
_FALSE_ALARMS = 3  # tests that fail without the slip, too, until a slip is given up


@dataclass(frozen=True)
class Coverage:
    """What `collect` wrote.

    Attributes:
        tests: {file: {line: tests that ran it}}.
        sizes: How many lines each test ran.
        seconds: How long each test took; only tests that passed.
    """

    tests: Mapping[str, Mapping[int, frozenset[str]]]
    sizes: Mapping[str, int]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """noticed: None if its line is gone, or nothing is left to run. capped: tests that weren't run, to save time."""

    slip: Slip
    noticed: bool | None
    by: str
    tests: int
    capped: int
    seconds: float


def collect(data: Path, arguments: Sequence[str]) -> int:
    """Run pytest under coverage. Returns its exit status; tests that fail are left out of `run`.

    Args:
        data: Gets the coverage; `data`-tests.json gets {test: [passed, seconds]}.
        arguments: Of pytest.
    """
    data = data.resolve()
    data.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="slips-") as folder:
        settings = Path(folder, "coveragerc")
        settings.write_text(_SETTINGS.format(data=data, source=_ROOT / _SOURCE, variable=CURRENT_TEST))
        # coverage starts in further processes by a .pth file; folders named by other .pth files have none that count.
        Path(folder, "sitecustomize.py").write_text("import coverage\n\ncoverage.process_startup()\n")
        environment = {
            **_environment(_ROOT, Path(folder)),
            CURRENT_TEST: "",
            OUTCOMES: f"{data}-tests.json",
            "COVERAGE_PROCESS_START": str(settings),
        }
        coverage = (sys.executable, "-m", "coverage")
        command = (*coverage, "run", f"--rcfile={settings}", "-m", "pytest", "-p", "tests.slip_contexts", *arguments)
        status = subprocess.run(command, cwd=_ROOT, env=environment).returncode
        combined = subprocess.run([*coverage, "combine", "--quiet", f"--rcfile={settings}"], cwd=_ROOT).returncode
    return status if status > 1 else combined


def load_coverage(data: Path) -> Coverage:
    """Read what `collect` wrote; contexts that are no test that passed are left out."""
    from coverage import CoverageData

    outcomes: dict[str, tuple[bool, float]] = json.loads(Path(f"{data}-tests.json").read_text())
    seconds = {test: float(took) for test, (passed, took) in outcomes.items() if passed}
    measured = CoverageData(str(data))
    measured.read()
    lines: dict[str, dict[int, frozenset[str]]] = {}
    sizes = dict.fromkeys(seconds, 0)
    for name in measured.measured_files():
        path = Path(name)
        if not path.is_relative_to(_ROOT / _SOURCE):
            continue
        by_line = measured.contexts_by_lineno(name)
        tests = {line: frozenset(_tests_of(contexts, seconds)) for line, contexts in by_line.items()}
        lines[path.relative_to(_ROOT).as_posix()] = tests
        for test in (test for found in tests.values() for test in found):
            sizes[test] += 1
    return Coverage(lines, sizes, seconds)


def _tests_of(contexts: Collection[str], known: Collection[str]) -> Iterator[str]:
    """A process that was forked for one test from one that another started has both, as "other|test"."""
    for context in contexts:
        parts = context.split("|")
        endings = ("|".join(parts[start:]) for start in range(len(parts)))
        if test := next((ending for ending in endings if ending in known), None):
            yield test


def choose_slips(coverage: Coverage, root: Path, seed: int, number: int) -> list[Slip]:
    """As many slips of each kind as of the others, at most one in a function, in lines that a test covers."""
    slips = []
    for file in sorted(coverage.tests):
        if (path := root / file).is_file():
            slips += [slip for slip in find_slips(path.read_text(), file) if coverage.tests[file].get(slip.line)]
    dice = random.Random(seed)
    dice.shuffle(slips)
    chosen: list[Slip] = []
    functions: set[tuple[str, str]] = set()
    for place in range(number):
        kinds = KINDS[place % len(KINDS) :] + KINDS[: place % len(KINDS)]
        for kind in kinds:  # another kind where there are no more of the first
            fresh = (slip for slip in slips if slip.kind == kind and (slip.file, slip.function) not in functions)
            slip = next((slip for slip in fresh if put_slip((root / slip.file).read_text(), slip)), None)
            if slip is not None:
                chosen.append(replace(slip, id=len(chosen) + 1))
                functions.add((slip.file, slip.function))
                break
    return chosen


def select_tests(
    coverage: Coverage, file: str, line: int, within: Sequence[str], limit: float
) -> tuple[list[str], int]:
    """Tests that cover a line, those first that cover fewest lines: they say most about it.

    Args:
        within: Beginnings of test ids; empty: all tests.
        limit: Seconds that the tests took together; at least one is selected.

    Returns:
        The tests, and how many were left out to save time.
    """
    covering = coverage.tests.get(file, {}).get(line, frozenset())
    wanted = [test for test in covering if not within or test.startswith(tuple(within))]
    wanted.sort(key=lambda test: (coverage.sizes[test], coverage.seconds[test], test))
    selected, total = [], 0.0
    for test in wanted:
        total += coverage.seconds[test]
        if selected and total > limit:
            break
        selected.append(test)
    return selected, len(wanted) - len(selected)


def try_slip(slip: Slip, coverage: Coverage, copy: Path, within: Sequence[str], limit: float) -> Outcome:
    """Put a slip into a copy of the tree, run the tests that cover it until one fails, and take it out again."""
    began = time.monotonic()
    path = copy / slip.file
    source = path.read_text() if path.is_file() else ""
    line, changed = line_of(source, slip), put_slip(source, slip)
    if line is None or changed is None:
        return Outcome(slip, None, "its line is gone", 0, 0, 0.0)
    tests, capped = select_tests(coverage, slip.file, line, within, limit)
    noticed: bool | None = None
    by, number = "no test covers it", len(tests)
    for _ in range(_FALSE_ALARMS):
        if not tests:
            break
        try:
            path.write_text(changed)
            noticed, by = first_failure(tests, copy, limit)
        finally:
            path.write_text(source)
        if not noticed or by not in tests or not first_failure([by], copy, limit)[0]:
            break
        tests.remove(by)  # it fails in the copy without the slip, too
        noticed, by = None, "only tests that fail without it, too"
    return Outcome(slip, noticed, by, number, capped, time.monotonic() - began)


def first_failure(tests: Sequence[str], tree: Path, limit: float) -> tuple[bool, str]:
    """Whether one of the tests fails, and which. Tests that take far longer than they should count as failed."""
    with tempfile.TemporaryDirectory(prefix="slips-") as folder:
        listed, failed = Path(folder, "tests"), Path(folder, "failed")
        listed.write_text("\n".join(tests))
        pytest = (
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.slip_contexts",
        )
        environment = {**_environment(tree), FIRST_FAILURE: str(failed), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            [sys.executable, *pytest, f"@{listed}"],
            cwd=tree,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(60 + 3 * limit)
        except subprocess.TimeoutExpired:
            return True, "the tests don't end"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if failed.exists():
            return True, failed.read_text()
        return status != 0, f"pytest ended with {status}" if status else ""


def _environment(tree: Path, *first: Path) -> dict[str, str]:
    """Of processes that import ianvs and tests from `tree`, whatever is installed."""
    path = os.pathsep.join(map(str, (*first, tree / "core", tree)))
    return {**{name: value for name, value in os.environ.items() if name != CURRENT_TEST}, "PYTHONPATH": path}


@contextmanager
def copies(root: Path, number: int) -> Iterator[Queue[Path]]:
    """Temporary copies of the tree, removed afterwards; whoever takes one out of the queue puts it back."""
    with tempfile.TemporaryDirectory(prefix="slips-") as folder:
        queue: Queue[Path] = Queue()
        for place in range(number):
            copy = Path(folder, str(place))
            shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(*_WITHOUT))
            if (root / ".venv").exists():
                (copy / ".venv").symlink_to(root / ".venv")
            queue.put(copy)
        yield queue


def write_table(outcomes: Sequence[Outcome], path: Path, about: str) -> None:
    """Write a Markdown table with a line for each slip, and how many were noticed above it."""
    judged = [outcome for outcome in outcomes if outcome.noticed is not None]
    noticed = sum(bool(outcome.noticed) for outcome in judged)
    capped = sum(outcome.capped > 0 and not outcome.noticed for outcome in judged)
    lines = [
        f"{noticed} of {len(judged)} slips were noticed ({about}).",
        f"{capped} of those not noticed have tests that weren't run, to save time.",
        "",
        "| slip | where | before -> after | noticed by | tests run at most, left out | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        slip = outcome.slip
        change = f"{_code(slip.before)} -> {_code(slip.after)}"
        by = f"`{outcome.by}`" if outcome.noticed else f"**not noticed** {outcome.by}".strip()
        by = outcome.by if outcome.noticed is None else by.replace("|", "\\|")
        where = f"{slip.file}:{slip.line} `{slip.function}` ({slip.kind})"
        tests = f"{outcome.tests}, {outcome.capped}"
        lines.append(f"| {slip.id} | {where} | {change} | {by} | {tests} | {outcome.seconds:.0f} |")
    path.write_text("\n".join(lines) + "\n")


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"


def run(options: argparse.Namespace) -> int:
    coverage = load_coverage(options.data)
    if options.slips is not None and options.slips.exists():
        slips = [Slip(**stored) for stored in json.loads(options.slips.read_text())]
    else:
        slips = choose_slips(coverage, _ROOT, options.seed, options.number)
        if options.slips is not None:
            options.slips.write_text(json.dumps([asdict(slip) for slip in slips], indent=1) + "\n")
    outcomes: dict[int, Outcome] = {}
    with copies(_ROOT, options.jobs) as free, ThreadPoolExecutor(options.jobs) as pool:

        def attempt(slip: Slip) -> None:
            copy = free.get()
            try:
                outcomes[slip.id] = try_slip(slip, coverage, copy, options.tests, options.limit_seconds)
            finally:
                free.put(copy)
            print(f"[{len(outcomes)}/{len(slips)}] slip {slip.id}: {outcomes[slip.id].by or 'not noticed'}", flush=True)

        list(pool.map(attempt, slips))
    about = f"seed {options.seed}, tests of at most {options.limit_seconds:g} seconds for each"
    about += f", within {' '.join(options.tests)}" if options.tests else ""
    write_table([outcomes[slip.id] for slip in slips], options.table, about)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="run pytest under coverage; further arguments are pytest's")
    collecting.add_argument("data", type=Path, metavar="DATA", help="file that gets the coverage")
    running = commands.add_parser("run", help="make slips and write which are noticed")
    running.add_argument("data", type=Path, metavar="DATA", help="what `collect` wrote for this tree")
    running.add_argument("--table", type=Path, required=True, metavar="MD", help="gets the table")
    running.add_argument("--slips", type=Path, metavar="JSON", help="take these; written first if it doesn't exist")
    running.add_argument("--tests", nargs="+", default=[], metavar="PREFIX", help="only tests whose ids begin so")
    running.add_argument("--seed", type=int, default=20261127, help="default: %(default)s")
    running.add_argument("--number", type=int, default=60, help="of slips (default: %(default)s)")
    running.add_argument("--limit-seconds", type=float, default=120, help="of tests for a slip (default: %(default)g)")
    running.add_argument("--jobs", type=int, default=2, help="slips at a time (default: %(default)s)")
    options, further = parser.parse_known_args(arguments)
    if options.command == "collect":
        return collect(options.data, further)
    if further:
        parser.error(f"unknown arguments: {' '.join(further)}")
    return run(options)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is temporary is removed
    sys.exit(main())
