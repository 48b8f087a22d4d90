"""Choosing configurations apart from what is reported, repetitions, and scores without a part of the samples."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ianvs
from ianvs.store import CaseStore, ExamStore
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import write_job

NEAREST = '''
import json
import numpy as np

class Nearest:
    """The class whose mean is nearest; some answers, drawn by the seed, are wrong on purpose."""

    memory = ()

    def __init__(self, noise=0.1):
        self.noise, self.sums, self.drawn = noise, {}, [0, 0]

    def train(self, train_data, valid_data=None, *, round, seed):
        self.drawn = [seed, round]
        for label in np.unique(train_data.y).tolist():
            x = train_data.x[train_data.y == label].reshape(-1, 64).astype(float)
            self.sums[label] = x.mean(axis=0).tolist()

    def predict(self, data):
        x = data.x.reshape(len(data), 64).astype(float)
        labels = np.array(sorted(self.sums))
        means = np.array([self.sums[label] for label in labels.tolist()])
        found = labels[((x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)]
        draw = np.random.default_rng(self.drawn)
        wrong = draw.random(len(x)) < self.noise
        return np.where(wrong, draw.integers(0, 10, len(x)), found)

    def save(self, path):
        path.with_suffix(".json").write_text(json.dumps([list(self.sums.items()), self.drawn]))
        return path.with_suffix(".json")

    def load(self, path):
        sums, self.drawn = json.loads(path.read_text())
        self.sums = dict(sums)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which three configurations have run with four seeds; a choice runs nothing anew."""
    folder = tmp_path_factory.mktemp("choice")
    ianvs.run(job(folder))
    return folder


def job(folder: Path, rank: str = "", more: str = "") -> Path:
    return write_job(
        folder,
        plugin=NEAREST,
        name="Nearest",
        hyperparameters="- noise: {values: [0.3, 0.1, 0.2]}",
        job=f"seeds: [0, 1, 2, 3]\nengine: inline\n{more}",
        sort_by=f"[{{accuracy: descend}}]{rank}",
        algorithms=("nearest",),
    )


def chosen(folder: Path, select: str) -> tuple[float, float, ianvs.Results]:
    """(noise of the configuration that was chosen, its score as reported)."""
    results = ianvs.run(job(folder, f"\n    select: {select}"))
    assert results.ran == 0
    frame = results.leaderboard_frame
    assert len(frame) == 1
    assert frame["Tried"].tolist() == [3]
    return frame["Noise"].item(), frame["accuracy"].item(), results


def scores(folder: Path) -> pd.DataFrame:
    """One line for each case, round and test set, with the noise of the case."""
    results = ianvs.run(job(folder))
    noise = results.cases.set_index("case")["hp.noise"]
    frame = results.rounds
    frame["noise"] = frame["case"].map(noise)
    frame["test_index"] = frame.groupby(["case", "round"]).cumcount()
    return frame


def test_first_rounds_choose_and_later_test_sets_are_reported(folder: Path) -> None:
    noise, score, results = chosen(folder, "{by: first_rounds, rounds: 2}")
    frame = scores(folder)
    chosen_on, reported = frame[frame["seed"] < 2], frame[frame["seed"] >= 2]  # no run is in both
    first = chosen_on[(chosen_on["round"] == 2) & (chosen_on["test_index"] < 2)].groupby("noise")["value"].mean()
    assert noise == first.idxmax()
    rest = reported[(reported["round"] == 5) & (reported["test_index"] >= 2) & (reported["noise"] == noise)]
    assert score == pytest.approx(rest["value"].mean())
    assert results.leaderboard_frame["Round"].item() == 3
    (said,) = (one for one in results.leaderboard.statements if "chosen" in one)
    assert "first 2 rounds" in said
    assert "future" not in said


