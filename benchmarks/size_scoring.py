"""Scoring, answers and replies at the field's own sizes: processor seconds, memory and disk, held against targets.

    python benchmarks/size_scoring.py [ROW ...] [--tenth] [--folder DIR]

Rows: classes (1 000 in 40 rounds, 10 000 test samples), more_classes (10 000 in 10 rounds), rounds (1 000, with 1 000
test sets), long_answers (800 of 100 000 characters, where 1 000 are expected) and replies (20 000 in replies.csv). The
data are made up and lie in DIR, which is a temporary folder if not said otherwise. --tenth: of a tenth of each size.
Memory is the peak of anonymous and shared memory of the process that does it, its libraries included; processor seconds
are without those of imports. Works on Linux.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.types import Asked, CaseResult, Predictions, RoundResult, TestCase
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.registry import names
from ianvs.exam.metrics.replies import packed
from ianvs.results.page.replies import CaseReplies, Exams
from ianvs.results.page.reply_file import write_reply_file
from ianvs.results.report.row_tables import csv_of
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.identity import metric_key
from ianvs.running.scoring import score_case
from ianvs.store import CaseStore, ExamRecord, ExamStore

MB = 10**6
CASE = TestCase("c1", "r1", "mine", "incrementallearning", (("basemodel", "Mine"),), {}, 0)


@dataclass(frozen=True)
class Used:
    """seconds: of processors. memory: peak, anonymous and shared, in bytes."""

    seconds: float
    memory: float


@dataclass(frozen=True)
class Line:
    """One measurement. target: the most that it may be; None: it is only told."""

    what: str
    value: float
    unit: str
    target: float | None = None

    @property
    def met(self) -> bool:
        return self.target is None or self.value <= self.target

    def __str__(self) -> str:
        target = "" if self.target is None else f"   target {self.target:g}: {'met' if self.met else 'NOT MET'}"
        return f"  {self.what:<46} {self.value:>10.2f} {self.unit:<4}{target}"


# --- measuring ------------------------------------------------------------------------------------------------------


def measured(work: Callable[..., None], *arguments: object) -> Used:
    """What `work` uses in a new process. Raises RuntimeError if it fails there."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_timed, args=(there, work, *arguments))
    process.start()
    there.close()
    peak = 0
    while not here.poll(0.005):
        peak = max(peak, _memory(process.pid))
    try:
        seconds, last = here.recv()
    except EOFError:
        raise RuntimeError(f"{work.__name__} failed") from None
    process.join()
    return Used(seconds, max(peak, last))


def _timed(out: Connection, work: Callable[..., None], *arguments: object) -> None:
    assert names(), "their modules are imported"
    before = time.process_time()
    work(*arguments)
    out.send((time.process_time() - before, _memory("self")))


