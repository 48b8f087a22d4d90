"""Write what a job's workspace holds into one file, in a form that doesn't depend on how ianvs stores it.

    python tests/golden/read_answers.py WORKSPACE JOB OUT.npz

compare.py runs this file with the ianvs of the tree that filled the workspace, so it imports nothing of tests. OUT.npz
holds the arrays "0", "1", ..., and under "index" a JSON list with a record for each of them:

case    {exam, role, algorithm, modules, hyperparameters, seed}, not the case's id, which changes with the source
round   0 is the untrained model; -1 of an array that is of the whole case
test    number of the test set; -1 of an array that is of none
samples how many samples of a stream had arrived; None at the end of a round
part    "labels", another stored answer ("extra NAME", "stream NAME"), "score NAME" (rounds + 1, tests), or "status"

A tree that stores answers in another way gets one more function in READERS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["READERS", "read_case_store", "write_answers"]

Answer = tuple[dict[str, Any], np.ndarray]
"""A record of the index, and its array."""


def read_case_store(workspace: Path, job: str) -> Iterator[Answer]:
    """Yield the answers of a store that `ianvs.store.CaseStore` reads, whether its cases are packed or not.

    Args:
        workspace: Folder of the results.
        job: Name of the job.

    Raises:
        ImportError: This tree has no such store.
    """
    from ianvs.api import load_results
    from ianvs.store import CaseStore

    store = CaseStore(workspace)
    results = load_results(workspace, job)
    for result in results:
        case = result.case
        key = {
            "exam": case.testenv,
            "role": case.role,
            "algorithm": case.algorithm,
            "modules": [list(module) for module in case.modules],
            "hyperparameters": dict(case.hyperparameters),
            "seed": case.seed,
        }
        whole = {"case": key, "round": -1, "test": -1, "samples": None}
        yield {**whole, "part": "status"}, np.array([result.status])
        for name, matrix in result.matrices.items():
            yield {**whole, "part": f"score {name}"}, matrix.values
        for round_ in result.rounds:
            index = {"case": key, "round": round_.index}
            for query, predictions in store.predictions(case.id, round_.index).items():
                at = {**index, "test": query.test, "samples": query.samples}
                yield {**at, "part": "labels"}, np.asarray(predictions.labels)
                for name, values in predictions.extras.items():
                    yield {**at, "part": f"extra {name}"}, np.asarray(values)
            for name, values in store.stream(case.id, round_.index).items():
                yield {**index, "test": -1, "samples": None, "part": f"stream {name}"}, values


READERS: tuple[Callable[[Path, str], Iterator[Answer]], ...] = (read_case_store,)
"""Newest last. The last whose imports the tree has is used."""


def write_answers(workspace: Path, job: str, out: Path) -> None:
    """Write the file that the module's docstring describes.

    Raises:
        ImportError: No reader fits this tree.
    """
    for reader in reversed(READERS):
        try:
            answers = list(reader(workspace, job))
        except ImportError:
            continue
        index = np.array(json.dumps([record for record, _ in answers], sort_keys=True, default=str))
        np.savez(out, index=index, **{str(number): array for number, (_, array) in enumerate(answers)})
        return
    raise ImportError("No reader of read_answers.py knows how this tree stores answers: add one to READERS.")


if __name__ == "__main__":
    write_answers(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
