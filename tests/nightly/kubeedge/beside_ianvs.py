"""Two toy jobs, and what Ianvs itself (commit 1d3da5b, sedna 0.6.0.1, pandas 3.1.1, PYTHONHASHSEED=0) made of them.

`python -m tests.nightly.kubeedge.beside_ianvs FOLDER` writes the jobs; call there `PYTHONHASHSEED=0 PYTHONPATH=CHECKOUT
python CHECKOUT/benchmarking.py -f NAME.yaml`. The order of its metrics is that of a set, so it is arbitrary: ORDERS has
it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

PLUGINS = '''
import json, os
import numpy as np
from sedna.common.class_factory import ClassFactory, ClassType
os.environ["BACKEND_TYPE"] = "PYTORCH"

@ClassFactory.register(ClassType.GENERAL, alias="Toy")
class Toy:
    def __init__(self, lr=0.1, sizes=(), **kw): self.lr, self.sizes = lr, sizes
    def preprocess(self): return None
    def train(self, data, **k): self.words = list(data.y)
    def save(self, path):
        os.makedirs(path, exist_ok=True)
        place = os.path.join(path, "m.json")
        json.dump(self.words, open(place, "w"))
        return place
    def load(self, path): self.words = json.load(open(path))
    def predict(self, x, **k):
        return [self.words[int(i * float(self.lr) * len(self.sizes)) % len(self.words)] for i in range(len(x))]

@ClassFactory.register(ClassType.GENERAL, alias="Edge")
class Edge:
    def __init__(self, model="toy/edge-1", **kwargs): os.environ["model_path"] = model
    def load(self, model_url=None): pass
    def predict(self, data, **kwargs): return {"answer": data.upper() if len(data) < 3 else "?"}

@ClassFactory.register(ClassType.GENERAL, alias="Cloud")
class Cloud:
    """Answers from a cache in RESULT_SAVED_URL, which it fills; a second case finds what the first has asked."""
    def __init__(self, model="big", slow=0, **kwargs): self.slow = slow
    def inference(self, data, **kwargs):
        import time
        place = os.path.join(os.environ["RESULT_SAVED_URL"], "cache.json")
        known = json.load(open(place)) if os.path.exists(place) else {}
        time.sleep(self.slow)
        known.setdefault(data, {"answer": data.upper(), "asked": 0})["asked"] += 1
        json.dump(known, open(place, "w"))
        return known[data]

@ClassFactory.register(ClassType.HEM, alias="Long")
class Long:
    def __init__(self, model=3): self.least = model
    def __call__(self, data): return len(data) >= self.least

def given(result): return [r[1]["answer"] if isinstance(r, list) else r for r in result]
@ClassFactory.register(ClassType.GENERAL, alias="accuracy")
def accuracy(y, result): return np.float32(sum(a == b for a, b in zip(y, given(result))) / len(y))
@ClassFactory.register(ClassType.GENERAL, alias="hits")
def hits(y, result): return [int(a == b) for a, b in zip(y, given(result))]
@ClassFactory.register(ClassType.GENERAL, alias="count")
def count(y, result): return sum(a == b for a, b in zip(y, given(result)))
'''
JOB = """\
benchmarkingjob:
  name: NAME
  workspace: ./ws
  testenv: ./NAME_testenv.yaml
  test_object:
    type: algorithms
    algorithms: [{name: toy, url: ./NAME_algorithm.yaml}]
  rank:
    sort_by: [{accuracy: descend}, {count: ascend}]
    visualization: {mode: selected_only, method: print_table}
    selected_dataitem: SELECTED
    save_mode: selected_and_all
"""
METRICS = """\
  metrics:
    - {name: METRIC0, url: ./all.py}
    - {name: METRIC1, url: ./all.py}
    - {name: METRIC2, url: ./all.py}
"""
ORDERS = {"single": ("hits", "count", "accuracy"), "joint": ("hits", "count", "accuracy")}
SELECTED = {
    "single": "{paradigms: [all], modules: [basemodel], hyperparameters: [basemodel-lr], metrics: [count, accuracy]}",
    "joint": "{paradigms: [all], modules: [hard_example_mining], hyperparameters: [edgemodel-model], metrics: [count]}",
}
DATASETS = {
    "single": "train_index: ./train.txt, test_index: ./test.txt",
    "joint": "train_data: ./q.jsonl, test_data: ./q.jsonl",
}
ALGORITHMS = {
    "single": """\
algorithm:
  paradigm_type: singletasklearning
  modules:
    - type: basemodel
      name: Toy
      url: ./all.py
      hyperparameters:
        - lr: {values: [0.5, 1.5, 0.25]}
        - sizes: {values: [[1, 2], [1], [3]]}
""",
    "joint": """\
algorithm:
  paradigm_type: jointinference
  modules:
    - {type: hard_example_mining, name: Long, url: ./all.py, hyperparameters: [{model: {values: [2, 3, 9]}}]}
    - {type: edgemodel, name: Edge, url: ./all.py, hyperparameters: [{model: {values: [toy/edge-1]}}]}
    - {type: cloudmodel, name: Cloud, url: ./all.py, hyperparameters: [{model: {values: [big, small]}}]}
""",
}
TRUE = "cow dog cat cow dog cow cow cat dog", "dog cat cow cow cat cow dog dog dog cat cow dog"


def write(folder: Path) -> None:
    (folder / "all.py").write_text(PLUGINS)
    questions = [{"question": q, "answer": q.upper()} for q in ("a", "bb", "ccc", "dddd")]
    (folder / "q.jsonl").write_text("".join(f"{json.dumps(q)}\n" for q in questions))
    for part, labels in zip(("test", "train"), TRUE, strict=True):
        lines = [f"{part}{i}.png {label}\n" for i, label in enumerate(labels.split())]
        for line in lines:
            (folder / line.split()[0]).write_text(line)
        (folder / f"{part}.txt").write_text("".join(lines))
    for name, metrics in ORDERS.items():
        job = JOB.replace("NAME", name).replace("SELECTED", SELECTED[name])
        (folder / f"{name}.yaml").write_text(job)
        listed = METRICS
        for i, metric in enumerate(metrics):
            listed = listed.replace(f"METRIC{i}", metric)
        (folder / f"{name}_testenv.yaml").write_text(f"testenv:\n  dataset: {{{DATASETS[name]}}}\n{listed}")
        (folder / f"{name}_algorithm.yaml").write_text(ALGORITHMS[name])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
