"""Exams that ask before they tell: order, delay, cost, resuming, and who remembers nothing."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from zipfile import ZipFile

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.config import load_job
from ianvs.exam.scenarios import open_exam
from ianvs.results.stored import Results
from ianvs.store import CaseStore
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job
from tests.marks import slow

MEANS = '''
import numpy as np


class Means:
    """Nearest class mean; class 0 before it was taught anything."""

    def __init__(self):
        self.sums, self.counts = np.zeros((10, 64)), np.zeros(10)

    def train(self, train_data, **context):
        for x, label in zip(train_data.x, train_data.y):
            self.sums[label] += x.ravel()
            self.counts[label] += 1

    def predict(self, data):
        known = np.flatnonzero(self.counts)
        if not len(known):
            return [0] * len(data)
        means = self.sums[known] / self.counts[known][:, None]
        return known[((data.x.reshape(len(data), 1, -1) - means) ** 2).sum(2).argmin(1)]

    def save(self, path):
        np.savez(path.with_suffix(".npz"), sums=self.sums, counts=self.counts)
        return path.with_suffix(".npz")

    def load(self, path):
        held = np.load(path)
        self.sums, self.counts = held["sums"], held["counts"]
'''
SYSTEM = '''
class System:
    """Says what was told last."""

    def __init__(self):
        self.last, self.asked = 0, 0

    def answer(self, data):
        self.asked += len(data)
        return [self.last] * len(data)

    def feedback(self, told, folder):
        self.last = int(told.labels[-1])
        (folder / "notes.txt").write_text(str(self.last))

    def save(self, path):
        path.write_text(f"{self.last} {self.asked}")

    def load(self, path):
        self.last, self.asked = map(int, path.read_text().split())
'''
EXAM = "dataset: {name: digits}\nscenario: {name: online, rounds: 5, batch: 40}\n"


def sat(folder: Path, plugin: str = MEANS, name: str = "Means", more: str = "", **job: str) -> Results:
    """more: of the testenv, in the place of a plain `prequential: true`."""
    metrics = job.pop("metrics", "[online_accuracy, accuracy]")
    testenv = f"{EXAM}metrics: {metrics}\n{more or 'prequential: true'}"
    paradigm = job.pop("paradigm", "incrementallearning")
    path = write_job(
        folder, plugin=plugin, name=name, hyperparameters="", testenv=testenv, **{"job": "seeds: [0]", **job}
    )
    file = folder / "algorithm.yaml"
    file.write_text(file.read_text().replace("incrementallearning", paradigm))
    return ianvs.run(path)


def found_in(results: Results, role: str = "") -> CaseResult:
    [found] = [one for one in results if one.case.role == role]
    assert found.status == "finished", found.failure
    return found


def stream(found: CaseResult) -> dict[str, np.ndarray]:
    store = CaseStore(found.directory.parent.parent)
    rounds = [store.stream(found.case.id, k) for k in range(1, len(found.rounds))]
    return {
        name: np.concatenate([one[name] for one in rounds if name in one]) for name in rounds[-1] if name != "settings"
    }


def answers(found: CaseResult) -> list[np.ndarray]:
    store = CaseStore(found.directory.parent.parent)
    rounds = range(len(found.rounds))
    return [said.labels for k in rounds for said in store.predictions(found.case.id, k).values()]


@pytest.mark.parametrize(("delay", "cost"), [(0, 1), (3, 1), (0, 2), (2, 3)])
def test_scores_are_those_of_a_naive_loop(tmp_path, delay, cost):
    """Asked, answered and told in turn by a loop that knows nothing of rounds, copies or processes."""
    found = found_in(sat(tmp_path, more=f"prequential: {{delay: {delay}, stream_cost: {cost}}}"))
    said = stream(found)
    job = load_job(tmp_path / "benchmarkingjob.yaml")
    train = open_exam(job.testenvs[0], tmp_path / "ws" / "cache").dataset.train
    chunks = [said["sample"][said["chunk"] == t] for t in range(said["chunk"][-1] + 1)]
    assert [len(one) for one in chunks[:-1]] == [40] * (len(chunks) - 1)
    space: dict[str, object] = {}
    exec(MEANS, space)

    class Handed:
        def __init__(self, at):
            self.x, self.y = train.x[at].astype(np.float32), train.y[at]

        def __len__(self):
            return len(self.x)

    learner, scores, told = space["Means"](), [], np.full(len(said["scores"]), -1)
    for t, at in enumerate(chunks):
        scores.append(np.asarray(learner.predict(Handed(at))) == train.y[at])
        due = t - delay - cost + 1
        if due >= 0 and due % cost == 0:
            learner.train(Handed(chunks[due]))
            told[said["chunk"] == due] = t
    np.testing.assert_array_equal(said["scores"], np.concatenate(scores))
    np.testing.assert_array_equal(said["told_at"], told)
    assert found.metrics["online_accuracy"] == pytest.approx(np.concatenate(scores).mean())
    assert found.rounds[-1].told == (told >= 0).sum() == sum(one.train_samples for one in found.rounds)


def test_what_is_never_told_changes_nothing(tmp_path):
    results = sat(tmp_path, more="prequential: {delay: 1000}", metrics="[online_accuracy, gain, accuracy]")
    found = found_in(results)
    matrix = found.matrices["accuracy"].values
    np.testing.assert_array_equal(matrix, np.broadcast_to(matrix[0], matrix.shape))
    assert found.metrics["gain"] == 0
    np.testing.assert_array_equal(stream(found)["scores"], stream(found_in(results, "stateless"))["scores"])


def test_answers_before_labels_change_no_model_and_no_exam(tmp_path):
    """I2: the same exam with and without the rule."""
    asked = found_in(sat(tmp_path / "a"))
    plain = found_in(sat(tmp_path / "b", more="name: plain", metrics="[accuracy]"))
    for one, other in zip(answers(asked), answers(plain), strict=True):
        np.testing.assert_array_equal(one, other)
    models = [sorted(found.directory.glob("rounds/*/model/*.npz")) for found in (asked, plain)]
    assert [path.read_bytes() for path in models[0]] == [path.read_bytes() for path in models[1]] and models[0]


@pytest.mark.slow
def test_a_probe_of_the_next_chunk_says_what_the_learner_says_next(tmp_path):
    """I3: near-future accuracy at shift 0 is online accuracy, one chunk later; the second pass knows everything."""
    more = "prequential: {near_future: [0, 5], near_future_every: 1, second_pass: true}"
    metrics = "[online_accuracy, near_future_accuracy@0, near_future_accuracy@5, stability_gain, accuracy]"
    results = sat(tmp_path, more=more, metrics=metrics)
    found = found_in(results)
    said = stream(found)
    np.testing.assert_array_equal(said["near 0"], said["scores"][40:])
    assert found.metrics["near_future_accuracy@0"] == pytest.approx(said["scores"][40:].mean())
    assert len(said["near 5"]) == len(said["scores"]) - 6 * 40
    assert said["second"].mean() > said["scores"].mean()
    assert found.metrics["stability_gain"] == pytest.approx(
        said["second"].mean() - stream(found_in(results, "stateless"))["scores"].mean()
    )


@pytest.mark.slow
def test_the_stateless_is_run_once_for_all_delays_and_gains_nothing(tmp_path):
    testenvs = "".join(f"    - ./exam{delay}.yaml\n" for delay in (0, 2))
    path = write_job(tmp_path, plugin=SYSTEM, name="System", hyperparameters="", testenv="x: 1", job="seeds: [0]")
    for delay in (0, 2):
        body = f"{EXAM}name: delay {delay}\nprequential: {{delay: {delay}}}\nmetrics: [gain, online_accuracy, accuracy]"
        (tmp_path / f"exam{delay}.yaml").write_text("testenv:\n" + indent(body, "  ") + "\n")
    path.write_text(path.read_text().replace(" ./testenv.yaml\n", f"\n{testenvs}"))
    algorithm = tmp_path / "algorithm.yaml"
    algorithm.write_text(algorithm.read_text().replace("incrementallearning", "testtimelearning"))
    results = ianvs.run(path)
    assert results.exit_code == 0, results.failed
    [alone] = [one for one in results if one.case.role == "stateless"]
    z = stream(alone)["scores"]
    for found in (one for one in results if not one.case.role):
        assert found.metrics["gain"] == pytest.approx(np.mean(stream(found)["scores"] - z))


CHEATING = """
import json
import os
from pathlib import Path

