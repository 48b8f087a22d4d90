"""Client of a model server with adapters: OpenAI's `completions` API with vLLM's extensions."""

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from ianvs.base.errors import ReplyServerError

_START = "Start it as `VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve BASE_MODEL --enable-lora`"
_SOON, _PATIENCE = 10.0, 3600.0  # timeouts in seconds: for facts; for prompts or an adapter
_AT_ONCE = 256  # prompts per request; the server makes its own batches
# Other settings would be the defaults of the model's authors.
_GREEDY = {"temperature": 0, "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0}
_TOKENS = {"frequency_penalty": 0, "add_special_tokens": False, "return_token_ids": True}


class Served(NamedTuple):
    """A served base model. version: of the program, "vllm 0.11.0". name, root: name and path of the base model."""

    url: str
    version: str
    name: str
    root: str


class ReplyServer:
    """A server at `url`. Methods raise ReplyServerError with the url and a remedy."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._opener = build_opener(ProxyHandler({}))  # ignore proxies of the environment

    def served(self) -> Served:
        """Return the loaded base model. Raises ReplyServerError if the server can't load adapters at run time."""
        status, _ = self._answer("/v1/load_lora_adapter", {"lora_name": "", "lora_path": ""})
        if status in (404, 405, 501):
            lacks = "takes no adapters while it runs, and each round has another"
            raise ReplyServerError(f"the server at {self.url} {lacks}. {_START}.", code="unreachable-server")
        _, version_info = self._answer("/version")  # not every program has it
        try:
            base = next(model for model in self._request("/v1/models")["data"] if not model.get("parent"))
            version = f"{base.get('owned_by', '')} {version_info.get('version', '')}".strip()
            return Served(self.url, version, str(base["id"]), str(base.get("root") or base["id"]))
        except (LookupError, TypeError, AttributeError, StopIteration):
            raise ReplyServerError(
                f"what answers at {self.url} names no base model. {_START}.", code="unreachable-server"
            ) from None

    @contextmanager
    def adapter(self, folder: Path) -> Iterator[str]:
        """Context manager: load peft's adapter in `folder` under the returned name."""
        self._request("/v1/load_lora_adapter", {"lora_name": folder.name, "lora_path": str(folder)})
        try:
            yield folder.name
        finally:
            with suppress(ReplyServerError):  # the server may have ended
                self._request("/v1/unload_lora_adapter", {"lora_name": folder.name})

    def replies(
        self, model: str, prompts: Sequence[Sequence[int]], stops: Sequence[int], max_tokens: int, salt: str
    ) -> list[list[int]]:
        """Return greedy replies as token ids; each ends with one of `stops`, which may be left out.

        salt: prompts with different salts do not share the server's prefix cache.
        """
        how = {**_GREEDY, **_TOKENS, "stop_token_ids": stops, "max_tokens": max_tokens, "cache_salt": salt}
        token_lists: list[Any] = []
        for start in range(0, len(prompts), _AT_ONCE):
            part = prompts[start : start + _AT_ONCE]
            completion = self._request("/v1/completions", {"model": model, "prompt": part, **how})
            by_index = {choice.get("index"): choice.get("token_ids") for choice in completion["choices"]}
            token_lists += map(by_index.get, range(len(part)))
        if not all(
            isinstance(tokens, list) and all(isinstance(token, int) for token in tokens) for tokens in token_lists
        ):
            lacks = "gives no token ids with its replies (`return_token_ids`). Take vLLM 0.10.2 or later"
            raise ReplyServerError(f"the server at {self.url} {lacks}.", code="unreachable-server")
        return token_lists

    def _request(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        status, content = self._answer(path, body)
        if status >= 400:
            raise ReplyServerError(
                f"the server at {self.url} refuses {path} ({status}): {json.dumps(content)[:500]}",
                code="unreachable-server",
            )
        return content

    def _answer(self, path: str, body: Mapping[str, object] | None = None) -> tuple[int, Any]:
        """Return (status, parsed JSON; {} for other text)."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=_SOON if body is None else _PATIENCE) as response:
                status, content = response.status, response.read()
        except HTTPError as error:
            with error:
                status, content = error.code, error.read()
        except (OSError, ValueError, http.client.HTTPException) as error:  # URLError is an OSError
            why = f"no server of replies answers at {self.url} ({getattr(error, 'reason', error)})"
            raise ReplyServerError(
                f"{why}. {_START}, or correct `url` of `generation` in the job.", code="unreachable-server"
            ) from None
        with suppress(ValueError):
            return status, json.loads(content)
        return status, {}
