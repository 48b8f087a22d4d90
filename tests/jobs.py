"""Small jobs for tests: files in a folder, in the form that a user writes them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from zipfile import ZipFile

from ianvs.store.checksummed_json import read_checksummed, write_checksummed

__all__ = ["MAJORITY", "split_rounds", "write_job"]

MAJORITY = '''
class Majority:
    """Predicts the class that it saw most often; `bias` is added to the count of class 0."""

    def __init__(self, bias=0, fail_in_round=None):
        self.bias, self.fail_in_round, self.counts = bias, fail_in_round, {}

    def train(self, train_data, valid_data=None, *, round, seed):
        if round == self.fail_in_round:
            raise RuntimeError(f"no luck in round {round}")
        for label in train_data.y.tolist():
            self.counts[label] = self.counts.get(label, 0) + 1 + seed / 1000

    def predict(self, data):
        counts = {**self.counts, 0: self.counts.get(0, 0) + self.bias}
        return [max(counts, key=counts.get)] * len(data)

    def save(self, path):
        path.with_suffix(".txt").write_text(repr(self.counts))
        return path.with_suffix(".txt")

    def load(self, path):
        self.counts = eval(path.read_text())
'''

TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5}
metrics: [{name: accuracy}, {name: BWT}]
"""


def write_job(
    folder: Path,
    *,
    plugin: str = MAJORITY,
    name: str = "Majority",
    hyperparameters: str = "- bias: {values: [0, 1000]}",
    testenv: str = TESTENV,
    job: str = "seeds: [0, 1]",
    sort_by: str = "[{accuracy: descend}]",
    algorithms: tuple[str, ...] = ("majority",),
    engine: str = "inline",
) -> Path:
    """Write the three files and a plugin; the path of benchmarkingjob.yaml. The workspace is `folder`/ws.

    engine: "local" where a test is about processes, whose start costs seconds. A line of `job` may name it as well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "testenv.yaml").write_text("testenv:\n" + indent(dedent(testenv).strip(), "  ") + "\n")
    (folder / "plugin.py").write_text(plugin)
    grid = "hyperparameters:\n" + indent(dedent(hyperparameters).strip(), "  ") if hyperparameters else ""
    module = f"- type: basemodel\n  name: {name}\n  url: ./plugin.py\n" + indent(grid, "  ")
    (folder / "algorithm.yaml").write_text(
        "algorithm:\n  paradigm_type: incrementallearning\n  modules:\n" + indent(module, "    ") + "\n"
    )
    listed = "\n".join(f"      - {{name: {algorithm}, url: ./algorithm.yaml}}" for algorithm in algorithms)
    path = folder / "benchmarkingjob.yaml"
    path.write_text(
        f"benchmarkingjob:\n  name: test\n  workspace: {folder / 'ws'}\n  testenv: ./testenv.yaml\n"
        + indent(dedent(job).strip(), "  ")
        + f"\n  test_object:\n    type: algorithms\n    algorithms:\n{listed}\n  rank:\n    sort_by: {sort_by}\n"
        + ("" if "engine:" in job else f"  engine: {engine}\n")  # last: the lines above are where tests expect them
    )
    return path


def split_rounds(workspace: Path) -> None:
    """Bring finished cases back to what they were before they finished: a folder for each round, and no result."""
    for path in workspace.glob("cases/*/rounds.json"):
        folder = path.parent
        stored = read_checksummed(path, f"{folder.name}/rounds.json")
        assert stored is not None
        with ZipFile(folder / "predictions.zip") as archive:
            archive.extractall(folder)
        for index, record in enumerate(stored["rounds"]):
            name = f"rounds/{index}/round.json"
            write_checksummed(folder / name, f"{folder.name}/{name}", record)
        for name in ("rounds.json", "predictions.zip", "result.json"):
            (folder / name).unlink()
