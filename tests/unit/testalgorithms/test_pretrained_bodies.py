"""APER, EASE, MOS, SD-LoRA, SLCA, InfLoRA, RanPAC's first round: scenarios, what is stored, and real transformers."""

import numpy as np
import pytest
import torch

from tests.contract.methods.test_every_scenario import chunks, context, flat, in_tasks, pretrained
from tests.errors import errors_of
from tests.marks import slow
from tests.nightly.conformance.every_method import few_digits, method
from tests.unit.testalgorithms.exam_of_arrays import Data, digits, teach

SHORT = {"epochs": 1, "batch_size": 64, "learning_rate": 0.003, "network": "vit"}
METHODS = {
    "aper": ("aper", "APER", {"bottleneck": 4}),
    "aper, fine-tuned": ("aper", "APER", {"tuning": "finetune"}),
    "ranpac": ("ranpac", "RanPAC", {"tuning": "adapter", "bottleneck": 4, "width": 50}),
    "slca": ("slca", "SLCA", {"alignment_epochs": 1, "alignment_samples": 16}),
    "ease": ("ease", "EASE", {"bottleneck": 4}),
    "mos": ("mos", "MOS", {"bottleneck": 4, "alignment_epochs": 1, "alignment_samples": 16}),
    "sd-lora": ("sd_lora", "SDLoRA", {"rank": 2}),
    "inflora": ("inflora", "InfLoRA", {"rank": 2}),
}
FEW = {"aper", "sd-lora"}  # adapters of the first round, and of every round
every = pytest.mark.parametrize("name", [name if name in FEW else slow(name) for name in METHODS])


def make(name, **more):
    place, cls, options = METHODS[name]
    return method(place, cls)(**{**SHORT, **options, **more})


@every
def test_it_takes_tasks_streams_and_missing_labels(name):
    exam = few_digits()
    learner = in_tasks(make(name), exam, rounds=2)
    assert set(learner.predict(Data(exam.tests[0][0]), **context(exam, 2, task_classes=(0, 1)))) <= {0, 1}
    stream = make(name)
    for n, seen, x, y in chunks(exam, size=40, rounds=1):
        stream.train(Data(x, y), None, round=n, classes_seen=seen, num_classes=10, seed=5, passes=1)
    assert flat(stream).isfinite().all()
    silent = make(name)
    x, y = exam.rounds[0]
    silent.train(Data(x, np.where(np.arange(len(y)) % 5 == 0, y, -1)), None, **context(exam, 1))
    assert flat(silent).isfinite().all()


@every
def test_it_takes_continual_pre_training(name):
    assert flat(pretrained(make(name), digits())).isfinite().all()


@every
def test_it_learns_two_rounds_on_a_transformer_of_timm_and_goes_on_after_loading(name, tmp_path):
    pytest.importorskip("timm")
    exam = few_digits()
    learner, resumed = (make(name, network="timm/test_vit", picture_size=32) for _ in range(2))
    for k in (1, 2):
        teach(learner, exam, k, seed=2)
    resumed.load(learner.save(tmp_path / "model"))
    x, asked = Data(exam.tests[0][0]), {"num_classes": 10, "classes_seen": exam.seen(2), "seed": 2}
    np.testing.assert_array_equal(*(one.probabilities(x, **asked) for one in (learner, resumed)))


@pytest.mark.parametrize("name", ["aper", *map(slow, ("ease", "ranpac", "mos", "sd-lora", "inflora"))])
def test_of_a_frozen_transformer_only_what_is_new_is_stored(name, tmp_path):
    pytest.importorskip("timm")
    from timm import create_model

    exam, file = few_digits(), tmp_path / "weights.pt"
    torch.save(create_model("test_vit", img_size=160).state_dict(), file)
    make_it = {"network": "timm/test_vit", "weights": str(file), "picture_size": 160}
    exam.rounds = [(x[:12], y[:12]) for x, y in exam.rounds]
    learner, resumed = make(name, **make_it), make(name, **make_it)
    for k in (1, 2):
        teach(learner, exam, k, seed=2)
    stored = learner.read(learner.save(tmp_path / "model"))["network"]
    frozen = {tuple(value.shape) for value in torch.load(file, weights_only=True).values() if value.dim() == 2}
    assert not any(place.endswith(("original", "qkv.weight", "fc1.weight")) for place in stored), frozen
    resumed.load(tmp_path / "model")
    for each in (learner, resumed):
        teach(each, exam, 3, seed=2)
    assert torch.equal(flat(learner), flat(resumed))


@pytest.mark.parametrize("name", ["aper", "ranpac", "ease", "mos", "sd-lora", "inflora"])
def test_a_network_without_tokens_is_refused_with_a_remedy(name):
    learner = make(name, network="mlp")
    assert errors_of(teach, learner, few_digits(), 1, seed=2) == [("refused-arguments", "")]


def test_what_can_not_be_tuned_is_refused():
    assert errors_of(make, "ranpac", frozen=True) == [("conflicting-keys", "")]
    assert errors_of(teach, make("aper, fine-tuned", network="linear"), few_digits(), 1, seed=2) == [
        ("refused-arguments", "")
    ]
    assert errors_of(make, "aper", tuning="adaptor") == [("invalid-choice", "")]


def test_adapters_leave_the_first_features_of_aper_as_they_are():
    exam, learner = few_digits(), make("aper", learning_rate=0.5)
    teach(learner, exam, 1, seed=2)
    plain, tuned = learner.features(Data(exam.tests[0][0]), num_classes=10).reshape(-1, 2, 96).transpose(1, 0, 2)
    assert np.abs(plain - tuned).max() > 1e-4
    learner.network[0].tuned.adapters.apply(lambda part: hasattr(part, "up") and part.up.weight.data.zero_())
    for adapter in learner.network[0].tuned.adapters:
        adapter.up.bias.data.zero_()
    again = learner.features(Data(exam.tests[0][0]), num_classes=10).reshape(-1, 2, 96).transpose(1, 0, 2)
    np.testing.assert_array_equal(again[0], plain)
    np.testing.assert_allclose(again[1], plain, atol=1e-5)
