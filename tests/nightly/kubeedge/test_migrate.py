"""`ianvs migrate` writes a job for KubeEdge Ianvs once for good."""

import re
from dataclasses import replace

import pytest

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.cli import main
from ianvs.config import load_job, resolved
from ianvs.config.strict_yaml import parse
from ianvs.kubeedge.yaml.migration import yaml_text
from tests.checkout import Checkout
from tests.errors import printed


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkout = Checkout(tmp_path / "checkout")
    checkout.change(checkout.testenv, "train_index", "train_url")
    checkout.change(checkout.testenv, "  metrics:", "  backend: x\n  metrics:")
    checkout.change(checkout.testenv, "toy/testenv/accuracy.py", "old/testenv/accuracy.py")
    checkout.change(checkout.job, "[{accuracy: descend}]", "[{mota: ascend}]")
    checkout.change(checkout.algorithm, "[0.1, 0.2]", "[0.1, .inf, 'yes: no', [1, 2]]")
    return checkout


def test_what_was_written_means_the_same_and_needs_no_more_words(checkout, tmp_path, capsys):
    before = load_job(checkout.job)
    assert before.warnings and before.problems  # the folder of the metric was renamed
    sources = {file: file.read_bytes() for file in checkout.root.rglob("*.*")}
    assert main(["migrate", str(checkout.job), "--out", str(tmp_path / "new")]) == 0
    assert {file: file.read_bytes() for file in checkout.root.rglob("*.*")} == sources
    written = tmp_path / "new/benchmarkingjob.yaml"
    assert f"ianvs validate -f {written.relative_to(tmp_path)}" in capsys.readouterr().out
    after = load_job(written)
    assert not (after.warnings or after.problems)

    def content(job):
        alike = replace(
            job,
            file=written,
            testenvs=tuple(replace(exam, file=written) for exam in job.testenvs),
            algorithms=tuple(replace(algorithm, file=written) for algorithm in job.algorithms),
        )
        return resolved(alike)

    assert content(after) == content(before)
    checkout.change(checkout.testenv, "old/testenv/accuracy.py", "toy/testenv/accuracy.py")
    ids = [[planned.case.id for planned in ianvs.plan(job)] for job in (checkout.job, written)]
    assert ids[0] == ids[1] and len(ids[0]) == 8
    assert main(["validate", "-f", str(written)]) == 0


def test_each_change_has_its_comment_beside_it(checkout, tmp_path):
    ianvs.migrate(checkout.job, tmp_path / "new")
    testenv = (tmp_path / "new/testenv.yaml").read_text()
    assert [line for line in testenv.splitlines() if not line.lstrip().startswith("#")] == [
        *("testenv:", "  dataset:", "    test_index: ../checkout/dataset/test.txt"),
        *("    train_index: ../checkout/dataset/train.txt", "  metrics:", "    - name: accuracy"),
        "      url: ../checkout/examples/toy/testenv/accuracy.py",
    ]
    printed(testenv)
    job = (tmp_path / "new/benchmarkingjob.yaml").read_text()
    assert re.search(r"^    # .*'mota'", job, re.MULTILINE)
    assert "  working_directory: ../checkout\n" in job and "  testenv: ./testenv.yaml\n" in job
    assert "  contract: ianvs\n" in (tmp_path / "new/algorithm.yaml").read_text()


def test_a_file_that_is_there_is_not_replaced(checkout, tmp_path):
    ianvs.migrate(checkout.job, tmp_path / "new")
    with pytest.raises(IanvsError, match="already exists"):
        ianvs.migrate(checkout.job, tmp_path / "new")


def test_a_job_of_ours_has_nothing_to_migrate(checkout, tmp_path):
    checkout.write(checkout.basemodel, "class Toy: ...\n")
    with pytest.raises(IanvsError, match="nothing to migrate"):
        ianvs.migrate(checkout.job, tmp_path / "new")


@pytest.mark.parametrize(
    "value", ["no", "1e-3", "", " a", "a: b", "#", "-", "0x1", "null", "'", '"', "a\nb", "ü", "<=", "~", "a b", "1.0"]
)
def test_text_is_read_again_as_the_same_text(value, tmp_path):
    data = {"a": {value: [value, 1, 1.5, True, None, [], {}], "list": [{"x": value, "y": [{"z": value}]}]}}
    comments = {("a", "list", 0, "x"): ["of x"], ("a", "gone"): ["of what is gone"]}
    text = yaml_text(data, comments)
    assert parse(text, tmp_path).data == data
    assert text.index("# of x") < text.index("x: ") and text.startswith("# of what is gone\na:")
