"""jointinference: a small model at the edge, a large one in the cloud, and a filter that selects who predicts."""

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from ianvs.base.errors import PluginError
from ianvs.exam.paradigms.link import size_of
from ianvs.kubeedge.calls import Estimator, offer
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.paradigms.exchange import Exchange, costs
from ianvs.kubeedge.paradigms.mining_free import MODE, mining_free
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.config import Context
from ianvs.kubeedge.provided.datasources import BaseDataSource
from ianvs.kubeedge.yaml.file_models import HUB_NAME


def run(case: Case) -> Outcome:
    """Return a result for each item of the test file: [hard, result, the edge's, the cloud's], or that of
    self-design.
    """
    shared = case.work.shared or case.root.parent
    os.environ["RESULT_SAVED_URL"] = str(shared)
    shared.mkdir(parents=True, exist_ok=True)
    case.report("waiting for other cases of the algorithm, which share RESULT_SAVED_URL")
    with FileLock(str(shared / ".lock")):
        case.report("inference")
        return _inferred(case)


def _inferred(case: Case) -> Outcome:
    data = case.source(case.data("test"), "inference")
    processor = case.modules.get("dataset_processor")
    if processor is not None:
        with case.calling("dataset_processor", "call"):
            data = processor(data)
    hem = None
    if case.work.exam.hard_example_mining_mode == MODE and "inference_scheme" not in case.modules:
        outcome = mining_free(case, data)
    else:
        hem, outcome = _routed(case, data)
    for type_, thing in (*case.modules.items(), ("hard_example_mining", hem)):
        if hasattr(thing, "cleanup"):
            with case.calling(type_, "cleanup"):
                thing.cleanup()
    outcome.handed_test_labels = processor is not None
    return outcome


def _routed(case: Case, data: BaseDataSource) -> tuple[Any, Outcome]:
    """Return (results with mined hard examples, the outcome) of an edge's and a cloud's model."""
    edge_model, cloud = case.required_modules("edgemodel", "cloudmodel")
    mining = case.modules.get("hard_example_mining", {})
    if mining.get("method") == "OracleRouter":
        param = {**mining.get("param", {}), "edgemodel": edge_model, "cloudmodel": cloud}
        case.modules["hard_example_mining"] = {**mining, "param": param}
    edge = Estimator(edge_model)
    _load(case, edge)
    hem = case.instantiate("hard_example_mining")
    mode = case.work.exam.hard_example_mining_mode
    scheme = case.instantiate("inference_scheme")
    if scheme is None:
        results = [_answer(case, edge, cloud, hem, item, mode) for item in data.x]
        measures = _routes(case, data.x, results)
    else:
        exchanges = [Exchange(case, edge_model, cloud) for _ in data.x]
        results = []
        for item, exchange in zip(data.x, exchanges, strict=True):
            with case.calling("inference_scheme", "answer"):
                results.append(scheme.answer(item, exchange))
        rounds = [exchange.rounds for exchange in exchanges]
        measures = {"cloud_rounds": [len(some) for some in rounds]}
        measures |= costs(case.work.exam, [exchange.edge_calls for exchange in exchanges], rounds)
    return hem, Outcome(result=results, measures=measures)


def _load(case: Case, edge: Estimator) -> None:
    """Load the edge's model from MODEL_URL, if that is a file, or from the variable model_path."""
    url = os.environ.get("MODEL_URL", "")
    path = url if url and Path(url).is_file() else str(Context.get_parameters("model_path", ""))
    if not path:
        return
    hub = not Path(path).exists()
    if hub and not HUB_NAME.fullmatch(path):
        raise PluginError(
            f"FileExistsError: {path} miss: the edge model that model_path names is no file, and no name of a hub.",
            code="missing-file",
        )
    with case.calling("edgemodel", "load"):
        edge.load(path, hub=hub)


def _answer(case: Case, edge: Estimator, cloud: Any, hem: Callable[..., object], item: object, mode: str) -> object:
    keywords = {"mining_mode": mode}

    def at_edge() -> object:
        with case.calling("edgemodel", "predict"), case.timed("edge"):
            return edge.predict(item, **keywords)

    if mode == "self-design":
        return at_edge()
    edge_first = mode == "inference-then-mining"
    answer = at_edge() if edge_first else None
    shown = copy.deepcopy(answer)
    with case.calling("hard_example_mining", "call"), case.timed("mining"):
        hard = hem(shown if edge_first else item)
    if hard:
        with case.calling("cloudmodel", "inference"), case.timed("cloud"):
            better = offer(cloud.inference, item, post_process=None, **keywords)
        return [hard, copy.deepcopy(better), answer, better]
    if not edge_first:
        answer = at_edge()
        shown = copy.deepcopy(answer)
    return [hard, shown, answer, None]


def _routes(case: Case, items: Iterable[object], results: Sequence[Any]) -> dict[str, object]:
    """Return the costs of the mining modes, one round for each result of the cloud; {} if results do not show them."""
    if not results or not all(isinstance(result, list | tuple) and len(result) == 4 for result in results):
        return {}
    edge_calls = [int(edge is not None) for _, _, edge, _ in results]
    answered = zip(items, (result[3] for result in results), strict=True)
    rounds = [[] if cloud is None else [(size_of(item), size_of(cloud))] for item, cloud in answered]
    return costs(case.work.exam, edge_calls, rounds)
