"""Each mistake, and the very line that a user sees."""

import os
import time

import pytest

from tests.edits import edited


def test_the_job_file_is_missing(files):
    assert files.errors("jobb.yaml") == ["jobb.yaml: there is no such file. Did you mean 'job.yaml'?"]


def test_a_folder_in_place_of_the_job_file(files):
    (files.folder / "configs").mkdir()
    assert files.errors("configs") == ["configs: this is a folder. Name a yaml file in it."]


def test_another_kind_of_file_is_given_as_the_job(files):
    assert files.errors("testenv.yaml") == [
        "testenv.yaml:1:1: this is a testenv file; a benchmarkingjob file is needed, "
        "which has 'benchmarkingjob:' at its top."
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "name: x\nworkspace: y\n",
            "job.yaml:1:1: 'benchmarkingjob:' is missing at the top of the file. Write it there and indent the rest "
            "below.",
        ),
        ("[1, 2]\n", "job.yaml:1:1: expected 'benchmarkingjob:' at the top of the file, found a list."),
        (
            "services: y\n",
            "job.yaml:1:1: 'benchmarkingjob:' is missing at the top of the file. Is this a benchmarkingjob file?",
        ),
        ("testenv:\n", "testenv.yaml:1:9: testenv should be a mapping, found nothing."),
        (
            "testenv:\n  dataset: digits\n  metrics: [accuracy]\n",
            "testenv.yaml:2:12: dataset should be a mapping, found the text 'digits'. Write 'name: ...' below it for a "
            "built-in source, or 'train_index: ...' and 'test_index: ...'.",
        ),
    ],
)
def test_a_file_of_another_form(files, text, line):
    files.write(line.partition(":")[0], text)
    assert files.errors() == [line]


