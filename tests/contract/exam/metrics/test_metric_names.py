"""The table of metrics, and what a metric of a testenv resolves to."""

from pathlib import Path

import pytest

from ianvs.base.errors import Location
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.metric_names import ALIASES, normalize
from ianvs.exam.metrics.registry import find, metrics, names, resolve, suggest
from ianvs.exam.metrics.table import describe, legend
from ianvs.testenv.metrics import classification
from ianvs.testenv.metrics.all_metrics import defined_in
from tests.errors import errors_of

LOWER_IS_BETTER = {
    "FM_restricted", "FM_literal", "IM", "CN_Forgetting", "CIA_forgetting_diag", "WF10", "WF100", "train_seconds",
    "eval_seconds", "train_cpu_seconds", "eval_cpu_seconds", "build_seconds", "save_seconds",
    "measure_seconds", "case_seconds",
    "peak_memory_mb", "peak_gpu_memory_mb", "model_size_mb", "memory_samples", "memory_mb",
    "memory_bytes", "parameters", "trainable_parameters", "FLOPs", "inference_ms",
    "samples_transfer_ratio", "samples_transfer_share", "FPR95", "latency_ms", "latency_p95_ms", "uploaded_bytes",
    "downloaded_bytes", "forget_rate", "perplexity", "lca_height", "mistake_severity", "tree_distance",
    "hamming_loss", "MSE", "RMSE", "MAE", "FPP", "stale_rate", "stream_seconds", "stream_cpu_seconds",
    "seconds_per_right", "tokens", "calls", "tokens_per_right", "calls_per_right",
}  # fmt: skip


@pytest.mark.parametrize("metric", metrics(), ids=lambda metric: metric.name)
def test_every_metric_says_what_it_is_and_whose(metric):
    assert metric.summary.endswith((".", ")"))
    assert metric.formula
    assert metric.source
    assert (metric.function is None) == (metric.level == "system")
    if metric.function:
        assert metric.function.__doc__.startswith(metric.summary)


def test_no_two_metrics_share_a_name_or_alias():
    every = [name for metric in metrics() for name in (metric.name, *metric.aliases)]
    assert len(every) == len(set(every))


def test_directions():
    assert {metric.name for metric in metrics() if not metric.higher_is_better} == LOWER_IS_BETTER


@pytest.mark.parametrize(
    ("alias", "name"),
    [("FM", "FM_restricted"), ("FM_from_j", "FM_restricted"), ("GEM_BWT", "BWT"), ("GEM_FWT", "FWT"), ("ACC", "AA"),
     ("GEM_ACC", "AA"), ("CN_FOR_reported", "CN_Forgetting"), ("ianvs_bwt", "Ianvs_BWT"), ("IANVS_FWT", "Ianvs_FWT"),
     ("acc", "accuracy"), ("Accuracy", "accuracy"), ("A_AUC", "AAA"), ("LA", "learning_accuracy"),
     ("DR_BWT+", "DR_BWT_plus")],
)  # fmt: skip
def test_other_names_of_a_definition_find_it(alias, name):
    assert find(alias).name == name


def test_names_of_papers_find_one_metric_each():
    own = {name for metric in metrics() for name in (metric.name, *metric.aliases)}
    assert not own & set(ALIASES)
    assert len({normalize(alias) for alias in ALIASES}) == len(ALIASES)
    for alias, (target, source) in ALIASES.items():
        assert find(alias).name == find(alias.upper().replace("_", " ")).name == target
        assert source
    assert find("FWT_GEM").name != find("FWT_Wang").name


def test_case_hyphens_and_blanks_matter_only_between_two_metrics():
    assert find("miou").name == "mIoU"
    assert find("learning accuracy").name == find("Learning-Accuracy").name == "learning_accuracy"
    assert find("acc").level == "score"
    assert find("ACC").name == "AA"
    assert find("AcC") is None  # either
    assert [find(name).name for name in ("A_last", "avg acc", "mean class accuracy")] == [
        "AA",
        "AA",
        "balanced_accuracy",
    ]


def test_bwt_and_fwt_mean_lopez_paz_and_ranzato():
    assert "Lopez-Paz & Ranzato 2017, eq. 3" in find("BWT").source
    assert "Lopez-Paz & Ranzato 2017, eq. 4" in find("FWT").source


