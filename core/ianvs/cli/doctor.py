"""`ianvs doctor`: checks whether this machine has what a run needs, with a remedy for what is missing."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any, Literal

import psutil

from ianvs.base.errors import shown_path
from ianvs.base.package import kubeedge_ianvs, own_version
from ianvs.processes.engines.engine import usable_cores
from ianvs.processes.sandbox import missing_sandbox
from ianvs.results.stored.provenance import output_of, version_of


@dataclass(frozen=True)
class Finding:
    """A result of a check. state: "wrong" would break a run; "note" limits what can be done here.

    Remedy: one or more sentences.
    """

    state: Literal["ok", "note", "wrong"]
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.state:<6}{self.message}" + (f"\n      {self.remedy}" if self.remedy else "")


def examine(workspace: Path) -> Iterator[Finding]:
    """Yield each finding as soon as it is made. `workspace` is where results would go; it is not created."""
    yield from software_findings()
    yield from machine_findings(workspace)
    yield from model_findings()


_SECONDS = 120.0  # seconds that importing torch may take
_OPTIONAL = (
    ("ray", "the engine `ray`, for clusters", "ray"),
    ("transformers", "language models and networks of Hugging Face", "llm"),
    ("peft", "low-rank tuning of language models", "llm"),
    ("timm", "networks of timm", "vision"),
    ("optuna", "`search` for hyperparameters", "search"),
)

# Runs in a process of its own, because importing a mismatched pair may crash.
_IMPORT_TORCH = """
import json
result = {}
try:
    import torch
    result["cuda"] = torch.version.cuda
    result["gpus"] = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    import torchvision
    torchvision.ops.nms
except Exception as error:
    result["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(result))
"""


def software_findings() -> Iterator[Finding]:
    """Check Python, ianvs, torch and optional packages."""
    system = f"{platform.system()} {platform.release()}"
    yield Finding("ok", f"ianvs {own_version()}, Python {platform.python_version()}, {system}")
    if (other := kubeedge_ianvs()) is not None:
        message = f"KubeEdge Ianvs {other} is installed, too: `ianvs` is the command of whichever was installed last"
        yield Finding("note", message, "`ianvs-bench` is always this one.")
    if sys.platform != "linux":
        remedy = "Where there are many short cases, use Linux (docs/getting_started.md#macos-and-windows)."
        message = "each case starts a new Python, which is slower than on Linux"
        yield Finding("note", message, remedy)
    yield from torch_findings(version_of("torch"), version_of("torchvision"), _wanted_torch(), import_torch())
    yield from package_findings({name: version_of(name) for name, _, _ in _OPTIONAL})


def torch_findings(
    torch: str | None, torchvision: str | None, wanted: str | None, seen: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check torch and torchvision.

    wanted: the version of torch that torchvision was built for. seen: the result of `import_torch`.
    """
    reinstall = "Reinstall both together: pip install --upgrade --force-reinstall torch torchvision"
    if torch is None or torchvision is None:
        missing = "torch" if torch is None else "torchvision"
        yield Finding("wrong", f"{missing} is not installed", "pip install torch torchvision")
        return
    pair = f"torch {torch} and torchvision {torchvision}"
    if wanted is not None and torch.partition("+")[0] != wanted.partition("+")[0]:
        yield Finding("wrong", f"{pair} don't belong together: this torchvision is for torch {wanted}", reinstall)
    elif "error" in seen:
        yield Finding("wrong", f"{pair} can't be imported: {seen['error']}", reinstall)
    else:
        build = f"for CUDA {seen['cuda']}" if seen.get("cuda") else "for CPUs"
        yield Finding("ok", f"{pair}, built {build}")


def package_findings(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Check optional packages."""
    for name, purpose, extra in _OPTIONAL:
        if versions[name] is None:
            yield Finding("note", f"{name} is not installed: no {purpose}", f"pip install 'ianvs-bench[{extra}]'")
        else:
            yield Finding("ok", f"{name} {versions[name]}")


def _wanted_torch() -> str | None:
    try:
        needs = requires("torchvision") or []
    except PackageNotFoundError:
        return None
    matches = (re.match(r"torch\s*\(?==\s*([\w.+]+)", need) for need in needs)
    return next((match[1] for match in matches if match), None)


@lru_cache(maxsize=1)
def import_torch() -> Mapping[str, Any]:
    """Import torch and torchvision and return "cuda" (the version that torch is built for) and "gpus", or an
    "error".
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _IMPORT_TORCH], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"error": f"it took longer than {_SECONDS:g} seconds"}
    except subprocess.CalledProcessError as error:
        return {"error": f"the process ended with status {error.returncode}"}
    except (OSError, ValueError, IndexError) as error:
        return {"error": str(error)}


