"""Files as users of KubeEdge Ianvs have them are read, with a word about what is read otherwise than it is written."""

from pathlib import Path

import pytest

from ianvs.base.errors import ConfigError
from ianvs.config import load_job
from ianvs.kubeedge.yaml.recognize_job import contract_of
from tests.checkout import ALGORITHM, TESTENV, Checkout
from tests.edits import edited
from tests.errors import errors_of, located, recorded


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return Checkout(tmp_path / "checkout")


def without_folder(errors):
    """The errors with the names of files alone."""
    return [(code, place.rpartition("/")[2]) for code, place in errors]


def test_a_job_of_a_checkout_is_found_from_anywhere_and_its_root_with_it(checkout):
    job = load_job(checkout.job)
    [testenv], [algorithm] = job.testenvs, job.algorithms
    assert not (job.warnings or job.problems)
    assert job.working_directory == checkout.root
    assert algorithm.contract == "ianvs"
    assert [module.url for module in algorithm.modules] == [str(checkout.basemodel)]
    assert testenv.dataset.source == "ianvs.kubeedge.plugin_files:PluginFiles"
    assert [(source.path, source.form) for source in testenv.dataset.train] == [
        (checkout.root / "dataset/train.txt", "txt")
    ]
    assert [(metric.name, metric.contract) for metric in testenv.metrics] == [("accuracy", "ianvs")]
    # What neither file says is Ianvs's default.
    settings = testenv.contract_settings
    assert (settings.incremental_rounds, settings.round, settings.client_number, settings.gpu_num) == (2, 1, 1, 1)
    assert (settings.use_gpu, settings.if_mode_llm) == (False, False)
    assert settings.hard_example_mining_mode == "mining-then-inference"
    evaluation = settings.model_eval
    assert (evaluation.model_metric.mode, evaluation.threshold, evaluation.operator) == ("", 0.9, ">")


def test_the_working_directory_comes_before_the_folders_above_the_job(checkout, monkeypatch):
    copied = Checkout(checkout.root.parent / "copy")
    monkeypatch.chdir(copied.root)
    assert load_job(checkout.job).testenvs[0].file == copied.testenv


def test_keys_in_odd_places_are_read_with_a_warning_each(checkout):
    checkout.write(
        checkout.job,
        """\
        benchmarkingjob:
          name: toy
          data_root: /nowhere
          hard_example_mining_mode: mining-then-inference
          simulation: {cloud_number: 1}
          testenv: ./examples/toy/testenv/testenv.yaml
          test_object:
            type: algorithms
            algorithms: [{name: toy, url: ./examples/toy/algorithm/algorithm.yaml, describe: me}]
            save_mode: selected_only
          visualization:
            method: draw_heatmap_picture
            selected_dataitem: {metrics: [accuracy]}
        """,
    )
    job = load_job(checkout.job)
    assert job.rank.sort_by == (("accuracy", True),)
    assert (job.rank.save_mode, job.rank.visualization_method) == ("selected_only", "draw_heatmap_picture")
    assert job.rank.metrics == ("accuracy",)
    assert without_folder(recorded(job.warnings)) == [
        ("rewritten", "benchmarkingjob.yaml:1:1"),
        ("rewritten", "benchmarkingjob.yaml:1:1"),
        ("rewritten", "benchmarkingjob.yaml:4:3"),
        ("rewritten", "benchmarkingjob.yaml:5:3"),
        ("rewritten", "benchmarkingjob.yaml:10:5"),
        ("rewritten", "benchmarkingjob.yaml:11:3"),
        ("rewritten", "benchmarkingjob.yaml:13:5"),
    ]  # 'data_root' and 'describe' in one


def test_sort_by_keeps_what_the_testenv_lists(checkout):
    checkout.change(checkout.job, "[{accuracy: descend}]", "[{mota: ascend}, {accuracy: down}]")
    job = load_job(checkout.job)
    assert job.rank.sort_by == (("accuracy", True),)
    assert without_folder(recorded(job.warnings)) == [
        ("rewritten", "benchmarkingjob.yaml:11:15"),
        ("rewritten", "benchmarkingjob.yaml:11:32"),
    ]


