"""federatedlearning: clients train on their own parts, a server combines their weights, client 0 predicts."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError, PluginError, shown_path
from ianvs.base.seeding import generator
from ianvs.kubeedge.calls import errors_in, offer
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.aggregation import AggClient
from ianvs.kubeedge.provided.datasources import BaseDataSource, records
from ianvs.store.files import write_atomic

KINDS = ("model_train", "model_eval")

Part = list[NDArray[Any]]  # x, y


@dataclass
class Federation:
    """The clients, and the bytes of weights that each of them sent and received, by round."""

    clients: list[Any]
    uploaded: list[list[int]] = field(default_factory=list)
    downloaded: list[list[int]] = field(default_factory=list)

    @classmethod
    def from_case(cls, case: Case) -> Federation:
        """Create the clients as deep copies of the basemodel."""
        model, _ = case.required_modules("basemodel", "aggregation")
        with case.calling("basemodel", "deepcopy"):
            return cls([copy.deepcopy(model) for _ in range(case.work.exam.client_number)])

    def train(self, case: Case, parts: Sequence[object], **keywords: object) -> None:
        """Run one round: all clients train, in their order, and get the combined weights."""
        sent: list[AggClient] = []
        infos = []
        texts = case.work.exam.if_mode_llm
        devices = case.work.exam.gpu_num
        for k, (client, part) in enumerate(zip(self.clients, parts, strict=True)):
            case.report(f"client {k}")
            with errors_in(f"client {k}"):
                with case.calling("basemodel", "train"), case.timed("train"):
                    if texts:
                        info = client.train(train_data=part, valid_data=None, device_id=k % devices, client_id=k)
                    else:
                        info = client.train(part, None, **keywords)
                    if not isinstance(info, Mapping) or "num_samples" not in info:
                        raise PluginError(
                            f"it has to return a mapping with `num_samples`, not {info!r:.200}.", code="broken-contract"
                        )
                info = info if isinstance(info, dict) else dict(info)
                info["client_id"] = k
                agg = AggClient()
                agg.num_samples = info["num_samples"]
                with case.calling("basemodel", "get_weights"):
                    agg.weights = client.get_weights()
            infos.append(info)
            sent.append(agg)
        server = case.required_modules("aggregation")
        with case.calling("aggregation", "aggregate"), case.timed("aggregate"):
            joined = server.aggregate(sent)
        if hasattr(server, "helper_function") and "task_id" in keywords:
            for k, (client, info) in enumerate(zip(self.clients, infos, strict=True)):
                with errors_in(f"client {k}"):
                    with case.calling("aggregation", "helper_function"):
                        helped = server.helper_function(info)
                    with case.calling("basemodel", "helper_function"):
                        client.helper_function(helped)
        for k, client in enumerate(self.clients):
            with errors_in(f"client {k}"), case.calling("basemodel", "set_weights"):
                client.set_weights(joined)
        self.uploaded.append([_bytes(agg.weights) for agg in sent])
        self.downloaded.append([_bytes(joined)] * len(sent))

    def measures(self) -> dict[str, object]:
        """Return transferred bytes by round and client. Only weights are counted."""
        return {"uploaded_bytes": self.uploaded, "downloaded_bytes": self.downloaded}


def run(case: Case) -> Outcome:
    """Run rounds 0..round-1, then the test file."""
    texts = case.work.exam.if_mode_llm
    file = case.pairs(KINDS, 1)[0][0]
    labels_file = None
    if texts:
        file = _question_file(file, case.root / "dataset" / "train_questions.jsonl")
        labels_file = _question_file(case.data("test"), case.root / "dataset" / "test_questions.jsonl")
    parts = _text_parts(case, case.source(file, "train")) if texts else array_parts(case, file, 0)
    now: Federation = case.state or Federation.from_case(case)
    for r in range(len(now.uploaded), case.work.exam.round):
        with case.round(r):
            now.train(case, parts, round=r)
        case.store_snapshot(now)
    data = case.source(labels_file or case.data("test"), "eval")
    with case.round("test"):
        result, saw_labels = answers(case, now.clients[0], [str(x) for x in data.x] if texts else data.x, data)
    return Outcome(result=result, handed_test_labels=saw_labels, labels_file=labels_file, measures=now.measures())


def answers(case: Case, client: Any, x: object, source: BaseDataSource) -> tuple[object, bool]:
    """Return a client's predictions for x, and whether it needed the source, with its labels, instead."""
    with case.calling("basemodel", "predict"), case.timed("predict"):
        try:
            return offer(client.predict, x, kwargs={}), False
        except AttributeError as error:
            if error.name != "x" or not isinstance(error.obj, np.ndarray | list):
                raise
        return offer(client.predict, source, kwargs={}), True


def _bytes(weights: object) -> int:
    """Return the bytes of weights: the content of arrays and tensors, the length of a pickle for anything else."""
    if hasattr(weights, "nbytes"):
        return int(weights.nbytes)
    if isinstance(weights, Mapping):
        return sum(map(_bytes, weights.values()))
    if isinstance(weights, list | tuple) and any(hasattr(w, "nbytes") or isinstance(w, Mapping) for w in weights):
        return sum(map(_bytes, weights))
    if isinstance(weights, str) and os.path.isfile(weights):  # noqa: PTH113 - a word, perhaps a path
        return os.path.getsize(weights)  # noqa: PTH202
    try:
        return len(pickle.dumps(weights))
    except Exception:  # authors' objects may raise anything
        return 0


# The clients' parts of the training data.


def array_parts(case: Case, file: str, task: int) -> Sequence[Part]:
    """Return the part of each client: x, the samples of the .npy files in the lines, and y, their labels (int32).

    Drawn by the case's seed and the number of the task. Raises DataError for a file that is no array.
    """
    source = case.source(file, "train")
    if not len(source):
        raise DataError(f"{shown_path(file)} has no lines: there is nothing to train on.", code="empty-dataset")
    arrays, labels = [], []
    for path, label in zip(source.x, source.y, strict=True):
        try:
            arrays.append(np.load(str(path)))
            labels.append(np.full(len(arrays[-1]), int(label), dtype=np.int32))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(
                f"'{path} {label}' is no file of an array with a number as its label: {error}. "
                f"Federated learning needs lines such as `pictures_of_class_3.npy 3`.",
                code="invalid-record",
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


def _text_parts(case: Case, source: BaseDataSource) -> Sequence[tuple[list[str], list[str]]]:
    """Return the part of each client: random questions and answers; sizes differ by one at most, larger first."""
    order = generator(case.work.seed, 0, "federated partition").permutation(len(source))
    parts = np.array_split(order, case.work.exam.client_number)
    return [(source.x[rows].tolist(), source.y[rows].tolist()) for rows in parts]


def _question_file(file: str, target: Path) -> str:
    """Return the file, or a copy at `target` in which the first two keys of its first line are `question` and `answer`.

    Raises DataError for a file that is no jsonl, or has fewer than two keys.
    """
    path = Path(file)
    if path.suffix != ".jsonl":
        raise DataError(
            f"{shown_path(path)}: with if_mode_llm the data have to be a .jsonl file.", code="wrong-path-type"
        )
    rows = [dict(row) for _, row in records(path)]
    keys = list(rows[0])[:2] if rows else []
    if len(keys) < 2:
        raise DataError(
            f"{shown_path(path)}:1: a line needs two keys, a question and its answer.", code="invalid-record"
        )
    if keys == ["question", "answer"]:
        return file
    for row in rows:
        for old, new in zip(keys, ("question", "answer"), strict=True):
            if old in row:
                row[new] = row.pop(old)
    write_atomic(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    return str(target)
