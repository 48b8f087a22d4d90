"""singletasklearning, loading of modules, errors, and what metrics are handed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.run import problems, run
from ianvs.kubeedge.scores import score
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.settings import AlgorithmSettings
from tests.errors import printed, recorded
from tests.nightly.kubeedge.children import errors_in_child, in_child, other_sedna
from tests.nightly.kubeedge.sample_plugins import DIE, finish, killed, metric, plugin, samples

# Learns the words that its files hold, and answers by opening the files; of every tenth it says "none".
READER = """
MADE = []

@ClassFactory.register(ClassType.GENERAL, alias="Reader")
class Reader:
    def __init__(self, skip=10, **kwargs):
        self.skip, self.calls = skip, []
        MADE.append(self)

    def preprocess(self):
        self.calls.append("preprocess")
        return "something"

    def train(self, data, **kwargs):
        assert not kwargs
        assert data.x.dtype.kind == data.y.dtype.kind == "U", (data.x, data.y)
        self.words = sorted({open(path).read() for path in data.x})
        self.calls.append(["train", data.data_type, os.environ["BASE_MODEL_URL"], os.environ["LOCAL_TEST"]])

    def save(self, path):
        assert path.endswith("/output/train/") and os.path.isdir(path)
        self.calls.append("save")
        with open(path + "m.gguf", "w") as file:
            json.dump(self.words, file)
        return path + "m.gguf"

    def load(self, path):
        self.calls.append(["load", os.path.basename(path)])
        self.words = json.load(open(path))

    def predict(self, data, **kwargs):
        from helper import answer          # lazily, from the plugin's own folder
        assert isinstance(data[0], str) and os.path.isabs(data[0])
        answers = [answer(open(path).read(), self.words) for path in data]
        answers[:: self.skip] = ["none"] * len(answers[:: self.skip])
        saved = Context.get_parameters("result_saved_url")
        return {"answers": answers, "made": len(MADE), "calls": self.calls, "saved": saved}
"""
FIRST = """
@ClassFactory.register(ClassType.GENERAL, alias="accuracy")
def accuracy(y, result):
    assert list(result["answers"]) and y.dtype.kind == "U"
    from helper import answer              # metrics import from the folders of modules
    return sum(a == b for a, b in zip(y, result["answers"])) / len(y)

@ClassFactory.register(ClassType.GENERAL, alias="text")
def text(y, result):
    return {"calls": len(result["calls"])}

@ClassFactory.register(ClassType.GENERAL, alias="task_avg_acc")
def task_avg_acc(system):
    return len(system)