def test_metrics_over_the_matrix_are_those_of_the_later_rounds(folder: Path) -> None:
    noise, _, results = chosen(folder, "{by: first_rounds, rounds: 2}")
    values = []
    for result in ianvs.run(job(folder)):
        if result.case.hyperparameters["noise"] == noise and result.case.seed >= 2:
            R = result.matrices["accuracy"].R[2:, 2:]
            values.append(np.mean([R[-1, j] - R[j, j] for j in range(2)]))
    assert results.leaderboard_frame["BWT"].item() == pytest.approx(np.mean(values))


def test_half_of_the_seeds_choose_and_the_others_are_reported(folder: Path) -> None:
    noise, score, results = chosen(folder, "{by: seeds}")
    frame = scores(folder)
    last = frame[frame["round"] == 5]
    assert noise == last[last["seed"] < 2].groupby("noise")["value"].mean().idxmax()
    assert score == pytest.approx(last[(last["seed"] >= 2) & (last["noise"] == noise)]["value"].mean())
    assert results.leaderboard_frame["Seeds"].item() == 2
    printed("\n".join(results.leaderboard.statements))


def test_a_share_of_the_samples_chooses_and_the_others_are_reported(folder: Path) -> None:
    noise, score, results = chosen(folder, "{by: validation, share: 0.4}")
    by_hand = {}
    for result in ianvs.run(job(folder)):
        right = answers(folder, result.case.id)
        groups = min(100, *map(len, right))
        cut = round(0.4 * groups)
        part = [np.random.default_rng(20_240_903).permutation(len(one)) % groups < cut for one in right]
        chooses = result.case.seed < 2  # no run is in both
        value = np.mean([r[p == chooses].mean() for r, p in zip(right, part, strict=True)])
        by_hand.setdefault((result.case.hyperparameters["noise"], chooses), []).append(value)
    means = {key: np.mean(values) for key, values in by_hand.items()}
    assert noise == max((key for key in means if key[1]), key=means.get)[0]
    assert score == pytest.approx(means[noise, False], abs=0.01), "groups differ by a sample in size"
    assert results.leaderboard_frame["Seeds"].item() == 2


@pytest.mark.slow
def test_another_exam_chooses(tmp_path: Path) -> None:
    path = job(tmp_path, "\n    select: {by: exam, exam: class-incremental (other)}")
    testenv = (tmp_path / "testenv.yaml").read_text()
    (tmp_path / "other.yaml").write_text(edited(testenv, "rounds: 5", "rounds: 2"))
    text = path.read_text()
    assert "testenv: ./testenv.yaml" in text
    path.write_text(edited(text, "testenv: ./testenv.yaml", "testenv: [./testenv.yaml, ./other.yaml]"))
    frame = ianvs.run(path).leaderboard_frame
    assert len(frame) == 1
    assert frame["Noise"].tolist() == [0.1]
    assert frame["Tried"].tolist() == [3]


@pytest.mark.parametrize(
    ("select", "code"),
    [
        ("{by: first_rounds, rounds: 5}", "invalid-selection"),
        ("{by: first_rounds}", "missing-key"),
        ("{by: exam, exam: x}", "invalid-selection"),
        ("{by: seeds, share: 0.2}", "conflicting-keys"),
        ("{by: luck}", "invalid-choice"),
    ],
)
def test_a_choice_that_can_not_be_made_is_refused_with_its_line(folder: Path, select: str, code: str) -> None:
    path = job(folder, f"\n    select: {select}")
    for refused in (ianvs.validate, ianvs.run):
        ((found, place),) = errors_of(refused, path)
        assert found == code
        assert int(place.split(":")[1]) == path.read_text().splitlines().index(f"    select: {select}") + 1


def test_a_choice_by_seeds_needs_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_job(tmp_path, job="seeds: [3]", sort_by="[{accuracy: descend}]\n    select: {by: seeds}")
    assert errors_of(ianvs.validate, path) == [("invalid-selection", "benchmarkingjob.yaml:12:18")]


