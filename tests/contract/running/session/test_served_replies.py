"""Replies from a server of a job's base model, and replies that were given before: from files to answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("transformers")
pytest.importorskip("peft")

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.store import CaseStore
from ianvs.testalgorithms.language.tiny import tiny_tokenizer
from tests import reply_server
from tests.edits import edited
from tests.errors import errors_of, located, printed
from tests.jobs import write_job

PLUGIN = """
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.cia.basemodel import CIA
"""
PARROT = """
class Parrot:
    def train(self, train_data, valid_data=None, *, folder):
        raise RuntimeError("it is taught something")

    def predict(self, data, **context):
        return [["yes"] * len(asked["user"]) for asked in data.x]

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass
"""
TESTENV = """
dataset:
  train_data: {"2022": ./2022.json, "2023": ./2023.json}
  test_data: {"2022": ./2022.json, "2023": ./2023.json}
scenario: {name: domain-incremental}
metrics: [{name: EM}, {name: BWT}]
"""
TUNING = {"tuning": "lora", "max_new_tokens": 12, "epochs": 40, "batch_size": 2, "learning_rate": 0.01}


def said(system: str, *turns: str) -> dict[str, Any]:
    roles = ("user", "assistant") * len(turns)
    told = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return {"messages": [{"role": "system", "content": system}, *told]}


YEARS = {
    year: [
        said(f"It is {year}.", "Who is mayor?", mayor, "Since when?", year),
        said(f"It is {year}.", "What is 1 + 1?", "2"),
    ]
    for year, mayor in (("2022", "Ann Berg"), ("2023", "Bo Cole"))
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model and its tokenizer."""
    path = tmp_path_factory.mktemp("base")
    texts = [one["content"] for records in YEARS.values() for record in records for one in record["messages"]]
    tokenizer = tiny_tokenizer(texts, 300)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        initializer_range=0.1,  # so that it says something, if nothing that makes sense
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[str]:
    """The url of a server of that model."""
    with subprocess.Popen([sys.executable, reply_server.__file__, base], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def asked(server: str) -> dict[str, int]:
    with urlopen(f"{server}/asked") as answer:
        found: dict[str, int] = json.load(answer)
    return found


def job(
    folder: Path, base: object, url: str = "", name: str = "LanguageLearner", engine: str = "inline", **options: object
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for year, records in YEARS.items():
        (folder / f"{year}.json").write_text(json.dumps(records))
    given = {"base_model": base if isinstance(base, list) else str(base), **TUNING, **options}
    return write_job(
        folder,
        plugin=PLUGIN,
        name=name,
        hyperparameters="\n".join(
            f"- {key}: {{values: {json.dumps(value if isinstance(value, list) else [value])}}}"
            for key, value in given.items()
        ),
        testenv=TESTENV,
        job=f"seeds: [0]\nengine: {engine}" + (f"\ngeneration: {{engine: server, url: '{url}'}}" if url else ""),
        sort_by="[{EM: descend}]",
    )


def answers(path: Path) -> list[list[list[str]]]:
    """What the job's one case has said, after each round."""
    (case,) = ianvs.run(path)
    assert case.status == "finished", case.failure
    store, found = CaseStore(case.directory.parents[1]), []
    for index in range(3):
        predictions = store.predictions(case.case.id, index)
        found.append([[*map(str, turns)] for key in sorted(predictions) for turns in Replies(predictions[key].labels)])
    return found


@pytest.mark.slow
def test_a_server_replies_as_the_learner_would_over_turns_rounds_and_groups(
    tmp_path: Path, base: Path, server: str
) -> None:
    own = answers(job(tmp_path / "own", base, name="CIA", grouping="tfidf"))
    before = asked(server)
    assert answers(job(tmp_path / "served", base, server, "CIA", "local", grouping="tfidf")) == own, "sealed"
    assert own[2] == [["Ann Berg", "2022"], ["2"], ["Bo Cole", "2023"], ["2"]], "each by the adapter of its group"
    assert len({str(one) for one in own}) == 3
    now = asked(server)
    assert now["prompts"] - before["prompts"] == 3 * 6, "untrained, and after each round"
    assert now["adapters"] == 0, "none is left behind"
    assert not list((tmp_path / "served/ws/cache/adapters").iterdir())


@pytest.mark.slow
def test_a_second_run_asks_the_server_for_nothing(tmp_path: Path, base: Path, server: str) -> None:
    path = job(tmp_path, base, server)
    first, before = answers(path), asked(server)
    shutil.rmtree(tmp_path / "ws/cases")
    assert answers(path) == first
    assert asked(server) == before


def test_what_no_server_can_do_is_refused_before_anything_runs(tmp_path: Path, base: Path, server: str) -> None:
    other = shutil.copytree(base, tmp_path / "other")
    path = job(tmp_path, [str(other), "tiny"], server, tuning=["lora", "full"])
    told = []
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as found:
            command(path)
        told.append(str(found.value))
        assert {code for code, _ in located(found.value.problems)} == {"refused-arguments"}
    assert told[0] == told[1]
    assert all(name in told[0] for name in ("'full'", "'tiny'", f"'{other}'", f"'{base}'"))
    assert not (tmp_path / "ws/cases").exists()


def test_a_learner_that_does_not_ask_fails_before_it_learns_anything(tmp_path: Path, base: Path, server: str) -> None:
    path = job(tmp_path, base, server, name="Parrot")
    (tmp_path / "plugin.py").write_text(PARROT)
    (tmp_path / "algorithm.yaml").write_text(
        (tmp_path / "algorithm.yaml").read_text().partition("hyperparameters")[0].rstrip()
    )
    [case] = ianvs.run(path)
    assert case.failure is not None
    printed(case.failure.message)


def test_a_server_that_is_not_there_is_named_with_the_remedy(tmp_path: Path, base: Path) -> None:
    path = job(tmp_path, base, "http://127.0.0.1:9")
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:9 ") as found:
            command(path)
        [(code, location)] = located(found.value.problems)
        assert code == "unreachable-server"
        assert ":7:" in location


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{engine: server}", "conflicting-keys"),
        ("{url: 'http://127.0.0.1:8000'}", "conflicting-keys"),
        ("{engine: server, url: localhost}", "invalid-value"),
        ("{engine: vllm, url: 'http://127.0.0.1:8000'}", "invalid-choice"),
    ],
)
def test_slips_of_generation_are_told(tmp_path: Path, written: str, code: str) -> None:
    path = job(tmp_path, "tiny", "http://127.0.0.1:9")
    path.write_text(edited(path.read_text(), "{engine: server, url: 'http://127.0.0.1:9'}", written))
    assert [found for found, _ in errors_of(ianvs.validate, path)] == [code]
