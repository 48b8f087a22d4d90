"""Everything that the format of Ianvs allows, and our additions, is understood."""

import json
from pathlib import Path

import pytest

from ianvs.base.errors import Location
from ianvs.config import resolved
from ianvs.config.spec import EngineSpec, ScenarioSpec, SplitSpec


def test_a_small_job_with_every_default_filled_in(files):
    job = files.load()
    here = files.folder
    assert (job.name, job.workspace, job.file) == ("first", here / "workspace", here / "job.yaml")
    assert (job.seeds, job.engine.name, job.jobs, job.threads, job.device) == ((0,), "local", None, 1, "auto")
    assert job.rank.sort_by == (("accuracy", True),)
    assert job.rank.save_mode == "selected_and_all"
    assert job.rank.hyperparameters == job.rank.metrics == ("all",)
    (source,) = job.testenvs[0].dataset.train
    assert (source.path, source.form, source.domain) == (here / "train.txt", "index", None)
    assert job.testenvs[0].incremental_rounds == 2
    assert job.testenvs[0].scenario is job.testenvs[0].gate is None
    (algorithm,) = job.algorithms
    assert (algorithm.name, algorithm.paradigm.name, algorithm.split) == ("student", "incrementallearning", None)
    (module,) = algorithm.modules
    assert module.url == str(here / "student.py")
    assert module.grid == (("learning_rate", (0.1, 0.001)), ("epochs", (1,)))
    assert job.warnings == ()


def test_workspace_is_below_the_working_directory_and_need_not_exist(files):
    files.change("job.yaml", "  workspace: ./workspace\n", "")
    assert files.load().workspace == files.folder / "workspace"
    assert files.load(workspace=Path("other")).workspace == files.folder / "other"


def test_files_are_found_beside_the_file_that_names_them(files, monkeypatch):
    (files.folder / "elsewhere").mkdir()
    monkeypatch.chdir(files.folder / "elsewhere")
    from ianvs.config import load_job

    job = load_job("../job.yaml", environment={})
    assert job.testenvs[0].dataset.test[0].path == files.folder / "test.txt"
    assert job.workspace == files.folder / "elsewhere" / "workspace"


def test_additions_to_the_job(files):
    files.change("job.yaml", "  rank:\n", "  seeds: [0, 7]\n  jobs: 3\n  threads: 2\n  device: cpu\n  rank:\n")
    files.change("job.yaml", "  seeds", "  engine: {name: ray, address: auto}\n  seeds")
    job = files.load()
    assert (job.seeds, job.jobs, job.threads, job.device) == ((0, 7), 3, 2, "cpu")
    assert job.engine == EngineSpec("ray", options={"address": "auto"})
    assert files.load(engine="ray").engine == job.engine
    over = files.load(engine="inline", jobs=1, device="cuda")
    assert (over.engine, over.jobs, over.device) == (EngineSpec("inline"), 1, "cuda")
    files.write("mine.py", "")
    files.change("job.yaml", "{name: ray, address: auto}", "{name: Mine, url: ./mine.py}")
    assert files.load().engine == EngineSpec("Mine", files.folder / "mine.py")


def test_rank_in_full(files):
    files.change("job.yaml", "      - accuracy: descend\n", "      - accuracy: descend\n      - forgetting: ascend\n")
    files.change("job.yaml", "print_table", "draw_heatmap_picture")
    files.change("job.yaml", "metrics: [all]", 'paradigms: ["all"]\n      hyperparameters: [lr]')
    files.change("job.yaml", "save_mode: selected_and_all", "save_mode: selected_and_all_and_picture")
    rank = files.load().rank
    assert rank.sort_by == (("accuracy", True), ("forgetting", False))
    assert rank.visualization_method == "draw_heatmap_picture"
    assert rank.hyperparameters == ("lr",)
    assert rank.save_mode == "selected_and_all_and_picture"
    assert rank.places["forgetting"] == Location(files.folder / "job.yaml", 13, 9)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.txt", "index"),
        ("a.csv", "index"),
        ("a.json", "index"),
        ("a.jsonl", "data"),
        ("a.npz", "data"),
        ("f", "data"),
    ],
)
def test_the_old_train_url_is_read_by_its_suffix_with_a_warning(files, name, form):
    if name == "f":
        (files.folder / "f").mkdir()
    else:
        files.write(name, "")
    files.dataset(f"train_url: {name}", "test_index: test.txt")
    assert [source.form for source in files.load().testenvs[0].dataset.train] == [form]
    assert files.warnings() == [("renamed-key", "testenv.yaml:3:5")]


