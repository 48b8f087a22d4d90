"""Trained models that some metrics and methods need, and that nothing downloads unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.errors import shown_path
from ianvs.cli.doctor.looked_at import Finding

__all__ = ["cache_findings", "model_findings"]


def model_findings() -> Iterator[Finding]:
    """Of metrics that need a model, and of the caches of Hugging Face and torchvision."""
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


def cache_findings(whose: str, folder: Path, pattern: str) -> Iterator[Finding]:
    """Which models there are, as far as a folder shows it."""
    names = sorted(path.name.removeprefix("models--").replace("--", "/") for path in folder.glob(pattern))
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Finding("ok", f"models of {whose} in {shown_path(folder)}: {shown}")
    else:
        remedy = "Methods that need one say so; `download: true` fetches it (docs/backbones.md)."
        yield Finding("ok", f"no models of {whose} in {shown_path(folder)}", remedy)
