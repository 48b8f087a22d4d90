"""Versions, and whether torch and torchvision belong together and can be imported."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from ianvs.cli.doctor.looked_at import Finding

__all__ = ["looked", "package_findings", "software_findings", "torch_findings"]

_SECONDS = 120.0  # that importing torch may take
_OPTIONAL = (
    ("ray", "the engine `ray`, for clusters", "ray"),
    ("transformers", "language models and networks of Hugging Face", "llm"),
    ("peft", "low-rank tuning of language models", "llm"),
    ("timm", "networks of timm", "vision"),
    ("optuna", "`search` for hyperparameters", "search"),
)

# In a process of its own: a pair that does not match may end the process that imports it.
_LOOK = """
import json
said = {}
try:
    import torch
    said["cuda"] = torch.version.cuda
    said["cards"] = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    import torchvision
    torchvision.ops.nms
except Exception as error:
    said["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(said))
"""


def software_findings() -> Iterator[Finding]:
    """Of Python, ianvs, torch and the packages that may be left out."""
    system = f"{platform.system()} {platform.release()}"
    yield Finding("ok", f"ianvs {version('ianvs')}, Python {platform.python_version()}, {system}")
    if sys.platform != "linux":
        remedy = "Where exams have to be kept from learners, use Linux (docs/install.md)."
        said = "each case starts a new Python, which is slower than on Linux, and nothing is sealed"
        yield Finding("note", said, remedy)
    yield from torch_findings(_version("torch"), _version("torchvision"), _wanted_torch(), looked())
    yield from package_findings({name: _version(name) for name, _, _ in _OPTIONAL})


def torch_findings(
    torch: str | None, torchvision: str | None, wanted: str | None, seen: Mapping[str, Any]
) -> Iterator[Finding]:
    """wanted: the version of torch that torchvision was built for. seen: what importing both said."""
    again = "Install both anew, together: pip install --upgrade --force-reinstall torch torchvision"
    if torch is None or torchvision is None:
        missing = "torch" if torch is None else "torchvision"
        yield Finding("wrong", f"{missing} is not installed", "pip install torch torchvision")
        return
    pair = f"torch {torch} and torchvision {torchvision}"
    if wanted is not None and torch.partition("+")[0] != wanted.partition("+")[0]:
        yield Finding("wrong", f"{pair} don't belong together: this torchvision is for torch {wanted}", again)
    elif "error" in seen:
        yield Finding("wrong", f"{pair} can't be imported: {seen['error']}", again)
    else:
        build = f"for CUDA {seen['cuda']}" if seen.get("cuda") else "for CPUs"
        yield Finding("ok", f"{pair}, built {build}")


def package_findings(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Of packages that only some jobs need."""
    for name, purpose, extra in _OPTIONAL:
        if versions[name] is None:
            yield Finding("note", f"{name} is not installed: no {purpose}", f"pip install 'ianvs[{extra}]'")
        else:
            yield Finding("ok", f"{name} {versions[name]}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _wanted_torch() -> str | None:
    try:
        needs = requires("torchvision") or []
    except PackageNotFoundError:
        return None
    found = (re.match(r"torch\s*\(?==\s*([\w.+]+)", need) for need in needs)
    return next((match[1] for match in found if match), None)


@lru_cache(maxsize=1)
def looked() -> Mapping[str, Any]:
    """What importing torch and torchvision says: "cuda" that it is built for, "cards", or an "error"."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _LOOK], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"error": f"it took longer than {_SECONDS:g} seconds"}
    except subprocess.CalledProcessError as error:
        return {"error": f"the process ended with status {error.returncode}"}
    except (OSError, ValueError, IndexError) as error:
        return {"error": str(error)}
