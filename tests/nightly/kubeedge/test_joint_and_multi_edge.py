"""jointinference and multiedgeinference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.run import run
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, ExamSettings, LinkSpec
from tests.errors import recorded
from tests.nightly.kubeedge.children import errors_in_child, other_sedna
from tests.nightly.kubeedge.sample_plugins import finish, plugin, samples

# The edge knows short questions only. All notes go to one list that lives in the modules.
MODULES = """
@ClassFactory.register(ClassType.GENERAL, alias="Edge")
class Edge:
    def __init__(self, model="toy/edge-1", **kwargs):
        os.environ["model_path"] = model
        self.calls = []
    def load(self, model_url):
        self.calls.append(["load", model_url])
    def predict(self, data, *, mining_mode=None):
        self.calls.append(mining_mode)
        return {"answer": data.upper() if len(data) < 3 else "?", "score": 1.0 if len(data) < 3 else 0.1}
    def cleanup(self):
        self.calls.append("cleanup")
        open(Context.get_parameters("RESULT_SAVED_URL") + "/edge.json", "w").write(json.dumps(self.calls))

@ClassFactory.register(ClassType.GENERAL, alias="Cloud")
class Cloud:
    def inference(self, data, post_process=1):
        assert post_process is None
        return {"answer": data.upper(), "score": 1.0}

@ClassFactory.register(ClassType.HEM, alias="Long")
class Long:
    def __init__(self, least=3): self.least = least
    def __call__(self, data): return len(data) >= self.least and "long"

@ClassFactory.register(ClassType.HEM, alias="Unsure")
class Unsure:
    def __call__(self, result):
        result["seen"] = True              # of a copy
        return result["score"] < 0.5

@ClassFactory.register(ClassType.HEM, alias="OracleRouter")
class OracleRouter:
    def __init__(self, edgemodel, cloudmodel, least): self.least, self.both = least, (edgemodel, cloudmodel)
    def __call__(self, data): return all(self.both) and len(data) >= self.least

@ClassFactory.register(ClassType.GENERAL, alias="Trim")
class Trim:
    def __call__(self, source):
        source.x = [text.strip() for text in source.x]
        return source
"""
EDGE = frozenset({"edge.json", ".lock"})  # the plugin puts it there: RESULT_SAVED_URL is the parent of W
LOCK = frozenset({".lock"})
SPECULATIVE = Path(__file__).parents[3] / "examples" / "speculative_decoding"
EXACT = """
@ClassFactory.register(alias="exact")
def exact(y, results):
    return sum(label == result[1]["answer"] for label, result in zip(y, results)) / len(y)
