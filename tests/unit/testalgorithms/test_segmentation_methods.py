"""What every method of continual segmentation promises, and what sets each apart."""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.mdil_ss.basemodel import MDILSS
from ianvs.testalgorithms.segmentation.feature_extraction.basemodel import FeatureExtraction
from ianvs.testalgorithms.segmentation.finetune.basemodel import FineTuning
from ianvs.testalgorithms.segmentation.lwf.basemodel import LwF
from ianvs.testalgorithms.segmentation.multi_task.basemodel import MultiTask
from ianvs.testalgorithms.segmentation.replay.basemodel import Replay
from ianvs.testalgorithms.segmentation.single_task.basemodel import SingleTask
from tests.errors import errors_of
from tests.marks import slow
from tests.unit.testalgorithms.exam_of_scenes import (
    LISTS,
    NUM_CLASSES,
    SHORT,
    Scenes,
    answers,
    changed,
    domain_weights,
    scenes,
    teach,
    weights,
)

LEARNERS = {
    "mdil_ss": MDILSS,
    "finetune": FineTuning,
    "feature_extraction": FeatureExtraction,
    "multi_task": MultiTask,
    "single_task": SingleTask,
    "lwf": LwF,
    "replay": lambda **more: Replay(**{"capacity": 6, **more}),
}
FEW = {"mdil_ss", "finetune"}


def methods(few):
    return pytest.mark.parametrize(
        "make", [make if name in few else slow(make) for name, make in LEARNERS.items()], ids=LEARNERS
    )


every_method = methods(LEARNERS)


def taught(make, rounds, **options):
    learner = make(**SHORT, **options)
    for k in range(1, rounds + 1):
        teach(learner, k)
    return learner


@methods({*FEW, "lwf", "replay"})
def test_predictions_are_classes_of_the_domain(make):
    learner = taught(make, 3)
    for domain, classes in enumerate(LISTS):
        said = answers(learner, domain)
        assert said.dtype == np.uint8 and said.shape == (8, 16, 24)
        assert set(np.unique(said)) <= set(classes)


@every_method
def test_a_domain_that_was_not_taught_is_predicted_by_the_head_of_the_last_one(make):
    learner = taught(make, 2)
    assert set(np.unique(answers(learner, 2, k=2))) <= set(LISTS[1])


@methods(FEW)
def test_a_method_learns_its_domain(make):
    learner = make(**{**SHORT, "epochs": 25, "learning_rate": 5e-2, "dropout": (0.0, 0.0)})
    teach(learner, 1)
    data = scenes(0, seed=1)
    valid = data.y != 255
    assert (answers(learner, 0) == data.y)[valid].mean() > 0.55  # of three classes


def test_the_shared_start_of_all_methods_is_the_same():
    starts = []
    for make in (FineTuning, MDILSS, Replay):
        learner = make(**{**SHORT, "epochs": 0})
        teach(learner, 1)
        starts.append({n: w for n, w in weights(learner).items() if n.startswith("encoder")})
    assert not changed(starts[0], starts[1]) and not changed(starts[0], starts[2])


def seen_labels(learner, k):
    """Labels of the exam that the steps of round k work on, by domain."""
    found = {}
    plain = learner.cross_entropy

    def observed(batch):
        labels = list(learner.domains.values())[batch.domain]
        found.setdefault(batch.domain, set()).update(labels.to_exam(batch.y.long()).unique().tolist())
        return plain(batch)

    learner.cross_entropy = observed
    teach(learner, k)
    return found


def test_multi_task_goes_on_from_the_round_before_if_that_is_asked_for():
    learner = taught(MultiTask, 2, warm_start=True, adapters=True)
    again = taught(MultiTask, 2, warm_start=True, adapters=True)
    learner.epochs = 0
    before = weights(learner)
    teach(learner, 3)
    assert not changed(before, weights(learner))
    assert seen_labels(again, 3) == {domain: {*LISTS[domain], 255} for domain in range(3)}
    assert len(changed(domain_weights(learner, 0), domain_weights(again, 0))) == len(domain_weights(again, 0))


def test_replay_keeps_to_its_budget_and_shares_it_among_domains():
    learner = Replay(**SHORT, capacity=8)
    sizes = []
    for k in (1, 2, 3):
        teach(learner, k)
        sizes.append([len(part) for part in learner.memory.parts.values()])
        assert len(learner.memory) <= 8
    assert sizes == [[8], [4, 4], [2, 2, 2]]
    assert learner.memory.nbytes == 6 * (16 * 24 * 4)


def test_without_memory_replay_is_fine_tuning_of_every_branch():
    learner = taught(lambda **more: Replay(capacity=0, **more), 2)
    assert len(learner.memory) == 0
    assert set(seen_labels(learner, 3)) == {2}


def test_the_best_checkpoint_is_the_one_that_scores_best_on_held_out_pictures():
    scored = []

    class Watched(FineTuning):
        def epoch(self, data):
            scored.append(weights(self))  # as the epoch before left them
            return super().epoch(data)

    learner = Watched(**{**SHORT, "epochs": 6, "learning_rate": 0.05}, checkpoint="best")
    teach(learner, 1, valid=scenes(0, seed=3))
    scored.append(weights(learner))
    held = scenes(0, seed=3)
    judge = FineTuning(**{**SHORT, "epochs": 0})
    teach(judge, 1)

    def miou(state):
        judge.network.load_state_dict(state)
        said = judge.predict(Scenes(held.x), num_classes=NUM_CLASSES, task=0).numpy()
        valid = held.y != 255
        ious = [
            ((said == c) & (held.y == c) & valid).sum() / max((((said == c) | (held.y == c)) & valid).sum(), 1)
            for c in LISTS[0]
        ]
        return np.mean(ious)

    final = miou(scored[-1])
    assert final >= max(miou(state) for state in scored[1:-1]) - 0.02  # "ignore" may be predicted there


def test_the_best_checkpoint_needs_held_out_pictures():
    assert errors_of(teach, FineTuning(**SHORT, checkpoint="best"), 1) == [("out-of-range", "")]


@pytest.mark.slow
def test_compiled_training_learns_the_same_up_to_rounding():
    still = {**SHORT, "dropout": (0.0, 0.0)}
    plain, compiled = MDILSS(**still), MDILSS(**still, compile=True)
    for learner in (plain, compiled):
        teach(learner, 1)
        teach(learner, 2)
    ours, theirs = (torch.cat([w.flatten().double() for w in weights(each).values()]) for each in (plain, compiled))
    assert (ours - theirs).norm() < 0.02 * ours.norm()


@pytest.mark.gpu
@every_method
def test_on_an_accelerator_a_model_learns_and_is_loaded_exactly(make, tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    learner, resumed = make(**SHORT), make(**SHORT)
    for k in (1, 2):
        teach(learner, k, device="cuda")
    resumed.load(learner.save(tmp_path / "model"))
    for domain in range(3):
        said, again = (answers(each, domain, device="cuda") for each in (learner, resumed))
        np.testing.assert_array_equal(said, again)
    for each in (learner, resumed):
        teach(each, 3, device="cuda")
    for name, value in weights(learner).items():
        torch.testing.assert_close(value, weights(resumed)[name], rtol=1e-3, atol=1e-4)