CITY_SPLITING = "lifelong_learning_data_setting: {splitting_method: city_spliting}"


@pytest.mark.parametrize(
    "file, old, new, expected",
    [
        ("job", "  rank:", "  rnak:", [("unknown-key", "benchmarkingjob.yaml:10:3")]),
        ("testenv", "  metrics:", "  incremental_round: 3\n  metrics:", [("unknown-key", "testenv.yaml:5:3")]),
        (
            "testenv",
            "train_index",
            "train_indx",
            [("missing-data", "testenv.yaml:2:3"), ("unknown-key", "testenv.yaml:3:5")],
        ),
        ("testenv", "  metrics:", "  scenario: online\n  metrics:", [("unknown-key", "testenv.yaml:5:3")]),
        ("algorithm", "{values: [1, 2]}", "{value: [1, 2]}", [("unknown-key", "algorithm.yaml:9:20")]),
        ("algorithm", "basemodel\n", "basemodle\n", [("invalid-choice", "algorithm.yaml:4:13")]),
        ("algorithm", "singletasklearning", "singletasklerning", [("invalid-choice", "algorithm.yaml:2:18")]),
        ("algorithm", "  modules:", f"  {CITY_SPLITING}\n  modules:", [("invalid-choice", "algorithm.yaml:3:54")]),
    ],
)
def test_a_key_close_to_a_known_one_is_an_error(checkout, file, old, new, expected):
    checkout.change(getattr(checkout, file), old, new)
    assert without_folder(errors_of(load_job, checkout.job)) == expected


def test_a_testenv_in_old_forms_is_read(checkout):
    checkout.write(
        checkout.testenv,
        """\
        testenv:
          backend: tensorflow
          dataset:
            name: cifar100
            train_url: ./dataset/train.txt
            val_url: ./dataset/val.txt
            test_data: ./dataset/test.jsonl
            test_data_info: ./dataset/metadata.json
          model_eval: {model_metric: {name: f1, url: ./nowhere.py}, threshold: 0.01, operator: "<="}
          metrics:
            good: [{name: accuracy, url: ./examples/toy/testenv/accuracy.py, type: x}]
            again: [{name: accuracy, url: ./examples/toy/testenv/accuracy.py, type: y}, {name: BWT}]
          round: 5
          client_number: 3
          if_mode_llm: true
        """,
    )
    job = load_job(checkout.job)
    [exam] = job.testenvs
    assert not job.problems  # model_metric is not read by singletasklearning
    assert [source.form for source in (*exam.dataset.train, *exam.dataset.test)] == ["txt", "jsonl"]
    assert [metric.name for metric in exam.metrics] == ["accuracy", "BWT", "GEM_BWT"]
    assert (exam.contract_settings.round, exam.contract_settings.client_number, exam.contract_settings.if_mode_llm) == (
        5,
        3,
        True,
    )
    assert exam.contract_settings.model_eval.model_metric.mode is None  # the mapping is given, without one
    assert (exam.contract_settings.model_eval.threshold, exam.contract_settings.model_eval.operator) == (0.01, "<=")
    assert without_folder(recorded(job.warnings)) == [
        ("rewritten", "testenv.yaml:1:1"),
        ("rewritten", "testenv.yaml:4:5"),
        ("rewritten", "testenv.yaml:5:5"),
        ("rewritten", "testenv.yaml:8:5"),
        ("rewritten", "testenv.yaml:10:3"),
        ("rewritten", "testenv.yaml:12:13"),
    ]


