"""What is closed to the code of those who are examined, where it may write, and what a kernel can't see to."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ianvs.config.spec import DatasetSpec, JobSpec
from ianvs.processes.sealing.landlock import SIGNALS_SINCE, TRUNCATION_SINCE, landlock_version

_OF_WORKSPACE = ("cases", "exams", "cache", "code")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "kfd", "dri")
_COMPILERS = (
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "PYTORCH_KERNEL_CACHE_PATH"),
    *("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH"),
)
"""What libraries read to know where they keep code that they have compiled."""

_WEIGHTS = {"HF_HOME": "huggingface", "TORCH_HOME": "torch"}
"""What libraries read to know where they keep weights that they have loaded, and that folder in the user's cache."""


def closed_paths(workspace: Path, datasets: Iterable[DatasetSpec], folders: Iterable[Path] = ()) -> list[Path]:
    """Files and folders, without those that any program needs. folders: where samples and labels lie as well."""
    parts = (workspace / name for name in _OF_WORKSPACE)
    needed = [Path(path).resolve() for path in (sys.prefix, sys.base_prefix, *filter(None, sys.path))]
    data: list[Path] = []
    for dataset in datasets:
        data += [source.path for source in (*dataset.train, *dataset.test)]
        if isinstance(root := dataset.options.get("root"), str | Path):
            data.append(Path(root))
    found = dict.fromkeys(path.resolve() for path in (workspace, *parts, *data, *folders))
    return [path for path in found if not any(one.is_relative_to(path) for one in needed)]


def denied_paths(job: JobSpec) -> list[Path]:
    """What is closed to the authors' code that a job names, before its exams are built."""
    return closed_paths(job.workspace, (testenv.dataset for testenv in job.testenvs))


def allowed_paths(
    urls: Iterable[str | None], closed: Sequence[Path], pythons: Iterable[Path | None] = ()
) -> list[Path]:
    """What of closed folders has to be open all the same: authors' files and what lies beside them, and the
    environments of interpreters."""
    found: list[Path] = []
    files = (Path(url).resolve() for url in urls if url is not None and url.endswith(".py"))
    environments = (path.parents[1].resolve() for path in pythons if path is not None)
    for folder in (*(file.parent for file in files), *environments):
        if folder.is_dir() and any(folder.is_relative_to(path) for path in closed):  # one may not be prepared yet
            found += [path for path in folder.iterdir() if path not in closed]
    return found


@cache
def devices() -> tuple[Path, ...]:
    """Those that any program may need, and accelerators."""
    return (*(Path("/dev", name) for name in _DEVICES), *Path("/dev").glob("nvidia*"))


def own_caches(folder: str) -> Mapping[str, str]:
    """Variables by which libraries keep compiled code below `folder`."""
    return dict.fromkeys(_COMPILERS, folder)


def weight_caches() -> list[Path]:
    """Where libraries put weights that they load from the network; made where they are not there."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = [Path(os.environ.get(name) or home / inside) for name, inside in _WEIGHTS.items()]
    found += [Path(place) for place in [os.environ.get("HF_HUB_CACHE")] if place]
    for folder in found:
        folder.mkdir(parents=True, exist_ok=True)
    return found


def missing_walls(*, closed: bool, writes: bool, weights: bool) -> tuple[str, ...]:
    """Names of what is open to a learner that else is not; `ianvs.results.report.statements` has words for each.

    closed: whether the kernel confined it. writes: whether it may write anywhere. weights: into `weight_caches`.
    """
    version = landlock_version() if closed else 0
    stands = {
        "files": closed,
        "writes": closed and not writes,
        "truncation": writes or version >= TRUNCATION_SINCE,
        "weights": not weights,
        "signals": version >= SIGNALS_SINCE,
    }
    return tuple(name for name, it_does in stands.items() if not it_does)