@pytest.mark.parametrize(
    ("typo", "name"),
    [
        ("miou", "mIoU"),
        ("ACCURACY", "accuracy"),
        ("bwt", "BWT"),
        ("Acc", "acc"),
        ("trian_seconds", "train_seconds"),
        ("avrage accuracy", "average_accuracy"),
        ("forgeting", "forgetting"),
    ],
)
def test_a_near_name_is_suggested(typo, name):
    assert f"'{name}'" in suggest(typo)


def test_an_unknown_metric_is_told_with_its_place_and_the_closest_name():
    spec = MetricSpec("mIuU", place=Location(Path("testenv.yaml"), 9, 15))
    assert errors_of(resolve, spec) == [("unknown-metric", "testenv.yaml:9:15")]


def test_a_built_in_resolves_under_its_own_name():
    assert resolve(MetricSpec("FM", score="mIoU")) is find("FM_restricted")


def test_an_option_of_a_built_in_is_refused():
    assert errors_of(resolve, MetricSpec("accuracy", options={"topk": 5})) == [("unknown-option", "")]


def test_of_is_refused_where_there_is_no_score_matrix():
    assert errors_of(resolve, MetricSpec("accuracy", score="mIoU")) == [("unfit-metric", "")]


def test_a_url_goes_before_a_built_in_of_the_same_name(tmp_path):
    file = tmp_path / "scores.py"
    file.write_text("def accuracy(y_true, y_pred):\n    return 0.25\n")
    metric = resolve(MetricSpec("accuracy", url=file))
    assert metric != find("accuracy")
    assert metric.source.endswith("scores.py")


def test_a_name_that_its_file_lacks_is_an_error(tmp_path):
    file = tmp_path / "scores.py"
    file.write_text("def accuracy(y_true, y_pred):\n    return 0.25\n")
    assert errors_of(resolve, MetricSpec("acuracy", url=file)) == [("unloadable-plugin", "")]


def test_every_metric_has_a_row_in_the_listing():
    rows = describe()
    assert [row["name"] for row in rows] == list(names())
    by_name = {row["name"]: row for row in rows}
    assert by_name["FWT"]["needs"] == ("untrained",)
    assert by_name["IM"]["needs"] == ("joint",)
    assert by_name["FWT_survey"]["needs"] == ("single_task",)
    assert by_name["Omega_all"]["needs"] == ("joint",)
    assert by_name["Omega_new"]["needs"] == by_name["AAA"]["needs"] == ()  # the rows of R are a curve too
    assert by_name["LCA10"]["needs"] == ("untrained",)
    assert by_name["FM_restricted"]["better"] == "lower"
    assert by_name["AA"]["level"] == "matrix"


def test_the_legend_tells_definition_source_and_direction():
    bwt, fm = legend([(name, find(name)) for name in ("BWT", "FM", "BWT")])
    assert bwt.startswith("BWT: ")
    assert find("BWT").formula in bwt
    assert find("BWT").source in bwt
    assert bwt.endswith("higher is better")
    assert fm.startswith("FM (= FM_restricted): ")
    assert fm.endswith("lower is better")


def test_the_legend_does_not_pass_an_authors_metric_off_as_the_built_in(tmp_path):
    file = tmp_path / "scores.py"
    file.write_text("def accuracy(y_true, y_pred):\n    return 0.25\n")
    (line,) = legend([("accuracy", resolve(MetricSpec("accuracy", url=file)))])
    assert "scores.py" in line
    assert "Sokolova" not in line


def test_the_names_of_continual_next_are_aliases():
    aliases = {"Avg.ACC": "CN_Avg_ACC", "FOR": "CN_Forgetting", "New.ACC": "CN_New_ACC"}
    for alias, name in aliases.items():
        found = find(alias)
        assert found is not None
        assert found.name == name


def test_no_two_metrics_share_a_name_so_that_the_first_one_is_the_one() -> None:
    every = [name for metric in metrics() for name in {metric.name, *metric.aliases}]
    assert len(every) == len(set(every))


def test_the_metrics_that_are_looked_at_first_are_all_of_their_module() -> None:
    assert tuple(defined_in(classification)) == classification.METRICS
