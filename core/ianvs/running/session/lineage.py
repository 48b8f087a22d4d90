"""A round stands on the rounds before: two cases whose lineages agree up to round k are the same case up to there.

So a job with more rounds continues from the model that a job with fewer has left, instead of from the beginning.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ianvs.base.errors import DamagedError
from ianvs.base.types import Asked, Predictions, RoundResult, ScoreMatrix
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.encoded_pictures import encoded_in
from ianvs.exam.metrics.registry import resolve
from ianvs.exam.scenarios.exam import Round, TestSet
from ianvs.running.planning.case_request import CaseRequest
from ianvs.store import CaseStore, ExamRecord, ExamStore, StoredModule
from ianvs.store.keys import digest

# Hashed at a time, so that a memory map is not read into memory whole:
_BLOCK = 4096  # samples, at most
_BLOCK_BYTES = 1 << 26


def content(samples: Samples, part: Round | TestSet) -> str:
    """Digest of what a round teaches or a test set asks: samples, labels, transform, name."""
    positions = part.train if isinstance(part, Round) else part.test
    sha = hashlib.blake2b(digest_size=20)
    sha.update(repr((part.name, part.classes, part.transform)).encode())
    told = part.labels if isinstance(part, Round) else part.adapt
    if isinstance(part, Round) and part.limited:
        sha.update(b"limited")
    if told is not None:
        sha.update(np.ascontiguousarray(told).data.cast("B"))
    size = samples.x.dtype.itemsize * math.prod(samples.x.shape[1:])
    block = max(1, min(_BLOCK, _BLOCK_BYTES // max(1, size)))
    for start in range(0, len(positions), block):
        chosen = positions[start : start + block]
        for column in (samples.x, samples.y):
            # Of pictures that stay encoded, what their files hold and how they are decoded: nothing is decoded here.
            encoded = encoded_in(column)
            values = np.ascontiguousarray(column[chosen] if encoded is None else encoded.known(chosen))
            sha.update(repr(values.tolist()).encode() if values.dtype == object else values.data.cast("B"))
        sha.update(repr((samples.x.shape[1:], samples.x.dtype.str)).encode())
    return sha.hexdigest()


def lineage_of(request: CaseRequest, exam: ExamRecord) -> tuple[str, ...]:
    """[k] digest of all that determines the model after round k; [0] of the untrained model."""
    case = request.case
    first = [request.identity["algorithm"], dict(case.hyperparameters), case.seed]
    first += [one.name for one in request.testenv.asked]  # their answers can't be had of models that are gone
    links = [digest([*first, exam.classes, dict(exam.rules), exam.kind])]
    for round_digest in exam.round_digests:
        links.append(digest([links[-1], round_digest]))
    return tuple(links)


@dataclass(frozen=True)
class Earlier:
    """A finished case that is the same up to round `last`, whose modules it has kept.

    tests: [j] the position of our test set j among its own; None for one that it did not have.
    """

    store: CaseStore
    case_id: str
    last: int
    tests: tuple[int | None, ...]
    modules: tuple[StoredModule, ...]

    def result(self, index: int) -> RoundResult:
        return replace(self.store.complete_rounds(self.case_id)[index], taken_from=self.case_id)

    def predictions(self, index: int) -> dict[Asked, Predictions]:
        """Of round `index`, by our positions of test sets; those that the other exam did not have are missing."""
        theirs = self.store.predictions(self.case_id, index)
        ours = ((Asked(j), Asked(other)) for j, other in enumerate(self.tests) if other is not None)
        return {mine: theirs[other] for mine, other in ours if other in theirs}


def _lacks(request: CaseRequest, exam: ExamRecord, tests: Sequence[int | None], last: int) -> bool:
    """Whether answers to our `tests` are not known, after a round before `last`, that formulas read.

    Where each round has its test set, these are those of rounds up to the next, as in BWT, FM, AIA and FWT; else all.
    And what a metric of the testenv reads beyond that.
    """
    rounds = len(exam.rounds)
    each = len(tests) == rounds and exam.rules.get("asked", "all") == "all"
    if last == 1 or None not in tests:
        return False
    if not each or None in tests[:last]:
        return True
    known = np.full((rounds, rounds), 0.5)
    known[: last - 1, [j for j, other in enumerate(tests) if other is None]] = np.nan
    half = np.full(rounds, 0.5)
    matrix = ScoreMatrix.of(known, untrained=half, joint=half, single_task=half)
    metrics = [resolve(spec) for spec in request.testenv.metrics]
    if any(metric.accumulate for metric in metrics):
        return True
    functions = [metric.function for metric in metrics if metric.level == "matrix" and metric.function is not None]
    whole = replace(matrix, values=np.nan_to_num(matrix.values, nan=0.5))
    return any(_is_nan(formula(matrix)) and not _is_nan(formula(whole)) for formula in functions)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def find_earlier(request: CaseRequest, chain: Sequence[str]) -> Earlier | None:
    """The longest beginning of the case that another one has already run; None if there is none.

    Models of its rounds before the last are gone: what they have not answered would stay empty for ever, and a
    beginning that lacks what formulas read is no help.
    """
    store, exams = CaseStore(request.workspace), ExamStore(request.workspace)
    record = exams.record(request.exam_id)
    for index in range(len(chain) - 1, 0, -1):
        other = store.owner(chain[index])
        if record is None or other is None or other == request.case.id:
            continue
        try:
            modules = store.modules(other, index)
            their_exam = exams.record(store.exam_id(other))
        except DamagedError:
            continue
        if modules is None or their_exam is None or len(store.complete_rounds(other, thoroughly=True)) <= index:
            continue
        where = {test_digest: j for j, test_digest in enumerate(their_exam.test_digests)}
        tests = tuple(where.get(test_digest) for test_digest in record.test_digests)
        if _lacks(request, record, tests, index):
            print(
                f"case {other} has the same rounds up to {index}, but not the answers of their models to all test sets"
            )
            continue
        return Earlier(store, other, index, tests, modules)
    return None