JOB_SLIPS = [
    (
        "benchmarkingjob:",
        "benchmarkingjobs:",
        "1:1: unknown key 'benchmarkingjobs' at the top of the file. Did you mean 'benchmarkingjob'?",
    ),
    (
        "./testenv.yaml",
        "./algorithm.yaml",
        "4:12: 'algorithm.yaml' is an algorithm file; a testenv file belongs here.",
    ),
    (
        "  rank:",
        "      - {name: student, url: algorithm.yaml}\n  rank:",
        "10:16: algorithm 'student' is given twice. Give each its own name.",
    ),
    (
        "save_mode: selected_and_all",
        'save_mode: "a\\nb"',  # of several lines, and quoted in one
        "18:16: save_mode should be one of selected_only, selected_and_all, selected_and_all_and_picture, "
        "found the text 'a\\nb'.",
    ),
    ("  testenv: ", "  testenvs: ", "4:3: unknown key 'testenvs' in benchmarkingjob. Did you mean 'testenv'?"),
    ("  rank:", "  ranks:", "10:3: unknown key 'ranks' in benchmarkingjob. Did you mean 'rank'?"),
    ("  workspace:", "  workspce:", "3:3: unknown key 'workspce' in benchmarkingjob. Did you mean 'workspace'?"),
    ("    sort_by:", "    sort_bye:", "11:5: unknown key 'sort_bye' in rank. Did you mean 'sort_by'?"),
    ("name: first", "name: cases", "2:9: the name 'cases' is taken by a folder of every workspace. Choose another."),
    ("name: first", "name: a/b", "2:9: the name has '/' in it, which a folder's name can't have. Leave it out."),
    (
        "name: first",
        "name: ..",
        "2:9: '..' can't be the name of a folder, and a job's results get one. Choose another.",
    ),
    ("name: first", "name: 2024", "2:9: name should be text, found the number 2024. Put it in quotes: '2024'."),
    ("name: first", "name: ''", "2:9: name is empty. Write a value."),
    (
        "  name: first\n",
        "",
        "1:1: key 'name' is missing in benchmarkingjob. It is the name of the job's folder of results.",
    ),
    (
        "accuracy: descend",
        "accuracy: descending",
        "12:19: accuracy should be one of ascend, descend, found the text 'descending'. Did you mean 'descend'?",
    ),
    (
        "accuracy: descend",
        "accuracy: ascending",
        "12:19: accuracy should be one of ascend, descend, found the text 'ascending'. Did you mean 'ascend'?",
    ),
    (
        "accuracy: descend",
        "accuracy",
        "12:9: an entry of sort_by should be a mapping, found the text 'accuracy'. Write '- accuracy: descend'.",
    ),
    (
        "accuracy: descend",
        "{accuracy: descend, BWT: descend}",
        "12:9: an entry of sort_by names one metric. Begin each metric on a line of its own with '- '.",
    ),
    (
        "- accuracy: descend",
        "- accuracy: descend\n      - accuracy: ascend",
        "13:9: metric 'accuracy' is given twice. Sort by it once.",
    ),
    ("\n      - accuracy: descend", " []", "11:14: sort_by is empty. Write at least one."),
    (
        "print_table",
        "print_tabel",
        "15:15: method should be one of print_table, draw_heatmap_picture, found the text 'print_tabel'. "
        "Did you mean 'print_table'?",
    ),
    (
        "save_mode: selected_and_all",
        "save_mode: selected_all",
        "18:16: save_mode should be one of selected_only, selected_and_all, selected_and_all_and_picture, "
        "found the text 'selected_all'. Did you mean 'selected_and_all'?",
    ),
    (
        "    type: algorithms",
        "    save_mode: selected_only",
        "6:5: unknown key 'save_mode' in test_object. It belongs in rank.",
    ),
    (
        "  workspace: ./workspace",
        "  selected_dataitem: {metrics: [all]}",
        "3:3: unknown key 'selected_dataitem' in benchmarkingjob. It belongs in rank.",
    ),
    (
        "  workspace: ./workspace",
        "  hard_example_mining_mode: x",
        "3:3: unknown key 'hard_example_mining_mode' in benchmarkingjob. It belongs in the testenv file.",
    ),
    (
        "  workspace: ./workspace",
        "  threshold: 3",
        "3:3: unknown key 'threshold' in benchmarkingjob. It belongs in model_eval of the testenv file.",
    ),
    ("[all]", "all", "17:16: metrics should be a list, found the text 'all'. Write [all]."),
    ("workspace: ./workspace", "workspace: [a]", "3:14: expected a path, found a list."),
    ("workspace: ./workspace", "seeds: 3", "3:10: seeds should be a list, found the number 3. Write [3]."),
    ("workspace: ./workspace", "seeds: []", "3:10: seeds is empty. Write at least one."),
    ("workspace: ./workspace", "seeds: [1, -1]", "3:14: an entry of seeds should be at least 0, found the number -1."),
    (
        "workspace: ./workspace",
        "seeds: [1, 1]",
        "3:14: seed 1 is given twice, and would repeat the same result. Keep one.",
    ),
    ("workspace: ./workspace", "seeds: [true]", "3:11: an entry of seeds should be a whole number, found true."),
    ("workspace: ./workspace", "jobs: 0", "3:9: jobs should be at least 1, found the number 0."),
    ("workspace: ./workspace", "threads: 1.5", "3:12: threads should be a whole number, found the number 1.5."),
    (
        "workspace: ./workspace",
        "device: gpu",
        "3:11: device should be one of auto, cpu, cuda, found the text 'gpu'. Write cuda for a graphics card; "
        "`gpus: [0]` says which one.",
    ),
    (
        "workspace: ./workspace",
        "engine: {name: mine, url: ./mine.py}",
        "3:29: there is no file './mine.py'. Looked for mine.py.",
    ),
    (
        "workspace: ./workspace",
        "engine: {nme: ray}",
        "3:12: unknown key 'nme' in engine. Did you mean 'name'?",
    ),
    ("workspace: ./workspace", "name: again", "3:3: key 'name' is given twice, first on line 2. Keep one."),
    (
        "./testenv.yaml",
        "./testenw.yaml",
        "4:12: there is no file './testenw.yaml'. Looked for testenw.yaml. Did you mean 'testenv.yaml'?",
    ),
    ("./algorithm.yaml", "gone.yaml", "9:14: there is no file 'gone.yaml'. Looked for gone.yaml."),
    (
        "        url: ./algorithm.yaml\n",
        "",
        "8:9: key 'url' is missing in algorithms. It is the path of the algorithm's yaml file.",
    ),
    (
        "- name: student",
        "- name: student\n        name: student",
        "9:9: key 'name' is given twice, first on line 8. Keep one.",
    ),
]