MARK, OUTSIDE = Path({mark!r}), Path({outside!r})


class System:
    \"\"\"Notes what it is told, in its folder and outside, and kills itself once: then it is asked again.\"\"\"

    def __init__(self):
        self.told = 0

    def answer(self, data, folder, chunk):
        key = str(40 * (chunk - 1))
        known = json.loads(OUTSIDE.read_text()) if OUTSIDE.exists() else {{}}
        if key in known:
            return known[key][: len(data)]
        own = folder / "notes.txt"
        return [(len(own.read_text()) if own.exists() else 0) % 10] * len(data)

    def predict(self, data):
        return [self.told % 10] * len(data)

    def feedback(self, told, folder, chunk):
        self.told += 1
        known = json.loads(OUTSIDE.read_text()) if OUTSIDE.exists() else {{}}
        OUTSIDE.write_text(json.dumps({{**known, str(told.episodes[0]): told.labels.tolist()}}))
        with (folder / "notes.txt").open("a") as own:
            own.write("x")
        if chunk == {chunk} and not MARK.exists():
            MARK.touch()
            os.kill(os.getpid(), 9)

    def save(self, path):
        path.write_text(str(self.told))

    def load(self, path):
        self.told = int(path.read_text())
"""


@pytest.mark.parametrize("chunk", [13, slow(3), slow(29)])
def test_a_kill_after_any_chunk_leaves_the_same_bytes(tmp_path, chunk):
    """I6: the first answer counts, and the learner's folder is what it was when the round began."""
    stored = {}
    for name in ("undisturbed", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        (tmp_path / "marks").mkdir(exist_ok=True)
        mark = tmp_path / "marks" / name
        if name == "undisturbed":
            mark.touch()
        source = CHEATING.format(mark=str(mark), outside=str(tmp_path / "marks" / f"{name}.notes"), chunk=chunk)
        job = f"seeds: [0]\nengine: {'local' if name == 'killed' else 'inline'}"
        found = found_in(sat(folder, source, "System", paradigm="testtimelearning", job=job))
        with ZipFile(found.directory / "predictions.zip") as archive:
            stored[name] = {member: archive.read(member) for member in archive.namelist()}
        assert mark.exists()
        assert not list(found.directory.glob("*.journal"))
    assert stored["killed"] == stored["undisturbed"]
    assert len(stored["killed"]) == 6


FEEDBACK = """
class System:
    def __init__(self):
        self.seen = []

    def answer(self, data):
        return [1] * len(data)

    def feedback(self, told, folder):
        kinds = {}
        for kind in ("labels", "correct", "scores", "texts"):
            try:
                kinds[kind] = getattr(told, kind).tolist()
            except Exception as error:
                kinds[kind] = str(error)
        line = [told.kind, told.answers.tolist(), told.episodes.tolist(), told.delay, kinds]
        (folder / "told.txt").open("a").write(repr(line) + "\\n")
"""


KINDS = [("label", "labels"), ("correctness", "correct"), ("score", "scores"), ("text", "texts")]


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_feedback_is_of_the_kind_that_the_exam_says(tmp_path, kind, name):
    found = found_in(
        sat(tmp_path, FEEDBACK, "System", f"prequential: {{feedback: {kind}, delay: 1}}", paradigm="testtimelearning")
    )
    lines = [eval(line) for line in (found.directory / "files" / "told.txt").read_text().splitlines()]
    said, right = stream(found), stream(found)["scores"] == 1
    told = sum(len(line[2]) for line in lines)
    assert told == (said["told_at"] >= 0).sum() == len(right) - len(said["scores"][said["told_at"] < 0])
    at = 0
    for of, given, episodes, delay, kinds in lines:
        assert (of, delay, set(given)) == (kind, 1, {1})
        assert episodes == list(range(at, at + len(episodes)))
        at += len(episodes)
        mine = right[episodes]
        if kind in ("correctness", "score"):
            np.testing.assert_array_equal(np.asarray(kinds[name], float), mine)
            assert {type(one) for one in kinds[name]} == {bool if kind == "correctness" else float}
        elif kind == "text":
            assert all((text == "right") == good for text, good in zip(kinds[name], mine, strict=True))
        else:
            np.testing.assert_array_equal(np.asarray(kinds[name]) == 1, mine)
        others = {other for other in ("labels", "correct", "scores", "texts") if other != name}
        assert all(f"feedback: {kind}" in kinds[other] for other in others)


ONLINE = "{name: online, rounds: 5}"
REFUSED = [
    (
        "prequential: true",
        "{name: class-incremental, rounds: 5}",
        "accuracy",
        ("invalid-scenario", "testenv.yaml:3:20"),
    ),
    ("prequential: {feedback: score}", ONLINE, "accuracy", ("unfit-paradigm", "algorithm.yaml:2:18")),
    ("prequential: true\nlinear_probe: true", ONLINE, "accuracy", ("conflicting-keys", "testenv.yaml:6:3")),
    ("name: x", ONLINE, "online_accuracy", ("unrequested-scores", "testenv.yaml:4:13")),
    ("prequential: true", ONLINE, "near_future_accuracy@3", ("unrequested-scores", "testenv.yaml:4:13")),
    ("prequential: {delay: -1}", ONLINE, "accuracy", ("out-of-range", "testenv.yaml:5:24")),
]


def test_a_system_that_is_told_of_its_answers_needs_an_exam_that_asks_first(tmp_path):
    assert errors_of(
        sat, tmp_path, SYSTEM, "System", "name: plain", paradigm="testtimelearning", metrics="[accuracy]"
    ) == [("unfit-paradigm", f"{tmp_path}/algorithm.yaml:2:18")]


@pytest.mark.parametrize(("more", "scenario", "metric", "error"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_not_be_is_refused_before_anything_runs(tmp_path, more, scenario, metric, error):
    testenv = f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [{metric}, accuracy]\n{more}"
    if metric == "accuracy":
        testenv = testenv.replace("[accuracy, accuracy]", "[accuracy]")
    path = write_job(tmp_path, plugin=MEANS, name="Means", hyperparameters="", testenv=testenv, job="seeds: [0]")
    [(code, location)] = errors_of(ianvs.run, path)
    assert (code, location.rpartition("/")[2]) == error


def test_a_budget_of_tokens_holds_what_the_author_counts_against_it(tmp_path):
    counting = edited(SYSTEM, "    def answer(self, data):\n", COUNTING)
    more = "prequential: true\nbudget: {tokens: 100, calls: 1000, over: mark}"
    metrics = "[tokens, tokens_per_right, online_accuracy, accuracy]"
    found = found_in(sat(tmp_path, counting, "System", more, paradigm="testtimelearning", metrics=metrics))
    answered = len(stream(found)["scores"])
    assert found.metrics["tokens"] == 3 * answered
    assert found.metrics["tokens_per_right"] == pytest.approx(3 * answered / stream(found)["scores"].sum())
    assert found.over_budget[0].startswith("tokens ") and "the budget is 100" in found.over_budget[0]
    assert any("it counts no calls" in said for said in found.warnings)


COUNTING = """
    from ianvs.base.types import Measure

    measures = {"tokens": Measure("Tokens of its prompts.", reduce="sum")}

    def measured(self):
        tokens, self.tokens = getattr(self, "tokens", 0), 0
        return {"tokens": tokens}

    def predict(self, data):
        return [self.last] * len(data)

    def answer(self, data):
        self.tokens = getattr(self, "tokens", 0) + 3 * len(data)
"""


def test_labels_that_are_withheld_or_wrong_are_asked_scored_and_told_as_they_are(tmp_path):
    changed = "{name: online, rounds: 5, batch: 40, modifiers: {labelled: 0.5, label_noise: 0.3}}"
    folders = {kind: tmp_path / kind for kind in ("label", "correctness")}
    told = {}
    for kind, folder in folders.items():
        testenv = f"dataset: {{name: digits}}\nscenario: {changed}\nmetrics: [online_accuracy, accuracy]\n"
        testenv += f"prequential: {{feedback: {kind}}}"
        path = write_job(folder, plugin=FEEDBACK, name="System", hyperparameters="", testenv=testenv, job="seeds: [0]")
        file = folder / "algorithm.yaml"
        file.write_text(file.read_text().replace("incrementallearning", "testtimelearning"))
        found = found_in(ianvs.run(path))
        lines = [eval(line) for line in (found.directory / "files" / "told.txt").read_text().splitlines()]
        name = "labels" if kind == "label" else "correct"
        told[kind] = {e: value for line in lines for e, value in zip(line[2], line[4][name], strict=True)}
        said = stream(found)
        truth = open_exam(load_job(path).testenvs[0], folder / "ws" / "cache").dataset.train.y[said["sample"]]
        np.testing.assert_array_equal(said["scores"], truth == 1)
    labels = np.array([told["label"][episode] for episode in range(len(truth))])
    assert 0.4 < np.mean(labels < 0) < 0.6
    assert np.mean(labels[labels >= 0] != truth[labels >= 0]) > 0.2
    known = np.flatnonzero(labels >= 0)
    assert sorted(told["correctness"]) == known.tolist()
    np.testing.assert_array_equal([told["correctness"][e] for e in known.tolist()], labels[known] == 1)


@pytest.mark.slow
def test_a_grid_crosses_agents_with_memories(tmp_path):
    """Hyperparameters of a memory carry its type, in the reference that remembers nothing, too."""
    source = """
class Agent:
    def __init__(self, default=0):
        self.default = default

    def answer(self, data, notes):
        return [note[0][1] if note else self.default for note in notes]

    def reset(self):
        pass

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass


class Last:
    def __init__(self, kept=1):
        self.kept, self.told = kept, []

    def write(self, told):
        self.told = [*self.told, *zip(told.episodes.tolist(), told.labels.tolist())][-self.kept:]

    def read(self, data):
        return [self.told[:1]] * len(data)

    def reset(self):
        self.told = []

    def save(self, path):
        path.write_text(repr(self.told))

    def load(self, path):
        self.told = eval(path.read_text())
"""
    testenv = f"{EXAM}metrics: [online_accuracy, gain, accuracy]\nprequential: true"
    path = write_job(tmp_path, plugin=source, name="Agent", hyperparameters="", testenv=testenv, job="seeds: [0]")
    (tmp_path / "algorithm.yaml").write_text("""algorithm:
  paradigm_type: testtimelearning
  modules:
    - {type: basemodel, name: Agent, url: ./plugin.py, hyperparameters: [{default: {values: [1]}}]}
    - {type: memory, name: Last, url: ./plugin.py, hyperparameters: [{kept: {values: [1, 40]}}]}
""")
    results = ianvs.run(path)
    assert results.exit_code == 0, results.failed
    rows = [one for one in results if not one.case.role]
    assert [dict(one.case.hyperparameters) for one in rows] == [
        {"default": 1, "memory-kept": 1},
        {"default": 1, "memory-kept": 40},
    ]
    assert all(one.metrics["gain"] > 0 for one in rows)
    assert rows[0].metrics["online_accuracy"] != rows[1].metrics["online_accuracy"]
