"""The worker: holds objects of one author's class in an interpreter without ianvs.

It is started by its path, with Python 3.8 or later, and needs numpy only for data. It uses the protocol of
`ianvs.processes.interpreters.wire`: JSON followed by the bytes of arrays, and large arrays in files.
"""

import ctypes
import dis
import importlib.abc
import importlib.util
import inspect
import json
import os
import platform
import random
import signal
import socket
import struct
import sys
import tempfile
import traceback

# Independent modules of ianvs, loaded by path, since their folders must not be on the author's sys.path.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_MODE_SWITCH = os.path.join(_FOLDER, "..", "..", "plugins", "mode_switch.py")
_HEADER = struct.Struct("<QQ")  # the same as in ianvs.processes.interpreters.wire, like the next
_LARGE = 1 << 24
_DEATH_SIGNAL = 1  # of prctl(2)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _run(spec):
    """Execute the module of a spec and return it."""
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _ours(name, path):
    return _run(importlib.util.spec_from_file_location("ianvs_" + name, path))


_views = _ours("worker_views", os.path.join(_FOLDER, "worker_views.py"))
_memory = _ours("worker_memory", os.path.join(_FOLDER, "worker_memory.py"))
ExamRuleError, TrainView, TestView = _views.ExamRuleError, _views.TrainView, _views.TestView


class HiddenError(ExamRuleError, AttributeError):
    """The same as in ianvs."""


class PluginError(Exception):
    """The same as in ianvs."""


class Remote(Exception):
    """An error of the other side. kind: the name of its class."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Peer:
    """One end of a socket; `handler(name, body)` answers the calls of the other with (body, bytes behind it)."""

    def __init__(self, end, handler):
        self._end, self._handler = end, handler

    def call(self, name, body):
        self._send({"call": name, "with": body})
        while True:
            message, held = self._receive()
            if "call" in message:
                self._answer(message)
            elif "error" in message:
                kinds = {"ExamRuleError": ExamRuleError, "HiddenError": HiddenError, "PluginError": PluginError}
                if message["error"] in kinds:
                    raise kinds[message["error"]](message["message"])
                raise Remote(message["error"], message["message"])
            else:
                return message["reply"], held

    def note(self, name, body):
        self._send({"note": name, "with": body})

    def serve(self):
        while True:
            self._answer(self._receive()[0])

    def _answer(self, message):
        try:
            body, held = self._handler(message["call"], message["with"])
        except (Exception, SystemExit) as error:
            if not isinstance(error, SystemExit):
                print(traceback.format_exc(), end="", file=sys.stderr, flush=True)
            sys.stdout.flush()
            self._send(dict(zip(("error", "message"), _error_text(error))))
            return
        self._send({"reply": body}, held)

    def _send(self, message, held=b""):
        body = json.dumps(message).encode()
        # At once, since each part would wake the other process.
        self._end.sendall(_HEADER.pack(len(body), len(held)) + body + held)

    def _receive(self):
        words, size = _HEADER.unpack(self._exactly(_HEADER.size))
        body = self._exactly(words + size)
        return json.loads(bytes(body[:words])), body[words:]

    def _exactly(self, size):
        body = bytearray()
        while len(body) < size:
            got = self._end.recv(min(1 << 20, size - len(body)))
            if not got:
                raise EOFError
            body += got
        return body


def _error_text(error):
    """Return (the name of its class, the place in the author's code and the message)."""
    kind = error.kind if isinstance(error, Remote) else type(error).__name__
    text = f"sys.exit({error.code!r}) ends the process" if isinstance(error, SystemExit) else str(error)
    if isinstance(error, SyntaxError):
        return kind, f"{os.path.basename(error.filename or '?')}:{error.lineno}: {error.msg}"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        ours = file in (__file__, _views.__file__) or frame.f_globals.get("__name__") == "adapter"
        if not ours and "site-packages" not in file and not file.startswith((sys.base_prefix, "<")):
            place = f"{os.path.basename(file)}:{line}: "
    return kind, place + text


class _SourceFinder(importlib.abc.MetaPathFinder):
    """Finds modules of the author from their planned content. files: {path: text}."""

    def __init__(self, files):
        self.files = files

    def find_spec(self, name, path, target=None):
        last = name.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            for file, inside in ((f"{last}/__init__.py", True), (f"{last}.py", False)):
                where = os.path.join(os.path.realpath(folder or "."), file)
                if where in self.files:
                    return self.spec(name, where, [os.path.dirname(where)] if inside else None)
        return None

    def spec(self, name, path, inside=None):
        loader = _Source(name, path)
        loader.content = self.files.get(os.path.realpath(path))
        return importlib.util.spec_from_file_location(name, path, loader=loader, submodule_search_locations=inside)


class _Source(importlib.machinery.SourceFileLoader):
    content = None

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)

    def get_data(self, path):
        return self.content.encode() if self.content is not None and path == self.path else super().get_data(path)