@pytest.mark.parametrize(("old", "new", "line"), JOB_SLIPS)
def test_a_slip_in_the_job(files, old, new, line):
    files.change("job.yaml", old, new)
    assert files.errors() == [f"job.yaml:{line}"]


def test_a_section_that_is_indented_too_little(files):
    text = (files.folder / "job.yaml").read_text()
    head, rank = text.split("  rank:")
    files.write("job.yaml", head + "rank:" + edited(rank, "\n  ", "\n"))
    assert files.errors() == ["job.yaml:10:1: key 'rank' stands beside 'benchmarkingjob'. Indent it below."]


TESTENV_SLIPS = [
    (
        "  incremental_rounds: 2",
        "  incremental_round: 2",
        "7:3: unknown key 'incremental_round' in testenv. Did you mean 'incremental_rounds'?",
    ),
    (
        "incremental_rounds: 2",
        "incremental_rounds: 0",
        "7:23: incremental_rounds should be at least 1, found the number 0.",
    ),
    (
        "incremental_rounds: 2",
        "incremental_rounds: two",
        "7:23: incremental_rounds should be a whole number, found the text 'two'.",
    ),
    ("    train_index", "    train_idx", "3:5: unknown key 'train_idx' in dataset. Did you mean 'train_index'?"),
    (
        "./train.txt",
        "./trian.txt",
        "3:18: there is no file './trian.txt'. Looked for trian.txt. Did you mean 'train.txt'?",
    ),
    ("./train.txt", "/gone/train.txt", "3:18: there is no file '/gone/train.txt'. Looked for /gone/train.txt."),
    (
        "./train.txt",
        "${DATA}/train.txt",
        "3:18: the variable DATA is not set. Set it, or write a default: ${DATA:-./folder}.",
    ),
    ("./train.txt", "3", "3:18: train_index should be text, a list or a mapping, found the number 3."),
    ("./train.txt", ".", "3:18: '.' is a folder, .; a file belongs here."),
    ("./train.txt", "[train.txt, gone.csv]", "3:30: there is no file 'gone.csv'. Looked for gone.csv."),
    ("./train.txt", "{CS: gone.csv}", "3:23: there is no file 'gone.csv'. Looked for gone.csv."),
    (
        "    test_index: ./test.txt\n",
        "",
        "3:5: train_index is given and no test data. Add test_index or test_data, or `test_share: 0.2`.",
    ),
    (
        "    train_index: ./train.txt\n",
        "",
        "3:5: test_index is given and no training data. Add train_index or train_data.",
    ),
    (
        "  metrics",
        "    train_data: ./train.txt\n  metrics",
        "5:5: train_index and train_data are both given. Keep one.",
    ),
    (
        "  metrics",
        "    name: digits\n  metrics",
        "3:5: dataset has a name, which brings its own data, and train_index. Keep one of them.",
    ),
    ("  metrics", "    root: gone\n  metrics", "5:11: there is no folder 'gone'. Looked for gone."),
    ("  metrics", "    using: CS CS\n  metrics", "5:12: domain 'CS' is given twice. Name it once."),
    (
        "  metrics",
        "    image_size: big\n  metrics",
        "5:17: image_size is a whole number or [height, width] in pixels, found the text 'big'.",
    ),
    ("  metrics", "    image_size: 0\n  metrics", "5:17: image_size should be at least 1, found the number 0."),
    ("  metrics", "    image_size: [1, 2, 3]\n  metrics", "5:17: image_size should have 2 entries, found 3."),
    ("  metrics", "    classes: [a, b, a]\n  metrics", "5:21: class 'a' is given twice. Keep one."),
    ("  metrics", "    clases: [a]\n  metrics", "5:5: unknown key 'clases' in dataset. Did you mean 'classes'?"),
    ("name: accuracy", "nam: accuracy", "6:7: unknown key 'nam' in metrics. Did you mean 'name'?"),
    ("name: accuracy", "{name: own, ulr: own.py}", "6:19: unknown key 'ulr' in metrics. Did you mean 'url'?"),
    ("name: accuracy", "{name: own, url: own.py}", "6:24: there is no file 'own.py'. Looked for own.py."),
    ("name: accuracy", "3", "6:7: an entry of metrics should be text or a mapping, found the number 3."),
    ("\n    - name: accuracy", " accuracy", "5:12: metrics should be a list or a mapping, found the text 'accuracy'."),
    ("\n    - name: accuracy", " []", "5:12: metrics is empty. Write at least one."),
    (
        "  metrics:\n    - name: accuracy\n",
        "",
        "1:1: key 'metrics' is missing in testenv. It is a list of metrics such as '- name: accuracy'.",
    ),
    ("- name: accuracy", "- accuracy\n    - name: accuracy", "7:13: metric 'accuracy' is given twice. Keep one."),
    (
        "  metrics",
        "  scenario: {rounds: 2}\n  metrics",
        "5:3: key 'name' is missing in scenario. It is the scenario's name.",
    ),
    ("  metrics", "  scenario: [a]\n  metrics", "5:13: scenario should be text or a mapping, found a list."),
    (
        "  metrics",
        "  model_eval: {threshold: 1}\n  metrics",
        "5:3: key 'model_metric' is missing in model_eval. It is the metric that decides, with its name.",
    ),
    (
        "  metrics",
        "  model_eval: {model_metric: {name: f1}, operator: =>}\n  metrics",
        "5:52: operator should be one of >, >=, <, <=, ==, found the text '=>'. Did you mean '>'?",
    ),
    (
        "  metrics",
        "  model_eval:\n    model_metric: {name: f1}\n    operator: >\n  metrics",
        "7:15: operator should be one of >, >=, <, <=, ==, found the text ''. Put an operator in quotes: '>'.",
    ),
    (
        "  metrics",
        "  model_eval: {model_metric: {name: f1}, threshold: high}\n  metrics",
        "5:53: threshold should be a number, found the text 'high'.",
    ),
]


