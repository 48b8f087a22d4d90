"""Names of ianvs 0.2 that authors' files use still work: imports, attributes, keys of YAML and JSON files, commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ianvs import api, authoring
from ianvs.authoring import Anchor, ExemplarLearner, ReplayLearner, RoundData, round_data
from ianvs.base import types
from ianvs.base.entry_points import installed
from ianvs.base.errors import ConfigError
from ianvs.base.former_names import former_arguments
from ianvs.base.types import RoundResult, ScoreMatrix
from ianvs.cli import main
from ianvs.cli.command_line import command_line
from ianvs.cli.parser import subparsers_of
from ianvs.cli.schema import file_schema
from ianvs.config import load_job
from ianvs.config.spec import EvaluationTaskSpec, MetricSpec
from ianvs.exam import questions
from ianvs.exam.data import file_formats
from ianvs.exam.data_types import DataType
from ianvs.exam.questions import EvaluationTask
from ianvs.exam.scenarios import Exam, Rules, Scenario, ScenarioRequest, feedback_view, load_manifest, manifest
from ianvs.results.comparing.merging import Merged
from ianvs.store.checksummed_json import as_record, read_checksummed
from ianvs.store.job_store import Study, StudyStore, Trial
from tests.jobs import write_job
from tests.packages import install
from tests.unit.testalgorithms.exam_of_arrays import Data

API = "Comparison Merged Results compare exams export load_results merge migrate plan prune report run validate"
AUTHORING = """
    FISHERS Anchor Batch BiasedReservoirMemory ClassBalancedMemory ExemplarLearner HerdingMemory ClosedFormLearner
    FrozenBody Joined LowRank PerRoundMemory RandomProjection ReplayLearner ReservoirMemory RoundData SmallViT
    TorchLearner Transformer add_lora agem_projection body_and_head distillation_loss fisher_diagonal flat_gradients
    flat_parameters gem_projection herding linear mlp own_classes_mask resnet set_flat_gradients some_of_each
    token_network transformer_of with_anchor
"""
COMMANDS = """
    run validate prepare plan exam status logs prune report new list show compare merge jobs migrate examples metrics
    schema export cache doctor dataset completion
