"""lifelonglearning in all its modes: against a naive second implementation, killed and resumed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.run import run
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, DataSetting, ExamSettings, ModelEval, ModelMetric
from tests.errors import recorded
from tests.nightly.kubeedge.children import errors_in_child, other_sedna
from tests.nightly.kubeedge.sample_plugins import DIE, finish, killed, plugin

# Keeps the last `capacity` words that it was taught: it forgets. A row of x is (picture, depth).
LEARNER = (
    DIE
    + """
from sedna.algorithms.seen_task_learning.artifact import Task
from sedna.datasources import BaseDataSource

@ClassFactory.register(ClassType.GENERAL, alias="Learner")
class Learner:
    def __init__(self, capacity=2, die_at=None, **kwargs):
        self.capacity, self.die_at, self.words, self.trained = capacity, die_at, [], 0

    def train(self, train_data, valid_data=None, **kwargs):
        for (picture, depth), word in zip(train_data.x, train_data.y):
            assert open(picture).read() == open(depth).read() == word
            self.words = ([w for w in self.words if w != word] + [word])[-self.capacity:]
        self.trained += 1
        if self.trained == self.die_at:
            die()
        return {"loss": 0.0} if os.environ["HAS_COMPLETED_INITIAL_TRAINING"] == "False" else "a path"

    def save(self, path):
        with open(path, "w") as file:
            json.dump(self.words, file)

    def load(self, model_url):
        self.words = json.load(open(model_url))

    def predict(self, data, task_type=None, **kwargs):
        assert os.path.exists(kwargs["task_index"])
        words = [open(row[0]).read() for row in data]
        return [word if word in self.words else "?" for word in words]

    def predict_score(self, data, **kwargs):
        assert kwargs["task_type"] == "seen_task" and kwargs.get("mode") is not None
        return [[answer] for answer in self.predict(data, task_index=kwargs["task_index"])]

    def predict_cloud(self, data, **kwargs):
        assert kwargs["task_type"] == "unseen_task"
        return ["cloud"] * len(data)

DOMAINS = ["sun", "rain"]

@ClassFactory.register(ClassType.STP, alias="Define")
class Define:
    def __call__(self, samples, model=None):
        assert model is not None
        tasks = []
        for domain in DOMAINS:
            part = BaseDataSource(data_type=samples.data_type)
            part.x = [row for row in samples.x if domain in row[0]]
            part.y = [y for row, y in zip(samples.x, samples.y) if domain in row[0]]
            tasks.append(Task(domain, part, meta_attr=domain))
        return tasks, {domain: i for i, domain in enumerate(DOMAINS)}, samples

@ClassFactory.register(ClassType.STP, alias="Allocate")
class Allocate:
    def __call__(self, task_extractor, samples):
        return samples, [next(i for d, i in task_extractor.items() if d in row[0]) for row in samples.x]

@ClassFactory.register(ClassType.UTD, alias="Unknown")
class Unknown:
    def __call__(self, samples, scores, **kwargs):
        seen, unseen = BaseDataSource("test"), BaseDataSource("test")
        seen.x, unseen.x = ([], samples.x) if scores[0][0] == "?" else (samples.x, [])
        return seen, unseen

@ClassFactory.register(ClassType.GENERAL, alias="accuracy")
def right(y_true, y_pred):                      # the key in the matrix is this name, not the alias
    return sum(str(a) == str(b) for a, b in zip(y_true, y_pred)) / len(y_true)

@ClassFactory.register(ClassType.GENERAL, alias="flat")
def flat(y_true, y_pred):
    return sum(str(a) == str(b[0]) for a, b in zip(y_true, y_pred)) / len(y_true)
