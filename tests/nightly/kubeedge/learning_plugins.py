"""Three more toy jobs beside the real Ianvs (commit 1d3da5b, PYTHONHASHSEED=0): they learn in rounds.

Its checkout has no sedna that runs all of them. Federated learning ran with the wheel 0.6.0.1; incremental and lifelong
learning with the archive sedna-llm, whose LifelongLearning was told the names `seen_estimator` and `unseen_estimator`,
and which finds no other domains than "real" and "sim". Indices have absolute paths, since it makes paths of the labels
in others, and two columns, since its metrics take the second as the truth.
`python -m tests.nightly.kubeedge.learning_toys FOLDER` writes the jobs; see beside_ianvs for the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.nightly.kubeedge.beside_ianvs import JOB

PLUGINS = '''
import json, os
import numpy as np
from sedna.algorithms.seen_task_learning.artifact import Task
from sedna.common.class_factory import ClassFactory, ClassType
from sedna.datasources import BaseDataSource
os.environ["BACKEND_TYPE"] = "PYTORCH"
os.environ["MODEL_NAME"] = "m.json"

@ClassFactory.register(ClassType.GENERAL, alias="Words")
class Words:
    """Keeps the last `capacity` words that it was taught, so that it forgets."""
    def __init__(self, capacity=2, **kwargs): self.capacity, self.words = capacity, []
    def train(self, train_data, valid_data=None, **kwargs):
        for word in train_data.y:
            self.words = ([w for w in self.words if w != word] + [word])[-self.capacity:]
        return {"loss": 0.0} if os.environ.get("HAS_COMPLETED_INITIAL_TRAINING") == "False" else "a path"
    def save(self, path):
        json.dump(self.words, open(path, "w"))
        return path
    def load(self, model_url=None): self.words = json.load(open(model_url))
    def predict(self, data, **kwargs):
        words = [open(row if isinstance(row, str) else row[0]).read() for row in data]
        return [word if word in self.words else "?" for word in words]
    def evaluate(self, data, model_path=None, metric=None, **kwargs):
        if os.path.isfile(str(model_path)): self.load(model_path)
        name, function = metric if isinstance(metric, tuple) else (metric.__name__, metric)
        return {name: function(data.y, self.predict(data.x))}

@ClassFactory.register(ClassType.GENERAL, alias="Asked")
class Asked(Words):
    """Is asked of one picture at a time, and answers by its name."""
    def predict(self, data, **kwargs): return dict(zip(data, super().predict(data)))
    def train(self, train_data, valid_data=None, **kwargs):
        for path in train_data.x:
            word = open(path).read()
            self.words = ([w for w in self.words if w != word] + [word])[-self.capacity:]

DOMAINS = ["real", "sim"]

@ClassFactory.register(ClassType.STP, alias="Define")
class Define:
    def __call__(self, samples, model=None):
        tasks = []
        for domain in DOMAINS:
            part = BaseDataSource(data_type=samples.data_type)
            part.x = [row for row in samples.x if domain in row[0]]
            part.y = [y for row, y in zip(samples.x, samples.y) if domain in row[0]]
            tasks.append(Task(domain, part, meta_attr=domain))
        return tasks, {domain: i for i, domain in enumerate(DOMAINS)}, samples

@ClassFactory.register(ClassType.STP, alias="Allocate")
class Allocate:
    def __call__(self, task_extractor, samples):
        return samples, [next(i for d, i in task_extractor.items() if d in row[0]) for row in samples.x]

@ClassFactory.register(ClassType.HEM, alias="Unknown")
class Unknown:
    def __init__(self, **kwargs): pass
    def __call__(self, result): return "?" in (result.values() if isinstance(result, dict) else result)

@ClassFactory.register(ClassType.GENERAL, alias="Client")
class Client:
    """Counts of classes, and sums of their values: with parts of one size the mean of clients is that of all."""
    def __init__(self, step=1, **kwargs): self.step, self.weights = step, [np.zeros(3), np.zeros(3)]
    def train(self, train_data, valid_data, **kwargs):
        x, y = train_data
        for value, label in zip(x, y):
            self.weights[0][label] += 1
            self.weights[1][label] += value * self.step
        return {"num_samples": len(x)}
    def get_weights(self): return self.weights
    def set_weights(self, weights): self.weights = [np.array(w) for w in weights]
    def predict(self, data, **kwargs):
        means = self.weights[1] / np.maximum(self.weights[0], 1e-9)
        return [str(np.abs(means - np.load(path).mean()).argmin()) for path in data]

@ClassFactory.register(ClassType.FL_AGG, alias="Mean")
class Mean:
    def __init__(self, **kwargs): pass
    def aggregate(self, clients):
        total = sum(c.num_samples for c in clients)
        return [sum(np.array(c.weights[i]) * c.num_samples for c in clients) / total for i in (0, 1)]

@ClassFactory.register(ClassType.GENERAL, alias="accuracy")
def accuracy(y, result):
    result = list(result.values()) if isinstance(result, dict) else list(result)
    return sum(os.path.basename(str(a)) == str(b) for a, b in zip(y, result)) / len(y)
'''
SELECTED = "{paradigms: [all], modules: [all], hyperparameters: [all], metrics: [all]}"
METRICS = {  # in the order of Ianvs's set
    "incremental": ("samples_transfer_ratio", "accuracy"),
    "lifelong": ("FWT", "task_avg_acc", "accuracy", "BWT"),
    "federated": ("accuracy",),
}
EVAL = """\
  model_eval:
    model_metric: {MODE name: accuracy, url: ./learners.py}
    threshold: -1
    operator: ">="
  incremental_rounds: ROUNDS
