"""Each mistake: what it is and where. tests/snapshots/messages.txt has the very lines that a user sees."""

import os
import time

import pytest

from tests.edits import edited
from tests.errors import located


def test_the_job_file_is_missing(files):
    assert files.errors("jobb.yaml") == [("missing-file", "jobb.yaml")]


def test_a_folder_in_place_of_the_job_file(files):
    (files.folder / "configs").mkdir()
    assert files.errors("configs") == [("wrong-path-type", "configs")]


def test_another_kind_of_file_is_given_as_the_job(files):
    assert files.errors("testenv.yaml") == [("wrong-file-kind", "testenv.yaml:1:1")]


@pytest.mark.parametrize(
    ("text", "code", "location"),
    [
        ("name: x\nworkspace: y\n", "missing-key", "job.yaml:1:1"),
        ("[1, 2]\n", "missing-key", "job.yaml:1:1"),
        ("services: y\n", "missing-key", "job.yaml:1:1"),
        ("testenv:\n", "wrong-type", "testenv.yaml:1:9"),
        ("testenv:\n  dataset: digits\n  metrics: [accuracy]\n", "wrong-type", "testenv.yaml:2:12"),
    ],
)
def test_a_file_of_another_form(files, text, code, location):
    files.write(location.partition(":")[0], text)
    assert files.errors() == [(code, location)]


JOB_SLIPS = [
    ("benchmarkingjob:", "benchmarkingjobs:", "unknown-key", "1:1"),
    ("./testenv.yaml", "./algorithm.yaml", "wrong-file-kind", "4:12"),
    ("  rank:", "      - {name: student, url: algorithm.yaml}\n  rank:", "duplicate-entry", "10:16"),
    (
        "save_mode: selected_and_all",
        'save_mode: "a\\nb"',  # of several lines, and quoted in one
        "invalid-choice",
        "18:16",
    ),
    ("  testenv: ", "  testenvs: ", "unknown-key", "4:3"),
    ("  rank:", "  ranks:", "unknown-key", "10:3"),
    ("  workspace:", "  workspce:", "unknown-key", "3:3"),
    ("    sort_by:", "    sort_bye:", "unknown-key", "11:5"),
    ("name: first", "name: cases", "invalid-value", "2:9"),
    ("name: first", "name: a/b", "invalid-value", "2:9"),
    ("name: first", "name: ..", "invalid-value", "2:9"),
    ("name: first", "name: 2024", "wrong-type", "2:9"),
    ("name: first", "name: ''", "empty-value", "2:9"),
    ("  name: first\n", "", "missing-key", "1:1"),
    ("accuracy: descend", "accuracy: descending", "invalid-choice", "12:19"),
    ("accuracy: descend", "accuracy: ascending", "invalid-choice", "12:19"),
    ("accuracy: descend", "accuracy", "wrong-type", "12:9"),
    ("accuracy: descend", "{accuracy: descend, BWT: descend}", "wrong-length", "12:9"),
    ("- accuracy: descend", "- accuracy: descend\n      - accuracy: ascend", "duplicate-entry", "13:9"),
    ("\n      - accuracy: descend", " []", "empty-value", "11:14"),
    ("print_table", "print_tabel", "invalid-choice", "15:15"),
    ("save_mode: selected_and_all", "save_mode: selected_all", "invalid-choice", "18:16"),
    ("    type: algorithms", "    save_mode: selected_only", "unknown-key", "6:5"),
    ("  workspace: ./workspace", "  selected_dataitem: {metrics: [all]}", "unknown-key", "3:3"),
    ("  workspace: ./workspace", "  hard_example_mining_mode: x", "unknown-key", "3:3"),
    ("  workspace: ./workspace", "  threshold: 3", "unknown-key", "3:3"),
    ("[all]", "all", "wrong-type", "17:16"),
    ("workspace: ./workspace", "workspace: [a]", "wrong-type", "3:14"),
    ("workspace: ./workspace", "seeds: 3", "wrong-type", "3:10"),
    ("workspace: ./workspace", "seeds: []", "empty-value", "3:10"),
    ("workspace: ./workspace", "seeds: [1, -1]", "out-of-range", "3:14"),
    ("workspace: ./workspace", "seeds: [1, 1]", "duplicate-entry", "3:14"),
    ("workspace: ./workspace", "seeds: [true]", "wrong-type", "3:11"),
    ("workspace: ./workspace", "jobs: 0", "out-of-range", "3:9"),
    ("workspace: ./workspace", "threads: 1.5", "wrong-type", "3:12"),
    ("workspace: ./workspace", "device: gpu", "invalid-choice", "3:11"),
    ("workspace: ./workspace", "engine: {name: mine, url: ./mine.py}", "missing-file", "3:29"),
    ("workspace: ./workspace", "engine: {nme: ray}", "unknown-key", "3:12"),
    ("workspace: ./workspace", "name: again", "duplicate-key", "3:3"),
    ("./testenv.yaml", "./testenw.yaml", "missing-file", "4:12"),
    ("./algorithm.yaml", "gone.yaml", "missing-file", "9:14"),
    ("        url: ./algorithm.yaml\n", "", "missing-key", "8:9"),
    ("- name: student", "- name: student\n        name: student", "duplicate-key", "9:9"),
]


