"""A small server of replies, for tests: what vLLM answers, with a model of transformers and peft behind it.

`python reply_server.py FOLDER` serves the model in a folder, and prints its url. GET /asked: how many prompts came.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


class Models:
    """The model in `folder`, and adapters by name."""

    def __init__(self, folder: str) -> None:
        self.folder, self.adapters, self.asked, self.loaded = folder, dict[str, Any](), 0, 0

    def load(self, name: str, path: str) -> None:
        plain = AutoModelForCausalLM.from_pretrained(self.folder)
        self.adapters[name] = PeftModel.from_pretrained(plain, path).eval()
        self.loaded += 1

    def reply(self, name: str, prompt: list[int], stops: list[int], longest: int) -> list[int]:
        """Token by token, each with all before it."""
        tokens = list(prompt)
        while len(tokens) < len(prompt) + longest and (len(tokens) == len(prompt) or tokens[-1] not in stops):
            with torch.inference_mode():
                tokens.append(int(self.adapters[name](input_ids=torch.tensor([tokens])).logits[0, -1].argmax()))
        self.asked += 1
        return tokens[len(prompt) :]


class Handler(BaseHTTPRequestHandler):
    models: Models

    def do_GET(self) -> None:
        models = self.models
        base = {"id": models.folder, "root": models.folder, "parent": None, "owned_by": "vllm"}
        loaded = [{"id": name, "parent": models.folder} for name in models.adapters]
        answers = {
            "/v1/models": {"data": [base, *loaded]},
            "/version": {"version": "0.0.test"},
            "/asked": {"prompts": models.asked, "adapters": len(models.adapters), "loaded": models.loaded},
        }
        self.answer(200 if self.path in answers else 404, answers.get(self.path, {}))

    def do_POST(self) -> None:
        models, told = self.models, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/completions":
            assert told["temperature"] == 0 and told["repetition_penalty"] == 1 and told["return_token_ids"]
            how = (told["stop_token_ids"], told["max_tokens"])
            said = [models.reply(told["model"], prompt, *how) for prompt in told["prompt"]]
            self.answer(200, {"choices": [{"index": i, "token_ids": one} for i, one in enumerate(said)][::-1]})
        elif not told["lora_name"]:
            self.answer(400, {"error": {"message": "a name and a path are needed"}})
        elif self.path == "/v1/load_lora_adapter":
            models.load(told["lora_name"], told["lora_path"])
            self.answer(200, "loaded")
        else:
            del models.adapters[told["lora_name"]]
            self.answer(200, "unloaded")

    def answer(self, status: int, body: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    torch.set_num_threads(1)
    Handler.models = Models(sys.argv[1])
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