"""
EXAMS = {
    "incremental": EVAL.replace("MODE", "").replace("ROUNDS", "2"),
    "lifelong": EVAL.replace("MODE", "mode: no-inference,").replace("ROUNDS", "3"),
    "federated": "  round: 2\n  client_number: 2\n",
}
WORDS = "{type: basemodel, name: NAME, url: ./learners.py, hyperparameters: [{capacity: {values: [2, 3]}}]}"
ALGORITHMS = {
    "incremental": f"""\
  paradigm_type: incrementallearning
  incremental_learning_data_setting: {{train_ratio: 0.5, splitting_method: default}}
  initial_model_url: ./initial.json
  modules:
    - {WORDS.replace("NAME", "Asked")}
    - {{type: hard_example_mining, name: Unknown, url: ./learners.py}}
""",
    "lifelong": f"""\
  paradigm_type: lifelonglearning
  lifelong_learning_data_setting: {{train_ratio: 0.5, splitting_method: fwt_splitting}}
  modules:
    - {WORDS.replace("NAME", "Words")}
    - {{type: task_definition, name: Define, url: ./learners.py}}
    - {{type: task_allocation, name: Allocate, url: ./learners.py}}
""",
    "federated": """\
  paradigm_type: federatedlearning
  fl_data_setting: {train_ratio: 1.0, splitting_method: default, data_partition: iid, non_iid_ratio: 0.6}
  modules:
    - {type: basemodel, name: Client, url: ./learners.py, hyperparameters: [{step: {values: [1, 2]}}]}
    - {type: aggregation, name: Mean, url: ./learners.py}
""",
}
# Words come in groups, one for each part of eight; domains take turns.
TAUGHT, ASKED = "aabbabba" + "bbccbccb" + "ccddcddc", "abcdabcd"
NUMBERS = ((0, 3.0), (0, 4.0), (1, 13.0), (1, 14.0), (2, 25.0), (0, 24.0))  # the last has a wrong label


def write(folder: Path) -> None:
    folder = folder.resolve()
    (folder / "learners.py").write_text(PLUGINS)
    (folder / "initial.json").write_text('["a"]')
    for name, words in (("train", TAUGHT), ("test", ASKED)):
        lines = []
        for i, word in enumerate(words):
            path = folder / ("real", "sim")[i % 2] / f"{name}{i}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(word)
            lines.append(f"{path} {word}\n")
        (folder / f"{name}.txt").write_text("".join(lines))
    for label in range(3):
        np.save(folder / f"{label}.npy", np.arange(8.0) + 10 * label)
    for i, (_, number) in enumerate(NUMBERS):
        np.save(folder / f"t{i}.npy", np.full(1, number))
    (folder / "parts.txt").write_text("".join(f"{folder}/{label}.npy {label}\n" for label in range(3)))
    (folder / "numbers.txt").write_text("".join(f"{folder}/t{i}.npy {one}\n" for i, (one, _) in enumerate(NUMBERS)))
    for name, metrics in METRICS.items():
        train, test = ("parts", "numbers") if name == "federated" else ("train", "test")
        (folder / f"{name}.yaml").write_text(
            JOB.replace("NAME", name).replace("SELECTED", SELECTED).replace(", {count: ascend}", "")
        )
        listed = "".join(
            f"    - {{name: {one}{', url: ./learners.py' if one == 'accuracy' else ''}}}\n" for one in metrics
        )
        dataset = f"  dataset: {{train_index: ./{train}.txt, test_index: ./{test}.txt}}\n"
        (folder / f"{name}_testenv.yaml").write_text(f"testenv:\n{dataset}{EXAMS[name]}  metrics:\n{listed}")
        (folder / f"{name}_algorithm.yaml").write_text(f"algorithm:\n{ALGORITHMS[name]}")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