@pytest.mark.parametrize(("old", "new", "code", "at"), JOB_SLIPS)
def test_a_slip_in_the_job(files, old, new, code, at):
    files.change("job.yaml", old, new)
    assert files.errors() == [(code, f"job.yaml:{at}")]


def test_a_section_that_is_indented_too_little(files):
    text = (files.folder / "job.yaml").read_text()
    head, rank = text.split("  rank:")
    files.write("job.yaml", head + "rank:" + edited(rank, "\n  ", "\n"))
    assert files.errors() == [("misplaced-key", "job.yaml:10:1")]


TESTENV_SLIPS = [
    ("  incremental_rounds: 2", "  incremental_round: 2", "unknown-key", "7:3"),
    ("incremental_rounds: 2", "incremental_rounds: 0", "out-of-range", "7:23"),
    ("incremental_rounds: 2", "incremental_rounds: two", "wrong-type", "7:23"),
    ("    train_index", "    train_idx", "unknown-key", "3:5"),
    ("./train.txt", "./trian.txt", "missing-file", "3:18"),
    ("./train.txt", "/gone/train.txt", "missing-file", "3:18"),
    ("./train.txt", "${DATA}/train.txt", "unset-variable", "3:18"),
    ("./train.txt", "3", "wrong-type", "3:18"),
    ("./train.txt", ".", "wrong-path-type", "3:18"),
    ("./train.txt", "[train.txt, gone.csv]", "missing-file", "3:30"),
    ("./train.txt", "{CS: gone.csv}", "missing-file", "3:23"),
    ("    test_index: ./test.txt\n", "", "missing-data", "3:5"),
    ("    train_index: ./train.txt\n", "", "missing-data", "3:5"),
    ("  metrics", "    train_data: ./train.txt\n  metrics", "conflicting-keys", "5:5"),
    ("  metrics", "    name: digits\n  metrics", "conflicting-keys", "3:5"),
    ("  metrics", "    root: gone\n  metrics", "missing-file", "5:11"),
    ("  metrics", "    using: CS CS\n  metrics", "duplicate-entry", "5:12"),
    ("  metrics", "    image_size: big\n  metrics", "wrong-type", "5:17"),
    ("  metrics", "    image_size: 0\n  metrics", "out-of-range", "5:17"),
    ("  metrics", "    image_size: [1, 2, 3]\n  metrics", "wrong-length", "5:17"),
    ("  metrics", "    classes: [a, b, a]\n  metrics", "duplicate-entry", "5:21"),
    ("  metrics", "    clases: [a]\n  metrics", "unknown-key", "5:5"),
    ("name: accuracy", "nam: accuracy", "unknown-key", "6:7"),
    ("name: accuracy", "{name: own, ulr: own.py}", "unknown-key", "6:19"),
    ("name: accuracy", "{name: own, url: own.py}", "missing-file", "6:24"),
    ("name: accuracy", "3", "wrong-type", "6:7"),
    ("\n    - name: accuracy", " accuracy", "wrong-type", "5:12"),
    ("\n    - name: accuracy", " []", "empty-value", "5:12"),
    ("  metrics:\n    - name: accuracy\n", "", "missing-key", "1:1"),
    ("- name: accuracy", "- accuracy\n    - name: accuracy", "duplicate-entry", "7:13"),
    ("  metrics", "  scenario: {rounds: 2}\n  metrics", "missing-key", "5:3"),
    ("  metrics", "  scenario: [a]\n  metrics", "wrong-type", "5:13"),
    ("  metrics", "  model_eval: {threshold: 1}\n  metrics", "missing-key", "5:3"),
    ("  metrics", "  model_eval: {model_metric: {name: f1}, operator: =>}\n  metrics", "invalid-choice", "5:52"),
    ("  metrics", "  model_eval:\n    model_metric: {name: f1}\n    operator: >\n  metrics", "invalid-choice", "7:15"),
    ("  metrics", "  model_eval: {model_metric: {name: f1}, threshold: high}\n  metrics", "wrong-type", "5:53"),
]