class Worker:
    """Answers calls. objects: created objects by number."""

    def __init__(self, end):
        self._peer, self._objects, self._views = Peer(end, self._handled), {}, []
        self._kinds = []

    def live(self):
        try:
            self._peer.serve()
        except (EOFError, ConnectionError):
            return

    def _handled(self, name, body):
        return getattr(self, "order_" + name)(body)

    def order_load(self, body):
        """Import an author's object, and return its parameters."""
        import site

        site.main()  # packages of the interpreter
        url, name = body["url"], body["name"]
        finder = _SourceFinder(body["kept"])
        sys.meta_path.insert(0, finder)
        adapter = _run(finder.spec("adapter", body["adapter"])) if body["adapter"] else None
        if hasattr(adapter, "plugin_class"):
            target = adapter.plugin_class(url, name)
        else:
            target = _named(finder, url, name, body["folders"], body["package"])
            target = target if adapter is None else adapter.adapted(target)
        if not callable(target):
            raise PluginError(f"'{name}' is not a class.")
        self._kinds.append(target)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(body["threads"])
            torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
        methods = {}
        for method in dir(target) if isinstance(target, type) else ():
            function = getattr(target, method, None)
            if not method.startswith("_") and callable(function):
                methods[method] = {
                    "takes": _parameters(function)[1:],
                    "leaves": sorted(getattr(function, "leaves", ())),
                }
        flags = {flag: getattr(target, flag, None) for flag in ("sees_past_rounds", "adapts_in_testing", "reference")}
        description = {
            "methods": methods,
            "constructor": _constructor(target),
            "flags": flags,
            "class": isinstance(target, type),
            "kind": len(self._kinds) - 1,
        }
        return description, b""

    def order_build(self, body):
        for number in body["gone"]:
            del self._objects[number]
        self._seed(body["seed"])
        number = max(self._objects, default=0) + 1
        self._objects[number] = self._kinds[body["kind"]](**body["hyperparameters"])
        return {"number": number, "state": self._state(number)}, b""

    def order_call(self, body):
        self._seed(body["seed"])
        owner = self._objects[body["number"]]
        try:
            arguments = [self._given(argument) for argument in body["arguments"]]
            named = {name: self._given(argument) for name, argument in body["named"].items()}
            result = getattr(owner, body["method"])(*arguments, **named)
            value, given = _packed(result)
        finally:
            for view in self._views:
                view.close()
            self._views = []
        return {"value": value, "state": self._state(body["number"])}, given

    def _given(self, encoded):
        kind, value = encoded
        if kind == "view":
            view = (TrainView if value["labels"] else TestView)(
                self._peer, value["number"], value["count"], value["over"]
            )
            self._views.append(view)
            return view
        if kind == "views":
            return tuple(self._given(("view", item)) for item in value)
        if kind == "tuple":
            return tuple(value)
        if kind == "path":
            import pathlib

            return pathlib.Path(value)
        if kind == "generator":
            import numpy

            generator = numpy.random.default_rng()
            generator.bit_generator.state = value
            return generator
        if kind == "progress":
            return lambda fraction, **numbers: self._peer.note("progress", {"fraction": fraction, "numbers": numbers})
        return value

    def _state(self, number):
        owner = self._objects[number]
        texts = {name: getattr(owner, name, "") for name in ("basemodel", "remark")}
        return {
            "memory": _memory.memory_size(getattr(owner, "memory", None)),
            "adapts_in_testing": bool(getattr(owner, "adapts_in_testing", False)),
            **{name: text if isinstance(text, str) else "" for name, text in texts.items()},
        }

    def _seed(self, seed):
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2**32)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)


