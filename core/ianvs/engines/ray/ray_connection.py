"""The connection to Ray: a Ray of our own on this machine, or a cluster that others started."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ianvs.engines.ray.ray_code import gather_code
from ianvs.errors import IanvsError

__all__ = ["Connection", "capacity", "said"]

_PATIENCE = 10.0  # seconds
_OBJECT_STORE = 256 << 20  # bytes; a Ray of our own holds little: results are files


class Connection:
    """A process has one connection to Ray: if there is one already it is used, and left open.

    address: see ianvs.engines.ray.ray_engine.RayEngine. cores: those that a Ray of our own offers at least.
    code: what to send to the nodes, None for nothing. Raises IanvsError.
    """

    def __init__(self, address: str, cores: int, code: Iterable[Path] | None) -> None:
        self.paths = list(sys.path)  # before Ray puts its own copies of libraries there
        self.ray = _import_ray()
        private = os.fspath(Path(self.ray.__file__).parent) + os.sep
        self.paths = [path for path in self.paths if not path.startswith(private)]
        self.code: dict[Path, str] | None = None  # {path here: name below the working directory of workers}
        self._folder: str | None = None
        self._ours = not self.ray.is_initialized()
        if self._ours:
            self._connect(address, cores, code)

    def on_node(self, node: str) -> Any:
        """The scheduling strategy "there and nowhere else"."""
        return self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def here(self) -> Any:
        """The scheduling strategy "on the node of this process"."""
        return self.on_node(self.ray.get_runtime_context().get_node_id())

    def close(self) -> None:
        if self._ours:
            self.ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self, address: str, cores: int, code: Iterable[Path] | None) -> None:
        options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            self._folder = tempfile.mkdtemp(prefix="ianvs-ray-")  # Ray leaves its logs behind: where we can remove them
            options |= {
                "include_dashboard": False,
                "num_cpus": max(usable, cores),
                "object_store_memory": _OBJECT_STORE,
                "_temp_dir": self._folder,
            }
        with tempfile.TemporaryDirectory(prefix="ianvs-code-") as folder:
            try:
                _knock(address)
                if code is not None:
                    self.code = gather_code(code, Path(folder))
                    options["runtime_env"] = {"working_dir": folder}
                self.ray.init(**options)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                self.close()
                raise IanvsError(
                    f"can't connect to Ray at '{address}': {said(error)}. `local` starts one on this machine, `auto` "
                    "joins the cluster that `ray start` put it into, `ray://host:10001` reaches one from outside."
                ) from error
            except BaseException:
                self.close()
                raise


def _knock(address: str) -> None:
    """Raise OSError if nothing listens at `address`: Ray itself would try for minutes."""
    host, separator, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if separator and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


def _import_ray() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise IanvsError(f"engine ray needs Ray ({error}). Install it: pip install 'ianvs[ray]'") from error
    return ray


def capacity(nodes: list[dict[str, Any]], threads: int, gpu_share: float) -> int:
    """How many tasks fit on the nodes, given as ray.nodes() gives them. Raises IanvsError if none does."""
    total = 0
    for node in nodes:
        if node["Alive"]:
            fits = int(node["Resources"].get("CPU", 0)) // threads
            if gpu_share > 0:
                cards = int(node["Resources"].get("GPU", 0))
                on_cards = cards * int(1 / gpu_share + 1e-9) if gpu_share <= 1 else int(cards / gpu_share)
                fits = min(fits, on_cards)
            total += fits
    if not total:
        wanted = f"{threads} CPU{'s' if threads > 1 else ''}" + (f" and {gpu_share:g} GPU" if gpu_share else "")
        raise IanvsError(f"no node of the Ray cluster has {wanted} for a case. Lower `threads` or `gpu_share`.")
    return total


def said(error: BaseException) -> str:
    """What an error of Ray says, or the error behind it, without its name."""
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().rstrip(".") or type(cause).__name__
