"""Slurm's commands `sbatch`, `squeue`, `scancel`. Their messages are passed on unchanged.

The output of `squeue` with an explicit format has been stable for ten years; its JSON differs between versions.
"""

import math
import os
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ianvs.base.errors import IanvsError
from ianvs.config.spec import ResourcesSpec

_TIMEOUT_SECONDS = 60.0  # for a busy controller
_OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE"}
HOPELESS_REASONS = {
    *("PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints", "DependencyNeverSatisfied"),
    *("InvalidAccount", "AccountNotAllowed", "AssocMaxWallDurationPerJobLimit"),
    *("InvalidQOS", "QOSNotAllowed", "QOSMaxWallDurationPerJobLimit"),
}
"""Reasons for waiting that never go away."""


class Job(NamedTuple):
    """A job of an array as `squeue` shows it: "12_3", "PENDING", "Resources"."""

    id: str
    state: str
    reason: str

    @property
    def over(self) -> bool:
        return self.state in _OVER


def sbatch(arguments: Sequence[str], script: str) -> str:
    """Submit `script` and return sbatch's output. Raises IanvsError with its message."""
    return _output_of(["sbatch", *arguments], script)


def squeue(names: Iterable[str]) -> dict[str, Job]:
    """Return this user's jobs of these names by id, including those that have just ended."""
    command = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}"]
    listing = _output_of([*command, f"--name={','.join(names)}", "--format=%i|%T|%r"])
    jobs = [Job(*line.strip().split("|")) for line in listing.splitlines() if line.count("|") == 2]
    return {job.id: job for job in jobs}


def scancel(arguments: Sequence[str]) -> None:
    """Cancel jobs, by id or by other arguments; a job that has ended is no error."""
    _output_of(["scancel", "--quiet", *arguments], check=False)


def sbatch_arguments(
    options: dict[str, Any], resources: ResourcesSpec | None, threads: int, signal_delay_s: int, extra: list[str]
) -> list[str]:
    """Return the arguments of sbatch for a pilot.

    Args:
        options: Options by name.
        resources: Of an algorithm, which replace those options.
        threads: Cores, if `resources` has none.
        signal_delay_s: Seconds between the signal and the end of its time.
        extra: Further arguments.
    """
    if resources is not None:
        gpus = f"gpu:{resources.gpus}" if resources.gpus else None
        options = options | {"gres": gpus, "cpus-per-task": resources.cpus or threads}
        if resources.memory is not None:
            options["mem"] = f"{math.ceil(resources.memory / 2**20)}M"
        if resources.time is not None:
            options["time"] = math.ceil(resources.time / 60)
    flags = [f"--{name}={value}" for name, value in options.items() if value not in (None, "")]
    return [*flags, "--nodes=1", "--ntasks=1", "--no-requeue", f"--signal=B:USR1@{signal_delay_s}", *extra]


def _output_of(command: Sequence[str], stdin: str = "", *, check: bool = True) -> str:
    """Run a command and return its output. check: whether an exit code that is not 0 raises IanvsError."""
    # Inside a Slurm job, its environment variables must not be used as options of the new job.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_"))}
    env |= {key: os.environ[key] for key in ("SLURM_CONF", "SLURM_CLUSTERS") if key in os.environ}
    try:
        ran = subprocess.run(  # in a session of its own, so that Ctrl-C does not reach it
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            env=env,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise IanvsError(
            f"engine slurm needs Slurm's commands, and `{command[0]}` is not found. Run ianvs on a login node.",
            code="invalid-engine",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise IanvsError(
            f"`{command[0]}` has not answered for {_TIMEOUT_SECONDS:.0f} s.", code="invalid-engine"
        ) from error
    if ran.returncode != 0 and check:
        message = " ".join(line.strip() for line in (ran.stderr or ran.stdout).splitlines())
        raise IanvsError(
            f"Slurm refuses: {message or f'{command[0]} ended with {ran.returncode}'}", code="invalid-engine"
        )
    return ran.stdout
