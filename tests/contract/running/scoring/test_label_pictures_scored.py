"""A whole job on label pictures in three domains, against what a loop over the pictures says; and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import PredictionKey
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.exam.metrics.label_pictures import EVERY, FIRST, PackedPictures
from ianvs.store import CaseStore, ExamStore
from ianvs.testenv.data_types.segmentation import Segmentation
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job
from tests.unit.exam.data.pictures import write_picture

DOMAINS = {"CS": ("road", "car", "sky"), "SYN": ("sky", "lamp", "road"), "CR": ("stair", "road", "dog", "cat")}
UNION = ("road", "car", "sky", "lamp", "stair", "dog", "cat")
TESTS = {"CS": 4, "SYN": 2, "CR": 70}  # the last are predicted in two calls

PLUGIN = '''
import json
import numpy as np

class DomainMajority:
    """Of each domain the classes of the upper and lower half that it saw most often; a domain not seen: the last's."""

    def __init__(self):
        self.heads, self.calls = {}, []

    def train(self, train_data, valid_data=None, *, task, new_classes, round, folder):
        assert round == task + 1
        y = train_data.y
        assert y.dtype == np.uint8 and train_data.x.shape == (*y.shape, 3)
        if valid_data is not None:
            assert valid_data.y.dtype == np.uint8
        assert set(np.unique(y)) <= {*new_classes, 255}
        halves = np.split(y, 2, axis=1)
        self.heads[task] = [max(new_classes, key=lambda c: int((half == c).sum())) for half in halves]
        (folder / f"classes{task}.json").write_text(json.dumps(list(new_classes)))

    def predict(self, data, *, task, num_classes):
        assert len(data) <= 64
        said = np.full(data.x.shape[:3], 255, dtype=DTYPE)
        head = self.heads.get(task) or (list(self.heads.values())[-1] if self.heads else [num_classes - 1] * 2)
        said[:, : said.shape[1] // 2], said[:, said.shape[1] // 2 :] = head
        said[:, 0, 0] = 255
        return WRAP(said)

    def save(self, path):
        path.with_suffix(".json").write_text(json.dumps(list(self.heads.items())))
        return path.with_suffix(".json")

    def load(self, path):
        self.heads = {task: head for task, head in json.loads(path.read_text())}
'''
AS_ARRAYS = edited(PLUGIN, "DTYPE", "np.int64", "WRAP", "")
AS_TENSORS = "import torch\n" + edited(PLUGIN, "DTYPE", "np.uint8", "WRAP", "torch.from_numpy")

TESTENV = """
dataset:
  train_index: {train}
  test_index: {test}
  using: "CS SYN CR"
  classes:
    CS: [road, car, sky]
    SYN: [sky, lamp, road]
    CR: [stair, road, dog, cat]
scenario: {{name: multi-domain-incremental}}
metrics: [mIoU, mIoU_all, mIoU_seen, mIoU_novel, pixel_accuracy, per_class_IoU, BWT, FWT]
"""


def write_scenes(folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """Pictures with label pictures in which classes come in uneven shares; ids as written, by (part, domain)."""
    rng = np.random.default_rng(0)
    written = {}
    for part in ("train", "test"):
        lines = []
        for domain, names in DOMAINS.items():
            count = 3 if part == "train" else TESTS[domain]
            ids = [*range(len(names)), len(names), 255]
            shares = np.array([2.0**-i for i in range(len(ids))])
            halves = [rng.choice(ids, (count, 3, 5), p=np.roll(shares, k) / shares.sum()) for k in (0, 1)]
            written[part, domain] = np.concatenate(halves, axis=1).astype(np.uint8)
            for i, values in enumerate(written[part, domain]):
                write_picture(folder / f"rgb/{part}/{domain}/{i}.png", rng.integers(0, 256, (6, 5, 3), dtype=np.uint8))
                write_picture(folder / f"gt/{part}/{domain}/{i}.png", values)
                lines.append(f"rgb/{part}/{domain}/{i}.png gt/{part}/{domain}/{i}.png")
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")
    return written


def run(folder: Path, plugin: str, **changes):
    testenv = TESTENV.format(train=folder / "train.txt", test=folder / "test.txt")
    settings = {"name": "DomainMajority", "hyperparameters": "", "job": "seeds: [0]", "sort_by": "[{mIoU: descend}]"}
    job = write_job(folder / "job", plugin=plugin, testenv=testenv, **{**settings, **changes})
    return ianvs.run(job, engine="inline"), folder / "job" / "ws"


def naive(written):
    """[k][j] the labels that the plugin predicts on test set j after round k, and the true ones, both by name."""
    heads: dict[str, list[str]] = {}
    rows = []
    for k in range(len(DOMAINS) + 1):
        if k:
            domain = list(DOMAINS)[k - 1]
            halves = np.split(written["train", domain], 2, axis=1)
            tallies = [[int((half == i).sum()) for i in range(len(DOMAINS[domain]))] for half in halves]
            heads[domain] = [DOMAINS[domain][tally.index(max(tally))] for tally in tallies]
        row = []
        for domain, names in DOMAINS.items():
            head = heads.get(domain) or (list(heads.values())[-1] if heads else [UNION[-1]] * 2)
            truth = np.array([*names, *[None] * 300], dtype=object)[written["test", domain].astype(int)]
            said = np.empty(truth.shape, dtype=object)
            said[:, :3], said[:, 3:] = head
            said[:, 0, 0] = None
            row.append((said, truth))
        rows.append(row)
    return rows


def naive_ious(said, truth):
    valid = np.array([[[t is not None for t in line] for line in picture] for picture in truth])
    ious = {}
    for name in UNION:
        hit, miss = (said == name) & valid, (truth == name) & valid
        if hit.any() or miss.any():
            ious[name] = (hit & miss).sum() / (hit | miss).sum()
    return ious, (said == truth)[valid].mean()


@pytest.mark.parametrize("plugin", [AS_ARRAYS, AS_TENSORS], ids=["int64 arrays", "uint8 tensors"])
def test_scores_of_a_whole_job_are_those_of_a_loop_over_the_label_pictures(tmp_path, plugin):
    written = write_scenes(tmp_path)
    results, _ = run(tmp_path, plugin)
    (case,) = results
    assert case.status == "finished", case.failure
    assert case.round_names == ("CS", "SYN", "CR")
    rows = naive(written)
    earlier: set[str] = set()
    mious = np.zeros((4, 3))
    for j, (_domain, names) in enumerate(DOMAINS.items()):
        for k in range(4):
            ious, right = naive_ious(*rows[k][j])
            expected = {
                "mIoU": np.mean(list(ious.values())),
                "mIoU_all": np.mean([ious.get(name, 0.0) for name in names]),
                "mIoU_seen": _mean([ious[name] for name in names if name in earlier and name in ious]),
                "mIoU_novel": _mean([ious[name] for name in names if name not in earlier and name in ious]),
                "pixel_accuracy": right,
            }
            for name, value in expected.items():
                ours = case.matrices[name].values[k, j]
                assert ours == pytest.approx(value, abs=1e-12, nan_ok=True), (name, k, j)
            per_class = case.details["per_class_IoU"][k][j]
            assert set(per_class) == set(names)
            assert all(per_class[name] == pytest.approx(ious.get(name), abs=1e-12) for name in names if name in ious)
            mious[k, j] = expected["mIoU"]
        earlier |= set(names)
    last = mious[3]
    assert case.metrics["BWT"] == pytest.approx(np.mean([last[j] - mious[j + 1, j] for j in range(2)]))
    assert case.metrics["FWT"] == pytest.approx(np.mean([mious[j, j] - mious[0, j] for j in (1, 2)]))
    assert case.metrics["mIoU"] == pytest.approx(last.mean())
    assert not math.isclose(case.metrics["BWT"], case.metrics["FWT"])


def test_what_is_stored_is_counts_and_pictures_the_first_ones_at_hand(tmp_path):
    written = write_scenes(tmp_path)
    results, workspace = run(tmp_path, AS_ARRAYS)
    (case,) = results
    store, exams = CaseStore(workspace), ExamStore(workspace)
    exam_id = store.identity(case.case.id)["exam_id"]
    record = exams.record(exam_id)
    assert record.classes == UNION
    assert record.test_classes == ((0, 1, 2), (2, 3, 0), (4, 0, 5, 6))
    assert record.test_earlier == ((), (0, 1, 2), (0, 1, 2, 3))
    rows = naive(written)
    for k in range(4):
        stored = store.predictions(case.case.id, k)
        assert set(stored) == {PredictionKey(0), PredictionKey(1), PredictionKey(2)}
        for j in range(3):
            said, truth = rows[k][j]
            counts = stored[PredictionKey(j)].labels
            assert counts.shape == (7, 8)
            assert counts.dtype == np.int64
            assert counts.sum() == sum(t is not None for t in truth.ravel())
            assert set(stored[PredictionKey(j)].extras) == {FIRST, EVERY}
            every = np.asarray(PackedPictures(stored[PredictionKey(j)].extras[EVERY]))
            assert [None if i == 255 else UNION[i] for i in every.ravel().tolist()] == said.ravel().tolist()
            shown = stored[PredictionKey(j)].extras[FIRST]
            assert (shown.dtype, shown.shape) == (np.uint8, (min(3, len(said)), 6, 5))
            named = [None if i == 255 else UNION[i] for i in shown.ravel().tolist()]
            assert named == said[:3].ravel().tolist()
    for j, (labels, pictures) in enumerate(zip(exams.truth(exam_id), exams.pictures(exam_id), strict=True)):
        assert labels.shape == pictures.shape[:3] == (min(3, TESTS[list(DOMAINS)[j]]), 6, 5)
        named = [None if i == 255 else UNION[i] for i in labels.ravel().tolist()]
        assert named == rows[0][j][1][:3].ravel().tolist()
    order = json.loads((store.files(case.case.id) / "classes1.json").read_text())
    assert [UNION[i] for i in order] == list(DOMAINS["SYN"])  # the order of the domain's own list
    assert max(TESTS.values()) > Segmentation.batch_limit


def test_a_gate_judges_label_pictures_held_out_of_the_round(tmp_path):
    write_scenes(tmp_path)
    gate = "model_eval: {model_metric: {name: mIoU_all}, threshold: 1.0, operator: '>'}\n"
    testenv = TESTENV.format(train=tmp_path / "train.txt", test=tmp_path / "test.txt") + gate
    job = write_job(
        tmp_path / "job",
        plugin=AS_ARRAYS,
        name="DomainMajority",
        hyperparameters="",
        testenv=testenv,
        job="seeds: [0]",
        sort_by="[{mIoU: descend}]",
    )
    (case,) = ianvs.run(job, engine="inline")
    assert case.status == "finished", case.failure
    assert [r.adopted for r in case.rounds[1:]] == [False] * 3  # nothing is better than before by more than 1
    assert all(0 <= score <= 1 for r in case.rounds[1:] for score in r.gate_scores)
    assert [r.train_samples for r in case.rounds[1:]] == [2, 2, 2]


def test_a_case_that_was_cut_off_continues_with_the_same_result(tmp_path):
    write_scenes(tmp_path)
    write_scenes(tmp_path / "again")
    whole, _ = run(tmp_path, AS_ARRAYS)
    stop = edited(
        AS_ARRAYS,
        "assert round == task + 1",
        "mark = folder.parents[3] / 'mark'\n"
        "        if round == 3 and not mark.exists(): mark.touch(); raise RuntimeError('cut off')",
    )
    first, _ = run(tmp_path / "again", stop)
    assert next(iter(first)).status == "failed"
    taught = next(iter(first)).rounds
    second, _ = run(tmp_path / "again", stop)
    (one,), (other,) = whole, second
    assert other.status == "finished", other.failure
    assert other.metrics["mIoU"] == one.metrics["mIoU"]
    assert [r.train_seconds for r in other.rounds][:3] == [r.train_seconds for r in taught]  # none was taught again


def _mean(values):
    return np.mean(values) if values else math.nan


def asked_pictures() -> Part:
    """Two pictures of 4 x 5 that are asked for."""
    samples = Samples(np.zeros((2, 4, 5, 3), np.uint8), np.zeros((2, 4, 5), np.uint8), np.array(["a", "b"]))
    return Part(samples, np.arange(2))


@pytest.mark.parametrize(
    "answer",
    [
        np.zeros((2, 4, 5), np.float32),
        np.zeros((2, 4), np.int64),
        np.zeros((2, 5, 4), np.uint8),
        np.zeros((1, 4, 5), np.uint8),
        np.zeros((2, 7, 4, 5), np.float32),
        np.full((2, 4, 5), 3, np.uint8),
        np.full((2, 4, 5), -1),
        np.full((2, 4, 5), 256),
        None,
        [np.zeros((4, 5)), np.zeros((5, 4))],
    ],
    ids=["floats", "too flat", "turned", "too few", "scores", "no class", "negative", "too high", "nothing", "ragged"],
)
def test_answers_that_are_no_label_pictures_are_refused(answer):
    check = Segmentation().checker(asked_pictures(), 3)
    assert errors_of(check, answer, "Says.predict()") == [("invalid-result", "")]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "bool"])
def test_label_pictures_of_any_whole_numbers_are_taken_from_arrays_lists_and_tensors(dtype):
    import torch

    answer = np.random.default_rng(0).integers(0, 2, (2, 4, 5)).astype(dtype)
    if dtype != "bool":
        answer[0, 0, 0] = 255 if dtype != "int16" else 2
    for given in (answer, torch.from_numpy(answer), list(answer)):
        said = Segmentation().checker(asked_pictures(), 3)(given, "Says.predict()")
        assert isinstance(said, torch.Tensor) == isinstance(given, torch.Tensor)
        assert str(said.dtype).endswith("uint8")
        np.testing.assert_array_equal(np.asarray(said), answer.astype(np.uint8))
