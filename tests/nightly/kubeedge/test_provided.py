"""The names that plugins import, and how they behave: worked values from the specification."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from ianvs.kubeedge.provide import provide
from ianvs.kubeedge.provided.aggregation import AggClient, FedAvg
from ianvs.kubeedge.provided.class_factory import ClassFactory, ClassType
from ianvs.kubeedge.provided.config import BaseConfig, Context
from ianvs.kubeedge.provided.datasources import (
    CSVDataParse,
    JSONDataParse,
    JsonlDataParse,
    JSONMetaDataParse,
    TxtDataParse,
)
from ianvs.kubeedge.provided.file_ops import FileOps
from ianvs.kubeedge.provided.hard_examples import CrossEntropyFilter, IBTFilter, RandomFilter, ThresholdFilter
from tests.errors import errors_of
from tests.nightly.kubeedge.children import in_child, other_sedna

IMPORTS = """
from sedna.common.class_factory import ClassFactory, ClassType
from sedna.common.config import Context, BaseConfig
from sedna.common.file_ops import FileOps
from sedna.common.log import LOGGER
from sedna.common.utils import get_host_ip
from sedna.datasources import BaseDataSource, TxtDataParse, CSVDataParse
from sedna.datasources import JSONDataParse, JsonlDataParse, JSONMetaDataParse
from sedna.algorithms.seen_task_learning.artifact import Task, TaskGroup, Model
from sedna.algorithms.aggregation.aggregation import BaseAggregation
from sedna.algorithms.aggregation import AggClient, FedAvg
from core.common.log import LOGGER as CORE
from core.common.utils import is_local_file, is_local_dir, get_file_format, yaml2dict, load_module, get_local_time
from core.common.constant import ParadigmType
from core.common import utils
"""


def _import_everything(own: Path) -> dict[str, object]:
    provide()
    provide()  # a second call changes nothing
    names: dict[str, object] = {}
    exec(IMPORTS, names)
    sys.path.append(str(own))
    import core.extra

    refusals = {}
    for line in (
        "from sedna.datasources import IndexDataParse",
        "import sedna.core.lifelong_learning",
        "import core.testcasecontroller",
    ):
        with pytest.raises(ImportError) as refused:
            exec(line, {})
        refusals[line] = str(refused.value)
    source = names["BaseDataSource"]()
    source.x = [1, 2]
    return {
        "home": source.__class__.__module__,
        "again": pickle.loads(pickle.dumps(source)).x,
        "logger": (names["LOGGER"].name, names["CORE"].name, names["CORE"].propagate, names["CORE"].level),
        "extra": core.extra.HERE,
        "refusals": refusals,
        "hard": sorted(ClassFactory.__registry__["hard_example_mining"]),
        "getattr": getattr(sys.modules["sedna"], "numpy", "nothing"),
    }


@pytest.mark.parametrize("another", [False, True], ids=["no sedna", "another sedna"])
def test_the_provided_modules_win_over_whatever_is_installed(tmp_path, another):
    own = tmp_path / "own"
    (own / "core").mkdir(parents=True)
    (own / "core" / "extra.py").write_text("HERE = 'mine'\n")
    seen = in_child(_import_everything, own, sedna=other_sedna(tmp_path / "site") if another else None)
    assert seen["home"] == "sedna.datasources" and seen["again"] == [1, 2]
    assert seen["logger"] == ("sedna", "ianvs", False, 20)
    assert seen["extra"] == "mine"
    assert seen["hard"] == ["CrossEntropy", "IBT", "Random", "Threshold"]
    assert seen["getattr"] == "nothing"
    for text in seen["refusals"].values():
        assert "is not provided" in text and "\n" not in text


def test_nothing_is_installed_by_importing_the_package():
    importlib.import_module("ianvs.kubeedge.provide")
    assert "sedna" not in sys.modules and all("kubeedge" not in type(f).__module__ for f in sys.meta_path)


def test_the_registry_keeps_the_last_of_two_and_says_what_it_has():
    def scenario() -> list[object]:
        first = ClassFactory.register(ClassType.GENERAL, alias="f")(len)
        ClassFactory.register("general", "f")(max)
        with pytest.raises(ValueError, match=r"'g'.*'general'.* f"):
            ClassFactory.get_cls(type_name="general", t_cls_name="g")
        ClassFactory.register_cls(min, ClassType.STP)
        return [
            first is len,
            ClassFactory.get_cls("general", "f") is max,
            ClassFactory.is_exists("seen_task_processing", "min"),
            ClassFactory.is_exists("general", "min"),
            ClassFactory.is_exists("nothing"),
        ]

    assert in_child(scenario) == [True, True, True, False, False]


def test_context_takes_an_empty_value_for_none(monkeypatch):
    monkeypatch.setenv("model_path", "")
    monkeypatch.setenv("MODEL_PATH", "here")
    assert Context.get_parameters("model_path") == "here"
    assert Context.get_parameters("never_set", 7) == 7
    monkeypatch.setenv("TRAIN_DATASET_URL", "/data")
    assert BaseConfig.train_dataset_url == BaseConfig().train_dataset_url == "/data"


def test_txt_lines_become_strings(tmp_path):
    def parsed(text: str, func=None, **more):
        (tmp_path / "i.txt").write_text(text)
        source = TxtDataParse("train", func)
        source.parse(str(tmp_path / "i.txt"), **more)
        return source

    mixed = parsed("a.png cat\n\n  b.png\n")
    assert mixed.x.tolist() == ["a.png", "b.png"] and mixed.y.tolist() == ["cat", "0"]
    assert parsed("a\nb\n").y.dtype.kind == "i"
    raw = parsed("a 1 x\nb 2 y\n", use_raw=True)
    assert raw.x.tolist() == [["a", "1", "x"], ["b", "2", "y"]] and len(raw.y) == 0

    def lifelong(line):
        return line.split()[:-1], line.split()[-1]

    pairs = parsed("a d 1\n\nb e 2\n", lifelong)
    assert pairs.x.shape == (2, 2) and pairs.x.dtype.kind == "U" and pairs.y.tolist() == ["1", "2"]
    ragged = parsed("a d 1\nb 2\n", lifelong)
    assert ragged.x.dtype == object and ragged.x.tolist() == [["a", "d"], ["b"]]
    missing = TxtDataParse("train")
    missing.parse(str(tmp_path / "nowhere.txt"))
    assert len(missing) == 0 and missing.y.tolist() == []


def test_tables_and_json(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    table = CSVDataParse("eval")
    table.parse(str(tmp_path / "t.csv"), label="label")
    assert table.y.tolist() == ["x", "y"] and list(table.x.columns) == ["a", "b"]
    table.parse(str(tmp_path / "t.csv"))
    assert table.y is None and list(table.x.columns) == ["a", "b", "label"]
    assert errors_of(table.parse, str(tmp_path / "t.csv"), label="lable") == [("unknown-column", "")]

    (tmp_path / "q.jsonl").write_text('{"question": "q", "answer": "a"}\n\n{"question": "r"}\n')
    assert errors_of(JsonlDataParse().parse, str(tmp_path / "q.jsonl")) == [("invalid-record", "")]

    (tmp_path / "metadata.json").write_text(
        json.dumps({"dataset": "d", "description": "e", "level_1_dim": "1", "level_2_dim": "2", "level_4_dim": "4"})
    )
    rows = [{"prompt": "p ", "query": "q", "response": "A", "judge_prompt": "j", "level_3_dim": "l"}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"query": "s", "response": "B"}])))
    about = JSONMetaDataParse("inference")
    assert about.need_other_info
    about.parse(str(tmp_path / "metadata.json"))
    assert about.x.tolist() == ["p q", "s"] and about.y.tolist() == ["A", "B"]
    assert about.judge_prompts.tolist() == ["j", ""] and about.level_3.tolist() == ["l", ""]
    assert about.explanation.tolist() == ["", ""] and about.level_4.tolist() == ["", ""]
    assert about.dataset_name == "d" and about.level_4_dim == "4" and not hasattr(about, "level_3_dim")


def test_files_are_moved_by_upload_and_copied_by_download(tmp_path):
    source = tmp_path / "a" / "m.bin"
    source.parent.mkdir()
    source.write_bytes(b"1")
    there = str(tmp_path / "new" / "deep" / "n.bin")
    assert FileOps.upload(str(source), there) == there
    assert not source.exists() and Path(there).read_bytes() == b"1"
    assert FileOps.upload(there, there) == there and Path(there).exists()
    (tmp_path / "folder").mkdir()
    into = str(tmp_path / "folder")
    assert FileOps.upload(there, into, clean=False) == into
    assert (tmp_path / "folder" / "n.bin").exists() and Path(there).exists()
    copy = FileOps.download(there)
    assert Path(copy).read_bytes() == b"1" and Path(there).exists()
    Path(copy).unlink()
    assert FileOps.join_path("/a", "/b", "c") == "/a/b/c"
    assert FileOps.is_remote("s3://x") and not FileOps.is_remote(there)
    with pytest.raises(OSError, match="another machine"):
        FileOps.upload(there, "s3://bucket/x")
    FileOps.clean_folder([into])
    assert list(Path(into).iterdir()) == []
    stored = FileOps.dump({"w": np.arange(3)}, str(tmp_path / "o.pkl"))
    assert FileOps.load(stored)["w"].tolist() == [0, 1, 2]


def test_hard_example_filters():
    box = [0, 0, 1, 1]
    assert ThresholdFilter(threshold=0.5)([[*box, 0.4], [*box, 0.5]]) is True
    assert ThresholdFilter()([[*box, 0.6], [*box, 0.4]]) is False
    assert ThresholdFilter()([]) is False and ThresholdFilter()([box]) is False
    # 1 + (2 * 0.5 ln 0.5) / ln 2 = 0; and 1 + 0 / ln 2 = 1, with 0 ln 0 = 0
    assert CrossEntropyFilter()([0.5, 0.5]) is True and CrossEntropyFilter()([1.0, 0.0]) is False
    assert CrossEntropyFilter()([1.0]) is False and CrossEntropyFilter()([1.5, 0.1]) is False
    two_of_four = [[*box, score] for score in (0.1, 0.5, 0.6, 0.9)]
    assert IBTFilter(threshold_img=0.5)(two_of_four) is True
    assert IBTFilter(threshold_img=0.4)(two_of_four) is False
    assert IBTFilter()([[*box, 1.2]]) is False and IBTFilter()([]) is False
    assert RandomFilter(1.0)("anything", at="all") is True and RandomFilter(0.0)() is False


def test_federated_averaging_by_hand():
    clients = []
    for number, weights in ((1, [[1.0, 2.0], [[3.0]]]), (3, [[5.0, 6.0], [[7.0]]])):
        client = AggClient()
        client.num_samples, client.weights = number, [np.array(w) for w in weights]
        clients.append(client)
    average = FedAvg()
    assert average.aggregate(clients) == [[4.0, 5.0], [[6.0]]]  # (1 * 1 + 5 * 3) / 4 and so on
    assert average.total_size == 4 and average.aggregate([]) == [[4.0, 5.0], [[6.0]]]


def test_a_coco_json_that_is_not_of_a_tracking_set(tmp_path):
    pytest.importorskip("pycocotools")
    boxes = [(1, 7, [1, 2, 3, 4]), (1, 9, [0, 0, 5, 5]), (2, 7, [2, 2, 2, 2])]
    whole = {
        "images": [{"id": i, "height": 10, "width": 20, "file_name": f"{i}.jpg"} for i in (1, 2, 3)],
        "categories": [{"id": 9, "name": "cat"}, {"id": 7, "name": "dog"}],
        "annotations": [
            {"id": n, "image_id": image, "category_id": kind, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for n, (image, kind, box) in enumerate(boxes, 1)
        ],
    }
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/test.json").write_text(json.dumps(whole))
    source = JSONDataParse("eval overall")
    source.parse(str(tmp_path / "annotations/test.json"))
    assert [array.tolist() for array in source.y] == [
        [[1, 2, 4, 6, 0, -1], [0, 0, 5, 5, 1, -1]],
        [[2, 2, 4, 4, 0, -1]],
        [],
    ]
    assert source.x["annotations"][0][1:] == ((10, 20, -1, -1, "1.jpg"), "1.jpg")
