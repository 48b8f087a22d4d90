"""Every built-in method on a card that is not there: no mix of devices, the same results, no waiting in the steps."""

import importlib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
import torch

from ianvs.authoring import TorchLearner, training_loop
from ianvs.testalgorithms.class_segmentation import DenseLearner
from ianvs.testalgorithms.routing import routers
from tests.nightly.fake_gpu.fake_cuda import card
from tests.unit.testalgorithms import conversation_fixtures, exam_of_arrays, exam_of_scenes, exam_of_shapes

ROOT = Path(__file__).resolve().parents[3] / "testalgorithms"
SHORT = {"batch_size": 8, "learning_rate": 0.02}
EPOCHS, ROUNDS = 1, 2
CLOSED_FORM = ("NCM", "SLDA", "RanPAC")

# Where a step may wait for the card, and why. What stands here is a part of the line.
MAY_WAIT = {
    ".cpu()  # a single wait for the GPU": "GEM's quadratic program is solved on the processor, by scipy",
    "torch.isin(batch.y, self.old_index)": "LUCIR: how many exemplars of old classes a batch holds decides its mean",
    "return rows[:, used], held[:, used]": "a picture has few boxes for its room: what is empty in a batch is left out",
    "held.nonzero(as_tuple=True)": "the same: boxes are looked for in the cells that hold one",
    "labels = torch.cat([self.y, y]).cpu()": "OCDM and PRS choose among samples one by one, on the processor",
    "dynamic_ratio(*row)": "CIA weighs its average by ratios that are numbers",
    "clip_grad_norm_": "no wait: torch asks by ways of its own on which device gradients lie, and finds the processor",
}


def methods():
    """{"folder:Class": class} of all methods that ship."""
    found = {}
    for file in sorted(ROOT.rglob("basemodel.py")):
        folder = ".".join(file.relative_to(ROOT).parent.parts)
        module = importlib.import_module(f"ianvs.testalgorithms.{folder}.basemodel")
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "predict"):
                found[f"{folder}:{kind.__name__}"] = kind
    return found


METHODS = methods()
DENSE = [name for name in METHODS if name.startswith("class_segmentation")]
SCENES = [name for name in METHODS if name.startswith(("segmentation", "mdil_ss"))] + DENSE
TALKS = [name for name in METHODS if name.startswith("language")]
SHAPES = [name for name in METHODS if name.startswith(("detection", "multilabel"))]
ARRAYS = [name for name in METHODS if name not in (*SCENES, *TALKS, *SHAPES)]


def on_tokens(method):
    """Whether a method is one for transformers, which are slow."""
    return method().architecture == "vit"


class Arrays:
    """Two rounds of two digits each."""

    def __init__(self, method, **options):
        self.exam = exam_of_arrays.digits()
        few, small = (20, {"batch_size": 4}) if on_tokens(method) else (40, {"hidden": 32})
        self.exam.rounds = [(x[:few], y[:few]) for x, y in self.exam.rounds[:2]]
        if method.__name__ == "RanPAC":
            small["width"] = 50
        if method.__name__ == "CODAPrompt":
            small["optimizer"] = "sgd"  # Adam would divide gradients by their size, some of which are rounding
        self.tells = method.__name__ == "PackNet"
        self.learner = method(**{**SHORT, **small, **options})

    def context(self, k, **more):
        told = {"classes_seen": self.exam.seen(k), "num_classes": 10, "round": k, "seed": 3, **more}
        return told | ({"task_classes": self.exam.groups[max(0, k - 1)]} if self.tells else {})

    def teach(self, k, device):
        more = {}
        if getattr(self.learner, "sees_past_rounds", False):
            more["train_rounds"] = tuple(exam_of_arrays.Data(x, y) for x, y in self.exam.rounds[:k])
        data = exam_of_arrays.Data(*self.exam.rounds[k - 1])
        self.learner.train(data, None, device=device, **self.context(k, **more))

    def ask(self, k, device):
        data = exam_of_arrays.Data(self.exam.tests[0][0][:20])
        return self.learner.predict(data, device=device, **self.context(k))


class Scenes:
    """Two domains of street scenes."""

    def __init__(self, method, **options):
        small = {**exam_of_scenes.SHORT, "dropout": (0.0, 0.0)}
        if issubclass(method, DenseLearner):
            small = {"epochs": 1, "learning_rate": 1e-3, "optimizer": "sgd", "network": "erfnet_narrow"}
        self.learner = method(**{**small, "batch_size": 1, **options})

    def teach(self, k, device):
        data = exam_of_scenes.scenes(k - 1, count=5, size=(16, 16))
        exam_of_scenes.teach(self.learner, k, device=device, data=data)

    def ask(self, k, device):
        return exam_of_scenes.answers(self.learner, max(0, k - 1), k, device=device) if k else np.empty(0)


class Shapes:
    """Two rounds of scenes with two shapes each, with boxes or several labels."""

    def __init__(self, method, **options):
        self.several = method.__name__.startswith("Multilabel")
        plain = {"optimizer": "sgd", "learning_rate": 0.01}  # moments of gradients near 0 are much of their rounding
        self.learner = method(**{**exam_of_shapes.SHORT, **plain, **options})

    def teach(self, k, device):
        exam_of_shapes.teach(self.learner, k, several=self.several, device=device)

    def ask(self, k, device):
        said = exam_of_shapes.answers(self.learner, k, device=device)
        rows = said if self.several else np.concatenate([np.column_stack(list(one.values())) for one in said])
        return np.round(rows, 2)  # a sum on a card is added up in another order


