"""jointinference: a small model at the edge, a large one in the cloud, and a filter that decides who answers."""

import copy
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from ianvs.base.errors import PluginError
from ianvs.exam.paradigms.link import Link, size_of
from ianvs.kubeedge.calls import Estimator, offer
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.paradigms.exchange import Exchange
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.config import Context
from ianvs.kubeedge.yaml.file_models import HUB_NAME


def run(case: Case) -> Outcome:
    """One result for each item of the test file: [hard, result, the edge's, the cloud's], or what self-design gives."""
    shared = case.work.shared or case.root.parent
    os.environ["RESULT_SAVED_URL"] = str(shared)
    shared.mkdir(parents=True, exist_ok=True)
    case.report("waiting for other cases of the algorithm, which share RESULT_SAVED_URL")
    with FileLock(str(shared / ".lock")):
        case.report("inference")
        return _inferred(case)


def _inferred(case: Case) -> Outcome:
    edge_model, cloud, mining = case.need("edgemodel", "cloudmodel", "hard_example_mining")
    data = case.source(case.data("test"), "inference")
    processor = case.modules.get("dataset_processor")
    if processor is not None:
        with case.calling("dataset_processor", "call"):
            data = processor(data)
    if mining.get("method") == "OracleRouter":
        param = {**mining.get("param", {}), "edgemodel": edge_model, "cloudmodel": cloud}
        case.modules["hard_example_mining"] = {**mining, "param": param}
    edge = Estimator(edge_model)
    _load(case, edge)
    hem = case.made("hard_example_mining")
    mode = case.work.exam.hard_example_mining_mode
    scheme = case.made("inference_scheme")
    if scheme is None:
        results = [_answer(case, edge, cloud, hem, item, mode) for item in data.x]
        measures = _routes(case, data.x, results)
    else:
        exchange = Exchange(case, edge_model, cloud)
        results = [_by_scheme(case, scheme, exchange, item) for item in data.x]
        measures = _summed(exchange.measures())
    for type_, thing in (*case.modules.items(), ("hard_example_mining", hem)):
        if hasattr(thing, "cleanup"):
            with case.calling(type_, "cleanup"):
                thing.cleanup()
    return Outcome(result=results, handed_test_labels=processor is not None, measures=measures)


def _by_scheme(case: Case, scheme: Any, exchange: Exchange, item: object) -> object:
    exchange.begin()
    with case.calling("inference_scheme", "answer"):
        return scheme.answer(item, exchange)


def _load(case: Case, edge: Estimator) -> None:
    """Load the edge's model from MODEL_URL, if that is a file, or from the variable model_path."""
    url = os.environ.get("MODEL_URL", "")
    path = url if url and Path(url).is_file() else str(Context.get_parameters("model_path", ""))
    if not path:
        return
    hub = not Path(path).exists()
    if hub and not HUB_NAME.fullmatch(path):
        raise PluginError(
            f"FileExistsError: {path} miss: the edge model that model_path names is no file, and no name of a hub."
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
    """Which results the cloud gave, the share that the edge gave alone, bytes between them, and the simulated time that
    an answer took where the testenv has a link; nothing where results don't say.
    """
    if not results or not all(isinstance(result, list | tuple) and len(result) == 4 for result in results):
        return {}
    exam = case.work.exam
    cloud = [result[3] is not None for result in results]
    up = [size_of(item) if sent else 0 for item, sent in zip(items, cloud, strict=True)]
    down = [size_of(result[3]) for result in results]
    found: dict[str, list[Any]] = {"cloud": cloud, "uploaded_bytes": up, "downloaded_bytes": down}
    if exam.link is not None:
        link = Link(rtt_ms=exam.link.rtt_ms, up_mbps=exam.link.up_mbps, down_mbps=exam.link.down_mbps)
        away = [exam.cloud_ms + link.milliseconds(u, d) for u, d in zip(up, down, strict=True)]
        found["took"] = [
            exam.edge_ms * (result[2] is not None) + away[i] * cloud[i] for i, result in enumerate(results)
        ]
    return _summed(found)


def _summed(found: dict[str, list[Any]]) -> dict[str, object]:
    """With the share that the edge gave alone, and mean and 95th percentile of the simulated time."""
    took, cloud = found.pop("took", []), found["cloud"]
    summed: dict[str, object] = {**found, "edge_share": 1 - sum(cloud) / len(cloud) if cloud else None}
    if took:
        rank = math.ceil(0.95 * len(took)) - 1
        summed |= {"latency_ms": sum(took) / len(took), "latency_p95_ms": sorted(took)[rank]}
    return summed