def test_validation_needs_a_score_of_samples(folder: Path) -> None:
    path = job(folder, "\n    select: {by: validation}")
    path.write_text(edited(path.read_text(), "{accuracy: descend}", "{BWT: descend}"))
    assert [code for code, _ in errors_of(ianvs.validate, path)] == ["invalid-selection"]


def test_an_unknown_baseline_is_refused(folder: Path) -> None:
    assert [code for code, _ in errors_of(ianvs.validate, job(folder, "\n    baseline: neares"))] == [
        "unknown-reference"
    ]


def test_repetitions_of_a_seed_differ_by_nothing_on_the_cpu(folder: Path) -> None:
    results = ianvs.run(job(folder, more="repeat: 2"))
    assert results.ran == 3, "the first seed of each row, once more"
    assert any("(3 repetitions)" in one for one in results.leaderboard.statements)
    assert results.leaderboard_frame["Seeds"].tolist() == [4, 4, 4], "a repetition is no seed"


@pytest.mark.slow
def test_noise_of_a_learner_that_draws_on_its_own_is_told(tmp_path: Path) -> None:
    path = job(tmp_path, more="repeat: 3")
    (tmp_path / "plugin.py").write_text(edited(NEAREST, "default_rng(self.drawn)", "default_rng()"))
    results = ianvs.run(path)
    assert any(re.search(r"accuracy\b.* 0\.\d", one) for one in results.leaderboard.statements)


def answers(folder: Path, case_id: str) -> list[np.ndarray]:
    """[j] whether each sample of test set j was answered right after the last round."""
    cases, exams = CaseStore(folder / "ws"), ExamStore(folder / "ws")
    truth = exams.truth(cases.identity(case_id)["exam_id"])
    said = cases.predictions(case_id, 5)
    return [labels == said[asked].labels for labels, asked in zip(truth, sorted(said), strict=True)]


def test_scores_without_a_group_of_samples_are_those_of_the_others(folder: Path) -> None:
    results = ianvs.run(job(folder))
    store = CaseStore(folder / "ws")
    for result in list(results)[:2]:
        right = answers(folder, result.case.id)
        (key,) = (key for key in store.state(result.case.id).scores if "acc" in key)
        found = store.score(result.case.id, key).left_out
        count = min(100, *map(len, right))
        groups = [np.random.default_rng(20_240_903).permutation(len(one)) % count for one in right]
        by_hand = [[r[of != g].mean() for r, of in zip(right, groups, strict=True)] for g in range(count)]
        assert found == pytest.approx(np.array(by_hand))
        error = result.samples["accuracy"].std(ddof=1) / np.sqrt(count)
        binomial = np.sqrt(sum(r.mean() * (1 - r.mean()) / len(r) for r in right)) / len(right)
        assert error == pytest.approx(binomial, rel=0.6), "a standard error is itself uncertain"


def test_a_metric_over_the_matrix_has_groups_of_samples_too(folder: Path) -> None:
    """What group g says of BWT is G BWT - (G - 1) BWT without it, all scores of the matrix being without it."""
    result = next(iter(ianvs.run(job(folder))))
    cases, exams = CaseStore(folder / "ws"), ExamStore(folder / "ws")
    truth, found = exams.truth(cases.identity(result.case.id)["exam_id"]), result.samples["BWT"]
    assert len(found) == 20
    groups = [np.random.default_rng(20_240_903).permutation(len(one)) % 20 for one in truth]
    for g in (0, 7):
        kept = [of != g for of in groups]
        R = np.full((5, 5), np.nan)
        for k in range(5):
            said = cases.predictions(result.case.id, k + 1)
            for asked, answers in said.items():
                j = asked.test
                R[k, j] = (answers.labels == truth[j])[kept[j]].mean()
        without = np.mean([R[-1, j] - R[j, j] for j in range(4)])
        assert found[g] == pytest.approx(20 * result.metrics["BWT"] - 19 * without)