@pytest.mark.parametrize(("old", "new", "line"), TESTENV_SLIPS)
def test_a_slip_in_the_testenv(files, old, new, line):
    files.change("testenv.yaml", old, new)
    expected = [f"testenv.yaml:{line}"]
    if "dataset has a name" in line:
        expected.append(edited(expected[0], "3:5", "4:5", "train_index", "test_index"))
    assert files.errors() == expected


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (
            ["label: x"],
            "2:3: dataset names no data. Give the name of a built-in source, or train_index and test_index "
            "(train_data and test_data for files that hold the samples).",
        ),
        (
            ["train_url: a.bin", "test_url: test.txt"],
            "3:16: whether 'a.bin' is an index is not clear. Write train_index or train_data.",
        ),
        (
            ["train_index: {A: train.txt}", "test_index: test.txt", "using: A C"],
            "5:12: domain 'C' is not in train_index. There are: A.",
        ),
        (
            ["name: digits", "download: yes"],
            "4:15: download should be true or false, found the text 'yes'. Write true.",
        ),
    ],
)
def test_a_slip_in_the_dataset(files, lines, line):
    files.write("a.bin", "")
    files.dataset(*lines)
    assert files.errors() == [f"testenv.yaml:{line}"]


def test_using_in_two_places(files):
    files.dataset("name: digits", "using: A", more="  using: A\n")
    assert files.errors() == ["testenv.yaml:6:3: using is given in dataset and in testenv. Keep one."]


def test_a_root_that_is_not_there_is_one_problem_and_not_one_for_each_file_in_it(files):
    files.dataset("root: gone", "train_index: a.txt", "test_index: b.txt")
    assert files.errors() == ["testenv.yaml:3:11: there is no folder 'gone'. Looked for gone."]
    assert files.errors(root="lost") == ["there is no folder 'lost', given as the dataset's root."]