_GB = 1e9
_LOW_MEMORY = 2 * _GB  # bytes; a case with torch needs half of it
_LOW_DISK = 1 * _GB
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def sandbox_finding(missing: str) -> Finding:
    """Check the sandbox. missing: why no sandbox could be started, with the remedy; "" if one was started."""
    if missing:
        return Finding("note", "`sealing: strict` is not available", f"{missing[0].upper()}{missing[1:]}")
    return Finding("ok", "a sandbox runs, so `sealing: strict` is available")


def machine_findings(workspace: Path) -> Iterator[Finding]:
    """Check this machine, and the folders that a run writes to."""
    cores = f"{usable_cores()} of {os.cpu_count()} cores"
    yield Finding("ok", f"{cores} can be used: as many cases run at a time, or --jobs N")
    memory = psutil.virtual_memory()
    yield from memory_findings(memory.total, memory.available, _limit())
    torch = import_torch()
    output = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 20)
    driver = None if output is None else [line.replace(", ", ", driver ") for line in output.splitlines()]
    yield from gpu_findings(driver, torch.get("cuda"), torch.get("gpus", ()))
    yield sandbox_finding(missing_sandbox())
    yield from folder_findings(workspace, "the workspace", "Choose another with --workspace.")
    yield from folder_findings(Path(tempfile.gettempdir()), "the folder for temporary files", "Set TMPDIR to another.")


def memory_findings(total: float, available: float, limit: float | None) -> Iterator[Finding]:
    """Check the memory of this machine. All values are bytes; limit: that of the container."""
    most = min(total, limit or total)
    message = f"{most / _GB:.0f} GB of memory, {min(available, most) / _GB:.1f} GB of it free"
    message += (
        "" if limit is None or limit >= total else f" (the container's limit; the machine has {total / _GB:.0f} GB)"
    )
    if min(available, most) < _LOW_MEMORY:
        yield Finding("note", message, "Run one case at a time: --jobs 1. Close what else takes memory.")
    else:
        yield Finding("ok", message)


def gpu_findings(driver: Sequence[str] | None, built: str | None, usable: Sequence[str]) -> Iterator[Finding]:
    """Check the GPUs. driver: GPUs that the driver lists; None: there is no driver.

    Built: the CUDA that torch was built for.

    usable: GPUs that torch lists.
    """
    if usable:
        yield Finding("ok", f"GPUs that torch can use: {', '.join(usable)}")
    elif not driver:
        yield Finding("ok", "no GPU, or no driver for it: everything runs on the CPU")
    elif built is None:
        remedy = "pip install --force-reinstall torch torchvision, from an index with CUDA builds: see pytorch.org."
        yield Finding("note", f"{', '.join(driver)}: torch can't use it, it is a build for CPUs", remedy)
    else:
        remedy = "Update the driver (`nvidia-smi` says up to which CUDA it goes), or look at CUDA_VISIBLE_DEVICES."
        yield Finding("note", f"{', '.join(driver)}: torch, built for CUDA {built}, can't use it", remedy)


def folder_findings(folder: Path, name: str, remedy: str) -> Iterator[Finding]:
    """Check whether the folder, or the nearest existing one above it, can be written."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
        free_bytes = shutil.disk_usage(existing).free
    except OSError as error:
        yield Finding("wrong", f"{name}, {shown_path(folder)}, can't be written: {error.strerror}", remedy)
        return
    message = f"{name}, {shown_path(folder)}, can be written; {free_bytes / _GB:.0f} GB are free"
    yield Finding("note", message, f"That is little. {remedy}") if free_bytes < _LOW_DISK else Finding("ok", message)


def _limit() -> float | None:
    try:
        text = _CGROUP.read_text().strip()
    except OSError:
        return None
    return float(text) if text.isdecimal() else None


def model_findings() -> Iterator[Finding]:
    """List the downloaded models of metrics, and those in the caches of Hugging Face and torchvision."""
    from ianvs.exam.metrics.registry import metrics, unusable

    for metric in metrics():
        if metric.missing is not None:
            why = metric.missing()
            if why is None:
                yield Finding("ok", f"the model of the metric {metric.name} is here")
            else:
                yield Finding("note", f"the metric {metric.name} can't be computed here", why)
    for why in unusable():
        yield Finding("note", why, "Update or uninstall that package.")
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or home / "huggingface") / "hub")
    torch = Path(os.environ.get("TORCH_HOME") or home / "torch") / "hub" / "checkpoints"
    yield from cache_findings("Hugging Face", hub.expanduser(), "models--*")
    yield from cache_findings("torchvision", torch.expanduser(), "*.pth")


def cache_findings(library: str, folder: Path, pattern: str) -> Iterator[Finding]:
    """List the models in a cache folder."""
    names = sorted(path.name.removeprefix("models--").replace("--", "/") for path in folder.glob(pattern))
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Finding("ok", f"models of {library} in {shown_path(folder)}: {shown}")
    else:
        remedy = "Methods that need one say so; `download: true` fetches it (docs/methods.md#pretrained-networks)."
        yield Finding("ok", f"no models of {library} in {shown_path(folder)}", remedy)
