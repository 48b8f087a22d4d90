"""Boxes from a dataset to scores: classes that arrive, what a learner sees of a label, and what it is asked."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import write_job
from tests.unit.testenv.data_types.boxes import GOLDEN

pytestmark = pytest.mark.usefixtures("functions_in_forks")

ARRIVAL = GOLDEN["class_incremental"]
COUNT = len(ARRIVAL["truth"])

DATA = """
import json
from pathlib import Path
import numpy as np

def scenes():
    truth = json.loads((Path(__file__).parent / "arrival.json").read_text())["truth"]
    x = np.full((len(truth), 30, 20, 3), 90, np.uint8)
    x[:, 0, 0, 0] = np.arange(len(truth))
    return {"train": (x, truth), "test": (x, truth), "classes": list("abcdef")}
"""

PLUGIN = """
import json
from pathlib import Path

ARRIVAL = json.loads((Path(__file__).parent / "arrival.json").read_text())

class Knows:
    '''Says what the worked example says; its label of a picture has to hold what was taught, and no more.'''

    def __init__(self):
        self.round = 0

    def train(self, train_data, *, round, new_classes, classes_seen, folder):
        seen = train_data.x[:, 0, 0, 0].tolist()
        assert len(set(seen)) == len(seen) > 0
        for i, label in zip(seen, train_data.y):
            truth = ARRIVAL["truth"][i]
            kept = [n for n, c in enumerate(truth["labels"]) if c in new_classes]
            assert label["labels"].tolist() == [truth["labels"][n] for n in kept]
            assert label["boxes"].tolist() == [truth["boxes"][n] for n in kept]
        self.round = len(classes_seen) // 2
        print("taught", len(seen), self.round)

    def predict(self, data):
        print("asked", len(data), self.round)
        none = {"boxes": [], "labels": [], "scores": []}
        return [ARRIVAL["answers_after_round"][self.round - 1][i] if self.round else none for i in data[:, 0, 0, 0]]

    def save(self, path):
        path.write_text(str(self.round))

    def load(self, path):
        self.round = int(path.read_text())
"""

TESTENV = """
dataset: {url: ./data.py, name: scenes, data_type: detection}
scenario: {name: class-incremental, rounds: 3}
metrics: [{name: AP}, {name: AP50}, {name: per_class_AP}, {name: BWT, of: AP}, {name: VOC_AP, points: 11_points},
          {name: FPP, of: AP}, {name: AP_seen}, {name: AP_old}, {name: AP_new}]
