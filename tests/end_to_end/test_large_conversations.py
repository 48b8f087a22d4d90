"""Twenty thousand conversations with 20 MB of text, from files to the page, in processes of at most 1 GB."""

import csv
import json
import random
import subprocess
import sys
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
MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "ianvs", *sys.argv[1:]], capture_output=True, text=True)
print(done.stdout, done.stderr, sep="\\n")
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""


def ianvs(*words: str) -> tuple[str, int]:
    """(what a command says, KiB of the largest of its processes, and of theirs)."""
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said, _, largest = done.stdout.rstrip().rpartition("\n")
    return said, int(largest)


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
        tmp_path, plugin=PARROT, name="Parrot", hyperparameters="", testenv=TESTENV, job="seeds: [0]",
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
        tmp_path, plugin=PARROT, name="Parrot", hyperparameters="", testenv=TESTENV,
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