"""


def reader(folder: Path, values: dict | None = None) -> Work:
    rows = [(f"img/{i}.txt", "cat" if i % 3 else "dog") for i in range(20)]
    (folder / "plugin").mkdir(parents=True)
    (folder / "plugin" / "helper.py").write_text(
        "def answer(word, words):\n    return word if word in words else '?'\n"
    )
    url = plugin(folder / "plugin", "base.model-v1", READER)
    return Work(
        paradigm="singletasklearning",
        folder=folder / "W",
        modules=(Module("basemodel", "Reader", url, values or {}),),
        train=samples(folder / "data", "train.txt", rows[:5]),
        test=samples(folder / "data", "test.txt", rows),
        algorithm=AlgorithmSettings(initial_model_url="first.bin"),
    )


@pytest.mark.parametrize("another", [False, True], ids=["no sedna", "another sedna"])
def test_single_task_calls_in_order_with_paths_and_words(tmp_path, another):
    work = reader(tmp_path, {"skip": 10})
    sedna = other_sedna(tmp_path / "site") if another else None
    url = plugin(tmp_path / "metrics", "acc", FIRST)
    metrics = [
        MetricSpec("accuracy", Path(url)),
        MetricSpec("text", Path(url)),
        MetricSpec("task_avg_acc", Path(url)),
        MetricSpec("BWT"),
        MetricSpec("MATRIX"),
    ]
    numbers, result, scores = finish(work, metrics, sedna)
    assert result["calls"] == ["preprocess", ["train", "train", "first.bin", "TRUE"], "save", ["load", "m.gguf"]]
    assert result["made"] == 1
    assert result["saved"] == f"{work.folder}/output/inference/"
    assert scores.scores == {
        "accuracy": 18 / 20,  # the 1st and the 11th are answered with "none"
        "text": "{'calls': 4}",
        "task_avg_acc": 0,  # the mapping of system information is empty
        "BWT": None,
        "GEM_BWT": None,
    }
    assert len(scores.warnings) == 2 and "BWT" in scores.warnings[0] and "MATRIX" in scores.warnings[1]
    printed("\n".join(scores.warnings))
    assert numbers["handed_test_labels"] is False and numbers["seconds"][""].keys() == {"train", "predict"}


def test_compression_replaces_the_saved_model_and_failure_keeps_it(tmp_path):
    tool = tmp_path / "quantize"
    tool.write_text("#!/bin/sh\n[ $3 = broken ] && exit 3\ncp $1 $2\n")
    tool.chmod(0o755)
    work = reader(tmp_path)
    settings = replace(work.algorithm, mode="with_compression", llama_quantize_path=str(tool), quantization_type="q4")
    work = replace(work, algorithm=settings)
    _, result, _ = finish(work)
    assert result["calls"][-1] == ["load", "m_q4.gguf"]
    numbers, result, _ = finish(
        replace(work, folder=tmp_path / "W2", algorithm=replace(settings, quantization_type="broken"))
    )
    assert result["calls"][-1] == ["load", "m.gguf"] and "ended with 3" in numbers["notes"][0]


def test_metadata_hands_over_the_source_with_its_labels(tmp_path):
    about = {"dataset": "quiz", "description": "", "level_1_dim": "a", "level_2_dim": "b"}
    (tmp_path / "metadata.json").write_text(json.dumps(about))
    rows = [{"query": f"q{i}", "response": "AB"[i % 2]} for i in range(4)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code = """
    @ClassFactory.register(alias="Quiz")
    class Quiz:
        def train(self, data): pass
        def save(self, path): return None
        def load(self, path): self.path = path
        def predict(self, data): return [data.y[0]] * len(data), data.dataset_name, self.path
    """
    right = """
    @ClassFactory.register(alias="right")
    def right(y, result):
        return np.float32(np.mean([a == b for a, b in zip(y, result[0])]))
    """
    file = str(tmp_path / "metadata.json")
    modules = (Module("basemodel", "Quiz", plugin(tmp_path / "p", "basemodel", code)),)
    work = Work(
        "singletasklearning",
        tmp_path / "W",
        modules,
        file,
        file,
        algorithm=AlgorithmSettings(initial_model_url="hub/name"),
    )
    metrics = [MetricSpec("right", Path(plugin(tmp_path / "p", "right", right)))]
    numbers, result, scores = finish(work, metrics)
    assert result == (["A"] * 4, "quiz", "hub/name") and scores.scores == {"right": 0.5}
    assert numbers["handed_test_labels"] is True


def test_y_is_the_last_word_of_lines_with_a_depth_file(tmp_path):
    (tmp_path / "mask.png").write_text("")
    (tmp_path / "i.txt").write_text("a.png /d mask.png\n/b /e 2\n")
    code = """
    @ClassFactory.register(alias="Any")
    class Any:
        def train(self, data): pass
        def save(self, path): return "x"
        def load(self, path): pass
        def predict(self, x): return list(x)
    """
    shown = """
    @ClassFactory.register(alias="shown")
    def shown(y, result): return " ".join([*y, *result])
    """
    modules = (Module("basemodel", "Any", plugin(tmp_path / "p", "basemodel", code)),)
    work = Work("singletasklearning", tmp_path / "W", modules, str(tmp_path / "i.txt"), str(tmp_path / "i.txt"))
    _, _, scores = finish(work, [MetricSpec("shown", Path(plugin(tmp_path / "p", "shown", shown)))])
    assert scores.scores["shown"].split() == [f"{tmp_path}/mask.png", "2", "a.png", "/b"]


def test_an_error_says_module_method_and_line_and_what_is_missing(tmp_path):
    work = reader(tmp_path)

    code = """
    @ClassFactory.register(alias="Reader")
    class Reader:
        def train(self, data):
            raise ValueError("no")
    """
    broken = plugin(tmp_path / "broken", "model", code)
    modules = (Module("basemodel", "Reader", broken),)
    [error] = errors_in_child(run, replace(work, modules=modules))
    assert error.message.endswith("model.py:10: ValueError: no")
    assert recorded([error]) == [("failed-plugin", "")]
    quits = plugin(tmp_path / "quits", "model", "import sys\nsys.exit(4)\n")
    for others, code in (
        ((replace(work.modules[0], name="Raeder"),), "unregistered-name"),
        ((), "missing-module"),
        ((Module("basemodel", "Reader", broken, {"a": 1}),), "failed-plugin"),
        ((Module("basemodel", "Reader", quits),), "failed-plugin"),
    ):
        assert recorded(errors_in_child(run, replace(work, modules=others))) == [(code, "")]


def test_problems_are_told_before_a_run_each_once(tmp_path):
    work = reader(tmp_path)
    url = plugin(tmp_path / "metrics", "acc", FIRST)
    metrics = [MetricSpec("accuracy", Path(url)), MetricSpec("none", Path(url)), MetricSpec("BWT"), MetricSpec("F1")]
    assert in_child(problems, (work, metrics[:1])) == []
    lacking = plugin(tmp_path / "p", "lacking", "import a_package_that_is_not_there\n")
    modules = (Module("task_definition", "A", lacking), Module("task_allocation", "B", lacking))
    messages = in_child(problems, (replace(work, modules=modules), metrics))
    # the metrics' own import from the folder of modules fails too, when it is called: not here
    for name, message in zip(("a_package_that_is_not_there", "none", "F1"), messages, strict=True):
        assert f"'{name}'" in message


def test_two_modules_with_one_basename_are_two(tmp_path):
    name = (
        "@ClassFactory.register({kind}, alias='{alias}')\nclass Thing:\n"
        "    def __init__(self): self.where = '{alias}'\n"
    )
    methods = (
        "    def train(self, data): pass\n    def save(self, path): return 'm'\n    def load(self, path): pass\n"
        "    def predict(self, x):\n        import model\n"
        "        return [model.__file__, self, pickle.loads(pickle.dumps(self)).where]\n"
    )
    one = plugin(tmp_path / "one", "model", name.format(kind="ClassType.STP", alias="One"))
    two = plugin(tmp_path / "two", "model", name.format(kind="ClassType.GENERAL", alias="Two") + methods)
    data = samples(tmp_path / "data", "i.txt", [("a", "1")])
    modules = (Module("task_definition", "One", one), Module("basemodel", "Two", two))
    work = Work("singletasklearning", tmp_path / "W", modules, data, data)
    seen = """
    @ClassFactory.register(alias="seen")
    def seen(y, result): return result[1].where + " " + result[2]
    """

    def ran() -> tuple[str, str]:
        run(work)
        from ianvs.kubeedge.case_storage import read_pickle

        file, instance, again = read_pickle(work.folder, "result")
        return file, type(instance).__module__, again

    file, module, again = in_child(ran)
    assert Path(file).parent.name == "one" and again == "Two"
    assert module.startswith("ianvs_module_") and module.endswith("_model")
    scores = in_child(score, work, [MetricSpec("seen", Path(plugin(tmp_path / "m", "seen", seen)))])
    assert scores.scores == {"seen": "Two Two"}


def test_two_files_may_register_one_name(tmp_path):
    code = """
    @ClassFactory.register(ClassType.GENERAL, alias="Same")
    class Same:
        where = __file__
        def train(self, data): pass
        def save(self, path): return "m"
        def load(self, path): pass
        def predict(self, x): return os.path.basename(self.where)
    """
    one, two = (plugin(tmp_path / "p", name, code) for name in ("one", "two"))
    data = samples(tmp_path / "data", "i.txt", [("a", "1")])
    modules = (Module("basemodel", "Same", one), Module("dataset_processor", "Same", two))
    assert finish(Work("singletasklearning", tmp_path / "W", modules, data, data))[1] == "one.py"


def test_a_folder_is_imported_as_a_package_and_the_working_directory_is_the_one_told(tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("from pack.inner import Model\n")
    plugin(folder, "inner", """
    import extra_word
    @ClassFactory.register(alias="Model")
    class Model:
        def train(self, data): pass
        def save(self, path): return "m"
        def load(self, path): pass
        def predict(self, x): return [extra_word.WORD, os.getcwd()]
    """)  # fmt: skip
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "extra_word.py").write_text("WORD = 'extra'\n")
    data = samples(tmp_path / "data", "i.txt", [("a", "1")])
    work = Work(
        "singletasklearning",
        tmp_path / "W",
        (Module("basemodel", "Model", str(folder)),),
        data,
        data,
        cwd=str(tmp_path / "root"),
    )
    assert finish(work)[1] == ["extra", str(tmp_path / "root")]
    (tmp_path / "root" / "part").mkdir()
    (tmp_path / "root" / "part" / "dotted.py").write_text((folder / "inner.py").read_text())
    dotted = replace(work, folder=tmp_path / "V", modules=(Module("basemodel", "Model", "part.dotted"),))
    assert finish(dotted)[1] == ["extra", str(tmp_path / "root")]
    assert metric(tmp_path).name == "accuracy"


@pytest.mark.slow
def test_a_killed_case_starts_over_in_a_clean_folder(tmp_path):
    code = (
        DIE
        + """