"""
)
# Words come in groups, one for each part of eight lines; "sun" and "rain" take turns.
TRAIN = "aabbabba" + "bbccbccb" + "ccddcddc"
TEST = "abcdabcd"


def lifelong(folder: Path, mode: str | None, splitting: str, train: str = TRAIN, **values: object) -> Work:
    url = plugin(folder / "p", "base", LEARNER)

    def index(name: str, words: str) -> str:
        lines = []
        for i, word in enumerate(words):
            path = folder / "d" / ("sun", "rain")[i % 2] / f"{name}{i}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(word)
            lines.append(f"{path.relative_to(folder / 'd')} {path.relative_to(folder / 'd')} {word}\n")
        (folder / "d" / name).write_text("".join(lines))
        return str(folder / "d" / name)

    model_metric = ModelMetric(name="accuracy", url=Path(url), mode=mode)
    return Work(
        "lifelonglearning",
        folder / "W",
        (
            Module("basemodel", "Learner", url, values),
            Module("task_definition", "Define", url),
            Module("task_allocation", "Allocate", url),
            Module("unseen_sample_recognition", "Unknown", url),
        ),
        index("train.txt", train),
        index("test.txt", TEST),
        algorithm=AlgorithmSettings(
            lifelong_learning_data_setting=DataSetting(train_ratio=0.5, splitting_method=splitting)
        ),
        exam=ExamSettings(
            incremental_rounds=3, model_eval=ModelEval(model_metric=model_metric, threshold=0.4, operator="<")
        ),
    )


def taught(words: list[str], lesson: str, capacity: int) -> list[str]:
    for word in lesson:
        words = [*[w for w in words if w != word], word][-capacity:]
    return words


def accuracy(words: list[str], asked: str) -> float:
    return sum(word in words for word in asked) / len(asked)


METRICS = ("samples_transfer_ratio", "BWT", "FWT", "MATRIX", "task_avg_acc")


def metrics(work: Work, result: str = "accuracy") -> list[MetricSpec]:
    return [MetricSpec(result, Path(work.modules[0].url)), *map(MetricSpec, METRICS)]


@pytest.mark.parametrize("another", [False, True], ids=["no sedna", "another sedna"])
def test_no_inference_equals_a_naive_implementation(tmp_path, another):
    work = lifelong(tmp_path, "no-inference", "fwt_splitting")
    sedna = other_sedna(tmp_path / "site") if another else None
    numbers, result, scores = finish(work, metrics(work), sedna)
    parts = [TRAIN[8 * i : 8 * i + 8] for i in range(3)]
    # Pair 0 is one line: both tasks share one model, and both then go on with all data of each round.
    words, M = taught([], TRAIN[0], 2), []
    for lesson in ("", *(part[:4] for part in parts)):
        words = taught(words, lesson, 2)
        M.append([accuracy(words, part[4:]) for part in parts])
    assert [[cell["right"] for cell in row] for row in numbers["MATRIX"]["all"]] == M
    assert numbers["untrained"] == M[0] and numbers["R"] == M[1:]
    assert scores.matrices["all"] == M[1:] and set(scores.matrices) == {"all", "sun", "rain", "task_avg"}
    assert list(result) == [word if word in words else "?" for word in TEST]
    assert scores.scores["BWT"] == pytest.approx(sum(M[3][j] - M[0][j] for j in range(3)) / 9)
    assert scores.scores["FWT"] == pytest.approx(sum(M[i - 1][i - 1] - M[0][i - 1] for i in (1, 2, 3)) / 3)
    assert scores.scores["GEM_BWT"] == pytest.approx(((M[3][0] - M[1][0]) + (M[3][1] - M[2][1])) / 2)
    assert scores.scores["GEM_FWT"] == pytest.approx(((M[1][1] - M[0][1]) + (M[2][2] - M[0][2])) / 2)
    by_task = [accuracy(words, TEST[i::2]) for i in (0, 1)]
    assert scores.scores["task_avg_acc"] == round(sum(by_task) / 2, 3)
    assert scores.scores["accuracy"] == accuracy(words, TEST) and scores.scores["samples_transfer_ratio"] == 0.0
    assert numbers["handed_test_labels"] is True and numbers["measures"]["dropped_tasks"]
    first = tmp_path / "W" / "output" / "train"
    assert {path.name for path in (first / "0" / "seen_task").iterdir()} == {"global.model"}
    assert {path.name for path in (first / "1" / "seen_task").iterdir()} == {"sun.pth", "rain.pth"}


def hard_example(n_train: str) -> tuple[list[list[float | None]], list[str], list[tuple[int, int]]]:
    """The naive version: rows of the matrix, answers to the test, and the record, with capacity 3."""
    half, ratio, n = len(n_train) // 2, 0.5, 3
    lesson = n_train[: int(len(n_train) * ratio / 2)]
    size = len(n_train) // (2 * n)
    rest = n_train[half:]
    parts = [rest[:size], rest[size : 2 * size], rest[2 * size :]]
    cuts = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in parts]
    # Both tasks have ten samples or more: sun is trained first, then rain, on the same instance.
    sun = taught([], lesson[::2], 3)
    rain = taught(sun, lesson[1::2], 3)
    tasks, M, record = [sun, rain], [], []
    offset = len(n_train)  # which domain a line has goes by its place in the file

    def task_of(position: int) -> int:
        return position % 2

    def answer(position: int, word: str) -> bool:
        return word in tasks[task_of(position)]

    starts, position = [], half
    for part in parts:
        starts.append(position)
        position += len(part)
    assert position == offset

    def row() -> list[float | None]:
        scores: list[float | None] = []
        for (train, check), start in zip(cuts, starts, strict=True):
            hits = [answer(start + len(train) + i, word) for i, word in enumerate(check)]
            scores.append(sum(hits) / len(hits))
        return scores

    M.append(row())
    for (train, _), start in zip(cuts, starts, strict=True):
        unseen = [word for i, word in enumerate(train) if not answer(start + i, word)]
        record.append((len(train), len(unseen)))
        if not unseen:
            M.append([None] * 3)
            continue
        tasks[:] = [taught(task, "".join(unseen), 3) for task in tasks]
        M.append(row())
    answers = [word if answer(i, word) else "cloud" for i, word in enumerate(TEST)]
    return M, answers, record


def test_hard_example_mining_equals_a_naive_implementation(tmp_path):
    half = "aabb" * 11  # ten lines and more for each task
    rest = "ccaabbccccaabb" + "ccbbccccbbccbb" + "ddccddddccddccdd"
    train = half + rest
    work = lifelong(tmp_path, "hard-example-mining", "hard-example_splitting", train, capacity=3)
    numbers, result, scores = finish(work, metrics(work, "flat"))
    M, answers, record = hard_example(train)
    shown = [[cell["right"] if cell else None for cell in row] for row in numbers["MATRIX"]["all"]]
    assert shown == M
    assert [tuple(row) for row in numbers["samples_transfer_ratio"]] == record
    assert [row[0] for row in result] == answers
    assert any(None in row for row in M), "a round without unseen samples is part of this test"
    assert scores.scores["BWT"] is None and scores.scores["FWT"] is None
    inferred, moved = (sum(column) for column in zip(*record, strict=True))
    assert scores.scores["samples_transfer_ratio"] == round(moved / (inferred + 1), 4)
    copies = tmp_path / "W" / "output" / "inference" / "unseen_task_samples"
    assert len(list((copies / "1").iterdir())) == record[0][1]
    assert {path.name for path in (tmp_path / "W/output/train/0/seen_task").iterdir()} == {"sun.model", "rain.model"}


def test_the_default_mode_trains_first_and_then_what_is_unseen(tmp_path):
    work = lifelong(tmp_path, "", "default")
    numbers, result, scores = finish(work, metrics(work, "flat"))
    words, record = taught([], "aabb", 2), []
    for part in ("bbcc", "ccdd"):
        unseen = [word for word in part if word not in words]
        record.append((4, len(unseen)))
        words = taught(words, "".join(unseen), 2)
    assert [tuple(row) for row in numbers["samples_transfer_ratio"]] == record
    assert [row[0] for row in result] == [word if word in words else "cloud" for word in TEST]
    assert numbers["MATRIX"] is None and scores.scores["BWT"] is None and scores.scores["task_avg_acc"] is None


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["no-inference", "hard-example-mining"])
def test_a_killed_case_ends_the_same(tmp_path, mode):
    splitting = "fwt_splitting" if mode == "no-inference" else "hard-example_splitting"
    work = lifelong(tmp_path, mode, splitting, die_at=4)
    whole = finish(replace(work, folder=tmp_path / "whole"))
    killed(work)
    first = next((tmp_path / "W" / "output" / "train" / "0" / "seen_task").iterdir())
    stamp = first.stat().st_mtime_ns
    numbers, result, _ = finish(work)
    assert first.stat().st_mtime_ns == stamp, "the first round was run again"
    for key in ("MATRIX", "task_avg_acc", "samples_transfer_ratio", "measures"):
        assert numbers[key] == whole[0][key], key
    assert [list(row) for row in result] == [list(row) for row in whole[1]]


def test_default_splitting_has_no_pair_before_the_first_round(tmp_path):
    work = lifelong(tmp_path, "no-inference", "default")
    assert recorded(errors_in_child(run, work)) == [("unfit-module", "")]


MANY = """
@ClassFactory.register(ClassType.GENERAL, alias="Many")
class Many:
    def load(self, model_url): self.bias = int(open(model_url).read())
    def predict(self, data, with_nms, model_forward_result, **kwargs):
        assert with_nms is False and isinstance(data, str)
        return self.bias + int(open(data).read())

