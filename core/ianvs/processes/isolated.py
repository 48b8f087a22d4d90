"""Asks a question whose answer runs an author's code, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["ask_isolated"]

# It sees the same modules as this process does, and the caller's main script is not run again.
_BOOT = """
import importlib, json, sys
from pathlib import Path
sys.path[:] = json.loads(sys.argv[1])
closed, opened = json.loads(sys.argv[3])
if closed:
    from ianvs.processes.sealing.landlock import confine
    confine([Path(path) for path in closed], [Path(path) for path in opened])
module, _, name = sys.argv[2].partition(":")
answer = getattr(importlib.import_module(module), name)(json.load(sys.stdin))
print()  # whatever the author's code printed ends here
print(json.dumps(answer))
"""


def ask_isolated(
    function: str, question: object, seconds: float, closed: Sequence[Path] = (), opened: Sequence[Path] = ()
) -> Any:
    """What `function`, "package.module:name", says to `question`, both json; None if its process gives no answer.

    closed: folders that its process can't open, but for those in `opened`, where the kernel can see to that.
    Raises TimeoutError when it takes longer than `seconds`.
    """
    folders = json.dumps([[str(path) for path in paths] for paths in (closed, opened)])
    command = [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), function, folders]
    try:
        answer = subprocess.run(
            command, input=json.dumps(question), capture_output=True, text=True, timeout=seconds, check=True
        )
        return json.loads(answer.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"no answer within {seconds:g} seconds") from error
    except (subprocess.SubprocessError, OSError, ValueError, IndexError):
        return None