def test_an_algorithm_in_old_forms_is_read(checkout):
    checkout.write(checkout.root / "more.yaml", "epochs: 7\nmomentum: 0.5\n")
    checkout.write(
        checkout.algorithm,
        """\
        algorithm:
          name: renamed
          paradigm_type: singletasklearningwithcompression
          initial_model_url: THUDM/chatglm-6b
          quantization_type: q4
          fl_learning_data_setting: {train_ratio: 0.1}
          fl_data_setting: {non_iid_ratio: "0.5"}
          lifelong_learning_data_setting: {splitting_method: fwt_splitting}
          modules:
            - {type: hard_example_mining, name: IBT, hyperparameters: [{threshold_img: {values: [0.9, 0.8]}}]}
            - type: basemodel
              name: Toy
              url: examples.toy.algorithm.basemodel
              dependencies: none
              hyperparameters:
                - lr: {values: [0.1]}
                - epochs: {values: [1, 2]}
                - other_hyperparameters: {values: [more.yaml]}
        """,
    )
    job = load_job(checkout.job)
    [algorithm], settings = job.algorithms, job.algorithms[0].contract_settings
    assert (algorithm.name, algorithm.paradigm.name, settings.mode) == (
        "renamed",
        "singletasklearning",
        "with_compression",
    )
    assert (settings.initial_model_url, settings.quantization_type) == ("THUDM/chatglm-6b", "q4")
    assert (settings.fl_data_setting.non_iid_ratio, settings.fl_data_setting.train_ratio) == (0.5, 1.0)
    assert settings.data_setting("lifelonglearning").train_ratio == 0.8  # a mapping that is given is merged
    hard, base = algorithm.modules  # in the order of the file
    assert (hard.url, base.url) == (None, str(checkout.basemodel))
    assert base.constants == {"epochs": 7, "momentum": 0.5} and dict(base.grid)["epochs"] == (1, 2)
    assert without_folder(recorded(job.warnings)) == [
        ("rewritten", "algorithm.yaml:1:1"),
        ("rewritten", "algorithm.yaml:3:3"),
        ("rewritten", "algorithm.yaml:6:3"),
        ("rewritten", "algorithm.yaml:7:21"),
    ]


def test_a_folder_that_was_renamed_is_named_once_with_what_was_found(checkout):
    (checkout.root / "examples/toy").rename(checkout.root / "examples/game")
    job = load_job(checkout.root / "examples/game/benchmarkingjob.yaml")
    [problem] = job.problems  # of four paths
    assert without_folder(located([problem])) == [("missing-file", "benchmarkingjob.yaml:4:3")]
    assert "'./examples/toy/testenv/testenv.yaml'" in problem.message
    assert "checkout/examples/game/testenv/testenv.yaml; use `ianvs migrate`" in problem.message
    assert job.working_directory == checkout.root
    assert Path(job.algorithms[0].modules[0].url).is_file()


def test_what_is_there_twice_is_not_offered(checkout):
    for copy in ("one", "two"):
        checkout.write(checkout.job.parent / copy / "testenv.yaml", TESTENV)
    checkout.testenv.unlink()
    with pytest.raises(ConfigError) as caught:
        load_job(checkout.job)
    assert without_folder(recorded(caught.value.problems)) == [("missing-file", "benchmarkingjob.yaml:4:12")]
    assert "migrate" not in str(caught.value)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("from sedna.common.class_factory import ClassFactory", True),
        ("def late():\n    import sedna.common.class_factory", True),
        ("from sedna.common import class_factory", True),
        ("try:\n    from sedna.common.class_factory import ClassType\nexcept ImportError:\n    pass", True),
        ("# from sedna.common.class_factory import ClassFactory", False),
        ("from .common.class_factory import ClassFactory", False),
        ("import torch", False),
        ("def class_factory(:", False),
    ],
)
def test_the_contract_is_told_by_an_import(tmp_path, text, expected):
    file = tmp_path / "basemodel.py"
    file.write_text(text)
    assert contract_of({}, [file]) == ("ianvs" if expected else "native")
    assert contract_of({}, [tmp_path]) == ("ianvs" if expected else "native")  # a package: any of its files
    assert contract_of({"contract": "native"}, [file]) == "native"
    assert contract_of({"contract": "ianvs"}, [file]) == "ianvs"
    assert contract_of({"contract": "sedna"}, []) is None


def test_algorithms_of_both_contracts_in_one_job_are_refused(checkout):
    checkout.change(checkout.job, "      - name: toy\n", "      - {name: ours, url: ./ours.yaml}\n      - name: toy\n")
    checkout.write(checkout.root / "ours.yaml", edited(ALGORITHM, "paradigm_type", "contract: native\n  paradigm_type"))
    assert without_folder(errors_of(load_job, checkout.job)) == [("mixed-contracts", "benchmarkingjob.yaml:7:5")]
