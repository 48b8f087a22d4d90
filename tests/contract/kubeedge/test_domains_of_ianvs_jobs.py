"""`using` under `contract: ianvs`: a round and a test set for each domain, BWT and FWT, and the proposal's report."""

from __future__ import annotations

import csv
import importlib.util
import shutil
from pathlib import Path

import pytest
import yaml

import ianvs
from ianvs.base.errors import ConfigError
from tests.errors import recorded

EXAMPLES = Path(__file__).parents[3] / "examples"
REPORT = "Rank,Algorithm,mIoU_Overall,BWT,FWT,Paradigm,Round,Dataset,Basemodel,Learning_rate,Epoch,Batch_size,Time"
PLUGIN = """
from pathlib import Path
from sedna.common.class_factory import ClassFactory, ClassType

@ClassFactory.register(ClassType.GENERAL, alias="Words")
class Words:
    def __init__(self, learning_rate=1, **kwargs): self.words = {"a"}
    def train(self, train_data, valid_data=None, **kwargs):
        self.words = {*sorted(self.words)[-2:], *map(str, train_data.y)}  # forgets all but two
    def save(self, path): Path(path).write_text(" ".join(sorted(self.words))); return path
    def load(self, model_url=None, **kwargs): self.words = set(Path(model_url).read_text().split())
    def predict(self, data, **kwargs):
        return {str(x): word if (word := Path(x).read_text()) in self.words else "?" for x in data}
    def evaluate(self, data, model_path="", **kwargs): return {"hits": 0.0}

@ClassFactory.register(ClassType.HEM, alias="All")
class All:
    def __init__(self, **kwargs): pass
    def __call__(self, result): return True

@ClassFactory.register(ClassType.GENERAL, alias="hits")
def hits(y_true, y_pred, **kwargs): return sum(map(str.__eq__, map(str, y_true), y_pred.values())) / len(y_true)
"""
DOMAINS = {"X": "abcab", "Y": "cdecd", "Z": "ffghb"}
TESTS = {"X": "abc", "Y": "cde", "Z": "fgz"}


def words_job(folder: Path, layout: str, using: str = "X Y Z", rounds: int = 3) -> Path:
    """A job whose samples are words. layout: how the index names their domains: "column", "folder" or "order"."""
    (folder / "plugin.py").write_text(PLUGIN)
    for part, samples in (("train", DOMAINS), ("test", TESTS)):
        lines = []
        for domain, words in samples.items():
            for number, word in enumerate(words):
                home = domain if layout == "folder" else "all"
                path = folder / part / home / f"{domain}{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(word)
                column = f" {domain}" if layout == "column" else ""
                lines.append(f"{part}/{home}/{domain}{number}.txt {word}{column}\n")
        mixed = lines if layout == "order" else [line for i in range(5) for line in lines if f"{i}.txt" in line]
        (folder / f"{part}.txt").write_text("".join(mixed))
    metric = {"name": "hits", "url": str(folder / "plugin.py")}
    testenv = {
        "dataset": {"train_index": "train.txt", "test_index": "test.txt", "using": using},
        "incremental_rounds": rounds,
        "model_eval": {"model_metric": metric, "threshold": 0, "operator": ">="},
        "metrics": [metric, {"name": "BWT"}, {"name": "FWT"}],
    }
    modules = [
        {
            "type": "basemodel",
            "name": "Words",
            "url": "plugin.py",
            "hyperparameters": [{"learning_rate": {"values": [1]}}],
        },
        {"type": "hard_example_mining", "name": "All", "url": "plugin.py"},
    ]
    algorithm = {
        "paradigm_type": "incrementallearning",
        "modules": modules,
        "incremental_learning_data_setting": {"train_ratio": 0.8},
    }
    job = {
        "name": "words",
        "workspace": str(folder / "ws"),
        "testenv": "testenv.yaml",
        "test_object": {"type": "algorithms", "algorithms": [{"name": "words", "url": "algorithm.yaml"}]},
        "rank": {"sort_by": [{"hits": "descend"}], "style": "proposal"},
    }
    for name, top, content in (
        ("testenv", "testenv", testenv),
        ("algorithm", "algorithm", algorithm),
        ("job", "benchmarkingjob", job),
    ):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({top: content}))
    return folder / "job.yaml"


