"""Metrics in a file at a `url` that are over a score matrix, or have state over rounds."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import Location, ValidationError
from ianvs.base.types import ScoreMatrix
from ianvs.config import load_job
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import EvaluationRecord, Metric, matrix_metric, score_metric
from ianvs.exam.metrics.custom import from_object
from ianvs.exam.metrics.registry import resolve
from ianvs.running.inspector import Inspector
from tests.errors import errors_of, recorded
from tests.jobs import write_job

pytestmark = pytest.mark.usefixtures("in_own_folder")

EXAMPLES = Path(__file__).parents[4] / "examples" / "own_metric"
FILES = {"ForgettingEvents": "forgetting_events.py", "largest_drop": "largest_drop.py"}
PLACE = Location(Path("testenv.yaml"), 7, 5)
TRUTH = np.array([0, 0, 1, 1])
SAID = np.array([[0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 0]])  # after three rounds


def inspected(folder: Path, specs: list[MetricSpec]) -> list[Metric | list[ValidationError]]:
    with closing(Inspector(load_job(write_job(folder)), inline=True)) as inspector:
        return [inspector.metric(spec) for spec in specs]


def record(said: np.ndarray) -> EvaluationRecord:
    return EvaluationRecord(("a", "b"), TRUTH.copy(), said.copy())


def example(name: str, of: str | None = None) -> Metric:
    return resolve(MetricSpec(name, url=EXAMPLES / FILES[name], score=of, place=PLACE))


def test_a_worked_value_of_state_over_rounds() -> None:
    """The second sample is lost after round 1, the fourth after round 2: none, then 1 of 4, then 2 of 4."""
    metric = example("ForgettingEvents")
    assert (metric.level, metric.higher_is_better) == ("score", False)
    assert metric.accumulate is not None
    fed = metric.accumulate()
    assert [fed(k, record(said)) for k, said in enumerate(SAID)] == [0.0, 0.25, 0.5]
    assert metric.accumulate()(0, record(SAID[0])) == 0.0  # another test set begins anew


def test_a_worked_value_over_a_score_matrix() -> None:
    """.9 falls to .6 and to .5, .8 to .7: the most at once is .3. Of the errors to these scores it is the same."""
    R = np.array([[0.9, 0.1, 0.1], [0.6, 0.8, 0.1], [0.5, 0.7, 0.9]])
    metric = example("largest_drop", "accuracy")
    assert (metric.level, metric.higher_is_better) == ("matrix", False)
    assert metric.function is not None
    assert metric.function(ScoreMatrix.from_rounds(R)) == pytest.approx(0.3)
    assert metric.function(ScoreMatrix.from_rounds(1 - R, higher_is_better=False)) == pytest.approx(0.3)
    undefined = metric.function(ScoreMatrix.from_rounds(R[:, :2]))
    assert isinstance(undefined, float) and math.isnan(undefined)


def test_state_over_rounds_may_be_of_confusion_matrices_and_take_options() -> None:
    class Mine:
        def __init__(self, factor=1):
            self.lr_factor, self.best = factor, 0.0

        def update(self, round, confusion):
            self.best = max(self.best, confusion.trace() / confusion.sum() * self.lr_factor)

        def compute(self):
            return self.best

    metric = from_object(MetricSpec("mine", url=Path("mine.py"), options={"factor": 2}), Mine)
    assert metric.accumulate is not None and not metric.pictures
    fed = metric.accumulate()
    assert [fed(k, record(said)) for k, said in enumerate(SAID)] == [1.0, 1.5, 1.5]


def test_a_score_by_decorator_works_in_a_file() -> None:
    @score_metric("error_rate", formula="", source="Mitchell 1997", higher_is_better=False)
    def error_rate(seen):
        """Share of wrong answers."""
        seen.y_true.sort()
        return (seen.y_true != seen.y_pred).mean()

    metric = from_object(MetricSpec("mine", url=Path("mine.py")), error_rate)
    assert (metric.name, metric.source, metric.higher_is_better) == ("mine", "Mitchell 1997", False)
    seen = EvaluationRecord(("a", "b"), np.array([1, 0]), np.array([0, 0]))
    assert metric.function is not None and metric.function(seen) == 0.5
    assert seen.y_true is not None and seen.y_true.tolist() == [1, 0]  # the next one's


HEAD = "from ianvs.exam.metrics import matrix_metric, score_metric\n"
OVER = f'{HEAD}@matrix_metric("mine", formula="", source="")\n'


SLIPS: dict[str, tuple[str, dict[str, object], str]] = {
    "no score": (f"{OVER}def mine(R): return 1.0", {}, "missing-option"),
    "reference runs": (f"{OVER}def mine(R, joint): return 1.0", {"of": "accuracy"}, "unfit-metric"),
    "a slip in an argument": (f"{OVER}def mine(R, untraind): ...", {"of": "accuracy"}, "unloadable-plugin"),
    "an option": (f"{OVER}def mine(R): ...", {"of": "accuracy", "options": {"k": 1}}, "unknown-option"),
    "of for a score": (
        f'{HEAD}@score_metric("mine", formula="", source="")\ndef mine(r): ...',
        {"of": "accuracy"},
        "unfit-metric",
    ),
    "another argument of update": (
        "class mine:\n def update(self, round, labels): ...\n def compute(self): ...",
        {},
        "broken-contract",
    ),
    "no compute": ("class mine:\n def update(self, round, y_true, y_pred): ...", {}, "broken-contract"),
    "a number": ("mine = 3", {}, "broken-contract"),
}


@pytest.mark.parametrize(("source", "more", "code"), SLIPS.values(), ids=SLIPS)
def test_what_is_wrong_is_told_before_anything_runs(
    tmp_path: Path, source: str, more: dict[str, object], code: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    [found] = inspected(tmp_path, [MetricSpec("mine", url=file, place=PLACE, **more)])  # type: ignore[arg-type]
    assert isinstance(found, list)
    assert recorded(found) == [(code, "testenv.yaml:7:5")]


def test_its_header_is_known_without_its_code(tmp_path: Path) -> None:
    of = {"largest_drop": "accuracy", "ForgettingEvents": None}
    specs = [MetricSpec(name, url=EXAMPLES / FILES[name], score=score) for name, score in of.items()]
    for _ in range(2):  # asked for, then remembered
        drop, events = inspected(tmp_path, specs)
        assert isinstance(drop, Metric) and isinstance(events, Metric)
        assert (drop.level, drop.higher_is_better, drop.function) == ("matrix", False, None)
        assert (events.level, events.function, events.accumulate is not None) == ("score", None, True)


JOB = "seeds: [0]\nengine: inline"


def job(
    folder: Path, source: str, metrics: str, more: str = "", settings: str = JOB, sort_by: str = "accuracy"
) -> Path:
    testenv = f"dataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 2}}\nmetrics: [accuracy, {metrics}]\n{more}"
    path = write_job(folder, testenv=testenv, hyperparameters="", job=settings, sort_by=f"[{{{sort_by}: descend}}]")
    (folder / "mine.py").write_text(source)
    return path


MATRIX = "{name: mine, url: ./mine.py, of: accuracy}"
ROUNDS = (
    "class mine:\n def update(self, round, y_true, y_pred): self.round = round\n def compute(self): return self.round\n"
)
GATE = "model_eval: {model_metric: {name: mine, url: ./mine.py}, threshold: 0, operator: '>='}"


EXAM_SLIPS = {
    "a row": (f"{OVER}def mine(R): return R[-1]", MATRIX, "", ("invalid-result", "testenv.yaml:4:30")),
    "an exception": (f"{OVER}def mine(R): return R[9, 9]", MATRIX, "", ("failed-plugin", "testenv.yaml:4:30")),
    "None": (f"{OVER}def mine(R): return None", MATRIX, "", ("invalid-result", "testenv.yaml:4:30")),
    "None of rounds": (
        ROUNDS.replace("self.round\n", "None\n"),
        "{name: mine, url: ./mine.py}",
        "",
        ("invalid-result", "testenv.yaml:4:30"),
    ),
    "state in a gate": (ROUNDS, "BWT", GATE, ("unfit-metric", "testenv.yaml:5:37")),
}


@pytest.mark.parametrize(("source", "metrics", "more", "error"), EXAM_SLIPS.values(), ids=EXAM_SLIPS)
def test_what_shows_with_the_exam_is_told_by_validate(
    tmp_path: Path, source: str, metrics: str, more: str, error: tuple[str, str]
) -> None:
    assert errors_of(ianvs.validate, job(tmp_path, source, metrics, more)) == [error]


GOOD = f"{OVER}def mine(R): return R[-1].min()"


@pytest.mark.parametrize(
    ("more", "settings", "error"),
    [
        ("\nsearch: {name: random, trials: 2, metric: mine}", {}, ("invalid-search", "benchmarkingjob.yaml:7:45")),
        (
            "",
            {"rank.select": {"by": "first_rounds", "rounds": 1}},
            ("invalid-selection", "--set rank.select={'by': 'first_rounds', 'rounds': 1}"),
        ),
    ],
    ids=["a search", "a selection by the first rounds"],
)
def test_what_sees_parts_of_cases_can_not_go_by_it(
    tmp_path: Path, more: str, settings: dict[str, object], error: tuple[str, str]
) -> None:
    path = job(tmp_path, GOOD, MATRIX, settings=JOB + more, sort_by="mine")
    assert errors_of(ianvs.validate, path, settings=settings)[-1] == error  # a search has no ranges here, too


@pytest.mark.slow
def test_a_change_of_the_score_or_of_the_formula_computes_it_anew_and_trains_nothing(tmp_path: Path) -> None:
    path = job(tmp_path, GOOD, MATRIX)
    [first] = ianvs.run(path)
    assert first.metrics["mine"] == pytest.approx(first.matrices["accuracy"].R[-1].min())
    (tmp_path / "mine.py").write_text(GOOD.replace(".min()", ".max()"))
    [planned] = ianvs.plan(path)
    assert (planned.action, planned.reason) == ("score", "finished; mine to be computed from what is stored")
    [second] = ianvs.run(path)
    assert second.metrics["mine"] == pytest.approx(first.matrices["accuracy"].R[-1].max())
    other = {"metrics": ["accuracy", {"name": "mine", "url": str(tmp_path / "mine.py"), "of": "f1"}]}
    [third] = ianvs.run(path, settings=other)
    assert third.metrics["mine of f1"] == pytest.approx(third.matrices["f1"].R[-1].max())
    assert third.rounds == first.rounds


def test_rounds_are_fed_in_their_order_and_each_test_set_has_its_own(tmp_path: Path) -> None:
    [found] = ianvs.run(job(tmp_path, ROUNDS, "{name: mine, url: ./mine.py}"))
    np.testing.assert_array_equal(found.matrices["mine"].values, [[0, 0], [1, 1], [2, 2]])


def test_a_metric_of_a_package_names_what_comes_with_r() -> None:
    def x(R, curv):
        return 1.0

    assert errors_of(matrix_metric("x", formula="", source=""), x) == [("broken-contract", "")]