def test_data_files_and_information_files(files):
    files.write("metadata.json", "{}")
    files.dataset("train_data: train.txt", "test_data_info: metadata.json")
    dataset = files.load().testenvs[0].dataset
    assert [source.form for source in (*dataset.train, *dataset.test)] == ["data", "data"]


def test_one_index_per_domain(files):
    files.write("syn.txt", "")
    files.dataset("train_index: {CS: train.txt, SYN: syn.txt}", "test_index: [test.txt, syn.txt]", "using: SYN CS")
    dataset = files.load().testenvs[0].dataset
    assert [(source.domain, source.path.name) for source in dataset.train] == [("CS", "train.txt"), ("SYN", "syn.txt")]
    assert [source.domain for source in dataset.test] == [None, None]
    assert dataset.train[1].place == Location(files.folder / "testenv.yaml", 3, 39)
    assert dataset.using == ("SYN", "CS")


@pytest.mark.parametrize("using", ['"CS SYN CR"', "CS, SYN, CR", "[CS, SYN, CR]"])
@pytest.mark.parametrize("inside", [True, False])
def test_using_names_domains_in_text_or_list_inside_dataset_or_beside(files, using, inside):
    lines = ["train_index: train.txt", "test_index: test.txt"]
    files.dataset(*lines, *([f"using: {using}"] if inside else []), more="" if inside else f"  using: {using}\n")
    assert files.load().testenvs[0].dataset.using == ("CS", "SYN", "CR")


def test_details_of_a_dataset(files):
    files.dataset(
        "train_index: train.txt", "test_index: test.txt", "image_size: [32, 64]", "classes: [cat, 0]", "label: y"
    )
    dataset = files.load().testenvs[0].dataset
    assert (dataset.image_size, dataset.classes, dataset.label) == ((32, 64), ("cat", "0"), "y")
    files.dataset("train_index: train.txt", "test_index: test.txt", "image_size: 32")
    assert files.load().testenvs[0].dataset.image_size == (32, 32)


def test_a_built_in_source_keeps_its_options_and_their_places(files):
    files.dataset("name: cifar10", "root: ./later", "download: true", "test_share: 0.2")
    dataset = files.load().testenvs[0].dataset
    assert (dataset.name, dataset.root, dataset.download) == ("cifar10", files.folder / "later", True)
    assert dataset.options == {"test_share": 0.2}
    assert dataset.places["test_share"] == Location(files.folder / "testenv.yaml", 6, 5)
    assert dataset.places["name"] == Location(files.folder / "testenv.yaml", 3, 11)


def test_a_root_is_where_samples_are_looked_for_first(files):
    files.write("data/train.txt", "")
    files.dataset("train_index: train.txt", "test_index: test.txt", "root: ${DATA:-./data}")
    dataset = files.load().testenvs[0].dataset
    assert dataset.root == files.folder / "data"
    assert dataset.train[0].path == files.folder / "data" / "train.txt"
    assert dataset.test[0].path == files.folder / "test.txt"
    files.write("more/train.txt", "")
    (exam,) = files.load(environment={"DATA": "more"}).testenvs
    assert exam.dataset.train[0].path == files.folder / "more" / "train.txt"


def test_a_root_from_the_command_line_replaces_that_of_the_file(files):
    files.write("data/train.txt", "")
    files.write("data/test.txt", "")
    files.dataset("root: ${NOT_SET}", "train_index: train.txt", "test_index: test.txt")
    assert files.load(root=Path("data")).testenvs[0].dataset.train[0].path == files.folder / "data" / "train.txt"
    files.dataset("train_index: train.txt", "test_index: test.txt")
    assert files.load(root=Path("data")).testenvs[0].dataset.root == files.folder / "data"


def test_variables_stand_only_in_paths(files):
    files.change("algorithm.yaml", "[1]", '["${HOME}"]')
    assert files.load().algorithms[0].modules[0].grid[1] == ("epochs", ("${HOME}",))


def test_scenario_by_name_or_with_options(files):
    files.change("testenv.yaml", "  metrics", "  scenario: class-incremental\n  metrics")
    assert files.load().testenvs[0].scenario.name == "class-incremental"
    files.change("testenv.yaml", "class-incremental", "{name: class-incremental, classes_per_round: 2}")
    scenario = files.load().testenvs[0].scenario
    assert (scenario.name, scenario.options) == ("class-incremental", {"classes_per_round": 2})
    assert scenario.places["classes_per_round"] == Location(files.folder / "testenv.yaml", 5, 39)
    files.write("mine.py", "")
    files.change("testenv.yaml", "classes_per_round: 2", "url: ./mine.py")
    assert files.load().testenvs[0].scenario == ScenarioSpec("class-incremental", url=files.folder / "mine.py")


