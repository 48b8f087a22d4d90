"""What methods whose network grows or is corrected promise besides their equations (tests/nightly/conformance)."""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.bic.basemodel import BiC
from ianvs.testalgorithms.dynamic_er.basemodel import DynamicER
from ianvs.testalgorithms.foster.basemodel import FOSTER
from tests.marks import slow
from tests.unit.testalgorithms.exam_of_arrays import Data, digits, examine, pictures, teach

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}


def taught(learner, rounds, exam=None, **more):
    exam = exam or digits()
    for k in range(1, rounds + 1):
        teach(learner, exam, k, seed=0, **more)
    return learner


def sizes(learner):
    return sum(p.numel() for p in learner.network.parameters())


def test_dynamic_er_adds_a_body_a_round_and_old_ones_never_change():
    exam, learner = digits(), DynamicER(capacity=40, batch_norm=True, hidden=16, **SHORT)
    body, seen, before = 64 * 16 + 2 * 16, [], None
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=0)
        seen.append(sizes(learner))
        fixed = [w.clone() for w in learner.network[0].parts[0].state_dict().values()]
        assert before is None or all(map(torch.equal, before, fixed))
        before = fixed
    assert seen == [body * k + (16 * k + 1) * 10 for k in (1, 2, 3)]
    trained = [name for name, p in learner.network.named_parameters() if p.requires_grad]
    assert all(name.startswith(("0.parts.2.", "1.")) for name in trained)


def test_a_file_of_a_grown_network_is_larger_and_a_small_one_grows_to_it(tmp_path):
    files = [taught(DynamicER(capacity=0, **SHORT), k).save(tmp_path / str(k)).stat().st_size for k in (1, 3)]
    assert files[1] > 2.5 * files[0]
    given = taught(DynamicER(capacity=40, **SHORT), 3).get_weights()
    other = taught(DynamicER(capacity=40, **SHORT), 1)
    other.set_weights(given)
    assert all(np.array_equal(given[name], value) for name, value in other.get_weights().items())


def test_foster_ends_each_round_with_one_body_unless_it_may_not_compress():
    one, three = (sizes(taught(FOSTER(capacity=40, **SHORT), k)) for k in (1, 3))
    assert one == three
    for options, more in (({"compression_epochs": 0}, {}), ({}, {"passes": 1})):
        grown = taught(FOSTER(capacity=40, **options, **SHORT), 3, **more)
        assert len(grown.network[0].parts) == 3


@pytest.mark.parametrize("cls, stage", [(DynamicER, {"head_epochs": 3}), (FOSTER, {"compression_epochs": 3})])
def test_both_stages_keep_to_the_passes_of_the_exam(cls, stage):
    learner, exam, looks = cls(capacity=40, **{**SHORT, "epochs": 7}, **stage), digits(), []
    augmented = learner.augmented
    learner.augmented = lambda x: looks.append(len(x)) or augmented(x)  # each sample of each step of either stage
    for k in (1, 2):
        looks.clear()
        teach(learner, exam, k, seed=0, passes=5)
    samples = len(exam.rounds[1][1]) + 40
    assert 3 * samples < sum(looks) <= 5 * samples


def test_bic_corrects_new_classes_alone_and_not_what_a_round_without_any_leaves():
    exam, learner = digits(), BiC(capacity=40, **SHORT)
    taught(learner, 2, exam)
    x = torch.from_numpy(exam.tests[0][0]).permute(0, 3, 1, 2)
    z, q = learner.logits(learner.prepare(x)), learner.answers(learner.prepare(x), None)
    alpha, beta = learner.pair.tolist()
    assert (alpha, beta) != (1.0, 0.0) and learner.corrected == [2, 3]
    torch.testing.assert_close(q[:, [2, 3]], alpha * z[:, [2, 3]] + beta)
    torch.testing.assert_close(q[:, [0, 1, 4]], z[:, [0, 1, 4]])
    before = learner.get_weights()
    learner.train(Data(*exam.rounds[0]), None, round=3, num_classes=10, classes_seen=(0, 1, 2, 3), seed=0)
    assert learner.pair.tolist() == [1.0, 0.0]
    assert any(not np.array_equal(before[name], value) for name, value in learner.get_weights().items())


METHODS = [BiC, DynamicER, FOSTER]


@pytest.mark.parametrize(
    ("cls", "network"), [*((cls, "mlp") for cls in METHODS), *(slow(cls, "resnet") for cls in METHODS)]
)
def test_they_work_on_either_network_when_classes_come_back(cls, network):
    exam = pictures()
    options = {"keep_optimizer": True, "augment": "crop", "precision": "bf16"}
    learner = cls(capacity=9, network=network, widths=(4, 8), **options, **SHORT)
    for k, (x, y) in enumerate([exam.rounds[0], exam.rounds[1], exam.rounds[0], exam.rounds[1]], start=1):
        seen = exam.seen(min(k, 2))
        learner.train(Data(x, y), None, round=k, num_classes=4, classes_seen=seen, seed=0)
    found = learner.predict(Data(exam.tests[0][0]), num_classes=4, classes_seen=(0, 1, 2, 3), seed=0)
    assert set(found) <= {0, 1, 2, 3}
    assert learner.memory.y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("cls", [BiC, slow(DynamicER), slow(FOSTER)])
def test_they_take_an_exam_that_tells_the_task(cls):
    exam, learner = digits(), cls(capacity=60, **{**SHORT, "epochs": 4})
    for k in (1, 2, 3):
        teach(learner, exam, k, seed=0, task_classes=exam.groups[k - 1])
    right = []
    for (x, y), group in zip(exam.tests[:3], exam.groups, strict=False):
        found = learner.predict(Data(x), num_classes=10, seed=0, task_classes=group)
        right.append(np.mean(found == y))
    assert np.mean(right) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("cls", METHODS)
def test_they_forget_far_less_than_fine_tuning(cls):
    learner = cls(capacity=200, **{**SHORT, "epochs": 8})
    assert examine(learner, digits(), seed=0)[0][-1].mean() > 0.8  # fine-tuning ends at 0.2
