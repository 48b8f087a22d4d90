"""Twenty thousand conversations with 20 MB of text, from files to the page, in processes of at most 1 GB."""

import csv
import json
import os
import random
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.jobs import write_job

CONVERSATIONS = 20_000  # half of them taught, half of them asked
TEXT = 20_000_000  # characters
LARGEST = 1_000_000  # KiB of memory of a process

PARROT = '''
class Parrot:
    """Repeats what it is asked; it keeps nothing, so that what is measured is ianvs."""

    def train(self, train_data):
        self.seen = len(train_data)

    def predict(self, data):
        return [[text[::-1] for text in asked["user"]] for asked in data.x]

    def save(self, path):
        path.write_text("")

    def load(self, path): ...
'''
TESTENV = """
dataset: {train_data: train.jsonl, test_data: test.jsonl}
scenario: {name: instance-incremental, rounds: 2}
metrics: [reply_exact_match, ROUGE_L]
"""
MARK = "TEST_OF_LARGE_CONVERSATIONS"


def ianvs(*words: str) -> tuple[str, int]:
    """(what a command says, the most KiB that one of its processes ever had)."""
    mark = f"{MARK}={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    done = subprocess.Popen(
        [sys.executable, "-m", "ianvs", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, name: value},
    )  # fmt: skip
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(done.communicate()[0]))
    reader.start()
    largest = 0
    while reader.is_alive():
        largest = max([largest, *peaks(mark)])
        reader.join(0.05)
    assert done.returncode == 0, said[0]
    return said[0], largest


def peaks(mark: str) -> Iterator[int]:
    """The peak in KiB of each process whose environment has the mark, however it was started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                yield next((int(line.split()[1]) for line in (folder / "status").open() if line[:6] == "VmHWM:"), 0)


def write_talk(path: Path, count: int, seed: int) -> int:
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randrange(2, 9))) for _ in range(5000)]
    size = 0
    with path.open("w") as file:
        for number in range(count):
            said = [" ".join(draw.choices(words, k=43)) for _ in range(4)]
            size += sum(map(len, said))
            roles = zip(("user", "assistant") * 2, said, strict=True)
            messages = [{"role": role, "content": f"{number} {text}"} for role, text in roles]
            file.write(json.dumps({"messages": messages}) + "\n")
    return size


@pytest.mark.slow
def test_a_corpus_of_20_mb_goes_from_files_to_the_page_in_1_gb(tmp_path):
    job = write_job(
        tmp_path,
        engine="local", plugin=PARROT, name="Parrot", hyperparameters="", testenv=TESTENV, job="seeds: [0]",
        sort_by="[{ROUGE_L: descend}]",
    )  # fmt: skip
    size = sum(
        write_talk(tmp_path / f"{part}.jsonl", CONVERSATIONS // 2, n) for n, part in enumerate(("train", "test"))
    )
    assert size >= TEXT * 0.98
    for words in (["validate"], ["plan"], [], ["report"]):
        said, largest = ianvs(*words, "-f", str(job))
        print(words or ["run"], f"{largest / 1024:.0f} MB")
        assert largest < LARGEST, (words, said)
    [replies] = tmp_path.rglob("replies.csv*")
    assert next(tmp_path.rglob("report.html")).stat().st_size < 3_000_000
    if replies.suffix == ".csv":
        with replies.open(newline="") as file:
            assert sum(1 for _ in csv.reader(file)) - 1 == 3 * CONVERSATIONS  # two turns of each test set, three times


@pytest.mark.slow
def test_what_a_built_in_method_says_of_20_mb_before_training_takes_1_gb(tmp_path):
    pytest.importorskip("transformers")
    job = write_job(
        tmp_path,
        engine="local", plugin=PARROT, name="Parrot", hyperparameters="", testenv=TESTENV,
        job="seeds: [0]\nlimits: {check_seconds: 900}", sort_by="[{ROUGE_L: descend}]",
    )  # fmt: skip
    (tmp_path / "algorithm.yaml").write_text(
        "algorithm:\n  paradigm_type: incrementallearning\n  modules:\n"
        "    - {type: basemodel, name: Sequential, url: ianvs.testalgorithms.language.sequential.basemodel}\n"
    )
    for number, part in enumerate(("train", "test")):
        write_talk(tmp_path / f"{part}.jsonl", CONVERSATIONS // 2, number)
    said, largest = ianvs("validate", "-f", str(job))
    print(f"{largest / 1024:.0f} MB")
    assert largest < LARGEST, said
