"""The parts of the training data that clients of federated learning hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, shown_path
from ianvs.base.seeding import generator
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.datasources import BaseDataSource
from ianvs.store.files import write_atomic

Part = list[NDArray[Any]]  # x, y


def array_parts(case: Case, file: str, task: int) -> Sequence[Part]:
    """The part of each client: x, the samples of the .npy files that the lines name, and y, their labels (int32).

    Drawn by the case's seed and the number of the task. Raises DataError for a file that is no array.
    """
    source = case.source(file, "train")
    if not len(source):
        raise DataError(f"{shown_path(file)} has no lines: there is nothing to train on.")
    arrays, labels = [], []
    for path, label in zip(source.x, source.y, strict=True):
        try:
            arrays.append(np.load(str(path)))
            labels.append(np.full(len(arrays[-1]), int(label), dtype=np.int32))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(
                f"'{path} {label}' is no file of an array with a number as its label: {error}. "
                f"Federated learning needs lines such as `pictures_of_class_3.npy 3`."
            ) from error
    x, y = np.concatenate(arrays), np.concatenate(labels)
    random = generator(case.work.seed, task, "federated partition")
    clients = case.work.exam.client_number
    split = case.work.algorithm.fl_data_setting
    if split.data_partition == "iid":
        order = random.permutation(len(x))
        cuts = [k * len(x) // clients for k in range(clients + 1)]
        chosen = [order[begin:end] for begin, end in pairwise(cuts)]
    else:
        classes = np.unique(y)
        count = max(1, int(len(classes) * split.non_iid_ratio))
        drawn = [random.choice(classes, count, replace=False) for _ in range(clients)]
        chosen = [np.flatnonzero(np.isin(y, some)) for some in drawn]
    return [[x[rows], y[rows]] for rows in chosen]


def text_parts(case: Case, source: BaseDataSource) -> Sequence[tuple[list[str], list[str]]]:
    """The part of each client: questions and answers, drawn at random; sizes differ by one at most, larger first."""
    order = generator(case.work.seed, 0, "federated partition").permutation(len(source))
    parts = np.array_split(order, case.work.exam.client_number)
    return [(source.x[rows].tolist(), source.y[rows].tolist()) for rows in parts]


def question_file(file: str, target: Path) -> str:
    """The file itself, or one at `target` in which the first two keys of its first line are `question` and `answer`.

    Raises DataError for a file that is no jsonl, or has fewer than two keys.
    """
    path = Path(file)
    if path.suffix != ".jsonl":
        raise DataError(f"{shown_path(path)}: with if_mode_llm the data have to be a .jsonl file.")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                rows.append(dict(json.loads(line)))
            except (ValueError, TypeError) as error:
                raise DataError(f"{shown_path(path)}:{number}: this line is no json object: {error}.") from None
    keys = list(rows[0])[:2] if rows else []
    if len(keys) < 2:
        raise DataError(f"{shown_path(path)}:1: a line needs two keys, a question and its answer.")
    if keys == ["question", "answer"]:
        return file
    for row in rows:
        for old, new in zip(keys, ("question", "answer"), strict=True):
            if old in row:
                row[new] = row.pop(old)
    write_atomic(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    return str(target)
