"""The connection to Ray: a local Ray of this process, or a running cluster."""

import contextlib
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ianvs.base.errors import IanvsError
from ianvs.processes.engines.engine import usable_cores
from ianvs.processes.engines.ray.ray_files import gather_code

_PATIENCE = 10.0  # seconds
_OBJECT_STORE = 256 << 20  # in bytes; small, since results are files


def import_ray() -> ModuleType:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise IanvsError(
            f"engine ray needs Ray ({error}). Install it: pip install 'ianvs-bench[ray]'", code="missing-package"
        ) from error
    return ray


@contextlib.contextmanager
def connected(
    ray: ModuleType, address: str, cores: int, code: Iterable[Path] | None
) -> Iterator[dict[Path, str] | None]:
    """Context manager: a connection to Ray. An existing one of this process is used, and left open.

    Args:
        ray: The module.
        address: See RayEngine.
        cores: Minimum cores of a Ray started here.
        code: What to send to the nodes; None for nothing.

    Yields:
        {path here: name below the working directory of workers} of what was sent.

    Raises:
        IanvsError: If there is no connection.
    """
    if ray.is_initialized():
        yield None
        return
    options: dict[str, object] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
    sent = None
    with contextlib.ExitStack() as at_end:
        if address == "local":
            # for removing the logs that Ray leaves behind
            logs = tempfile.TemporaryDirectory(prefix="ianvs-ray-", ignore_cleanup_errors=True)
            options |= {
                "include_dashboard": False,
                "num_cpus": max(usable_cores(), cores),
                "object_store_memory": _OBJECT_STORE,
                "_temp_dir": at_end.enter_context(logs),
            }
        at_end.callback(ray.shutdown)
        try:
            _require_listener(address)
            with tempfile.TemporaryDirectory(prefix="ianvs-code-") as folder:
                if code is not None:
                    sent = gather_code(code, Path(folder))
                    options["runtime_env"] = {"working_dir": folder}
                ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise IanvsError(
                f"can't connect to Ray at '{address}': {reason_of(error)}. `local` starts one on this machine, `auto` "
                "joins the cluster that `ray start` put it into, `ray://host:10001` reaches one from outside.",
                code="unreachable-server",
            ) from error
        yield sent


def _require_listener(address: str) -> None:
    """Raise OSError if nothing listens at `address`: Ray itself would try for minutes."""
    host, separator, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if separator and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


def capacity(nodes: Sequence[Mapping[str, Any]], threads: int, gpu_share: float) -> int:
    """Return how many tasks fit on the nodes, given as ray.nodes() gives them. Raises IanvsError if none does."""
    total = 0
    for node in nodes:
        if node["Alive"]:
            fits = int(node["Resources"].get("CPU", 0)) // threads
            if gpu_share > 0:
                gpus = int(node["Resources"].get("GPU", 0))
                on_gpus = gpus * int(1 / gpu_share + 1e-9) if gpu_share <= 1 else int(gpus / gpu_share)
                fits = min(fits, on_gpus)
            total += fits
    if not total:
        wanted = f"{threads} CPU{'s' if threads > 1 else ''}" + (f" and {gpu_share:g} GPU" if gpu_share else "")
        raise IanvsError(
            f"no node of the Ray cluster has {wanted} for a case. Lower `threads` or `gpu_share`.",
            code="insufficient-resources",
        )
    return total


def reason_of(error: BaseException) -> str:
    """Return the message of a Ray error, or of its cause, without the name of its class."""
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().rstrip(".") or type(cause).__name__