def test_the_gate_and_its_defaults(files):
    files.write("f1.py", "")
    files.change("testenv.yaml", "  metrics", "  model_eval:\n    model_metric: {name: f1, url: f1.py}\n  metrics")
    gate = files.load().testenvs[0].gate
    assert (gate.metric.name, gate.metric.url) == ("f1", files.folder / "f1.py")
    assert (gate.threshold, gate.operator, gate.mode) == (0.9, ">", "relative")
    files.change("testenv.yaml", "  metrics", '    threshold: 0\n    operator: "<="\n    mode: absolute\n  metrics')
    gate = files.load().testenvs[0].gate
    assert (gate.threshold, gate.operator, gate.mode) == (0, "<=", "absolute")


def test_metrics_as_names_or_mappings_with_options(files):
    files.write("own.py", "")
    files.dataset(
        "name: digits", metrics="[accuracy, {name: own, url: ./own.py, k: 3}, {name: BWT, of: own}, {name: z, url: ''}]"
    )
    metrics = files.load().testenvs[0].metrics
    assert [metric.name for metric in metrics] == ["accuracy", "own", "BWT", "z"]
    assert (metrics[1].url, metrics[1].options) == (files.folder / "own.py", {"k": 3})
    assert metrics[2].score == "own"
    assert metrics[3].url is None


def test_metrics_in_groups_are_one_list_with_a_warning(files):
    files.dataset("name: digits", metrics="{utility: [accuracy], privacy: [{name: leak}]}")
    assert [metric.name for metric in files.load().testenvs[0].metrics] == ["accuracy", "leak"]
    assert files.warnings() == [("no-effect", "testenv.yaml:4:3")]


def test_hyperparameters_may_be_a_mapping(files):
    files.write(
        "algorithm.yaml",
        """\
        algorithm:
          paradigm_type: singletasklearning
          modules:
            - type: basemodel
              name: Student
              hyperparameters:
                learning_rate: {values: [0.1, 1, true, "1", [1], {a: 1}, null]}
        """,
    )
    (module,) = files.load().algorithms[0].modules
    assert module.grid == (("learning_rate", (0.1, 1, True, "1", [1], {"a": 1}, None)),)
    assert module.url is None
    assert module.places["learning_rate"] == Location(files.folder / "algorithm.yaml", 7, 9)


@pytest.mark.parametrize("url", ["package.module", "package.module:Student", "package"])
def test_a_module_may_be_named_by_its_package(files, url):
    files.change("algorithm.yaml", "./student.py", url)
    assert files.load().algorithms[0].modules[0].url == url


def test_files_of_other_hyperparameters_are_constants_and_the_grid_wins(files):
    files.change(
        "algorithm.yaml",
        "        - epochs",
        "        - other_hyperparameters: {values: [a.yaml, b.yaml]}\n        - epochs",
    )
    files.write("a.yaml", "momentum: 0.9\nwarmup: 1\nepochs: 9\n")
    files.write("b.yaml", "warmup: 1e-3\n")
    (module,) = files.load().algorithms[0].modules
    assert module.constants == {"momentum": 0.9, "warmup": 0.001, "epochs": 9}
    assert module.grid == (("learning_rate", (0.1, 0.001)), ("epochs", (1,)))
    assert module.places["warmup"] == Location(files.folder / "b.yaml", 1, 1)
    assert module.places["epochs"].file == files.folder / "algorithm.yaml"


def test_a_partial_setting_keeps_the_other_defaults(files):
    start = "  incremental_learning_data_setting:\n    "
    files.change("algorithm.yaml", "  modules", f"{start}splitting_method: shuffled\n  modules")
    assert files.load().algorithms[0].split == SplitSpec(0.8, "shuffled")
    files.change("algorithm.yaml", "splitting_method: shuffled", "train_ratio: 1")
    assert files.load().algorithms[0].split == SplitSpec(1.0, "default")


def test_an_initial_model_is_a_path_if_there_is_one_and_a_name_otherwise(files):
    files.change("algorithm.yaml", "  modules", "  initial_model_url: weights\n  modules")
    assert files.load().algorithms[0].initial_model == "weights"
    files.write("weights/model.pth", "")
    assert files.load().algorithms[0].initial_model == files.folder / "weights"


