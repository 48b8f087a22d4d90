"""Stand-ins for what examples of KubeEdge Ianvs expect of a machine: weights to download, and a card.

Weights are random, of the right shapes, where the libraries keep what they have downloaded. Without a card calls of
`cuda` are answered by the CPU. Neither changes a plugin; the table says what its code may have used.
"""

import re
from collections.abc import Callable
from pathlib import Path

_MOST = 2_000  # python files of an example that are read


def stand_ins(code: Path, folder: Path) -> tuple[dict[str, str], list[str]]:
    """(environment variables, what stands in for what) for plugins whose files lie below `code`."""
    files = sorted(code.rglob("*.py"))[:_MOST]
    text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
    said = []
    for name, make in _WEIGHTS.items():
        if name in text:
            file = folder / "hub" / "checkpoints" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            make(file)
            said.append(f"random weights for {name}")
    environment = {
        "TORCH_HOME": str(folder),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "huggingface"),
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # as before torch 2.6
    }
    for pattern, what in _OLDER.items():
        if re.search(pattern, text):
            environment["PYTHONPATH"] = str(Path(__file__).with_name("older_machine"))
            said.append(what)
    return environment, said


def _resnet18(file: Path) -> None:
    import torch
    from torchvision.models import resnet18

    torch.manual_seed(0)
    torch.save(resnet18(weights=None).state_dict(), file)


_OLDER = {
    r"\.cuda\(|['\"]cuda|torch\.cuda\.": "cuda on the CPU",
    r"[\s(,]range=\(": "make_grid of an older torchvision",
}
"""What code asks for that older_machine/ brings, by how it looks."""

_WEIGHTS: dict[str, Callable[[Path], None]] = {"resnet18-5c106cde.pth": _resnet18}
"""Files of torch's hub, by the name that plugins download them under."""