@ClassFactory.register(alias="Once")
class Once:
    def train(self, data): self.draw = np.random.rand()
    def save(self, path):
        os.mkdir(path + "once")              # fails if it is there
        open("here.txt", "x").close()        # W is the working directory
        return path
    def load(self, path): pass
    def predict(self, x):
        die()
        return self.draw
"""
    )
    data = samples(tmp_path / "data", "i.txt", [("a", "1")])
    modules = (Module("basemodel", "Once", plugin(tmp_path / "p", "once", code)),)
    work = Work("singletasklearning", tmp_path / "W", modules, data, data, seed=7)
    (tmp_path / "W").mkdir()
    (tmp_path / "W" / "mine.txt").write_text("was there before")
    killed(work)
    _, draw, _ = finish(work)
    assert (
        draw
        == finish(replace(work, folder=tmp_path / "V"))[1]
        != finish(replace(work, folder=tmp_path / "U", seed=8))[1]
    )
    assert (tmp_path / "W" / "mine.txt").exists()
    assert finish(work)[1] == draw  # a finished case does nothing


def test_worker_processes_can_talk_from_a_folder_with_a_long_path(tmp_path):
    code = """
    from multiprocessing.connection import Client, Listener
    import tempfile, threading
    @ClassFactory.register(alias="Talks")
    class Talks:
        def train(self, data): pass
        def save(self, path): return "m"
        def load(self, path): pass
        def predict(self, x):
            with Listener(family="AF_UNIX") as listener:
                threading.Thread(target=lambda: Client(listener.address).send("hello")).start()
                with listener.accept() as connection:
                    return [connection.recv(), tempfile.gettempdir()]
    """
    data = samples(tmp_path / "data", "i.txt", [("a", "1")])
    modules = (Module("basemodel", "Talks", plugin(tmp_path / "p", "talks", code)),)
    folder = tmp_path / ("long" * 25) / "W"
    folder.parent.mkdir()
    assert finish(Work("singletasklearning", folder, modules, data, data))[1] == ["hello", f"{folder}/tmp"]