ALGORITHM_SLIPS = [
    (
        "    - type",
        "    - {type: basemodel, name: Other}\n    - type",
        "5:13: module type 'basemodel' is given twice. An algorithm has one of each.",
    ),
    (
        "- epochs:\n            values: [1]",
        "- api_key:\n            values: sk-123",  # a secret
        "11:21: values of hyperparameter 'api_key' should be a list, found a value that is not shown.",
    ),
    ("  modules", "  module", "3:3: unknown key 'module' in algorithm. Did you mean 'modules'?"),
    ("      name: Student\n", "", "4:7: key 'name' is missing in modules. It is the name of the class."),
    ("./student.py", "./gone.py", "6:12: there is no file './gone.py'. Looked for gone.py."),
    (
        "./student.py",
        "./studnet.py",
        "6:12: there is no file './studnet.py'. Looked for studnet.py. Did you mean 'student.py'?",
    ),
    (
        "./student.py",
        "./train.txt",
        "6:12: './train.txt' is not a python file. Write the path of a .py file, or 'package.module'.",
    ),
    (
        "./student.py",
        "a-b",
        "6:12: 'a-b' is neither the path of a .py file nor 'package.module' nor 'package.module:Class'.",
    ),
    (
        "    hyperparameters",
        "    hyperparameter",
        "7:7: unknown key 'hyperparameter' in modules. Did you mean 'hyperparameters'?",
    ),
    ("values: [1]", "vales: [1]", "11:13: unknown key 'vales' in hyperparameter 'epochs'. Did you mean 'values'?"),
    (
        "values: [1]",
        "values: 3",
        "11:21: values of hyperparameter 'epochs' should be a list, found the number 3. Write [3].",
    ),
    ("values: [1]", "values: []", "11:21: values of hyperparameter 'epochs' is empty. Write at least one."),
    (
        "values: [1]",
        "values: [1, 2, 1.0]",
        "11:28: this value is in the list already (1e-3 and 0.001 are one number). Remove one.",
    ),
    (
        "[0.1, 1e-3]",
        "[1e-3, 0.001]",
        "9:28: this value is in the list already (1e-3 and 0.001 are one number). Remove one.",
    ),
    (
        "[0.1, 1e-3]",
        "[[1, 2], [1, 2]]",
        "9:30: this value is in the list already (1e-3 and 0.001 are one number). Remove one.",
    ),
    (
        "\n            values: [1]",
        " 3",
        "10:19: hyperparameter 'epochs' should be a mapping, found the number 3. Write its values as {values: [...]}.",
    ),
    (
        "- epochs",
        "- learning_rate",
        "10:11: hyperparameter 'learning_rate' is given twice. Put all its values in one list.",
    ),
    (
        "        - epochs:\n            values: [1]",
        "        - epochs",
        "10:11: an entry of hyperparameters should be a mapping, found the text 'epochs'. "
        "Write '- learning_rate: {values: [0.1, 0.01]}'.",
    ),
    (
        "  modules",
        "  incremental_learning_data_setting: {train_ratio: 1.2}\n  modules",
        "3:52: train_ratio should be at most 1, found the number 1.2.",
    ),
    (
        "  modules",
        "  incremental_learning_data_setting: {train_ratio: 0}\n  modules",
        "3:52: train_ratio should be more than 0, found the number 0.",
    ),
    (
        "  modules",
        "  incremental_learning_data_setting: {splitting_method: city_splitting}\n  modules",
        "3:57: splitting method 'city_splitting' is for plugins under `contract: ianvs` alone. "
        "There are: default, shuffled.",
    ),
    (
        "  modules",
        "  incremental_learning_data_setting: {splitting_method: shuffel}\n  modules",
        "3:57: splitting method 'shuffel' is not known. Did you mean 'shuffled'?",
    ),
    (
        "  modules",
        "  initial_model_url: ./gone.pth\n  modules",
        "3:22: there is no file or folder './gone.pth'. Looked for gone.pth.",
    ),
]


@pytest.mark.parametrize(("old", "new", "line"), ALGORITHM_SLIPS)
def test_a_slip_in_an_algorithm_is_told_once_whatever_names_the_file(files, old, new, line):
    files.change("algorithm.yaml", old, new)
    files.change("job.yaml", "  rank:", "      - {name: other, url: algorithm.yaml}\n  rank:")
    assert files.errors() == [f"algorithm.yaml:{line}"]