@ClassFactory.register(ClassType.STP, alias="Several")
class Several:
    def __call__(self, task_extractor, samples):
        assert task_extractor is None and samples.data_type == "test" and samples.y is None
        return samples, [0, 2]

@ClassFactory.register(ClassType.STP, alias="Models")
class Models:
    def __init__(self, folder): self.models = [[i, f"m{i}", f"{folder}/{i}"] for i in range(3)]
    def __call__(self, samples, mappings):
        return samples.x[0], [self.models[m] for m in mappings]

@ClassFactory.register(ClassType.STP, alias="Sum")
class Sum:
    def __call__(self, tasks):
        return [[t.entry for t in tasks], sum(t.result for t in tasks)]
"""


def test_multi_inference_lets_several_models_answer_each_sample(tmp_path):
    url = plugin(tmp_path / "p", "many", MANY)
    for i in range(3):
        (tmp_path / str(i)).write_text(str(10**i))
    work = lifelong(tmp_path, "multi-inference", "default")
    modules = (
        Module("basemodel", "Many", url),
        Module("task_allocation", "Several", url),
        Module("task_remodeling", "Models", url, {"folder": str(tmp_path)}),
        Module("inference_integrate", "Sum", url),
    )
    (tmp_path / "d" / "test.txt").write_text(f"{tmp_path}/0 {tmp_path}/1 word\n")
    _, result, _ = finish(replace(work, modules=modules))
    # paths 1 and 10, models 1 and 100: (1+1) + (100+1) + (1+10) + (100+10)
    assert result == [[["m0", "m2", "m0", "m2"], 224]]

    lacking = replace(work, modules=modules[:2], folder=tmp_path / "V")
    assert recorded(errors_in_child(run, lacking)) == [("missing-module", "")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "right"])
def test_for_its_own_tables_the_matrix_and_transfer_are_kept_as_ianvs_computes_them(tmp_path, name):
    work = lifelong(tmp_path, "no-inference", "fwt_splitting")
    file = Path(work.modules[0].url)
    file.write_text(file.read_text().replace("def right(", f"def {name}("))
    numbers, _, _ = finish(work, metrics(work))
    kept = json.loads((tmp_path / "W/case/scores.json").read_text())
    M = [[cell[name] for cell in row] for row in numbers["MATRIX"]["all"]]
    gain = 0.0
    for i in range(3):
        for j in range(3):
            gain += M[i + 1][j] - M[i][j]
    # Ianvs looks for "accuracy" alone: of a score by another name it says 0, and shows empty rows.
    assert kept["BWT"] == (gain / 9 if name == "accuracy" else 0) and gain
    assert kept["MATRIX"].startswith("{'all': " + str(M[1:] if name == "accuracy" else [[], [], []]))
    assert list(kept) == ["accuracy", *METRICS]
