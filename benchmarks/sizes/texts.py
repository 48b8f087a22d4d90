"""A corpus of 200 000 conversations, 268 MB, through every command.

The learner does nothing, so that all that is measured is ours; the built-in `sequential` is checked beside it, as
`validate` checks it, with a tenth of the corpus: its tokenizer reads all of what it is to learn.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from benchmarks.sizes.measuring import Row, disk, ianvs

ROOT = Path(__file__).resolve().parents[2]
CONVERSATIONS = 200_000
IDLE_MB, CORPUS_MB = 150.0, 850.0  # of memory in any process: without a corpus, and for one of 200 000 beside
TORCH_MB = 350.0  # and what a tokenizer makes of the texts
_WORDS = 140  # of a question, about a kilobyte

NOTHING = '''
class Nothing:
    """Learns nothing, and always gives the same reply."""

    def train(self, train_data, valid_data=None):
        self.seen = len(train_data)

    def predict(self, data):
        return [["yes"] * len(asked["user"]) for asked in data]

    def save(self, path):
        path.write_text("")

    def load(self, path): ...
'''


def write_job(folder: Path, conversations: int, *, built_in: bool = False) -> Path:
    """A job over `conversations` in two rounds, with a hundredth as many (500 at most) in its test part."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    words = [f"word{k}" for k in range(5000)]
    for name, count in (("train", conversations), ("test", min(500, max(4, conversations // 100)))):
        with (folder / f"{name}.jsonl").open("w") as file:
            for k in range(count):
                asked = " ".join(rng.choices(words, k=_WORDS))
                said = {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": "yes"}]}
                file.write(json.dumps({**said, "domain": f"part {k % 2}"}) + "\n")
    (folder / "nothing.py").write_text(NOTHING)
    (folder / "nothing.yaml").write_text(_algorithm("Nothing", "./nothing.py", ""))
    url = ROOT / "testalgorithms" / "language" / "sequential" / "basemodel.py"
    options = "base_model: [tiny-stand-in], learning_rate: [1.0e-3], epochs: [1], batch_size: [4]"
    (folder / "sequential.yaml").write_text(_algorithm("Sequential", str(url), options))
    (folder / "testenv.yaml").write_text(
        dedent(
            """
            testenv:
              dataset: {train_data: ./train.jsonl, test_data: ./test.jsonl}
              scenario: {name: domain-incremental}
              metrics: [reply_exact_match]
            """
        )
    )
    path = folder / "benchmarkingjob.yaml"
    path.write_text(
        dedent(
            f"""
            benchmarkingjob:
              name: corpus
              workspace: ./workspace
              testenv: ./testenv.yaml
              seeds: [0]
              device: cpu
              test_object:
                type: algorithms
                algorithms: [{{name: one, url: ./{"sequential" if built_in else "nothing"}.yaml}}]
              rank: {{sort_by: [{{reply_exact_match: descend}}]}}
            """
        )
    )
    return path


def _algorithm(name: str, url: str, options: str) -> str:
    grid = "".join(
        f"\n    - {one.split(':')[0].strip()}: {{values: {one.split(':', 1)[1].strip()}}}"
        for one in options.split(", ")
        if one
    )
    head = f"algorithm:\n  paradigm_type: incrementallearning\n  modules:\n  - type: basemodel\n    name: {name}\n"
    return head + f"    url: {json.dumps(url)}\n" + (f"    hyperparameters:{grid}\n" if grid else "")


def rows(folder: Path, share: float) -> Iterator[Row]:
    """What each command costs, with `share` of the conversations."""
    yield from _rows(folder / "nothing", int(share * CONVERSATIONS))
    yield from _rows(folder / "built_in", int(share * CONVERSATIONS / 10), built_in=True)


def _rows(folder: Path, conversations: int, *, built_in: bool = False) -> Iterator[Row]:
    path = write_job(folder, conversations, built_in=built_in)
    corpus = disk(folder)
    limit = IDLE_MB + TORCH_MB * built_in + CORPUS_MB * conversations / CONVERSATIONS
    for command in ("validate", "plan", *(() if built_in else ("run", "report"))):
        cost = ianvs(command, "-f", path, folder=folder)
        figures = {"CPU s": cost.seconds, "MB in a process": cost.process / 1e6, "MB in all": cost.tree / 1e6}
        whose = " (sequential)" if built_in else ""
        yield Row(f"{conversations:,} conversations, {command}{whose}", figures, {"MB in a process": limit})
    if not built_in:
        kept = disk(folder / "workspace") / 1e6
        yield Row(f"{conversations:,} conversations, workspace", {"MB": kept}, {"MB": corpus / 1e6})