"""


def joint(folder: Path, miner: str = "Long", **values: object) -> Work:
    url = plugin(folder / "p", "all", MODULES)
    data = folder / "q.jsonl"
    questions = ["a ", "bb", "ccc", "dddd"]
    data.write_text("\n".join(json.dumps({"question": q, "answer": q.strip().upper()}) for q in questions))
    modules = (
        Module("edgemodel", "Edge", url),
        Module("cloudmodel", "Cloud", url),
        Module("dataset_processor", "Trim", url),
        Module("hard_example_mining", miner, url, values),
    )
    return Work("jointinference", folder / "W", modules, train=str(folder / "x.json"), test=str(data))


@pytest.mark.parametrize("another", [False, True], ids=["no sedna", "another sedna"])
def test_mining_then_inference_sends_hard_items_to_the_cloud(tmp_path, another):
    metrics = [MetricSpec("exact", Path(plugin(tmp_path / "p", "exact", EXACT))), MetricSpec("samples_transfer_ratio")]
    sedna = other_sedna(tmp_path / "site") if another else None
    numbers, result, scores = finish(joint(tmp_path), metrics, sedna, EDGE)
    assert scores.scores == {"exact": 1.0, "samples_transfer_ratio": None}
    assert [row[0] for row in result] == [False, False, "long", "long"]
    assert [row[2] is None for row in result] == [False, False, True, True]
    assert [row[3] is None for row in result] == [True, True, False, False]
    assert numbers["measures"]["cloud"] == [False, False, True, True] and numbers["measures"]["edge_share"] == 0.5
    assert numbers["handed_test_labels"] is True  # the dataset_processor was handed the source
    mode = "mining-then-inference"
    assert json.loads((tmp_path / "edge.json").read_text()) == [["load", "toy/edge-1"], mode, mode, "cleanup"]


@pytest.mark.slow
def test_the_other_modes_and_the_oracle(tmp_path):
    later = replace(joint(tmp_path, "Unsure"), exam=ExamSettings(hard_example_mining_mode="inference-then-mining"))
    _, result, _ = finish(later, also=EDGE)
    assert [row[0] for row in result] == [False, False, True, True]
    assert result[2][1] == {"answer": "CCC", "score": 1.0} and result[2][2] == {"answer": "?", "score": 0.1}
    assert result[0][1] == {"answer": "A", "score": 1.0, "seen": True} and "seen" not in result[0][2]
    own = replace(later, folder=tmp_path / "own", exam=ExamSettings(hard_example_mining_mode="self-design"))
    assert finish(own, also=EDGE)[1][0] == {"answer": "A", "score": 1.0}
    oracle = replace(joint(tmp_path, "OracleRouter", least=4), folder=tmp_path / "oracle")
    assert [row[0] for row in finish(oracle, also=EDGE)[1]] == [False, False, False, True]


def speculative(folder: Path, ahead: int) -> Work:
    """The example of speculative decoding."""
    files = {name: str(SPECULATIVE / f"{name}.py") for name in ("models", "scheme")}
    modules = (
        Module("edgemodel", "Draft", files["models"]),
        Module("cloudmodel", "Target", files["models"]),
        Module("hard_example_mining", "Always", files["models"]),
        Module("inference_scheme", "SpeculativeDecoding", files["scheme"], {"ahead": ahead}),
    )
    exam = ExamSettings(link=LinkSpec(rtt_ms=40, up_mbps=10, down_mbps=50), edge_ms=5, cloud_ms=30)
    return Work("jointinference", folder / "W", modules, exam=exam, test=str(SPECULATIVE / "questions.jsonl"))


@pytest.mark.slow
def test_a_further_scheme_is_one_file_and_each_of_its_rounds_crosses_the_link(tmp_path):
    exact = [MetricSpec("exact", SPECULATIVE / "models.py")]
    alone, drafted = (finish(speculative(tmp_path / str(n), n), exact, also=LOCK) for n in (0, 4))
    assert [row[1] for row in alone[1]] == [row[1] for row in drafted[1]]  # drafting changes no word
    assert alone[2].scores == drafted[2].scores == {"exact": 1.0}
    # "count to 3": three words and a look at the end, alone; with drafts, all three are right and the end is seen.
    assert alone[0]["measures"]["cloud_rounds"][0] == 4 and drafted[0]["measures"]["cloud_rounds"][0] == 2
    assert alone[0]["measures"]["edge_share"] == 0.0
    measures, alone_ms = drafted[0]["measures"], alone[0]["measures"]["latency_ms"]
    up, down = sum(measures["uploaded_bytes"]), sum(measures["downloaded_bytes"])
    rounds = sum(measures["cloud_rounds"])
    by_hand = rounds * (40 + 30 + 5) + 8 * up / 10_000 + 8 * down / 50_000  # a draft before each round
    assert measures["latency_ms"] == pytest.approx(by_hand / 4) and measures["latency_ms"] < alone_ms / 2


def test_a_scheme_is_found_by_the_name_of_an_entry_point_and_its_error_names_it(tmp_path, monkeypatch):
    class Point:
        def load(self):
            return Broken

    class Broken:
        def answer(self, item, exchange):
            return exchange.edge("unheard_of", item)

    monkeypatch.setattr("ianvs.kubeedge.loading.installed", lambda group: {"Broken": Point()})
    work = speculative(tmp_path, 0)
    named = replace(work, modules=(*work.modules[:3], Module("inference_scheme", "Broken", None)))

    [error] = errors_in_child(run, named)
    assert "'Broken'" in error.message and "unheard_of" in error.message
    assert error.code == "failed-plugin"


def test_what_joint_inference_refuses(tmp_path):
    work = joint(tmp_path)

    alone = replace(work, modules=work.modules[:1])
    assert recorded(errors_in_child(run, alone)) == [("missing-module", "")]
    lost = replace(work.modules[0], values={"model": "/no/such/file"})
    assert recorded(errors_in_child(run, replace(work, modules=(lost, *work.modules[1:])))) == [("missing-file", "")]


PARALLEL = """
@ClassFactory.register(alias="Parallel")
class Parallel:
    def __init__(self, model_parallel=False):
        self.calls = []
        if model_parallel:
            self.model_parallel = True
    def partition(self, path):
        self.calls.append(["partition", path])
        return "parts", {"sub_model_1.onnx": "cpu"}
    def load(self, *args):
        self.calls.append(["load", *args])
    def predict(self, data, train_dataset=None):
        return [self.calls, [str(x)[-1] for x in data], train_dataset and len(train_dataset)]
