"""The keeper's side of replies: what was said before, and, where the job has one, a server that writes them.

A copy calls from within predict(): it has no socket but the one to the keeper.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ianvs.base.errors import PluginError, ReplyServerError
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.processes.reply_server import ReplyServer
from ianvs.processes.sealing.peer import Message
from ianvs.processes.sealing.shared_arrays import ArrayWriter, mapped
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session.learner_messages import Replied, ReplyCall, read, token_lists
from ianvs.store.keys import digest

CALLS = ("replies", "replied")


class Replies:
    """Of one case. All is kept in the cache of the workspace, which is closed to learners."""

    def __init__(self, request: CaseRequest) -> None:
        self._request, self._cache = request, request.workspace / "cache"
        self._server = None if request.generation.url is None else ReplyServer(request.generation.url)
        self._asked_server = False
        self._salt = secrets.token_urlsafe(32)
        self._when: object = None
        self._file = Path()  # of what was said under the conditions of the last call
        self._known: dict[str, str] = {}  # token ids with blanks between them, which are written in no time
        self._missing: list[str] = []

    @contextmanager
    def given(self, when: object) -> Iterator[None]:
        """Within, who is examined may call. when: which examination of the case it is.

        Replies count for that one alone, and for the same algorithm, hyperparameters and seed: what a copy says of its
        weights nobody can check, and it could leave notes for a later one, or put words into another's mouth.
        """
        self._when = when
        try:
            yield
        finally:
            self._when = None

    def handle(self, name: str, told: Message) -> Message:
        """One of CALLS. Raises PluginError for what does not fit: it comes from an author's code."""
        if self._when is None or len(told.files) != 1:
            raise PluginError("replies are given to who is examined, and asked for by one file", code="invalid-request")
        memory = mapped(told.files[0])
        if name == "replied":
            self._note(self._missing, token_lists(memory, read(Replied, told.body).replies))
            return Message({})
        asked = read(ReplyCall, told.body)
        prompts = token_lists(memory, asked.prompts)
        keys = [_digest(np.array(prompt, np.int64).tobytes()) for prompt in prompts]
        files = {} if asked.adapter is None else asked.adapter.files(memory)
        weights: object = asked.weights if self._server is None else [*map(_digest, files.values())]
        self._turn_to([weights, asked.stops, asked.longest])
        missing = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._known}
        self._missing = [key for key in keys if key in missing]
        if self._server is not None and missing:
            self._require_planned(self._server)
            (self._cache / "adapters").mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix="ianvs-", dir=self._cache / "adapters") as folder:
                for file, held in files.items():
                    Path(folder, file).write_bytes(held)
                with self._server.adapter(Path(folder)) as model:
                    said = self._server.replies(model, [*missing.values()], asked.stops, asked.longest, self._salt)
            self._note([*missing], said)
        writer, found = ArrayWriter(), [self._known.get(key) for key in keys]
        replies = [None if one is None else [*map(int, one.split())] for one in found]
        return Message({"replies": writer.objects(replies)}, (writer.file,))

    def _require_planned(self, server: ReplyServer) -> None:
        planned = self._request.generation.version
        if not self._asked_server and (now := server.served().version) != planned:
            said = f"is {now!r} now, and was {planned!r} when the job was planned"
            raise ReplyServerError(f"the server at {server.url} {said}. Run it again.", code="unreachable-server")
        self._asked_server = True

    def _turn_to(self, said_by: list[object]) -> None:
        """Take up what was said under these conditions. The algorithm's identity has the base model, and a server."""
        identity = self._request.identity
        case = [self._when, *(identity[name] for name in ("algorithm", "hyperparameters", "seed"))]
        versions = [version(name) for name in ("transformers", "torch") if find_spec(name)]
        file = self._cache / "replies" / f"{digest([case, versions, said_by])}.json"
        if file != self._file:
            self._file, self._known = file, read_memo(file) or {}

    def _note(self, keys: list[str], said: list[list[int]]) -> None:
        if len(said) != len(keys):
            raise PluginError(f"{len(said)} replies came to {len(keys)} prompts", code="invalid-result")
        self._known |= {key: " ".join(map(str, one)) for key, one in zip(keys, said, strict=True)}
        self._missing = []
        with suppress(OSError):  # it only saves time
            write_memo(self._file, self._known)


def _digest(held: bytes) -> str:
    return hashlib.blake2b(held, digest_size=16).hexdigest()