def _memory(process: int | str | None) -> int:
    """Bytes of anonymous and shared memory that it holds right now."""
    with suppress(OSError):
        told = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        return sum(int(told[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem") if name in told)
    return 0


def disk(folder: Path, *, blocks: bool = False) -> float:
    """Megabytes of what is in files; by blocks, of what the file system takes for them."""
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(stat.st_blocks * 512 if blocks else stat.st_size for stat in stats) / MB


# --- cases that are made up -----------------------------------------------------------------------------------------


def write_case(
    folder: Path, kind: str, truth: Sequence[Any], said: Iterator[list[Any]], classes: Sequence[str] = (), **shown: Any
) -> None:
    """An exam with `truth` of each test set, and a case that said [test set] after each round, the untrained first."""
    labels = [tuple(np.unique(one).tolist()) if classes else () for one in truth]
    names = tuple(f"test {j}" for j in range(len(truth)))
    record = ExamRecord(
        dataset="made up",
        kind=kind,
        classes=tuple(classes),
        rounds=names,
        tests=names,
        rules={},
        round_digests=(),
        test_digests=(),
        round_classes=tuple(labels),
        test_classes=tuple(labels),
        test_earlier=(None,) * len(truth),
        notes=(),
        shape=(1,),
    )
    ExamStore(folder).write("e1", record, list(truth), shown.pop("manifest", {"tests": []}), **shown)
    cases = CaseStore(folder)
    cases.begin(CASE, {"exam_id": "e1"})
    for index, answers in enumerate(said):
        with cases.new_round(CASE.id, index) as round_:
            round_.fill(RoundResult(index, f"round {index}"), {Asked(j): Predictions(a) for j, a in enumerate(answers)})


def class_case(folder: Path, classes: int, rounds: int, tests: int, samples: int) -> None:
    """`samples` test samples of equally many classes in each test set; the learner is right more often than not."""
    draw = np.random.default_rng(0)
    truth = np.array_split(np.sort(np.arange(samples) * classes // samples), tests)
    kept = np.min_scalar_type(classes - 1)

    def said() -> Iterator[list[Any]]:
        known = [draw.integers(0, classes, len(one)) for one in truth]
        for index in range(rounds + 1):
            for j in draw.integers(0, tests, max(1, tests // 10)) if index else ():
                known[j] = np.where(
                    draw.random(len(truth[j])) < 0.7, truth[j], draw.integers(0, classes, len(truth[j]))
                )
            yield [one.astype(kept) for one in known]

    write_case(folder, "classification", truth, said(), [f"class {c}" for c in range(classes)])


def texts(count: int, length: int, seed: int) -> Iterator[str]:
    """Of `length` characters, from a vocabulary of 20 000 words whose frequencies fall as in a language."""
    draw = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    words = ["".join(draw.choice(letters, size)) for size in draw.integers(2, 11, 20_000)]
    shares = 1 / np.arange(1, len(words) + 1)
    for _ in range(count):
        drawn = draw.choice(len(words), length // 4 + 1, p=shares / shares.sum())
        yield " ".join(words[word] for word in drawn)[:length]


def conversation_case(folder: Path, rounds: int, count: int, length: int, wanted: int) -> None:
    """One test set of `count` questions, each answered by a text of `length` characters after each of `rounds`.

    wanted: characters of what was expected.
    """
    said = (([packed([text] for text in texts(count, length, seed))]) for seed in range(1, rounds + 1))
    names = [[f"sample {n}" for n in range(count)]]
    prompts = [packed([[f"Question {n}?"] for n in range(count)])]
    manifest = {"tests": [{"samples": one} for one in names]}
    truth = [packed([text] for text in texts(count, wanted, 0))]
    write_case(folder, "conversation", truth, said, manifest=manifest, pictures=prompts)


# --- what is measured -----------------------------------------------------------------------------------------------


def score(folder: Path, metrics: Sequence[str]) -> None:
    unread = (
        "algorithm testenv splitting_method as_one identity train_ratio threads sealing memory_mb saved_mb code "
        "provenance secrets working_directory until"
    )
    scores = tuple((spec, metric_key(spec)) for spec in map(MetricSpec, metrics))
    known: dict[str, Any] = {"case": CASE, "exam_id": "e1", "workspace": folder, "scores": scores, "device": "cpu"}
    score_case(CaseRequest(**dict.fromkeys(unread.split()), **known))


def read(folder: Path) -> None:
    """The answers of all rounds, each as metrics see it, and the true labels."""
    cases = CaseStore(folder)
    for _ in ExamStore(folder).truth("e1"):
        pass
    for round_ in cases.complete_rounds(CASE.id):
        cases.predictions(CASE.id, round_.index)


def write_replies(folder: Path) -> None:
    rounds = CaseStore(folder).complete_rounds(CASE.id)
    result = CaseResult(CASE, "finished", "made up", (), CaseStore(folder).folder(CASE.id), rounds=rounds)
    replies = CaseReplies(result, Exams(folder))
    lines = (csv_of([(r.question.sample, r.said or "", f"{r.similarity:.4f}")]) for r in replies)
    write_reply_file(folder / "rank", [("one", lines)])


def scored(folder: Path, *metrics: str, memory: float, seconds: float | None, size: float | None) -> list[Line]:
    """Targets: MB of memory, processor seconds, MB on disk."""
    reading, used = measured(read, folder), measured(score, folder, metrics)
    limit = 2 * reading.seconds if seconds is None else seconds
    return [
        Line("reading the answers", reading.seconds, "s"),
        Line(f"scoring ({', '.join(metrics)})", used.seconds, "s", limit),
        Line("peak of memory", used.memory / MB, "MB", memory),
        Line("files of the case", disk(folder / "cases" / CASE.id), "MB", size),
        Line("the same by blocks, before it is finished", disk(folder / "cases" / CASE.id, blocks=True), "MB"),
    ]


def classes(folder: Path, part: int) -> list[Line]:
    class_case(folder, 1000 // part, 40, 40, 10_000 // part)
    return scored(folder, "accuracy", "per_class_accuracy", memory=300, seconds=None, size=None)


def more_classes(folder: Path, part: int) -> list[Line]:
    class_case(folder, 10_000 // part, 10, 10, 10_000 // part)
    return scored(folder, "accuracy", "per_class_accuracy", memory=300, seconds=None, size=None)


def rounds(folder: Path, part: int) -> list[Line]:
    count = 1000 // part
    class_case(folder, count, count, count, 4 * count)
    return scored(folder, "accuracy", memory=300, seconds=60, size=10)


def long_answers(folder: Path, part: int) -> list[Line]:
    conversation_case(folder, 1, 800 // part, 100_000, 1000)
    return scored(folder, "lexical_similarity", "reply_exact_match", memory=100, seconds=100, size=None)


def replies(folder: Path, part: int) -> list[Line]:
    conversation_case(folder, 4, 5000 // part, 2500, 2500)
    first, second = measured(write_replies, folder), measured(write_replies, folder)
    for path in (folder / "rank").iterdir():
        path.unlink()
    again = measured(write_replies, folder)
    return [
        Line("the first report", first.seconds, "s"),
        Line("the next, of which nothing has changed", second.seconds, "s", 1),
        Line("one elsewhere, from similarities that are kept", again.seconds, "s", 11),
        Line("peak of memory", max(first.memory, again.memory) / MB, "MB", 300),
        Line("replies.csv, or replies.csv.gz", disk(folder / "rank"), "MB", 104),
    ]


ROWS: dict[str, Callable[[Path, int], list[Line]]] = {
    one.__name__: one for one in (classes, more_classes, rounds, long_answers, replies)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], default=list(ROWS), metavar="ROW")
    parser.add_argument("--tenth", action="store_true")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    for name in options.rows:
        print(name)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for line in ROWS[name](Path(folder), 10 if options.tenth else 1):
                print(line, flush=True)


if __name__ == "__main__":
    main()
