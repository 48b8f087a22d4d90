"""Scoring, answers and replies: a thousand classes in forty rounds, ten thousand in ten, a thousand rounds with a
thousand test sets, 800 answers of 100 000 characters (where 1 000 are expected), and 20 000 replies in replies.csv.

Memory is that of the process that does it, its libraries included; processor seconds are without those of imports.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sizes.measuring import Row, disk, memory
from ianvs.base.types import CaseResult, PredictionKey, Predictions, RoundResult, TestCase
from ianvs.config.spec import DatasetSpec, MetricSpec, TestEnvSpec
from ianvs.exam.metrics.packed_replies import pack_replies
from ianvs.exam.metrics.registry import names
from ianvs.results.page.replies import CaseReplies, ExamQuestions
from ianvs.results.page.reply_file import write_reply_file
from ianvs.results.report.row_tables import csv_of
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.planning.identity import metric_key
from ianvs.running.scoring import score_case
from ianvs.store import CaseStore, ExamRecord, ExamStore

CASE = TestCase("c1", "r1", "mine", "incrementallearning", (("basemodel", "Mine"),), {}, 0)


@dataclass(frozen=True)
class Used:
    """seconds: of processors. memory: peak, anonymous and shared, in bytes."""

    seconds: float
    memory: float


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
        peak = max(peak, memory(process.pid or 0))
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
    out.send((time.process_time() - before, memory("self")))


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
            predictions = {PredictionKey(j): Predictions(a) for j, a in enumerate(answers)}
            round_.write(RoundResult(index, f"round {index}"), predictions=predictions)


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
    said = (([pack_replies([text] for text in texts(count, length, seed))]) for seed in range(1, rounds + 1))
    names = [[f"sample {n}" for n in range(count)]]
    prompts = [pack_replies([[f"Question {n}?"] for n in range(count)])]
    manifest = {"tests": [{"samples": one} for one in names]}
    truth = [pack_replies([text] for text in texts(count, wanted, 0))]
    write_case(folder, "conversation", truth, said, manifest=manifest, images=prompts)


# --- what is measured -----------------------------------------------------------------------------------------------


def score(folder: Path, metrics: Sequence[str]) -> None:
    unread = (
        "algorithm splitting_method as_one identity train_ratio threads apart generation memory_mb saved_mb "
        "code provenance job secrets working_directory started_in until"
    )
    scores = tuple((spec, metric_key(spec)) for spec in map(MetricSpec, metrics))
    known: dict[str, Any] = {"case": CASE, "exam_id": "e1", "workspace": folder, "scores": scores, "device": "cpu"}
    known["testenv"] = TestEnvSpec(dataset=DatasetSpec(), metrics=())
    score_case(CaseRequest(**{**dict.fromkeys(unread.split()), **known}))


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
    replies = CaseReplies(result, ExamQuestions(folder))
    lines = (csv_of([(r.question.sample, r.text or "", f"{r.similarity:.4f}")]) for r in replies)
    write_reply_file(folder / "rank", [("one", lines)])


def scored(
    folder: Path, name: str, *metrics: str, memory: float, seconds: float | None = None, size: float | None = None
) -> Row:
    """limits: MB of memory, processor seconds (without: twice those of reading), MB of files."""
    reading, used = measured(read, folder), measured(score, folder, metrics)
    figures = {
        "CPU s": used.seconds,
        "CPU s to read": reading.seconds,
        "MB of memory": used.memory / 1e6,
        "MB of files": sum(path.stat().st_size for path in (folder / "cases" / CASE.id).rglob("*")) / 1e6,
        "MB on the disk, before it is finished": disk(folder / "cases" / CASE.id) / 1e6,
    }
    limits = {"CPU s": 2 * reading.seconds if seconds is None else seconds, "MB of memory": memory}
    return Row(f"{name}: {', '.join(metrics)}", figures, limits if size is None else limits | {"MB of files": size})


def classes(folder: Path, share: float) -> Row:
    class_case(folder, int(1000 * share), 40, 40, int(10_000 * share))
    return scored(folder, "1 000 classes, 40 rounds", "accuracy", "per_class_accuracy", memory=60 + 240 * share)


def more_classes(folder: Path, share: float) -> Row:
    class_case(folder, int(10_000 * share), 10, 10, int(10_000 * share))
    return scored(folder, "10 000 classes, 10 rounds", "accuracy", "per_class_accuracy", memory=60 + 240 * share)


def many_rounds(folder: Path, share: float) -> Row:
    count = int(1000 * share)
    class_case(folder, count, count, count, 4 * count)
    return scored(folder, "1 000 rounds, 1 000 test sets", "accuracy", memory=60 + 240 * share, seconds=60, size=10)


def long_answers(folder: Path, share: float) -> Row:
    conversation_case(folder, 1, int(800 * share), 100_000, 1000)
    metrics = ("lexical_similarity", "reply_exact_match")
    return scored(folder, "800 answers of 100 000 characters", *metrics, memory=100, seconds=100)


def replies(folder: Path, share: float) -> Iterator[Row]:
    conversation_case(folder, 4, int(5000 * share), 2500, 2500)
    for report in ("the first report", "the next, of which nothing has changed", "one elsewhere"):
        if report == "one elsewhere":  # from similarities that are kept with the case
            for path in (folder / "rank").iterdir():
                path.unlink()
        used = measured(write_replies, folder)
        figures = {"CPU s": used.seconds, "MB of memory": used.memory / 1e6, "MB": disk(folder / "rank") / 1e6}
        yield Row(f"20 000 replies, {report}", figures, {"MB of memory": 60 + 240 * share, "MB": 104 * share})


def rows(folder: Path, share: float) -> Iterator[Row]:
    """Each of the above, at `share` of its size."""
    for one in (classes, more_classes, many_rounds, long_answers):
        yield one(folder / one.__name__, share)
    yield from replies(folder / "replies", share)