class Talks:
    """Two rounds of a few conversations, for the smallest model."""

    def __init__(self, method, **options):
        few = {"lora_r": 4, "experts": 2} if method.__name__ in ("MoELoRA", "OLoRA") else {}
        self.learner = method(**{**conversation_fixtures.SIZE, "max_new_tokens": 2, "batch_size": 1, **few, **options})
        self.rounds = (conversation_fixtures.FIRST, conversation_fixtures.SECOND)

    def teach(self, k, device):
        more = {"train_rounds": self.rounds[:k]} if getattr(self.learner, "sees_past_rounds", False) else {}
        self.learner.train(self.rounds[k - 1], None, round=k, seed=0, device=device, **more)

    def ask(self, k, device):
        return (
            self.learner.predict(conversation_fixtures.asked(conversation_fixtures.SECOND), device=device) if k else []
        )


def exam_for(name):
    return next((exam for names, exam in ((SCENES, Scenes), (TALKS, Talks), (SHAPES, Shapes)) if name in names), Arrays)


def results(exam, device="cpu", rounds=ROUNDS):
    """(answers after each round, weights after the last) of an exam."""
    said = [exam.ask(0, device)]
    for k in range(1, rounds + 1):
        exam.teach(k, device)
        said.append(exam.ask(k, device))
    weights = exam.learner.network.state_dict().values()
    return said, [np.array(value.detach().cpu().float().numpy()) for value in weights]


def test_every_entry_point_is_a_method_of_this_test_or_has_no_tensors_of_its_own():
    for point in entry_points(group="ianvs.algorithms"):
        kind = point.load()
        of_memory = kind.__module__.startswith("ianvs.testalgorithms.memory.")
        assert kind in METHODS.values() or kind.__module__ == routers.__name__ or of_memory
    assert "torch" not in vars(routers)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_and_answers_on_a_card_as_on_a_processor(name):
    """Torch's fake tensors refuse an operation on tensors of several devices; the numbers are those of the CPU."""
    options = {} if METHODS[name].__name__ in CLOSED_FORM else {"epochs": EPOCHS}
    said, weights = results(exam_for(name)(METHODS[name], **options))
    with card() as made:
        found, learned = results(exam_for(name)(METHODS[name], **options), "cuda")
    assert len(weights) == len(learned) > 0
    for ours, theirs in zip(weights, learned, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(said, found, strict=True):
        assert len(theirs) == len(ours)
        assert all(np.array_equal(a, b) for a, b in zip(theirs, ours, strict=True))
    often = [line for line, times in made.in_loops.items() if times > 2 * EPOCHS * ROUNDS]  # each has 5 steps
    assert not [line for line in often if not any(known in line for known in MAY_WAIT)]


def test_what_mixes_devices_is_found():
    class Mixing(TorchLearner):
        def loss(self, batch):
            return super().loss(batch) + (batch.x.flatten(1).mean(1) * torch.ones(len(batch.y))).mean()

    with card(), pytest.raises(RuntimeError, match="same device"):
        Arrays(Mixing, epochs=1).teach(1, "cuda")


def test_what_waits_in_every_step_is_found():
    class Asking(TorchLearner):
        def after_step(self, x, y, epoch, step):
            self.last = float(self.network[-1].weight.sum())

    with card() as made:
        Arrays(Asking, epochs=2).teach(1, "cuda")
    (line,) = [line for line, times in made.in_loops.items() if times >= 5]
    assert "self.last = float(" in line


def test_a_test_set_is_waited_for_once():
    with card() as made:
        exam = Arrays(TorchLearner, epochs=1)
        exam.teach(1, "cuda")
        made.waits.clear()
        exam.ask(1, "cuda")
    assert sum(made.waits.values()) == 1  # for the answers


@pytest.mark.slow
def test_a_model_goes_on_from_its_file_on_a_card(tmp_path):
    """What was kept comes back on the processor, and is used with what lies on the card."""
    for name in (name for name in ARRAYS if METHODS[name].__name__ in ("Replay", "EWC", "ICaRL", "SI", "LUCIR", "DER")):
        with card():
            straight, resumed = Arrays(METHODS[name], epochs=1), Arrays(METHODS[name], epochs=1)
            straight.teach(1, "cuda")
            resumed.learner.load(straight.learner.save(tmp_path / "model"))
            for one in (straight, resumed):
                one.teach(2, "cuda")
            assert np.array_equal(straight.ask(2, "cuda"), resumed.ask(2, "cuda"))


NO_WAIT = DENSE + [name for name in ARRAYS if METHODS[name].__name__ not in (*CLOSED_FORM, "GEM", "LUCIR", "PackNet")]


@pytest.mark.gpu
@pytest.mark.parametrize("name", NO_WAIT)
def test_steps_do_not_wait_for_a_card_that_is_there(name, monkeypatch):
    """Torch's own word for it: between the first step of an epoch and the last it raises where one waits."""

    def after_the_steps(*_):
        torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(training_loop, "require_finite", after_the_steps)

    class Watched(METHODS[name]):
        def train(self, *given, **context):
            super().train(*given, **{**context, "progress": after_the_steps})  # an exam may bring its own

        def batch(self, data, x, y):
            torch.cuda.set_sync_debug_mode("error")
            return super().batch(data, x, y)

    exam = (Scenes if name in DENSE else Arrays)(Watched, epochs=1)
    try:
        for k in (1, 2):
            exam.teach(k, "cuda")
    finally:
        torch.cuda.set_sync_debug_mode("default")
