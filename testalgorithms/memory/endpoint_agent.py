"""An agent that queries a model through an OpenAI-compatible endpoint, with its feedback as examples in the prompt."""

import json
import os
from typing import ClassVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure
from ianvs.testalgorithms.memory.memories import History


class EndpointAgent:
    """Sends its notes as earlier turns of a chat, and the question as the last, to `url`/chat/completions.

    Ordinary code: the process of an algorithm may use the network. What an answer costs is what the server says in
    `usage`. url: such as http://127.0.0.1:8000/v1. model: its name there. last: how many of the newest notes; 0 is all.
    key_variable: the environment variable that holds the key of a service; it is read when it is needed, and kept
    nowhere. seconds: how long an answer may take.
    """

    measures: ClassVar = {
        "tokens": Measure("Tokens of all prompts and answers in the stream, as the server's `usage` says."),
        "calls": Measure("Answers of the server in the stream."),
    }

    def __init__(self, *, url, model, last=0, key_variable=None, max_new_tokens=16, temperature=0.0, seconds=60.0):
        if not str(url).startswith(("http://", "https://")):
            raise PluginError(f"url is '{url}'; it begins with http:// or https://.", code="refused-arguments")
        self.url, self.basemodel = f"{str(url).rstrip('/')}/chat/completions", model
        self.asks = {"model": model, "max_tokens": max_new_tokens, "temperature": temperature}
        self.key_variable, self.seconds = key_variable, seconds
        self.memory = History(last=last)
        self._spent = {"tokens": 0, "calls": 0}

    def check_exam(self, *, kind, feedback):
        if kind != "text":
            raise PluginError(
                f"EndpointAgent answers questions that are one text each; this exam is of {kind} data.",
                code="refused-arguments",
            )
        if self.key_variable is not None and not os.environ.get(self.key_variable):
            raise PluginError(
                f"key_variable names '{self.key_variable}', which is not set. Set it where ianvs is started.",
                code="refused-arguments",
            )
        self.memory.check_exam(kind=kind, feedback=feedback)

    def answer(self, data):
        return [
            self._reply(str(question), notes) for question, notes in zip(data.x, self.memory.read(data), strict=True)
        ]

    def measured(self):
        """Return the costs since the last call."""
        spent, self._spent = self._spent, {"tokens": 0, "calls": 0}
        return {name: float(number) for name, number in spent.items()}

    def feedback(self, feedback):
        self.memory.write(feedback)

    def reset(self):
        self.memory.reset()

    def save(self, path):
        self.memory.save(path)

    def load(self, path):
        self.memory.load(path)

    def _reply(self, question, notes):
        messages = [{"role": "system", "content": "Answer the last question as briefly as the earlier ones were."}]
        for before, answer in reversed(list(notes)):  # the most relevant note comes first, and is put nearest
            messages += [{"role": "user", "content": str(before)}, {"role": "assistant", "content": str(answer)}]
        reply = self._post([*messages, {"role": "user", "content": question}])
        try:
            usage, text = reply["usage"], reply["choices"][0]["message"]["content"]
            self._spent["tokens"] += usage["prompt_tokens"] + usage["completion_tokens"]
        except (KeyError, IndexError, TypeError) as error:
            raise PluginError(
                f"{self.url} sent no answer with its `usage`: {json.dumps(reply)[:200]}", code="unreachable-server"
            ) from error
        self._spent["calls"] += 1
        return (text or "").strip().rstrip(".")

    def _post(self, messages):
        headers = {"Content-Type": "application/json"}
        if self.key_variable is not None:
            headers["Authorization"] = f"Bearer {os.environ[self.key_variable]}"
        body = json.dumps({**self.asks, "messages": messages}).encode()
        try:
            with urlopen(Request(self.url, body, headers), timeout=self.seconds) as response:
                return json.load(response)
        except HTTPError as error:
            detail = error.read(300).decode("utf-8", "replace")
            raise PluginError(f"{self.url} answered {error.code}: {detail}", code="unreachable-server") from error
        except (URLError, TimeoutError, ValueError) as error:
            raise PluginError(f"{self.url} can't be asked: {error}", code="unreachable-server") from error
