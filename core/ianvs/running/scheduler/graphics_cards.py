"""The NVIDIA cards of this machine, found without starting CUDA, which a process can't share with what it forks."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Card = int | str
"""What CUDA_VISIBLE_DEVICES calls a card: its index, "GPU-..." by its UUID, or "MIG-..." for an instance of one."""

_DRIVER = Path("/proc/driver/nvidia/gpus")
_INSTANCES = Path("/proc/driver/nvidia/capabilities")  # of cards that are divided: gpu0/mig/gi1/...
_LINE = re.compile(r"^\s*(?:GPU (?P<index>\d+):|MIG (?P<profile>\S+)).*\(UUID: (?P<uuid>(?:GPU|MIG)-[^)]+)\)", re.M)

_Ask = Callable[[Sequence[str]], str]


def _smi(arguments: Sequence[str]) -> str:
    try:
        return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def visible_gpus(
    environment: Mapping[str, str] = os.environ,
    driver: Path = _DRIVER,
    instances: Path = _INSTANCES,
    ask: _Ask = _smi,
) -> tuple[Card, ...]:
    """The cards that CUDA_VISIBLE_DEVICES leaves: an instance of a divided card (MIG) is a card of its own.

    As CUDA does, what follows the first entry that names no card is left out. ask: what nvidia-smi says.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        cards: list[Card] = []
        for part in map(str.strip, chosen.split(",")):
            if not (part.isdigit() or part.startswith(("GPU-", "MIG-"))):
                break
            cards.append(int(part) if part.isdigit() else part)
        return tuple(dict.fromkeys(cards))
    try:
        count = len(list(driver.iterdir()))
    except OSError:
        return ()
    divided = any(instances.glob("gpu*/mig/gi*"))
    return (_listed(ask(["-L"])) if divided else ()) or tuple(range(count))


def _listed(text: str) -> tuple[Card, ...]:
    """Cards by index, and in place of a divided one its instances, from `nvidia-smi -L`."""
    cards: list[Card] = []
    whole: Card | None = None
    for found in _LINE.finditer(text):
        if found["index"] is not None:
            whole = int(found["index"])
            cards.append(whole)
        else:
            if whole is not None and cards[-1] == whole:
                cards.pop()
            cards.append(found["uuid"])
    return tuple(cards)


def card_bytes(cards: Sequence[Card], ask: _Ask = _smi) -> dict[Card, int]:
    """Bytes of memory of those of `cards` of which nvidia-smi says it; of an instance, by the name of its profile."""
    if not cards:
        return {}
    known: dict[Card, int] = {}
    uuids: dict[str, int] = {}
    for line in ask(["--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]).splitlines():
        index, uuid, mebibytes = (*map(str.strip, line.split(",")), "", "")[:3]
        if index.isdigit() and mebibytes.isdigit():
            known[int(index)] = uuids[uuid] = int(mebibytes) << 20
    if any(isinstance(card, str) and card.startswith("MIG-") for card in cards):
        for found in _LINE.finditer(ask(["-L"])):
            size = re.search(r"\.(\d+)gb", found["profile"] or "")
            if size:
                uuids[found["uuid"]] = int(size[1]) << 30
    for card in cards:
        if isinstance(card, str):
            fitting = [size for uuid, size in uuids.items() if uuid.startswith(card)]  # CUDA takes the beginning, too
            if len(fitting) == 1:
                known[card] = fitting.pop()
    return {card: known[card] for card in cards if card in known}