def naive_scores() -> list[list[float]]:
    """Rows 0..3: the share of each domain's test words that are known before round 1 and after each."""
    known, rows = {"a"}, []
    for words in ("", *DOMAINS.values()):
        if words:
            known = {*sorted(known)[-2:], *words[:4]}  # four of five are trained on
        rows.append([sum(word in known for word in tests) / len(tests) for tests in TESTS.values()])
    return rows


@pytest.mark.parametrize("layout", ["column", "folder", "order"])
def test_scores_of_domains_are_those_of_a_naive_loop(tmp_path: Path, layout: str) -> None:
    job = words_job(tmp_path, layout)
    results = ianvs.run(job, engine="inline")
    [result] = results
    rows = naive_scores()
    matrix = result.matrices["hits"]
    assert matrix.values.tolist() == rows and matrix.tests == ("X", "Y", "Z")
    T = 3
    gains = [rows[T][j] - rows[0][j] for j in range(T)]
    ahead = [rows[i - 1][i - 1] - rows[0][i - 1] for i in (1, 2, 3)]
    assert result.metrics["BWT"] == pytest.approx(sum(gains) / T**2)
    assert result.metrics["FWT"] == pytest.approx(sum(ahead) / T)
    assert result.metrics["GEM_BWT"] == pytest.approx(sum(rows[T][j] - rows[j + 1][j] for j in range(T - 1)) / (T - 1))
    assert result.metrics["GEM_FWT"] == pytest.approx(sum(rows[j][j] - rows[0][j] for j in (1, 2)) / (T - 1))
    assert result.metrics["hits"] == pytest.approx(sum(rows[T]) / T) and result.dataset == "X Y Z"
    codes = [code for code, _ in recorded(ianvs.validate(job).warnings)]
    assert codes == (["doubtful-data"] if layout == "order" else [])


@pytest.mark.parametrize(
    ("using", "rounds", "code"),
    [("X Y", 3, "round-count-conflict"), ("X Y W", 3, "unknown-domain")],
    ids=["another number of rounds", "a domain of no line"],
)
def test_domains_that_do_not_fit_are_refused(tmp_path: Path, using: str, rounds: int, code: str) -> None:
    with pytest.raises(ConfigError) as error:
        ianvs.validate(words_job(tmp_path, "column", using, rounds))
    assert {code for code, _ in recorded(error.value.problems)} == {code}


def test_the_report_has_the_header_that_the_proposal_prints(tmp_path: Path) -> None:
    names = ("mdil_ss_ianvs_plugin", "mdil_ss_proposal")
    for name in names:
        shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("dataset", "workspace"))
    spec = importlib.util.spec_from_file_location("make_scenes", tmp_path / names[1] / "make_scenes.py")
    assert spec is not None and spec.loader is not None
    scenes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scenes)
    scenes.COUNTS, scenes.SIZE = {"train": 5, "test": 1}, (20, 28)
    scenes.make_scenes(tmp_path / names[1] / "dataset")
    algorithm = tmp_path / names[0] / "mdil-ss_algorithm.yaml"
    small = yaml.safe_load(algorithm.read_text())
    small["algorithm"]["modules"][0]["hyperparameters"] = [
        {"learning_rate": {"values": [0.01]}}, {"epochs": {"values": [1]}}, {"batch_size": {"values": [4]}}
    ]  # fmt: skip
    algorithm.write_text(yaml.safe_dump(small))
    results = ianvs.run(tmp_path / names[0] / "benchmarkingjob.yaml", workspace=tmp_path / "ws", engine="inline")
    text = (tmp_path / "ws" / names[0] / "rank" / "proposal" / "test_report.csv").read_text()
    assert text.splitlines()[0] == REPORT
    [row] = csv.DictReader(text.splitlines())
    assert (row["Round"], row["Dataset"], row["Basemodel"]) == ("3", "CS SYN CR", "ERFNet")
    assert results.exit_code == 0 and all(row.values())