@pytest.mark.parametrize(("old", "new", "code", "at"), TESTENV_SLIPS)
def test_a_slip_in_the_testenv(files, old, new, code, at):
    files.change("testenv.yaml", old, new)
    first, *others = files.errors()
    assert first == (code, f"testenv.yaml:{at}")
    assert others == ([(code, "testenv.yaml:4:5")] if "name: digits" in new else [])  # of train_index, of test_index


@pytest.mark.parametrize(
    ("lines", "code", "at"),
    [
        (["label: x"], "missing-data", "2:3"),
        (["train_url: a.bin", "test_url: test.txt"], "invalid-value", "3:16"),
        (["train_index: {A: train.txt}", "test_index: test.txt", "using: A C"], "unknown-domain", "5:12"),
        (["name: digits", "download: yes"], "wrong-type", "4:15"),
    ],
)
def test_a_slip_in_the_dataset(files, lines, code, at):
    files.write("a.bin", "")
    files.dataset(*lines)
    assert files.errors() == [(code, f"testenv.yaml:{at}")]


def test_using_in_two_places(files):
    files.dataset("name: digits", "using: A", more="  using: A\n")
    assert files.errors() == [("conflicting-keys", "testenv.yaml:6:3")]


def test_a_root_that_is_not_there_is_one_problem_and_not_one_for_each_file_in_it(files):
    files.dataset("root: gone", "train_index: a.txt", "test_index: b.txt")
    assert files.errors() == [("missing-file", "testenv.yaml:3:11")]
    assert files.errors(root="lost") == [("missing-file", "")]


ALGORITHM_SLIPS = [
    ("    - type", "    - {type: basemodel, name: Other}\n    - type", "duplicate-entry", "5:13"),
    (
        "- epochs:\n            values: [1]",
        "- api_key:\n            values: sk-123",  # a secret
        "wrong-type",
        "11:21",
    ),
    ("  modules", "  module", "unknown-key", "3:3"),
    ("      name: Student\n", "", "missing-key", "4:7"),
    ("./student.py", "./gone.py", "missing-file", "6:12"),
    ("./student.py", "./studnet.py", "missing-file", "6:12"),
    ("./student.py", "./train.txt", "wrong-path-type", "6:12"),
    ("./student.py", "a-b", "invalid-path", "6:12"),
    ("    hyperparameters", "    hyperparameter", "unknown-key", "7:7"),
    ("values: [1]", "vales: [1]", "unknown-key", "11:13"),
    ("values: [1]", "values: 3", "wrong-type", "11:21"),
    ("values: [1]", "values: []", "empty-value", "11:21"),
    ("values: [1]", "values: [1, 2, 1.0]", "duplicate-entry", "11:28"),
    ("[0.1, 1e-3]", "[1e-3, 0.001]", "duplicate-entry", "9:28"),
    ("[0.1, 1e-3]", "[[1, 2], [1, 2]]", "duplicate-entry", "9:30"),
    ("\n            values: [1]", " 3", "wrong-type", "10:19"),
    ("- epochs", "- learning_rate", "duplicate-entry", "10:11"),
    ("        - epochs:\n            values: [1]", "        - epochs", "wrong-type", "10:11"),
    ("  modules", "  incremental_learning_data_setting: {train_ratio: 1.2}\n  modules", "out-of-range", "3:52"),
    ("  modules", "  incremental_learning_data_setting: {train_ratio: 0}\n  modules", "out-of-range", "3:52"),
    (
        "  modules",
        "  incremental_learning_data_setting: {splitting_method: city_splitting}\n  modules",
        "unsupported-by-contract",
        "3:57",
    ),
    (
        "  modules",
        "  incremental_learning_data_setting: {splitting_method: shuffel}\n  modules",
        "invalid-choice",
        "3:57",
    ),
    ("  modules", "  initial_model_url: ./gone.pth\n  modules", "missing-file", "3:22"),
]


