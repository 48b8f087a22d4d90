"""Python imports this first, in every process of a run: it notes which functions of ianvs are called before `train`.

Where COUNTED_FUNCTIONS names a folder, each process appends a line to a file of its own there for each function. The
frames from `run_case` to the plugin's `train` go to the file "frames", after which nothing is noted.
"""

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

_FOLDER = Path(os.environ.get("COUNTED_FUNCTIONS", "/"))
_FRAMES = _FOLDER / "frames"
_OPTIMIZED = 1  # a flag of code: of functions, not of modules and bodies of classes
_seen: set[CodeType] = set()


def _note(frame: FrameType, event: str, argument: object) -> None:
    code = frame.f_code
    if event != "call" or code in _seen:
        return
    _seen.add(code)
    if code.co_name == "train" and code.co_filename.endswith("plugin.py"):
        _write(_FOLDER / "case", _seen)  # also what it called before it was forked
        _FRAMES.write_text("\n".join(reversed(_frames(frame))))
    elif not _FRAMES.exists():
        _write(_FOLDER / str(os.getpid()), [code])


def _frames(frame: FrameType | None) -> list[str]:
    names: list[str] = []
    while frame is not None and names[-1:] != ["run_case"]:
        names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


def _write(path: Path, called: Iterable[CodeType]) -> None:
    functions = [code for code in called if "/ianvs/" in code.co_filename and code.co_flags & _OPTIMIZED]
    with path.open("a") as file:
        file.writelines(f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}\n" for code in functions)


if "COUNTED_FUNCTIONS" in os.environ:
    sys.setprofile(_note)
    threading.setprofile(_note)