"""


def test_multi_edge_hands_over_the_training_set_or_cuts_the_model(tmp_path):
    module = Module("basemodel", "Parallel", plugin(tmp_path / "p", "basemodel", PARALLEL))
    train = samples(tmp_path / "d", "train.txt", [("a", "1"), ("b", "2"), ("c", "1")])
    test = samples(tmp_path / "d", "test.txt", [("a", "1"), ("b", "2")])
    work = Work(
        "multiedgeinference",
        tmp_path / "W",
        (module,),
        train,
        test,
        algorithm=AlgorithmSettings(initial_model_url="m.onnx"),
    )
    assert finish(work)[1] == [[["load", "m.onnx"]], ["a", "b"], 3]
    cut = replace(work, folder=tmp_path / "V", modules=(replace(module, values={"model_parallel": True}),))
    calls = [["partition", "m.onnx"], ["load", "parts", {"sub_model_1.onnx": "cpu"}]]
    assert finish(cut)[1] == [calls, ["a", "b"], None]


@pytest.mark.slow
def test_a_simulated_link_counts_texts_and_mappings_by_their_bytes(tmp_path):
    link = LinkSpec(rtt_ms=40, up_mbps=0.001, down_mbps=0.01)  # a bit takes 1 ms up, 0.1 ms down
    work = replace(joint(tmp_path), exam=ExamSettings(link=link, edge_ms=2, cloud_ms=5))
    numbers, _, scores = finish(work, also=EDGE)
    # "ccc" and "dddd" go up; {"answer": "CCC", "score": 1.0} comes down: 3 + 8 bytes.
    assert numbers["measures"]["uploaded_bytes"] == [0, 0, 3, 4]
    assert numbers["measures"]["downloaded_bytes"] == [0, 0, 11, 12]
    took = [2, 2, 5 + 40 + 8 * 3 + 0.8 * 11, 5 + 40 + 8 * 4 + 0.8 * 12]
    measures = scores.rounds[-1].measures
    assert measures["latency_ms"] == pytest.approx(sum(took) / 4)
    assert measures["latency_p95_ms"] == pytest.approx(took[-1])
    assert (measures["uploaded_bytes"], measures["downloaded_bytes"]) == (7, 23)
    both = replace(joint(tmp_path, "Unsure"), folder=tmp_path / "V")
    both = replace(both, exam=replace(work.exam, hard_example_mining_mode="inference-then-mining"))
    numbers, _, _ = finish(both, also=EDGE)  # what goes on to the cloud has been at the edge first
    assert numbers["measures"]["latency_ms"] == pytest.approx((sum(took) + 2 * 2) / 4)
    without = finish(replace(work, exam=ExamSettings(), folder=tmp_path / "U"), also=EDGE)[0]["measures"]
    assert "latency_ms" not in without and without["uploaded_bytes"] == [0, 0, 3, 4]