def test_keys_of_ianvs_without_effect_are_accepted_with_a_warning_each(files):
    files.change("job.yaml", "  rank:", "  simulation: {cloud_number: 1}\n  rank:")
    files.change(
        "testenv.yaml",
        "  metrics",
        """\
  round: 3
  client_number: 2
  use_gpu: true
  if_mode_llm: false
  gpu_num: 1
  backend: x
  task_size: 2
  model_eval: {model_metric: {name: accuracy, mode: hard-example-mining}}
  metrics""",
    )
    files.change(
        "algorithm.yaml",
        "  modules",
        """\
  third_party_packages: [x]
  mode: quantized
  quantization_type: q4
  llama_quantize_path: x
  fl_data_setting: {train_ratio: 1.0, non_iid_ratio: "0.6"}
  modules""",
    )
    assert files.warnings() == [
        ("no-effect", "job.yaml:10:3"),
        ("no-effect", "testenv.yaml:5:3"),
        ("no-effect", "testenv.yaml:6:3"),
        ("no-effect", "testenv.yaml:7:3"),
        ("no-effect", "testenv.yaml:8:3"),
        ("no-effect", "testenv.yaml:9:3"),
        ("no-effect", "testenv.yaml:10:3"),
        ("no-effect", "testenv.yaml:11:3"),
        ("no-effect", "testenv.yaml:12:47"),
        ("no-effect", "algorithm.yaml:3:3"),
        ("no-effect", "algorithm.yaml:4:3"),
        ("no-effect", "algorithm.yaml:5:3"),
        ("no-effect", "algorithm.yaml:6:3"),
        ("no-effect", "algorithm.yaml:7:3"),
    ]


def test_a_paradigm_has_a_name_or_a_file_of_its_own_and_further_keys_are_its_options(files):
    files.write("mine.py", "")
    files.change("algorithm.yaml", "incrementallearning", "{name: Mine, url: ./mine.py}\n  clients: 3")
    algorithm = files.load().algorithms[0]
    paradigm = algorithm.paradigm
    assert (paradigm.name, paradigm.url) == ("Mine", str(files.folder / "mine.py"))
    assert paradigm.options == {"clients": 3}
    assert algorithm.places["clients"] == Location(files.folder / "algorithm.yaml", 3, 3)


def test_the_base_model_comes_first_whatever_the_order_of_the_file(files):
    files.change("algorithm.yaml", "    - type", "    - {type: aggregation, name: Mean}\n    - type")
    assert [module.type for module in files.load().algorithms[0].modules] == ["basemodel", "aggregation"]


def test_foreign_keys_beside_the_top_key_are_not_read_and_said_so(files):
    files.change("testenv.yaml", "testenv:", "privacy_budget: 3\ntestenv:")
    assert files.warnings() == [("no-effect", "testenv.yaml:1:1")]


def test_the_resolved_job_is_json_without_places_and_secrets(files):
    files.change(
        "algorithm.yaml", "        - epochs", "        - api_key: {values: [sk-very-secret]}\n        - epochs"
    )
    files.change("algorithm.yaml", "[0.1, 1e-3]", "[.inf]")
    files.change("testenv.yaml", "    - name: accuracy", "    - {name: judge, token: sk-very-secret}")
    record = json.loads(json.dumps(resolved(files.load()), allow_nan=False))
    assert "sk-very-secret" not in json.dumps(record)
    (module,) = record["algorithms"][0]["modules"]
    assert module["grid"] == {"learning_rate": ["inf"], "api_key": "***", "epochs": [1]}
    assert record["testenvs"][0]["metrics"][0]["options"] == {"token": "***"}
    assert record["testenvs"][0]["dataset"]["train"] == [
        {"path": str(files.folder / "train.txt"), "form": "index", "domain": None}
    ]
    assert "place" not in json.dumps(record)


def test_a_relative_workspace_is_below_the_working_directory_wherever_the_job_file_lies(files, tmp_path, monkeypatch):
    files.change("job.yaml", "  workspace: ./workspace\n", "  workspace: ./results\n")
    (files.folder / "results").mkdir()  # beside the file that names it: other paths are looked up there first
    elsewhere = tmp_path / "somewhere" / "else"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    from ianvs.config import load_job

    assert load_job(files.folder / "job.yaml", environment={}).workspace == elsewhere / "results"


@pytest.mark.parametrize("how", ["normal", "audit", "open"])
def test_the_sealing_of_earlier_versions_is_accepted_with_a_warning(files, how):
    files.change("job.yaml", "  test_object:", f"  sealing: {how}\n  test_object:")
    [(code, place)] = files.warnings()
    assert (code, place.partition(":")[0]) == ("no-effect", "job.yaml")


def test_when_models_are_examined_is_a_setting_of_strict_sealing(files):
    files.change("job.yaml", "  test_object:", "  examine: after each case\n  test_object:")
    [(code, place)] = files.warnings()
    assert (code, place.partition(":")[0]) == ("no-effect", "job.yaml")
    files.change("job.yaml", "  examine:", "  sealing: strict\n  examine:")
    assert files.warnings() == []