"""
EARLIER_KEYS = {
    "job": """
        algorithms baseline batch benchmarkingjob by case_seconds cases_per_gpu check_seconds checks cloud_number
        cluster_name device edge_number engine exam fail_fast first_rung generation gpus grace_seconds hyperparameters
        jobs joint kubeedge_version limits margin mean memory_mb method metric metrics mode modules n name paradigms
        published rank reduction references repeat retries round_seconds rounds sampler save_mode saved_mb sealing
        search sedna_version seed seeds select selected_dataitem share simulation single_task sort_by source std style
        test_object testenv threads trials type unit url visualization working_directory workspace
    """,
    "testenv": """
        M N added alpha asked_only askings backbone backend batch budget calls changes choices class_groups
        class_order classes client_number corruption crop cut data data_type dataset delay desks domain domains
        download downstream eval_every facts features feedback file first format frequencies gpu_num
        hard_example_mining_mode hierarchy if_mode_llm image_size incremental_rounds input instruction interpolation
        kind label label_separator layout linear_probe made_of mask_values memory_bytes memory_samples metrics mode
        model_eval model_metric modifiers name near_future near_future_every network of offices once operator
        order_seed over passes permutation picture_size pictures prequential pretrained_on protocol questions r_max
        recurring returning root rotation round round_seconds rounds samples scale scenario score second_pass seed
        severity shots shuffled sigma size sizes split split_seed stages start stays storage stream_cost
        stream_seconds streaming sums task_scores task_size tasks teacher_forced test test_annotations test_data
        test_data_info test_index test_list test_part test_pictures test_ratio test_seed test_share test_split
        test_url testenv tests threshold title tokens train train_annotations train_data train_data_info train_index
        train_list train_part train_pictures train_split train_url url use_gpu using validation_ratio value_range
        visits weights window written_sizes years
    """,
    "algorithm": """
        algorithm answer_bytes choice clients cloud_ms communication_rounds concentration contract cpus down_mbps
        edge_ms environment fl_data_setting fl_learning_data_setting gpus hard_example_mining_mode hyperparameters
        incremental_learning_data_setting initial_model_url int lifelong_learning_data_setting link
        llama_quantize_path log_uniform memory mode modules name paradigm_type partition pretrained_on python
        quantization_type requirements resources rtt_ms sample_bytes splitting_method stream_cost third_party_packages
        time train_on train_ratio type uniform up_mbps url values
    """,
}


def keys_in(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from keys_in(part)


@pytest.mark.parametrize(("module", "names"), [(api, API), (authoring, AUTHORING)], ids=["api", "authoring"])
def test_imports(module: Any, names: str) -> None:
    assert [name for name in names.split() if not hasattr(module, name)] == []


@pytest.mark.parametrize("kind", EARLIER_KEYS)
def test_keys_of_yaml_files(kind: str) -> None:
    assert {*EARLIER_KEYS[kind].split()} - {*keys_in(file_schema(kind))} == set()


def test_commands() -> None:
    assert {*COMMANDS.split()} - subparsers_of(command_line()).keys() == set()


SCORES = np.eye(2)
STUDY = Study("k", "A", "", {"name": "asha"}, "accuracy", True, "of seed 0", (0,), (1,), 1, ())
TRIAL = Trial(1, {}, 5, {})


def exam() -> Exam:
    return Exam(None, (), (), Rules("mine", True, False, "all"))  # type: ignore[arg-type]


ATTRIBUTES: dict[str, tuple[Callable[[], object], object]] = {
    "ScoreMatrix.of": (lambda: ScoreMatrix.of(SCORES).R.tolist(), SCORES.tolist()),  # type: ignore[attr-defined]
    "Anchor.of": (lambda: Anchor.of(nn.Linear(1, 1), torch.ones(2)).theta.shape, (2,)),  # type: ignore[attr-defined]
    "RoundResult.told": (lambda: RoundResult(1, "a", revealed_samples=5).told, 5),  # type: ignore[attr-defined]
    "MetricSpec.of": (lambda: MetricSpec("BWT", score="f1").of, "f1"),  # type: ignore[attr-defined]
    "MetricSpec(of=)": (lambda: MetricSpec("BWT", of="f1").score, "f1"),  # type: ignore[call-arg]
    "Rules(asked=)": (lambda: Rules("mine", True, False, "all", asked="future").test_sets, "future"),  # type: ignore[call-arg]
    "replace(asked=)": (lambda: replace(Rules("mine", True, False, "all"), asked="future").test_sets, "future"),  # type: ignore[call-arg]
    "Exam.sheets": (lambda: exam().sheets, exam().evaluation_batches),  # type: ignore[attr-defined]
    "types.Asked": (lambda: types.Asked, types.PredictionKey),  # type: ignore[attr-defined]
    "feedback_view.Told": (lambda: feedback_view.Told, feedback_view.FeedbackView),  # type: ignore[attr-defined]
    "questions.Question": (lambda: questions.Question, questions.EvaluationTask),  # type: ignore[attr-defined]
    "Merged.said": (lambda: Merged(None, {}, ("left out",)).said, ("left out",)),  # type: ignore
    "Study.how": (lambda: STUDY.how, {"name": "asha"}),  # type: ignore[attr-defined]
    "Study.seen": (lambda: STUDY.seen, "of seed 0"),  # type: ignore[attr-defined]
    "Trial(goal=)": (lambda: replace(TRIAL, goal=3).next_rung, 3),  # type: ignore[call-arg]
    "round_data.sent": (lambda: round_data.sent, round_data.to_device),  # type: ignore[attr-defined]
    "RoundData.worth_keeping": (lambda: RoundData.worth_keeping, RoundData.samples_to_store),  # type: ignore[attr-defined]
    "Study.said": (lambda: replace(STUDY, note="no more").said, "no more"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_and_arguments_work_with_a_warning(name: str) -> None:
    read, value = ATTRIBUTES[name]
    with pytest.warns(DeprecationWarning, match="is now called"):
        assert read() == value


def test_a_method_that_an_author_overrides_by_its_former_name_is_called() -> None:
    with pytest.warns(DeprecationWarning, match="stored_predictions"):

        class Points(DataType):
            def told(self, labels: Any) -> Any:
                return labels + 1

            def kept(self, answers: Any, classes: int) -> Any:
                return super().kept([(None, np.array([classes]))], classes)  # type: ignore[misc]

    class MorePoints(Points):
        pass

    with pytest.warns(DeprecationWarning):
        assert MorePoints().stored_predictions((), 3).labels.tolist() == [3]
    assert MorePoints().training_labels(np.zeros(1)).tolist() == [1]
    with pytest.warns(DeprecationWarning):

        class HowMany(EvaluationTask):
            extras = ("many",)

            def kept(self, answers: Any, about: Any) -> Any:
                return {"many": answers}

    assert HowMany().stored_answers(np.ones(1), None)["many"] == 1  # type: ignore[arg-type]


def test_a_scenario_with_the_former_method_for_errors_of_options_is_asked() -> None:
    with pytest.warns(DeprecationWarning, match="option_errors"):

        class Mine(Scenario):
            def slips(self) -> Iterator[tuple[str, str]]:
                yield "rounds", "too few"

            def build(self, request: ScenarioRequest) -> Exam:
                raise NotImplementedError

    assert list(Mine(rounds=2).option_errors()) == [("rounds", "too few")]


def test_the_former_module_of_file_formats_works_with_a_warning() -> None:
    from ianvs.exam.data import doors

    with pytest.warns(DeprecationWarning, match="file_formats.FileFormat"):
        assert doors.Door is file_formats.FileFormat
    with pytest.warns(DeprecationWarning):
        assert doors.read_source is file_formats.read_source


def test_a_method_for_exemplars_reads_and_sets_its_classes_by_the_former_name() -> None:
    learner = ExemplarLearner()
    with pytest.warns(DeprecationWarning, match="known_classes"):
        learner.known = [1]  # type: ignore[attr-defined]
    assert learner.known_classes == [1]
    with pytest.warns(DeprecationWarning, match="new_classes"):
        learner.new = [2]  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="absent_classes"):
        assert learner.old == [] and learner.new_classes == [2]  # type: ignore[attr-defined]


def test_a_replay_method_with_the_former_hooks_stores_what_they_return() -> None:
    with pytest.warns(DeprecationWarning, match="stored_with"):

        class Mine(ReplayLearner):
            def columns(self, x: Any, y: Any) -> tuple[Any, ...]:
                return (y * 3,)

            def directions(self, x: Any) -> Any:
                return super().directions(x)  # type: ignore[misc]

    class Further(Mine):
        pass

    assert Further().stored_with(torch.ones(2, 1), torch.ones(2))[0].tolist() == [3, 3]
    x, y = np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1])
    learner = Further(epochs=1)
    learner.train(Data(x, y), num_classes=2, classes_seen=(0, 1), seed=0)
    assert learner.memory.columns[2].tolist() == (learner.memory.y * 3).tolist()
    with pytest.warns(DeprecationWarning, match="unit_features"):
        assert learner.unit_features(torch.zeros(2, 2)).shape[0] == 2


def test_stored_files_with_former_keys_are_read() -> None:
    record = {"index": 1, "name": "a", "told": 5, "of a later version": 1}
    assert as_record(RoundResult, record, "round.json") == RoundResult(1, "a", revealed_samples=5)
    study = {**vars(STUDY), "said": "no more"}
    study.pop("note")
    assert as_record(Study, study, "study.json").note == "no more"


def test_a_search_is_stored_under_the_keys_of_0_2(tmp_path: Path) -> None:
    store = StudyStore(tmp_path, "job")
    study = replace(STUDY, trials=(TRIAL,))
    store.write(study)
    assert store.read("k") == study
    stored = read_checksummed(store.path("k"), "search/k.json") or {}
    assert (stored["how"], stored["seen"], stored["trials"][0]["goal"]) == ({"name": "asha"}, "of seed 0", 5)


def test_former_keys_of_the_engine_and_of_evaluation_tasks_work_with_a_warning(tmp_path: Path) -> None:
    testenv = "dataset: {name: digits}\nmetrics: [accuracy]\nquestions: [{name: HowMany, url: ./how_many.py}]"
    (tmp_path / "how_many.py").touch()
    job = write_job(tmp_path, testenv=testenv, job="engine: {name: slurm, alone: stop, checks: there}")
    read = load_job(job, environment={})
    assert [problem.code for problem in read.warnings] == ["renamed-key"] * 3
    assert (read.engine.build_exams, dict(read.engine.options)) == ("there", {"without_supervisor": "stop"})
    [task] = read.testenvs[0].evaluation_tasks
    assert task.name == "HowMany" and task.place is not None


def test_evaluation_tasks_of_packages_are_found_in_the_former_group_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "from ianvs.exam.questions import EvaluationTask\n\n\nclass HowMany(EvaluationTask):\n    name = 'HowMany'\n"
    install(tmp_path, monkeypatch, "counting", code, "[ianvs.questions]\nHowMany = counting:HowMany\n")
    with pytest.warns(DeprecationWarning, match="ianvs.evaluation_tasks"):
        assert questions.find_evaluation_task(EvaluationTaskSpec("HowMany")).name == "HowMany"
    assert {"linear_probe", "task_scores", "HowMany"} <= installed("ianvs.evaluation_tasks").keys()
    assert main(["list", "questions"]) == 0
    output = capsys.readouterr()
    assert "evaluation_tasks" in output.err and "HowMany" in output.out


def test_former_and_new_keys_together_are_refused(tmp_path: Path) -> None:
    testenv = "dataset: {name: digits}\nmetrics: [accuracy]\nquestions: [a]\nevaluation_tasks: [a]"
    job = write_job(tmp_path, testenv=testenv, job="engine: {name: ray, checks: there, build_exams: here}")
    with pytest.raises(ConfigError) as refused:
        load_job(job, environment={})
    assert [problem.code for problem in refused.value.problems] == ["conflicting-keys"] * 2


def test_what_is_wrong_below_a_former_key_is_told_by_the_name_in_the_file(tmp_path: Path) -> None:
    testenv = "dataset: {name: digits}\nmetrics: [accuracy]\nquestions: {a: 1}"
    job = write_job(tmp_path, testenv=testenv, job="engine: {name: local, checks: nowhere}")
    with pytest.raises(ConfigError) as refused:
        load_job(job, environment={})
    told = [problem.message.partition(" ")[0] for problem in refused.value.problems]
    assert sorted(told) == ["checks", "questions"]


def test_former_arguments_of_a_generation_work_with_a_warning() -> None:
    @former_arguments(longest="max_tokens")
    def generation(prompts: list[int], *, max_tokens: int) -> int:
        return max_tokens

    with pytest.warns(DeprecationWarning, match="longest is now called max_tokens"):
        assert generation([1], longest=5) == 5  # type: ignore[call-arg]


def test_jobs_and_manifests_are_read_as_before(tmp_path: Path) -> None:
    testenv = """
    dataset: {name: digits}
    scenario: {name: class-incremental, rounds: 2}
    metrics: [accuracy, f1, {name: BWT, of: f1}]
    model_eval: {model_metric: {name: accuracy}, threshold: 0.1, operator: ">="}
    """
    job = write_job(tmp_path, testenv=testenv, job="seeds: [0]\nsealing: normal")
    read = load_job(job, environment={})
    assert [metric.score for metric in read.testenvs[0].metrics] == [None, None, "f1"]
    assert [problem.code for problem in read.warnings] == ["no-effect"]
    [exam] = api.exams(job).values()
    stored = manifest(exam)
    assert dict(stored["rules"])["asked"] == "all"  # type: ignore[call-overload]
    assert load_manifest(exam.dataset, stored).rules == exam.rules