"""


def job(
    folder: Path, plugin: str = PLUGIN, testenv: str = TESTENV, data: str = DATA, more: str = "", **named: Any
) -> Path:
    path = write_job(
        folder, plugin=plugin, name="Knows", testenv=testenv, hyperparameters="", job=f"seeds: [0]\n{more}",
        sort_by="[{AP: descend}]", **named,
    )  # fmt: skip
    (folder / "arrival.json").write_text(json.dumps(ARRIVAL))
    (folder / "data.py").write_text(data)
    return path


def shown(log: str, what: str) -> list[tuple[int, int]]:
    """(pictures, round) of each call, without tries on a few."""
    found = [line.split() for line in log.splitlines() if line.startswith(what)]
    return [(int(count), int(round_)) for _, count, round_ in found if what == "taught" or int(count) > 2]


@pytest.fixture(scope="module")
def log() -> io.StringIO:
    """What the learner of `result` prints."""
    return io.StringIO()


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, log: io.StringIO) -> Any:
    path = job(tmp_path_factory.mktemp("arrival"))
    with contextlib.redirect_stdout(log):
        ianvs.validate(path)
        [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    return found


def test_the_worked_score_matrix_of_classes_that_arrive(result: Any) -> None:
    values = result.matrices["AP"].values
    np.testing.assert_allclose(values[1:], ARRIVAL["R_classes"], rtol=0, atol=1e-9)
    assert values[0].tolist() == [0, 0, 0]
    assert result.metrics["AP"] == pytest.approx(ARRIVAL["AA"][-1], rel=0, abs=1e-9)
    assert result.metrics["BWT"] == pytest.approx(ARRIVAL["BWT"], rel=0, abs=1e-9)
    assert result.metrics["FPP"] == pytest.approx(ARRIVAL["FPP_of_first_group"], rel=0, abs=1e-9)
    seen = result.matrices["AP_seen"].values[1:, 0]
    np.testing.assert_allclose(seen, ARRIVAL["AP_of_all_seen"], rtol=0, atol=1e-9)
    assert [result.metrics[name] for name in ("AP_seen", "AP_old", "AP_new")] == pytest.approx(
        [ARRIVAL["AP_of_all_seen"][-1], ARRIVAL["AP_old"], ARRIVAL["AP_new"]], rel=0, abs=1e-9
    )


def test_each_picture_is_asked_once_a_round_in_calls_that_tell_nothing(result: Any, log: io.StringIO) -> None:
    asked = shown(log.getvalue(), "asked")
    for round_ in range(4):
        sizes = [count for count, which in asked if which == round_]
        assert sizes == [16] * (COUNT // 16) + [COUNT % 16] * (COUNT % 16 > 0)
    sets = [set(label["labels"]) for label in ARRIVAL["truth"]]
    within = [sum(bool(have & set(group)) for have in sets) for group in ARRIVAL["groups"]]
    assert [count for count, _ in shown(log.getvalue(), "taught")] == within  # a picture may come again
    assert sum(within) > COUNT


def test_reports_draw_the_first_pictures_with_their_boxes(result: Any) -> None:
    from ianvs.results.report.scenes import scene_sheet, sheet_png

    sheet = scene_sheet(result)
    assert sheet is not None
    assert [name for name, _ in sheet.lines] == ["image 1", "image 2", "image 3"]
    heads = ["input", "truth", "after a+b", "after c+d", "after e+f"]
    assert [list(cells) for _, cells in sheet.lines] == [heads] * 3
    grey = {(90, 90, 90), (0, 90, 90), (1, 90, 90), (2, 90, 90)}
    assert all({tuple(p) for p in cells["input"].reshape(-1, 3)} <= grey for _, cells in sheet.lines)
    assert sheet_png(sheet, "title", "note").startswith(b"\x89PNG")
    page = (result.directory.parents[1] / "test" / "rank" / "report.html").read_text()
    assert "image 1, truth" in page


def test_a_matrix_has_a_column_for_each_class(result: Any) -> None:
    from ianvs.results.report.row_scores import BY_PART, MatrixMeans

    means = MatrixMeans(1)
    means.add(("row", "knows"), result)
    found = means.of_scores[f"{BY_PART}per_class_AP"]["row", "knows"]
    assert found.tests == tuple("abcdef")
    # Two classes a round: the means of their columns are the columns of AP.
    np.testing.assert_allclose(found.values.reshape(4, 3, 2).mean(axis=2), result.matrices["AP"].values, atol=1e-12)


@pytest.mark.slow
def test_disjoint_rounds_share_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [found] = ianvs.run(job(tmp_path, testenv=edited(TESTENV, "rounds: 3", "rounds: 3, cut: disjoint")))
    assert found.status == "finished", found.failure
    assert sum(count for count, _ in shown(capsys.readouterr().out, "taught")) <= COUNT
    np.testing.assert_allclose(found.matrices["AP"].values[1:], ARRIVAL["R_classes"], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_pictures_without_an_object_of_the_classes_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exam = edited(TESTENV, "rounds: 3", "rounds: 3, tests: containing")
    [found] = ianvs.run(job(tmp_path, testenv=exam))
    np.testing.assert_allclose(found.matrices["AP"].values[1:], ARRIVAL["R_pictures"], rtol=0, atol=1e-9)
    asked = shown(capsys.readouterr().out, "asked")
    assert {sum(count for count, which in asked if which == k) for k in range(4)} == {
        sum(bool(label["labels"]) for label in ARRIVAL["truth"])
    }


@pytest.mark.slow
def test_a_case_that_was_cut_off_ends_as_if_it_had_not_been(tmp_path: Path, result: Any) -> None:
    fault = tmp_path / "fault"
    fault.touch()
    cut = f"        if round == 3 and Path({str(fault)!r}).exists():\n            raise OSError(1, 'cut')\n"
    broken = edited(PLUGIN, '        print("taught', f'{cut}        print("taught')
    path = job(tmp_path, plugin=broken)
    [first] = ianvs.run(path)
    assert (first.status, len(first.rounds)) == ("failed", 3)
    fault.unlink()
    [resumed] = ianvs.run(path)
    assert resumed.status == "finished", resumed.failure
    np.testing.assert_array_equal(resumed.matrices["AP"].values, result.matrices["AP"].values)


def test_the_joint_reference_sees_each_picture_once_with_all_that_was_taught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `Knows` asserts of labels and pictures holds for all classes so far."""
    start = TESTENV.index("metrics")
    path = job(tmp_path, testenv=TESTENV[:start] + "metrics: [{name: AP}]\n")
    algorithm = tmp_path / "algorithm.yaml"
    algorithm.write_text(edited(algorithm.read_text(), "incrementallearning", "joint"))
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    sets = [set(label["labels"]) for label in ARRIVAL["truth"]]
    so_far = [sum(bool(have & set(range(2 * k))) for have in sets) for k in (1, 2, 3)]
    assert [count for count, _ in shown(capsys.readouterr().out, "taught")] == so_far
    np.testing.assert_allclose(found.matrices["AP"].values[1:], ARRIVAL["R_classes"], rtol=0, atol=1e-9)


