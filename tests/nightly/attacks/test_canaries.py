"""A job with a secret in every place and of every form: none is in a file of the workspace, nor in what is printed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from urllib.parse import quote, quote_plus

import pandas as pd
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

KEY = "\n".join(
    [
        "-----BEGIN PRIVATE KEY-----",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7canary",
        "VJTUt9Us8cKjMzEfYyjiWA4R4canary0123456789abcdefghijklmnopq",
        "-----END PRIVATE KEY-----",
    ]
)
BY_NAME = {
    "api_key": "canary api/key+1 'quoted' \"twice\" ü",
    "pass": "canary-pass-22",
    "db_pw": "canary-pw-333",
    "jwt": "canary-jwt-4444",
    "cookie": "canary-cookie-5",
    "session": "canary-session-6",
    "signature": "canary-signature-7",
    "private_key": KEY,
    "nested": {"deeper": [{"auth": {"user": "canary-user-8"}}, [{"name": "token", "value": "canary-beside-9"}]]},
}
BY_LOOKS = {
    "github": "ghp_canary0123456789abcdefghijklmnopqrst",
    "openai": "sk-proj-canary0123456789",
    "slack": "xoxb-123456789012-canary0123",
    "web": "eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOjF9.canary0123456789",
    "aws": "AKIACANARY0123456789",
    "hub": "hf_canary0123456789abcdefghij",
    "pem": KEY.replace("canary", "other0"),
    "url": "https://example.org/x?a=1&access_token=canary-query-1&b=2",
    "base": "postgres://me:canary-login-2@db.example/x",
    "odbc": "Server=db;Uid=me;Pwd=canary-odbc-3;Database=x",
}
SHOWN = {"api_key_env": "CANARY_VARIABLE", "session_size": 3, "pass_count": 4, "tokens": 5, "kind": "skip-connection"}
ENVIRONMENT = {"CANARY_VARIABLE": "canary-of-a-variable", "CANARY_TOKEN": "canary-environment-4"}
# What is looked for in the end: the part of each secret that nothing else has.
FORBIDDEN = (
    *(
        "canary api/key",
        "canary-pass",
        "canary-pw",
        "canary-jwt",
        "canary-cookie",
        "canary-session",
        "canary-signature",
    ),
    *("canary-user", "canary-beside", "C7canary", "R4canary", "C7other0", "R4other0", "canary0123456789", "CANARY0123"),
    *("canary-query", "canary-login", "canary-odbc", "canary-of-a-variable", "canary-environment"),
    *("canary-option", "canary-metric", "canary-paradigm", "canary-set", "canary-engine"),
)
PLUGIN = """
    import base64, json, os, sys
    from urllib.parse import quote

    class Loud:
        def __init__(self, bias=0, given=None, **more):
            self.bias, self.counts, self.given = bias, {}, {**more, **given}
            self.remark = f"remark {self.given}"
            self.basemodel = f"network {self.given['pass']} {self.given['github']}"

        def train(self, train_data, valid_data=None):
            for text in (self.given, repr(self.given), json.dumps(self.given), dict(os.environ), *self.given.values()):
                print(text)
                print(str(text), file=sys.stderr, flush=True)
            for secret in (*self.given.values(), os.environ["CANARY_TOKEN"], os.environ["CANARY_VARIABLE"]):
                secret = str(secret)
                print(quote(secret), quote(secret, safe=""), base64.b64encode(secret.encode()).decode())
                half = len(secret) // 2
                os.write(1, secret[:half].encode())
                os.write(1, secret[half:].encode() + b"\\n")
            if self.bias:
                raise ValueError(f"{self.given!r} {json.dumps(self.given)} {os.environ['CANARY_TOKEN']} {self.given}")
            for label in train_data.y.tolist():
                self.counts[label] = self.counts.get(label, 0) + 1

        def predict(self, data):
            return [max(self.counts, key=self.counts.get, default=0)] * len(data)

        def save(self, path):
            path.write_text(json.dumps(list(self.counts.items())))

        def load(self, path):
            self.counts = dict(json.loads(path.read_text()))
"""
DATA = """
    import numpy as np

    def samples(token: str, seed: int = 0):
        print("reading with", token)
        x, y = np.arange(60, dtype=np.float32).reshape(30, 2) + seed, np.arange(30) % 3
        return {"train": (x, y), "test": (x, y)}
"""
METRIC = """
    class mine:
        def __init__(self, api_key: str = ""):
            self.right = []
            print("scoring with", api_key)

        def update(self, y_true, y_pred):
            self.right += [float(a == b) for a, b in zip(y_true, y_pred)]

        def compute(self):
            return sum(self.right) / len(self.right)
"""
TESTENV = """
    testenv:
      dataset: {name: samples, url: ./data.py, token: canary-option-5}
      scenario: {name: class-incremental, rounds: 3}
      metrics: [accuracy, {name: mine, url: ./metric.py, api_key: canary-metric-6}]