@pytest.mark.parametrize(("old", "new", "code", "at"), ALGORITHM_SLIPS)
def test_a_slip_in_an_algorithm_is_told_once_whatever_names_the_file(files, old, new, code, at):
    files.change("algorithm.yaml", old, new)
    files.change("job.yaml", "  rank:", "      - {name: other, url: algorithm.yaml}\n  rank:")
    assert files.errors() == [(code, f"algorithm.yaml:{at}")]


def test_slips_in_files_of_other_hyperparameters(files):
    files.change(
        "algorithm.yaml",
        "        - epochs",
        "        - other_hyperparameters: {values: [a.yaml, b.yaml, 3]}\n        - epochs",
    )
    files.write("a.yaml", "warmup: 1\nwarmup: 2\nmomentum: {values: [0.9]}\n")
    assert files.errors() == [
        ("missing-file", "algorithm.yaml:10:52"),
        ("wrong-type", "algorithm.yaml:10:60"),
        ("duplicate-key", "a.yaml:2:1"),
        ("misplaced-key", "a.yaml:3:1"),
    ]


def test_a_linked_file_that_can_not_be_read_is_a_problem_of_the_link(files):
    files.write("testenv.yaml", "")
    (files.folder / "algorithm.yaml").unlink()
    (files.folder / "algorithm.yaml").mkdir()
    assert files.errors() == [("empty-file", "job.yaml:4:12"), ("wrong-path-type", "job.yaml:9:14")]


def test_a_place_that_was_looked_at_is_named_for_each_folder(files, monkeypatch):
    files.write("sub/job.yaml", (files.folder / "job.yaml").read_text())
    (files.folder / "testenv.yaml").unlink()
    assert files.errors("sub/job.yaml") == [("missing-file", "sub/job.yaml:4:12")]


def test_what_the_command_line_gets_wrong_has_no_place(files):
    assert files.errors(jobs=0, device="tpu") == [("out-of-range", ""), ("invalid-choice", "")]


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
    assert [location for _, location in files.errors()] == [
        "job.yaml:3:9",
        "job.yaml:13:5",
        "testenv.yaml:3:18",
        "testenv.yaml:6:13",
        "second.yaml:2:1",
        "first.yaml:11:21",
    ]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(files):
    (files.folder / "testenv.yaml").chmod(0)
    assert files.errors() == [("unreadable-file", "job.yaml:4:12")]


@pytest.mark.slow
def test_a_long_list_is_refused_in_time_that_grows_with_its_length(files):
    seeds = [*range(40_000), 7]
    files.change("job.yaml", "  name: first\n", f"  name: first\n  seeds: {seeds}\n")
    began = time.process_time()
    [(code, _)] = located(files.problems())
    assert code == "duplicate-entry"
    assert time.process_time() - began < 12  # some two seconds; looking each up in the list took half a minute


@pytest.mark.slow
def test_many_unknown_keys_are_told_in_time_that_grows_with_their_number(files):
    files.change("job.yaml", "  name: first\n", "  name: first\n" + "".join(f"  k{i}: 1\n" for i in range(12_000)))
    began = time.process_time()
    assert len(files.problems()) == 12_000
    assert time.process_time() - began < 9
