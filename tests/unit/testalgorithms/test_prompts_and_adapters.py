"""Prompts and InfLoRA: what they train and store, and what every method promises."""

import numpy as np
import pytest
import torch

from ianvs.authoring import TorchLearner
from ianvs.testalgorithms.coda_prompt.basemodel import CODAPrompt
from ianvs.testalgorithms.dualprompt.basemodel import DualPrompt
from ianvs.testalgorithms.inflora.basemodel import InfLoRA
from ianvs.testalgorithms.inflora.key_value import attention_inputs
from ianvs.testalgorithms.l2p.basemodel import L2P
from tests.contract.methods.test_every_scenario import chunks, context, flat, in_tasks, pretrained
from tests.errors import errors_of, printed
from tests.marks import slow
from tests.unit.testalgorithms.exam_of_arrays import Data, digits, teach

SHORT = {"epochs": 2, "batch_size": 64, "learning_rate": 0.003, "optimizer": "adam"}
METHODS = {
    "l2p": lambda **more: L2P(**{"pool": 4, "length": 2, "chosen": 2, **SHORT, **more}),
    "dualprompt": lambda **more: DualPrompt(**{"general_length": 2, "length": 3, **SHORT, **more}),
    "coda-prompt": lambda **more: CODAPrompt(**{"per_round": 3, "length": 4, **SHORT, **more}),
    "inflora": lambda **more: InfLoRA(**{"rank": 3, **SHORT, **more}),
}
each_of_them = pytest.mark.parametrize("make", [METHODS["l2p"], *map(slow, [*METHODS.values()][1:])], ids=METHODS)


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


@pytest.mark.slow
@each_of_them
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


@each_of_them
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


@pytest.mark.slow
@each_of_them
def test_it_takes_continual_pre_training(make):
    assert flat(pretrained(make(), digits())).isfinite().all()


# Prompts.

prompting = pytest.mark.parametrize("make", [METHODS["l2p"], slow(METHODS["dualprompt"]), slow(METHODS["coda-prompt"])])


@prompting
def test_an_answer_does_not_depend_on_what_else_is_asked(make):
    exam = small()
    learner = make()
    for k in (1, 2):
        teach(learner, exam, k, seed=2)
    with torch.no_grad():
        learner.network[0].keys.normal_(generator=torch.Generator().manual_seed(0))
    x, asked = exam.tests[0][0], {"num_classes": 10, "classes_seen": exam.seen(2), "seed": 2}
    alone = np.concatenate([learner.probabilities(Data(one[None]), **asked) for one in x])
    np.testing.assert_allclose(learner.probabilities(Data(x), **asked), alone, atol=1e-5)


@pytest.mark.parametrize("make", [METHODS["dualprompt"], slow(METHODS["coda-prompt"])])
def test_prompts_of_earlier_rounds_stay_whatever_the_optimiser_keeps_and_those_after_the_last_round_go_on(make):
    exam = small()
    learner = make(rounds=2, weight_decay=0.1, keep_optimizer=True)
    prompted, values = None, []
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=2)
        prompted = learner.network[0]
        values.append({name: prompted.every(name).detach().clone() for name in prompted.shapes})
        assert bool(learner.remark) == (k > 2)
    printed(learner.remark)
    for name in prompted.shapes:
        first, second, third = (after[name] for after in values)
        assert torch.equal(first[0], second[0])
        assert torch.equal(first[0], third[0])
        assert not torch.equal(first[1], second[1])
        assert not torch.equal(second[1], third[1])


def test_new_components_are_of_length_1_and_at_right_angles_to_each_other_and_to_those_that_have_not_moved():
    learner = METHODS["coda-prompt"](epochs=0)
    exam = small()
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=2)
    prompted = learner.network[0]
    for name in prompted.shapes:
        for block in prompted.every(name)[:3].transpose(0, 1).flatten(3).flatten(1, 2):
            torch.testing.assert_close(block @ block.T, torch.eye(9), atol=1e-5, rtol=0)


@prompting
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"network": "mlp"}, "refused-arguments"),
        ({"network": "resnet"}, "refused-arguments"),
        ({"lora_rank": 4}, "conflicting-keys"),
    ],
)
def test_what_has_no_tokens_or_is_no_frozen_network_is_refused_before_anything_is_trained(make, options, code):
    assert errors_of(lambda: make(**options).check_exam(kind="classification", shape=(8, 8, 1), num_classes=10)) == [
        (code, "")
    ]


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("dualprompt", {"expert": [3, 5]}, "refused-arguments"),
        ("dualprompt", {"general": [2, 3]}, "conflicting-keys"),
        ("coda-prompt", {"blocks": [0, 1]}, "refused-arguments"),
    ],
)
def test_a_block_that_is_not_there_is_refused_before_anything_is_trained(name, options, code):
    assert errors_of(
        lambda: METHODS[name](**options).check_exam(kind="classification", shape=(8, 8, 1), num_classes=10)
    ) == [(code, "")]


@prompting
@pytest.mark.parametrize("network", ["timm/test_vit", slow("timm/vit_tiny_patch16_224")])
def test_a_round_on_a_transformer_of_timm_trains_prompts_and_head_alone_and_goes_on_after_loading(
    make, network, tmp_path
):
    pytest.importorskip("timm")
    options = {"network": network, "picture_size": 32, "epochs": 1}
    learner, resumed = make(**options), make(**options)
    exam = small(2)
    learner.check_exam(kind="classification", shape=(8, 8, 1), num_classes=10)
    teach(learner, exam, 1, seed=2)
    body = learner.network[0].frozen.body
    moved = {name for name, p in learner.network.named_parameters() if p.grad is not None and bool(p.grad.any())}
    assert moved == {name for name, p in learner.network.named_parameters() if p.requires_grad}
    assert not any(p.requires_grad for p in body.parameters())
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(learner.network[0].query(x), body.model(x))
        assert not torch.allclose(learner.network[0](x), body.model(x), atol=1e-3)
    resumed.load(learner.save(tmp_path / "model"))
    for each in (learner, resumed):
        teach(each, exam, 2, seed=2)
    assert torch.equal(flat(learner), flat(resumed))