def _named(finder, url, name, folders, package):
    """Return the object `name` in a file or a module.

    folders: first on its sys.path. package: the folder of the package of a file with relative imports, or None.
    """
    if url.endswith(".py"):
        sys.path[:0] = folders
        module = (
            _run(finder.spec("author_" + os.path.basename(url)[:-3], url))
            if package is None
            else (_in_package(finder, os.path.realpath(url), package))
        )
    else:
        module = importlib.import_module(url.partition(":")[0])
        name = url.partition(":")[2] or name
    if not hasattr(module, name):
        raise PluginError(f"{os.path.basename(url)} has no '{name}'.")
    target = getattr(module, name)
    _ours("mode_switch", _MODE_SWITCH).separate_mode_switch(target)
    return target


def _in_package(finder, path, package):
    """Return the module of a file in a package, which is imported under a unique name."""
    top = "author_" + os.path.basename(package)
    init = os.path.join(package, "__init__.py")
    if init in finder.files or os.path.isfile(init):
        _run(finder.spec(top, init, [package]))
    else:
        spec = importlib.machinery.ModuleSpec(top, None, is_package=True)
        spec.submodule_search_locations = [package]
        sys.modules[top] = importlib.util.module_from_spec(spec)
    return importlib.import_module(".".join([top] + os.path.relpath(path, package)[:-3].split(os.sep)))


def _parameters(function):
    """Return [name, kind, None or a list with its default] of each parameter."""
    parameters = inspect.signature(function).parameters.values()
    return [[p.name, int(p.kind), None if p.default is p.empty else _plain(p.default)] for p in parameters]


def _constructor(target):
    """Return the parameters of a class, including those of base classes that get its **kwargs."""
    collected, taken = [], True
    for layer in inspect.getmro(target) if isinstance(target, type) else (target,):
        init = layer.__dict__.get("__init__") if isinstance(layer, type) else layer
        if init is None or layer is object:
            continue
        parameters = _parameters(init)[1 if isinstance(layer, type) else 0 :]
        names = {p[0] for p in collected}
        collected += [p for p in parameters if p[1] in map(int, _NAMED) and p[0] not in names]
        taken = any(p[1] == int(inspect.Parameter.VAR_KEYWORD) for p in parameters)
        if not taken:
            return collected
        if not _passes_arguments_on(init):
            return [*collected, ["others", int(inspect.Parameter.VAR_KEYWORD), None]]
    return [*collected, ["others", int(inspect.Parameter.VAR_KEYWORD), None]] if taken and collected else collected


def _passes_arguments_on(function):
    """See ianvs.plugins.signature."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is None or any(step.opname.startswith("CALL_FUNCTION_EX") for step in dis.get_instructions(code))


def _plain(value):
    """Return [value] if JSON can represent it."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return [None]
    return [value]


def _packed(value):
    """Return (a description, bytes) of an array or a JSON value."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if type(value).__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0:
        if value.dtype.kind in "biuf":
            spec = {"dtype": value.dtype.str, "shape": list(value.shape)}
            if value.nbytes <= _LARGE:
                return {"array": dict(spec, at=0)}, value.tobytes()
            handle, path = tempfile.mkstemp(prefix="array-")
            with os.fdopen(handle, "wb") as file:
                file.write(memoryview(value.tobytes()))
            return {"array": dict(spec, file=path)}, b""
        value = value.tolist()
    if hasattr(value, "__fspath__"):
        return {"path": os.fspath(value)}, b""
    return {"json": json.loads(json.dumps(value, default=lambda array: array.tolist()))}, b""


def versions():
    """Return the minor version of this interpreter, and its packages as name==version."""
    from importlib.metadata import distributions

    packages = {(d.metadata["Name"] or "?").lower().replace("_", "-") + "==" + d.version for d in distributions()}
    return {"python": platform.python_version().rpartition(".")[0], "packages": sorted(packages)}


if __name__ == "__main__":
    if sys.argv[1] == "versions":
        import site

        site.main()
        print(json.dumps(versions()))
    else:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
        Worker(socket.socket(fileno=int(sys.argv[1]))).live()
