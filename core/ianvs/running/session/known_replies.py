"""Replies of language models, from the cache or from the job's model server."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ianvs.base.errors import PluginError, ReplyServerError
from ianvs.base.former_names import former_arguments
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.plugins.contract import Adapter
from ianvs.processes.reply_server import ReplyServer
from ianvs.running.planning.case_request import CaseRequest
from ianvs.store.keys import digest


class Replies:
    """Replies of one case, cached in the workspace. Implements ianvs.plugins.contract.Generation.

    engine: the source of uncached replies. called: whether the learner has called it since the evaluation began.
    """

    def __init__(self, request: CaseRequest) -> None:
        self._request, self._cache, self.engine = request, request.workspace / "cache", request.generation.engine
        self._server = None if request.generation.url is None else ReplyServer(request.generation.url)
        self._asked_server = self.called = False
        self._salt = secrets.token_urlsafe(32)
        self._when: object = None
        self._file = Path()  # cache file for the conditions of the last call
        self._by_prompt: dict[str, str] = {}  # token ids joined by blanks, which is fast to write

    @contextmanager
    def use_for(self, when: object) -> Iterator["Replies"]:
        """Context manager: the learner may request replies. when: names the evaluation.

        Cached replies are used only for the same evaluation, algorithm, hyperparameters and seed.
        """
        self._when, self.called = when, False
        try:
            yield self
        finally:
            self._when = None

    @former_arguments(longest="max_tokens", weights="weights_digest")
    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        adapter: Callable[[], Adapter],
        generate: Callable[[list[int]], Sequence[Sequence[int]]],
        stops: Sequence[int],
        max_tokens: int,
        weights_digest: str,
    ) -> list[list[int]]:
        """Return one reply to each prompt, as token ids. See ianvs.plugins.contract.Generation."""
        if self._when is None:
            raise PluginError("only the process of a learner may request replies", code="invalid-request")
        self.called = True
        lists = [[int(token) for token in prompt] for prompt in prompts]
        keys = [_digest(np.array(prompt, np.int64).tobytes()) for prompt in lists]
        files = {} if self._server is None else _files(adapter())
        said_by: object = weights_digest if self._server is None else [*map(_digest, files.values())]
        self._open_cache([said_by, tuple(stops), max_tokens])
        missing = {key: number for number, key in enumerate(keys) if key not in self._by_prompt}
        if missing:
            numbers = sorted(missing.values())
            if self._server is None:
                replies = [[int(token) for token in reply] for reply in generate(numbers)]
            else:
                replies = self._served(self._server, files, [lists[number] for number in numbers], stops, max_tokens)
            self._note([keys[number] for number in numbers], replies)
        return [[*map(int, self._by_prompt[key].split())] for key in keys]

    def _served(
        self,
        server: ReplyServer,
        files: dict[str, bytes],
        prompts: list[list[int]],
        stops: Sequence[int],
        max_tokens: int,
    ) -> list[list[int]]:
        self._require_planned(server)
        (self._cache / "adapters").mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="ianvs-", dir=self._cache / "adapters") as folder:
            for file, held in files.items():
                Path(folder, file).write_bytes(held)
            with server.adapter(Path(folder)) as model:
                return server.replies(model, prompts, tuple(stops), max_tokens, self._salt)

    def _require_planned(self, server: ReplyServer) -> None:
        planned = self._request.generation.version
        if not self._asked_server and (now := server.served().version) != planned:
            change = f"is {now!r} now, and was {planned!r} when the job was planned"
            raise ReplyServerError(f"the server at {server.url} {change}. Run it again.", code="unreachable-server")
        self._asked_server = True

    def _open_cache(self, said_by: list[object]) -> None:
        """Open the cache for these conditions. The base model and the server are part of the algorithm's identity."""
        identity = self._request.identity
        case = [self._when, *(identity[name] for name in ("algorithm", "hyperparameters", "seed"))]
        versions = [version(name) for name in ("transformers", "torch") if find_spec(name)]
        file = self._cache / "replies" / f"{digest([case, versions, said_by])}.json"
        if file != self._file:
            self._file, self._by_prompt = file, read_memo(file) or {}

    def _note(self, keys: list[str], replies: list[list[int]]) -> None:
        if len(replies) != len(keys):
            raise PluginError(f"{len(replies)} replies came to {len(keys)} prompts", code="invalid-result")
        self._by_prompt |= {key: " ".join(map(str, reply)) for key, reply in zip(keys, replies, strict=True)}
        with suppress(OSError):  # the cache is optional
            write_memo(self._file, self._by_prompt)


def _files(adapter: Adapter) -> dict[str, bytes]:
    """Return the files of an adapter, as peft writes them."""
    options = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": adapter.rank, "lora_alpha": adapter.alpha}
    config: dict[str, Any] = {**options, "bias": "none", "target_modules": adapter.modules}
    config |= {"lora_dropout": 0.0, "inference_mode": True}
    return {"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": adapter.tensors}


def _digest(held: bytes) -> str:
    return hashlib.blake2b(held, digest_size=16).hexdigest()
