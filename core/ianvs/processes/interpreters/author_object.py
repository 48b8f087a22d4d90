"""Proxies of a plugin class and its objects in another interpreter.

A worker is started for each class, or for those of one adapter in a folder (ianvs.processes.interpreters.worker), and
ends with this process. Data are sent on request; passes are counted in this process.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import random
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.errors import PluginError, shown_path
from ianvs.config.contracts import Interpreter
from ianvs.plugins.authors_files import STORED
from ianvs.plugins.loader import Loaded, load, load_once, no_such_name
from ianvs.plugins.local_imports import package_and_folders
from ianvs.plugins.missing_modules import how_to_install
from ianvs.processes.interpreters.lock import WORKER
from ianvs.processes.interpreters.wire import Message, Peer, PeerClosedError, RemoteError, RemoteExit, packed, unpacked

_BUILTIN: dict[str, type[Exception]] = {
    "TypeError": TypeError,
    "KeyError": KeyError,
    "FileNotFoundError": FileNotFoundError,
}
"""Types of errors that callers handle."""


def load_in(where: Interpreter, url: str | None, name: str, *, once: bool = False) -> Loaded:
    """Load an object as `ianvs.plugins.loader.load`, or `load_once`, in its interpreter."""
    if where.python is None:
        loaded = (load_once if once else load)(url, name)
        if where.adapter is None:
            return loaded
        with loaded.active() as target:
            loaded.target = importlib.import_module(where.adapter).adapted(target)
        return loaded
    if url is None:
        raise PluginError(
            f"'{name}' is looked for in another interpreter: give the `url` of its file or module.",
            code="invalid-interpreter",
        )
    if once:
        path = Path(url)
        return _loaded_once(where, url, name, path.stat().st_mtime_ns if path.is_file() else 0)
    return Loaded(_class(_worker(where, url), where, url, name))


@lru_cache(maxsize=1)  # requests on a plugin are consecutive, and a worker takes memory
def _loaded_once(where: Interpreter, url: str, name: str, changed: int) -> Loaded:
    return Loaded(_class(_worker(where, url), where, url, name))


def _worker(where: Interpreter, url: str) -> Worker:
    """Return the worker for all plugins of a folder with an adapter, since its imports take seconds."""
    python = str(where.python)
    return Worker(python) if where.adapter is None else _shared(python, where.adapter, Path(url).parent)


@lru_cache(maxsize=2)
def _shared(python: str, adapter: str, folder: Path) -> Worker:
    return Worker(python)


_ends_with_workers = False


def end_with_workers() -> None:
    """Make this process end like its workers, as it would if the plugin's code ran in it."""
    global _ends_with_workers
    _ends_with_workers = True