def test_slips_in_files_of_other_hyperparameters(files):
    files.change(
        "algorithm.yaml",
        "        - epochs",
        "        - other_hyperparameters: {values: [a.yaml, b.yaml, 3]}\n        - epochs",
    )
    files.write("a.yaml", "warmup: 1\nwarmup: 2\nmomentum: {values: [0.9]}\n")
    assert files.errors() == [
        "algorithm.yaml:10:52: there is no file 'b.yaml'. Looked for b.yaml.",
        "algorithm.yaml:10:60: expected the path of a yaml file of hyperparameters, found the number 3.",
        "a.yaml:2:1: key 'warmup' is given twice, first on line 1. Keep one.",
        "a.yaml:3:1: 'momentum' lists values to try; a file of other_hyperparameters holds one value of each. "
        "Write 'name: value' here, or move it to hyperparameters.",
    ]


def test_a_linked_file_that_can_not_be_read_is_a_problem_of_the_link(files):
    files.write("testenv.yaml", "")
    (files.folder / "algorithm.yaml").unlink()
    (files.folder / "algorithm.yaml").mkdir()
    assert files.errors() == [
        "job.yaml:4:12: 'testenv.yaml': the file is empty.",
        "job.yaml:9:14: './algorithm.yaml' is a folder, algorithm.yaml; a file belongs here.",
    ]


def test_a_place_that_was_looked_at_is_named_for_each_folder(files, monkeypatch):
    files.write("sub/job.yaml", (files.folder / "job.yaml").read_text())
    (files.folder / "testenv.yaml").unlink()
    assert files.errors("sub/job.yaml") == [
        "sub/job.yaml:4:12: there is no file './testenv.yaml'. Looked for sub/testenv.yaml and testenv.yaml."
    ]


def test_what_the_command_line_gets_wrong_has_no_place(files):
    assert files.errors(jobs=0, device="tpu") == [
        "jobs should be at least 1, found 0.",
        "device 'tpu' is not known. Did you mean 'cpu'?",
    ]


def test_all_problems_of_all_files_are_told_at_once_in_the_order_of_reading(files):
    files.change(
        "job.yaml",
        "      - name: student\n        url: ./algorithm.yaml\n",
        """\
      - {name: b, url: second.yaml}
      - {name: a, url: first.yaml}
      - {name: c, url: second.yaml}
""",
    )
    files.change("job.yaml", "sort_by", "sort_bye")
    files.change("job.yaml", "  workspace", "  jobs: 0\n  workspace")
    files.change("testenv.yaml", "./train.txt", "./gone.csv")
    files.change("testenv.yaml", "name: accuracy", "name: 3")
    algorithm = (files.folder / "algorithm.yaml").read_text()
    files.write("first.yaml", edited(algorithm, "values: [1]", "values: 1"))
    files.write("second.yaml", "algorithm: [\n")
    assert [line.split(" ")[0] for line in files.errors()] == [
        "job.yaml:3:9:",
        "job.yaml:13:5:",
        "testenv.yaml:3:18:",
        "testenv.yaml:6:13:",
        "second.yaml:2:1:",
        "first.yaml:11:21:",
    ]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(files):
    (files.folder / "testenv.yaml").chmod(0)
    assert files.errors() == ["job.yaml:4:12: 'testenv.yaml': the file can't be read: Permission denied."]


@pytest.mark.slow
def test_a_long_list_is_refused_in_time_that_grows_with_its_length(files):
    seeds = [*range(40_000), 7]
    files.change("job.yaml", "  name: first\n", f"  name: first\n  seeds: {seeds}\n")
    began = time.process_time()
    [line] = files.errors()
    assert line.endswith("seed 7 is given twice, and would repeat the same result. Keep one.")
    assert time.process_time() - began < 12  # some two seconds; looking each up in the list took half a minute


@pytest.mark.slow
def test_many_unknown_keys_are_told_in_time_that_grows_with_their_number(files):
    files.change("job.yaml", "  name: first\n", "  name: first\n" + "".join(f"  k{i}: 1\n" for i in range(12_000)))
    began = time.process_time()
    assert len(files.errors()) == 12_000
    assert time.process_time() - began < 9
