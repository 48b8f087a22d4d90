"""The contract `functions`: a plugin is a file with `fit(x, y, state)` and `answer(x, state)`, and no class at all."""

import ast
import json
import time
from pathlib import Path

import numpy as np

from ianvs.base.errors import ConfigError, ValidationError
from ianvs.base.types import RoundResult
from ianvs.config.contracts import Contract, ContractResult, MetricFacts
from ianvs.exam.data.parts import Part, columns_of
from ianvs.exam.scenarios import open_exam
from ianvs.plugins.loader import load_object

FUNCTIONS = ("fit", "answer")


class Functions(Contract):
    name = "functions"

    def metric(self, spec):
        if spec.name != "accuracy":
            message = f"`contract: functions` computes accuracy alone, and no '{spec.name}'."
            raise ConfigError([ValidationError(message, spec.place, code="unknown-metric")])
        return MetricFacts("Share of right answers after the last round; the mean over test sets.")

    def code_problems(self, job):
        for module in (module for algorithm in job.algorithms for module in algorithm.modules):
            tree = ast.parse(Path(module.url).read_text())
            defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            for name in FUNCTIONS:
                if name not in defined:
                    message = f"{module.name} has no function {name}()."
                    yield ValidationError(message, module.places["url"], code="broken-contract")

    def run(self, case, report):
        stored = case.folder / "rounds.json"
        if stored.exists():
            return
        [module] = case.algorithm.modules
        fit, answer = (load_object(module.url, name) for name in FUNCTIONS)
        np.random.seed(case.seed)
        exam, state, rounds = open_exam(case.testenv, case.cache), None, []
        for number, round_ in enumerate(exam.rounds, 1):
            report(f"round {number}")
            taught = columns_of([Part(exam.dataset.train, round_.train, round_.transform, round_.labels)])
            x, y = taught["x"].gather(), taught["y"].gather()
            began = time.perf_counter()
            state = fit(x, y, state, **case.hyperparameters[module.type])
            seconds = time.perf_counter() - began
            answers = [np.asarray(answer(test_part["x"].gather(), state)).tolist() for test_part in _tests(exam)]
            rounds.append({"name": round_.name, "samples": len(y), "seconds": seconds, "answers": answers})
        stored.write_text(json.dumps(rounds))

    def score(self, case):
        truth = [test_part["y"].gather() for test_part in _tests(open_exam(case.testenv, case.cache))]
        stored = json.loads((case.folder / "rounds.json").read_text())
        R = [
            [float(np.mean(y == predictions)) for y, predictions in zip(truth, round_["answers"])] for round_ in stored
        ]
        rounds = [RoundResult(0, "")]  # before any training
        for number, cost in enumerate(stored, 1):
            rounds.append(RoundResult(number, cost["name"], cost["samples"], train_seconds=cost["seconds"]))
        return ContractResult({"accuracy": float(np.mean(R[-1]))}, rounds, metric="accuracy", R=R)


def _tests(exam):
    return [columns_of([Part(exam.dataset.test, test.test, test.transform)]) for test in exam.tests]
