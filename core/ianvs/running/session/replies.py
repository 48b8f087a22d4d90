"""The keeper's side of replies: what was said before, and, where the job has one, a server that writes them.

A copy calls from within predict(): it has no socket but the one to the keeper.
"""

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from ianvs.base.errors import PluginError, ReplyServerError
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.processes.reply_server import ReplyServer
from ianvs.processes.sealing.peer import Message
from ianvs.processes.sealing.shared_arrays import ArrayWriter, mapped
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.named_files import content
from ianvs.running.session.learner_messages import AdapterTold, Replied, ReplyCall, read, token_lists
from ianvs.store.keys import digest

CALLS = ("replies", "replied")


class Replies:
    """Of one case."""

    def __init__(self, request: CaseRequest) -> None:
        url, self._request = request.generation.url, request
        self._server = None if url is None else ReplyServer(url)
        self._writer: list[object] = []  # what replies depend on beside weights and prompts
        self._salt = secrets.token_urlsafe(32)
        self._file: Path | None = None  # of what was said under the conditions of the last call
        self._known: dict[str, list[int]] = {}
        self._missing: list[str] = []
        self._loaded: tuple[str, Path] | None = None  # by the server: the digest of an adapter, and its folder
        self._open = self._anew = self._changed = False

    @contextmanager
    def given(self, *, anew: bool = False) -> Iterator[None]:
        """Within, who is examined may call. anew: to find out whether it says the same as before; a server is not what
        is to be found out about, and need not say the same in another batch."""
        self._open, self._anew = True, anew and self._server is None
        try:
            yield
        finally:
            self._open = False
            self._turn_to(None)
            self._unload()

    def handle(self, name: str, told: Message) -> Message:
        """One of CALLS. Raises PluginError for what does not fit: it comes from an author's code."""
        if not self._open or len(told.files) != 1:
            raise PluginError("replies are given to who is examined, and asked for by one file")
        memory = mapped(told.files[0])
        if name == "replied":
            said = token_lists(memory, read(Replied, told.body).replies)
            if len(said) != len(self._missing):
                raise PluginError(f"{len(said)} replies came to {len(self._missing)} prompts")
            self._note(dict(zip(self._missing, said, strict=True)))
            return Message({})
        asked = read(ReplyCall, told.body)
        prompts = token_lists(memory, asked.prompts)
        keys = [_digest(np.array(prompt, np.int64).tobytes()) for prompt in prompts]
        files = {} if asked.adapter is None else _files(asked.adapter, memory)
        weights = asked.weights if self._server is None else digest([*map(_digest, files.values())])
        self._turn_to([*self._conditions(), weights, asked.stops, asked.longest])
        known = {} if self._anew else self._known
        missing = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in known}
        self._missing = [key for key in keys if key in missing]
        if self._server is not None and missing:
            model = self._load(weights, files)
            said = self._server.replies(model, [*missing.values()], asked.stops, asked.longest, self._salt)
            self._note(dict(zip(missing, said, strict=True)))
        writer = ArrayWriter()
        return Message({"replies": writer.objects([known.get(key) for key in keys])}, (writer.file,))

    def _conditions(self) -> list[object]:
        """What replies depend on beside weights and prompts. What a learner says of itself nobody can check: its
        replies are kept for the same source, options and seed."""
        identity = self._request.identity
        if not self._writer and self._server is None:
            versions = [version(name) for name in ("transformers", "torch") if find_spec(name)]
            self._writer = [versions, identity["algorithm"], identity["hyperparameters"], identity["seed"]]
        elif not self._writer and self._server is not None:
            served, planned = self._server.served(), self._request.generation.version
            if served.version != planned:
                said = f"is {served.version!r} now, and was {planned!r} when the job was planned"
                raise ReplyServerError(f"the server at {self._server.url} {said}. Run it again.")
            root, algorithm = Path(served.root), identity["algorithm"]
            base = content(root, self._request.workspace / "cache") if root.is_dir() else served.root
            repetition = algorithm.get("repetition") if isinstance(algorithm, Mapping) else None
            self._writer = [served.version, base, repetition]
        return self._writer

    def _turn_to(self, conditions: list[object] | None) -> None:
        """Write down what was said, and take up what was said under these conditions."""
        file = None if conditions is None else self._folder("replies") / f"{digest(conditions)}.json"
        if file == self._file:
            return
        if self._file is not None and self._changed:
            with suppress(OSError):  # it only saves time
                write_memo(self._file, {**(read_memo(self._file) or {}), **self._known})
        self._file, self._changed = file, False
        self._known = {} if file is None else read_memo(file) or {}

    def _note(self, said: Mapping[str, list[int]]) -> None:
        self._known |= said
        self._missing, self._changed = [], True

    def _folder(self, name: str) -> Path:
        """In the workspace, which is closed to learners."""
        return self._request.workspace / "cache" / name

    def _load(self, weights: str, files: Mapping[str, bytes]) -> str:
        """Under which name the server has an adapter. It has one of a case at a time."""
        assert self._server is not None
        if not files:
            raise PluginError("a server needs the adapter of the weights that answer")
        if self._loaded is None or self._loaded[0] != weights:
            self._unload()
            self._folder("adapters").mkdir(parents=True, exist_ok=True)
            folder = Path(mkdtemp(prefix="ianvs-", dir=self._folder("adapters")))
            self._loaded = weights, folder
            for name, held in files.items():
                (folder / name).write_bytes(held)
            self._server.load(folder.name, folder)
        return self._loaded[1].name

    def _unload(self) -> None:
        if self._server is not None and self._loaded is not None:
            _, folder = self._loaded
            self._loaded = None
            with suppress(ReplyServerError):  # of an adapter that it could not load, or of a server that is gone
                self._server.unload(folder.name)
            shutil.rmtree(folder, ignore_errors=True)


def _files(told: AdapterTold, memory: memoryview) -> dict[str, bytes]:
    """As peft writes an adapter. The description is made here: nothing of an author's gets to a server but numbers."""
    start, length = told.tensors
    said = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "bias": "none", "inference_mode": True, "lora_dropout": 0.0}
    said |= {"r": told.rank, "lora_alpha": told.alpha, "target_modules": told.modules, "base_model_name_or_path": None}
    tensors = bytes(memory[start : start + length])
    return {"adapter_config.json": json.dumps(said).encode(), "adapter_model.safetensors": tensors}


def _digest(held: bytes) -> str:
    return hashlib.blake2b(held, digest_size=16).hexdigest()