BOX = "truth[1]['labels'] = [0]; truth[1]['boxes'] = "
SLIPS = {
    "x2 < x1": (f"{BOX}[[9, 2, 3, 4]]", "y of train: sample 1, box 0: (9, 2, 3, 4) has x2 < x1"),
    "nan": (f"{BOX}[[9, float('nan'), 30, 4]]", "sample 1, box 0: boxes holds (9, nan, 30, 4)"),
    "unknown class": (
        f"{BOX}[[1, 2, 3, 4]]; truth[1]['labels'] = [6]",
        "sample 1, box 0: label 6 is not one of 0 to 5",
    ),
    "one label too few": ("truth[0]['labels'] = truth[0]['labels'][1:]", "expected one entry for each box"),
    "no labels": ("del truth[0]['labels']", "sample 0: there is no 'labels', only boxes"),
    "an array": ("truth = [[1, 2, 3, 4]] * len(truth)", "sample 0: a truth is a mapping, this is list"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_validate_refuses_labels_with_the_sample_and_the_remedy(tmp_path: Path, slip: str) -> None:
    code, words = SLIPS[slip]
    path = job(tmp_path, data=edited(DATA, "    x = np", f"    {code}\n    x = np"))
    with pytest.raises(ConfigError) as refused:
        ianvs.validate(path)
    [problem] = refused.value.problems
    assert words in problem.message
    assert str(problem.place).endswith("data.py:6:1")


ANSWERS = {
    "rows of five": ("np.zeros((3, 5))"),
    "no scores": ("{'boxes': [], 'labels': []}"),
    "nan": ("{'boxes': [[1, 2, 3, 4]], 'labels': [0], 'scores': [float('nan')]}"),
    "unknown class": ("{'boxes': [[1, 2, 3, 4]], 'labels': [9], 'scores': [1]}"),
}


@pytest.mark.parametrize("slip", ANSWERS)
def test_answers_of_another_form_end_the_case(tmp_path: Path, slip: str) -> None:
    answer = ANSWERS[slip]
    plugin = edited(
        PLUGIN,
        "        none = {",
        f"        import numpy as np\n        return [{answer}] * len(data)\n        none = {{",
    )
    [found] = ianvs.run(job(tmp_path, plugin=plugin, more="engine: inline"))
    assert found.status == "failed"
    assert found.failure.error == "PluginError"
    printed(found.failure.message)


def test_a_metric_of_classes_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = job(tmp_path, testenv=edited(TESTENV, "{name: AP50}", "{name: accuracy}, {name: exact_match}"))
    assert errors_of(ianvs.validate, path) == [
        ("unfit-metric", f"{tmp_path}/testenv.yaml:4:32"),
        ("unfit-metric", f"{tmp_path}/testenv.yaml:4:50"),
    ]