class Worker:
    """A process of another interpreter that serves calls. Views of data are open during a call."""

    def __init__(self, python: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [python, "-X", "faulthandler", "-I", "-S", str(WORKER), str(theirs.fileno())]
            try:
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
            except OSError as error:
                raise PluginError(
                    f"the interpreter {python} can't be started: {error.strerror}.", code="invalid-interpreter"
                ) from None
        self._peer = Peer(ours, self._handled)
        self._views: list[Any] = []
        self.gone: list[int] = []  # proxies deleted since the last message
        self._progress: Callable[..., None] = lambda *_, **__: None

    def __del__(self) -> None:
        if hasattr(self, "_peer"):
            self._peer.close()

    def call(self, name: str, body: Mapping[str, object]) -> Message:
        """Call the worker. Raises errors of the plugin's code. If the worker is killed, so is this process."""
        try:
            return self._peer.call(name, body)
        except RemoteError as error:
            if error.kind in _BUILTIN:
                raise _BUILTIN[error.kind](str(error)) from None
            if error.kind == "SystemExit" and _ends_with_workers:
                raise RemoteExit(str(error)) from None
            raise
        except PeerClosedError:
            _shared.cache_clear()  # so that the next plugin gets a new worker
            code = self._process.wait()
            if _ends_with_workers and code >= 0:
                os._exit(code)
        if code < 0:
            signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
            os.kill(os.getpid(), -code)
        raise PluginError(f"the plugin ended its interpreter with exit status {code}.", code="failed-plugin")

    def method(self, number: int, method: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Message:
        try:
            request = {
                "number": number,
                "method": method,
                "arguments": [self._encoded(method, value) for value in arguments],
                "named": {name: self._encoded(name, value) for name, value in named.items()},
                "seed": random.getrandbits(63),  # the stream that was started for this call
            }
            return self.call("call", request)
        finally:
            self._views.clear()

    def _encoded(self, name: str, value: Any) -> tuple[str, object]:
        if hasattr(value, "tensors") and hasattr(value, "close"):
            return "view", self._register_view(value)
        if isinstance(value, tuple) and value and hasattr(value[0], "tensors"):
            return "views", [self._register_view(view) for view in value]
        if isinstance(value, Path):
            return "path", str(value)
        if isinstance(value, np.random.Generator):
            return "generator", value.bit_generator.state
        if name == "progress":
            self._progress = value
            return "progress", None
        if name == "generation":
            return "value", None  # it calls models of this process
        if isinstance(value, tuple):
            return "tuple", list(value)
        if value is None or isinstance(value, str | int | float | bool | list | dict):
            return "value", value
        raise PluginError(f"'{name}' can't be handed to a plugin in another interpreter.", code="invalid-request")

    def _register_view(self, view: Any) -> dict[str, object]:
        self._views.append(view)
        labels = hasattr(view, "passes")
        return {"number": len(self._views) - 1, "count": len(view), "labels": labels, "over": view.over}

    def _handled(self, name: str, message: Message) -> Message | None:
        body = message.body
        if name == "progress":
            self._progress(body["fraction"], **body["numbers"])
            return None
        view = self._views[body["view"]]
        if name == "counted":
            view.count(tuple(body["columns"]))
            return None
        if name != "column":
            raise PluginError(f"nobody may call '{name}' here", code="invalid-request")
        held = bytearray()
        return Message({"is": packed(view.column(body["name"]), held)}, held)


class _Memory:
    """The size of a store of old samples. unknown: the types without a known size."""

    def __init__(self, count: int, nbytes: int | None, unknown: str) -> None:
        self._count, self.unknown = count, unknown
        if nbytes is not None:
            self.nbytes = nbytes

    def __len__(self) -> int:
        return self._count


class _RemoteObject:
    """Proxy of an object of the worker, identified by its number."""

    _worker: Worker
    _kind: int
    memory: _Memory | None = None
    basemodel = remark = ""

    def _build(self, hyperparameters: Mapping[str, Any]) -> None:
        gone, self._worker.gone = self._worker.gone, []
        request = {"hyperparameters": dict(hyperparameters), "seed": random.getrandbits(63)}
        built = self._worker.call("build", {**request, "gone": gone, "kind": self._kind}).body
        self._number = int(built["number"])
        self._note(built["state"])

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._worker.gone.append(self._number)

    def _call(self, method: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        reply = self._worker.method(self._number, method, arguments, named)
        self._note(reply.body["state"])
        value = reply.body["value"]
        if "array" in value:
            return unpacked(reply.held, value["array"])
        return value.get("path", value.get("json"))

    def _note(self, state: Mapping[str, Any]) -> None:
        self.memory = None if state["memory"][0] is None else _Memory(*state["memory"])
        self.adapts_in_testing = state["adapts_in_testing"]
        self.basemodel, self.remark = state["basemodel"], state["remark"]


def _class(worker: Worker, where: Interpreter, url: str, name: str) -> type:
    """Create a proxy class with the methods and parameters of the plugin's class."""
    adapter_spec = None if where.adapter is None else find_spec(where.adapter)
    entry = Path(url).resolve() if url.endswith(".py") and Path(url).is_file() else None
    package, folders = (None, [os.path.dirname(url)]) if entry is None else package_and_folders(entry)  # noqa: PTH120
    request = {
        "url": url,
        "name": name,
        "folders": [str(folder) for folder in folders],
        "package": None if package is None else str(package),
        "kept": {path: text.decode(errors="replace") for path, text in STORED.items()},
        "adapter": None if adapter_spec is None else adapter_spec.origin,
        "threads": int(os.environ.get("OMP_NUM_THREADS") or 1),
    }
    try:
        description = worker.call("load", request).body
    except (RemoteError, TypeError, KeyError, FileNotFoundError) as error:
        raise PluginError(_failed_import(error, where, url), code="unloadable-plugin") from None
    except PluginError as error:
        if entry is None or not str(error).endswith(f" has no '{name}'."):
            raise
        raise PluginError(no_such_name(shown_path(url), name, _names_in(entry)), code="unloadable-plugin") from None

    def init(self: _RemoteObject, **hyperparameters: Any) -> None:
        self._build(hyperparameters)

    init.__signature__ = _signature(description["constructor"])  # type: ignore[attr-defined]
    members: dict[str, Any] = {method: _method(method, facts) for method, facts in description["methods"].items()}
    flags = {flag: value for flag, value in description["flags"].items() if value is not None}
    members |= {**flags, "__init__": init, "_worker": worker, "_kind": description["kind"]}
    return type(name.rpartition(":")[2], (_RemoteObject,), members)


def _failed_import(error: Exception, where: Interpreter, url: str) -> str:
    """Describe an import error of the plugin's file in the worker, with a remedy."""
    kind, message = error.kind if isinstance(error, RemoteError) else type(error).__name__, str(error)
    place = re.match(r"([^:/]+\.py):(\d+): ", message)
    if place is not None:
        file = shown_path(url) if place[1] == Path(url).name else place[1]
        message = f"{file}:{place[2]}: {kind}: {message[place.end() :]}"
    else:
        message = f"{kind}: {message}"
    missing = re.search(r"No module named '([\w.]+)'", message)
    return message if missing is None else f"{message}. {how_to_install(missing[1], where.python)}."


def _names_in(file: Path) -> list[str]:
    """Return the classes and functions that a file defines; the worker could import it."""
    tree = ast.parse(file.read_bytes())
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def _method(name: str, facts: Mapping[str, Any]) -> Callable[..., Any]:
    signature = _signature(facts["takes"])

    def method(self: _RemoteObject, *arguments: Any, **named: Any) -> Any:
        signature.bind(self, *arguments, **named)
        return self._call(name, arguments, named)

    method.__signature__ = signature  # type: ignore[attr-defined]
    method.leaves = frozenset(facts["leaves"])  # type: ignore[attr-defined]
    return method


def _signature(parameters: Sequence[tuple[str, int, list[Any] | None]]) -> inspect.Signature:
    kinds = {int(kind): kind for kind in inspect._ParameterKind}
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [
        inspect.Parameter(name, kinds[kind], default=inspect.Parameter.empty if default is None else default[0])
        for name, kind, default in parameters
    ]
    order = sorted(given, key=lambda p: (p.kind, p.default is not p.empty and p.kind < 3))
    return inspect.Signature([itself, *order])
