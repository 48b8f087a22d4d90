"""L2P and InfLoRA: what they train and store, and what every method promises."""

import numpy as np
import pytest
import torch

from ianvs.authoring import TorchLearner
from ianvs.testalgorithms.inflora.basemodel import InfLoRA
from ianvs.testalgorithms.inflora.key_value import attention_inputs
from ianvs.testalgorithms.l2p.basemodel import L2P
from tests.testalgorithms.exam_of_arrays import Data, digits, teach
from tests.testalgorithms.test_every_scenario import chunks, context, flat, in_tasks, pretrained

SHORT = {"epochs": 2, "batch_size": 64, "learning_rate": 0.003, "optimizer": "adam"}
METHODS = {
    "l2p": lambda **more: L2P(**{"pool": 4, "length": 2, "chosen": 2, **SHORT, **more}),
    "inflora": lambda **more: InfLoRA(**{"rank": 3, **SHORT, **more}),
}
both = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)


def small(rounds=3):
    """The digits, a third of them: transformers are slow."""
    exam = digits()
    exam.rounds = [(x[:90], y[:90]) for x, y in exam.rounds[:rounds]]
    exam.tests = [(x[:20], y[:20]) for x, y in exam.tests[:rounds]]
    return exam


@pytest.fixture(scope="module")
def trained_vit(tmp_path_factory):
    """Weights of a transformer that has seen the classes 6 to 9, which no round here holds."""
    exam = digits()
    x, y = (np.concatenate(part) for part in zip(*exam.rounds[3:], strict=True))
    learner = TorchLearner(network="vit", **{**SHORT, "epochs": 6})
    learner.train(Data(x, y), None, num_classes=10, classes_seen=(6, 7, 8, 9), seed=1)
    file = tmp_path_factory.mktemp("vit") / "vit.pt"
    torch.save(learner.network.state_dict(), file)
    return file


def test_a_round_of_inflora_changes_nothing_for_inputs_that_earlier_rounds_need():
    exam = small()
    learner = METHODS["inflora"](kept=0.95, learning_rate=0.02)
    teach(learner, exam, 1, seed=2)
    layers = [block.layer.self_attn for block in learner.network[0].frozen.body.blocks]
    spans = [change.M.clone() for change in learner.network[0].changes]
    before = [layer.in_proj_weight.detach().clone() for layer in layers]
    teach(learner, exam, 2, seed=2)
    for M, old, layer in zip(spans, before, layers, strict=True):
        moved = layer.in_proj_weight.detach() - old
        assert moved[96:].norm() > 1e-3  # keys and values have learned
        assert torch.equal(moved[:96], torch.zeros(96, 96))  # queries have not
        assert (moved @ M).norm() < 1e-4 * moved.norm() + 1e-6


def test_merging_changes_no_answer():
    exam = small()
    learner = METHODS["inflora"]()
    learner.after_round = lambda data: None
    teach(learner, exam, 1, seed=2)
    x = exam.tests[0][0]
    context_ = {"num_classes": 10, "classes_seen": (0, 1)}
    before = learner.probabilities(Data(x), **context_)
    for change, moment in zip(
        learner.network[0].changes, attention_inputs(learner, torch.from_numpy(x).permute(0, 3, 1, 2)), strict=True
    ):
        assert change.A.abs().max() > 0
        change.merge(moment, 0.9)
        assert change.A.abs().max() == 0
    np.testing.assert_allclose(learner.probabilities(Data(x), **context_), before, atol=1e-5)


@both
def test_only_what_is_new_is_trained_and_stored_and_it_goes_on_from_there(make, trained_vit, tmp_path):
    exam = small()
    learner, resumed = make(weights=str(trained_vit)), make(weights=str(trained_vit))
    for k in (1, 2):
        teach(learner, exam, k, seed=2)
    state = torch.load(trained_vit, weights_only=True)
    values = dict(learner.network.state_dict())
    for name, value in state.items():
        if name.startswith("0."):
            (kept,) = [
                found
                for own, found in values.items()
                if own.replace("parametrizations.in_proj_weight.original", "in_proj_weight").endswith(f".{name[2:]}")
            ]
            assert torch.equal(kept, value), name
    file = learner.save(tmp_path / "model")
    stored = learner.read(file)["network"]
    assert len(stored) < len(values) / 2
    assert sum(value.numel() for value in stored.values()) < sum(value.numel() for value in state.values())
    resumed.load(file)
    for each in (learner, resumed):
        teach(each, exam, 3, seed=2)
    assert torch.equal(flat(learner), flat(resumed))
    asked = {"num_classes": 10, "classes_seen": exam.seen(3), "seed": 2}
    np.testing.assert_array_equal(*(each.probabilities(Data(exam.tests[0][0]), **asked) for each in (learner, resumed)))


@both
def test_it_takes_tasks_streams_and_missing_labels(make):
    exam = small(2)
    learner = in_tasks(make(), exam, rounds=2)
    assert set(learner.predict(Data(exam.tests[0][0]), **context(exam, 2, task_classes=(0, 1)))) <= {0, 1}
    stream = make()
    for n, seen, x, y in chunks(exam, size=40, rounds=2):
        stream.train(Data(x, y), None, round=n, classes_seen=seen, num_classes=10, seed=5, passes=1)
    assert flat(stream).isfinite().all()
    silent = make()
    x, y = exam.rounds[0]
    silent.train(Data(x, np.where(np.arange(len(y)) % 5 == 0, y, -1)), None, **context(exam, 1))
    assert flat(silent).isfinite().all()


@both
def test_it_takes_continual_pre_training(make):
    assert flat(pretrained(make(), digits())).isfinite().all()


def test_an_answer_of_l2p_does_not_depend_on_what_else_is_asked():
    exam = small()
    learner = METHODS["l2p"](chosen=1)
    teach(learner, exam, 1, seed=2)
    with torch.no_grad():
        learner.network[0].keys.copy_(torch.randn(4, 96, generator=torch.Generator().manual_seed(0)))
    x, asked = exam.tests[0][0], {"num_classes": 10, "classes_seen": (0, 1), "seed": 2}
    alone = np.concatenate([learner.probabilities(Data(one[None]), **asked) for one in x])
    np.testing.assert_allclose(learner.probabilities(Data(x), **asked), alone, atol=1e-5)