"""


def written(folder: Path) -> Path:
    """The job, in `folder`."""
    files = {"plugin.py": PLUGIN, "data.py": DATA, "metric.py": METRIC, "testenv.yaml": TESTENV}
    for name, text in files.items():
        (folder / name).write_text(dedent(text).lstrip())
    grid = [{"bias": {"values": [0, 1]}}, {"given": {"values": [BY_NAME | BY_LOOKS]}}]
    grid += [{name: {"values": [value]}} for name, value in SHOWN.items()] + [{"api_token": {"values": ["x"]}}]
    module = {"type": "basemodel", "name": "Loud", "url": "./plugin.py", "hyperparameters": grid}
    algorithm = {"algorithm": {"paradigm_type": "incrementallearning", "modules": [module]}}
    (folder / "algorithm.yaml").write_text(json.dumps(algorithm))
    job = {
        "name": "test",
        "workspace": str(folder / "ws"),
        "testenv": "./testenv.yaml",
        "test_object": {"type": "algorithms", "algorithms": [{"name": "loud", "url": "./algorithm.yaml"}]},
        "rank": {"sort_by": [{"accuracy": "descend"}]},
        "seeds": [0],
    }
    path = folder / "benchmarkingjob.yaml"
    path.write_text(json.dumps({"benchmarkingjob": job}))
    return path


def said(*words: str) -> str:
    """What `ianvs` prints."""
    found = subprocess.run(
        [sys.executable, "-m", "ianvs", *words], capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}
    )
    return found.stdout + found.stderr


def forms(secret: str) -> Iterator[bytes]:
    yield from (secret.encode(), json.dumps(secret)[1:-1].encode(), quote(secret).encode(), quote_plus(secret).encode())


def leaks(text: bytes) -> list[str]:
    found = [secret for secret in FORBIDDEN if any(form in text for form in forms(secret))]
    whole = [*BY_NAME.values(), *list(BY_LOOKS.values())[:7], *ENVIRONMENT.values()]
    coded = [base64.b64encode(secret.encode()).rstrip(b"=") for secret in whole if isinstance(secret, str)]
    return found + [code.decode() for code in coded if code in text]


def leaking_files(folder: Path) -> dict[str, list[str]]:
    """Apart from source files as their authors wrote them, which are kept for nobody but the user."""
    files = [file for file in folder.rglob("*") if file.is_file() and "code" not in file.relative_to(folder).parts]
    found = {str(file): leaks(file.read_bytes()) for file in files}
    return {file: secrets for file, secrets in found.items() if secrets}


@pytest.mark.slow
def test_no_secret_is_shown_or_stored_anywhere(tmp_path: Path) -> None:
    path = str(written(tmp_path))
    given = ("--set", "loud.api_token=canary-set-7")
    told = {
        word: said(*word.split(), "-f", path, *given)
        for word in ("validate", "plan", "run", "status", "report", "report --explain", "plan --json")
    }
    out = tmp_path / "ws"
    cases = [folder.name for folder in (out / "cases").iterdir() if folder.name[0] != "."]
    assert len(cases) == 2
    told |= {f"logs {case}": said("logs", case, "-f", path, *given) for case in cases}
    told |= {"export": said("export", "-f", path, "--to", "parquet", "--out", str(tmp_path / "parquet"))}
    told["wrong"] = said(
        "validate",
        "-f",
        path,
        "--set",
        "loud.tokens=sk-proj-canary0123456789",
        "--set",
        "seeds=ghp_canary0123456789abc",
    )
    told["unread"] = said("validate", "-f", path, "--set", "loud.api_token=[canary-set-7")
    assert "seed 0: remark {" in told["report --explain"]
    assert not {word: found for word, text in told.items() if (found := leaks(text.encode()))}
    assert len(list(out.rglob("*"))) > 30
    assert not leaking_files(out)
    tables = list((tmp_path / "parquet").rglob("*.parquet"))
    assert tables
    assert not leaks("".join(pd.read_parquet(table).to_csv() for table in tables).encode())
    logs = "".join((out / "cases" / case / "log.txt").read_text() for case in cases)
    assert "'api_key': '***', 'pass': '***', 'db_pw': '***'" in logs
    for shown in ("CANARY_VARIABLE", "skip-connection", "network"):
        assert shown in (out / "test" / "rank" / "all_rank.csv").read_text()


@pytest.mark.slow
def test_a_search_over_secrets_stores_none_of_them_and_goes_on(tmp_path: Path) -> None:
    plugin = edited(
        MAJORITY,
        "bias=0,",
        "token='', bias=0,",
        "        self.bias,",
        "        assert token.startswith('canary-option'), token\n        self.bias,",
    )
    axes = "- token: {choice: [canary-option-a, canary-option-b, canary-option-c]}\n- bias: {int: [0, 99]}"
    job = "seeds: [0]\nsearch: {name: random, trials: 3}"
    path = write_job(tmp_path, engine="local", plugin=plugin, hyperparameters=axes, job=job)
    first = list(ianvs.run(path))
    path.write_text(edited(path.read_text(), "trials: 3", "trials: 6"))
    again = list(ianvs.run(path))
    assert {found.status for found in (*first, *again)} == {"finished"}
    assert {found.case.id for found in first if found.case.id} <= {found.case.id for found in again}
    [study] = (tmp_path / "ws" / "test" / "search").glob("*.json")
    assert '"*** 1"' in study.read_text()
    assert not leaking_files(tmp_path / "ws")
    assert "canary" not in said("plan", "-f", str(path))


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("plugin.py", "    def __init__(self, bias=0, given=None, **more):\n"),
        ("plugin.py", ""),
        ("data.py", "def samples(token: str, seed: int = 0):\n"),
        ("metric.py", '    def __init__(self, api_key: str = ""):\n'),
    ],
)
def test_what_authors_files_raise_before_a_run_tells_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, line: str
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    path = written(tmp_path)
    text = (tmp_path / file).read_text()
    raising = "import os; raise ValueError(f'{dict(locals())} {dict(os.environ)}')\n"
    indent = " " * (len(line) - len(line.lstrip()) + 4) if line else ""
    (tmp_path / file).write_text(edited(text, line, line + indent + raising, count=1))
    with pytest.raises(ConfigError) as caught:
        ianvs.run(path)
    assert "ValueError: " in str(caught.value)
    assert not leaks(str(caught.value).encode())
