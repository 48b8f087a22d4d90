"""The reason why a job does not finish, from the place where the error was raised: a file, a package, or ianvs."""

import re
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import ianvs
from ianvs.base.types import Failure
from ianvs.store.case_store import CaseStore

_REMOTE = ("dashscope", "groq", "http", "httpx", "openai", "requests", "socket", "urllib", "urllib3")
_WEIGHTS = ("huggingface_hub", "torch/hub.py", "torch/serialization.py", "transformers/utils/hub.py")
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in ', re.MULTILINE)
_NEXT = "The above exception was the direct cause"
_PLACE = re.compile(r"^\S.*?:\d+:\d+: ")
MISSING_IMPORT = re.compile(r"imports '([\w.]+)', which is not installed\. (.*)")  # kubeedge/needed_packages.py
_MOVED_NAME = re.compile(r"ImportError: cannot import name '(\w+)' from '([\w.]+)' \(.*site-packages")
_PLUGIN_FILE_MISSING = "a file that belongs to the plugin is missing"  # kubeedge/needed_packages.py
_IMPORT = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_ADVISED = re.compile(r": pip install ([\w-]+)\.")  # kubeedge/paradigms
_CARD = re.compile(r"NVML|NVIDIA|CUDA", re.IGNORECASE)
_LONGEST = 260


def needs_more_than_packages(output: str) -> bool:
    """Return whether the checks found an error that no installed package would fix."""
    placed = [line for line in output.splitlines() if _PLACE.match(line) and not line.startswith("warning: ")]
    return any(not MISSING_IMPORT.search(line) and not _IMPORT.search(line) for line in placed)


def cause_of_refusal(output: str, copy: Path) -> tuple[str, str]:
    """Return (cause, message) of a job that failed validation. copy: the copy of the checkout."""
    lines = [line for line in output.splitlines() if not line.startswith("warning: ")]
    if re.search(r"^Traceback", output, re.MULTILINE):
        return "ours", shortened(lines[-1], copy)  # our commands print errors in one line
    placed = [line for line in lines if _PLACE.match(line)]
    lacking = [match for line in placed for match in MISSING_IMPORT.findall(line)]
    lacking += [(name, "") for line in placed for name in _IMPORT.findall(line)]
    if others := [line for line in placed if not MISSING_IMPORT.search(line) and not _IMPORT.search(line)]:
        if name := _MOVED_NAME.search(others[0]):
            return f"package {name[2].partition('.')[0]}, too new", shortened(others[0], copy)
        # Samples that we generated and our own checks refuse, and paradigms of Ianvs that we do not run.
        made_up = others[0].startswith(".data/") or "does not support the paradigm" in others[0]
        return "ours" if made_up else "checkout", shortened(others[0], copy)
    if files := [name for name, advice in lacking if _PLUGIN_FILE_MISSING in advice]:
        return "checkout", f"files that its code imports: {', '.join(dict.fromkeys(files))}"
    if packages := dict.fromkeys(name.partition(".")[0] for name, _ in lacking):
        # An import error names the first part that is missing: if it has a dot, the package before it is installed.
        moved = [name for name, advice in lacking if not advice and "." in name]
        moved += [name for name, advice in lacking if advice and find_spec(name.partition(".")[0]) is not None]
        if moved:  # the package is there, without this module
            return (
                f"package {moved[0].partition('.')[0]}, too new",
                f"modules that moved: {', '.join(dict.fromkeys(moved))}",
            )
        return "package", f"packages: {', '.join(packages)}"
    return "checkout", shortened((lines or ["no output"])[-1], copy)


def cause_of_failure(workspace: Path, copy: Path) -> tuple[str, str]:
    """Return (cause, message) of the first failed case of a job that started."""
    store = CaseStore(workspace)
    for folder in sorted(store.root.glob("*/")):
        if (failure := store.failure(folder.name)) is not None:
            log = store.log(folder.name)
            text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            # Without the frames before the method.
            message = re.sub(r"^.*?\.py\), ", "", " ".join(failure.message.split()))
            return _owner(failure, text, copy), shortened(message, copy)
    return "ours", "no case has a result or an error message"


def _owner(failure: Failure, log: str, copy: Path) -> str:
    if "OSError" in failure.message and "from_pretrained" in log:
        return "weights"  # the name of a model on a hub, without the network
    if failure.kind != "exception" or "MemoryError" in failure.message:
        return "limit"
    if advised := _ADVISED.search(failure.message):
        return f"package {advised[1]}"
    if "ZeroDivisionError" in failure.message:
        return "ours"  # a share of tiny data
    if _CARD.search(failure.message):
        return "card"
    if "examples/" in failure.message.partition("FileNotFoundError: ")[2]:
        return "checkout"  # whichever code opened it: a file that should be in the checkout
    begun = log.rfind("Traceback (most recent call last)", 0, log.find(_NEXT) if _NEXT in log else len(log))
    frames = [Path(file) for file, _ in _FRAME.findall(log[max(begun, 0) :].partition(_NEXT)[0])]
    frames = [file for file in frames if not _standard(file)] or frames
    return _raised_by(frames[-1], copy) if frames else "ours"


def _standard(file: Path) -> bool:
    inside = file.is_relative_to(sysconfig.get_paths()["stdlib"]) and "site-packages" not in file.parts
    return inside and not file.is_relative_to(Path(sys.prefix)) and not any(name in file.parts for name in _REMOTE)


def _raised_by(file: Path, copy: Path) -> str:
    if file.is_relative_to(copy):
        return "checkout"
    if file.is_relative_to(Path(ianvs.__file__).parent):
        return "ours"
    if any(name in file.as_posix() for name in _WEIGHTS):
        return "weights"
    if any(name in (*file.parts, file.stem) for name in _REMOTE):
        return "service"
    parts = file.parts
    after = parts[len(parts) - parts[::-1].index("site-packages") :] if "site-packages" in parts else parts[-2:]
    return f"package {after[0].removesuffix('.py')}"


def shortened(message: str, copy: Path) -> str:
    """Return a message as one line, without the paths of folders of this machine."""
    line = next((line for line in message.splitlines() if line.strip()), "")
    line = line.replace(f"{copy.resolve()}/", "")
    short = re.sub(rf"\S*?{re.escape(copy.name)}/(?=\.|examples/|\S+\.ya?ml)", "", line)
    short = re.sub(r"^\.run/\S+?:\d+:\d+: ", "", short).replace("|", "/").strip()
    return short if len(short) <= _LONGEST else f"{short[: _LONGEST - 3]}..."
