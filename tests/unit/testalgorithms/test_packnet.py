"""PackNet: who owns which weight, that nothing of a task is ever lost, and that it has to be told the task."""

import numpy as np
import pytest

from ianvs.testalgorithms.packnet.basemodel import PackNet
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_arrays import Data, digits, pictures, teach

SHORT = {"epochs": 3, "batch_size": 32, "learning_rate": 0.05}
NETWORKS = {"mlp": (digits, {}), "resnet": (pictures, {"network": "resnet", "widths": (4, 8)})}
on_either_network = pytest.mark.parametrize("exam, options", NETWORKS.values(), ids=NETWORKS.keys())


def told(exam, k, **more):
    """The context of task k."""
    return {"round": k, "num_classes": exam.num_classes, "seed": 5, "task_classes": exam.groups[k - 1], **more}


def learn(learner, exam, k, **more):
    learner.train(Data(*exam.rounds[k - 1]), None, **told(exam, k, classes_seen=exam.seen(k), **more))
    return learner


def answers(learner, exam, k):
    return learner.probabilities(Data(exam.tests[k - 1][0]), **told(exam, k))


@on_either_network
def test_what_is_answered_about_a_task_never_changes_again(exam, options):
    exam = exam()
    learner, first = PackNet(**SHORT, **options), []
    for k in range(1, len(exam.rounds) + 1):
        learn(learner, exam, k)
        first.append(answers(learner, exam, k))
        for j, then in enumerate(first, start=1):
            np.testing.assert_array_equal(answers(learner, exam, j), then)


def test_every_task_is_learned_and_none_is_forgotten():
    exam = digits()
    learner = PackNet(**{**SHORT, "epochs": 8})
    for k in range(1, 6):
        learn(learner, exam, k)
    scores = [np.mean(answers(learner, exam, k).argmax(1) == exam.tests[k - 1][1]) for k in range(1, 6)]
    assert min(scores) > 0.9


def test_a_task_that_comes_again_is_answered_by_what_it_learned_last():
    exam = digits()
    learner = PackNet(**SHORT)
    for k in (1, 2, 1):
        learn(learner, exam, k)
    assert learner.tasks == [[0, 1], [2, 3], [0, 1]]
    found = answers(learner, exam, 1).argmax(1)
    assert np.mean(found == exam.tests[0][1]) > 0.9


@pytest.mark.parametrize("passes", [1, 2, None])
def test_pruning_takes_no_more_passes_than_the_exam_allows(passes):
    exam = digits()
    learner, shown = PackNet(**SHORT), []
    plain = learner.loss
    learner.loss = lambda batch: shown.append(len(batch.y)) or plain(batch)
    learn(learner, exam, 1, passes=passes)
    assert sum(shown) == (passes or 3) * len(exam.rounds[0][1])
    assert all(bool((owner == 1).any()) for owner in learner.owners.values())


def test_a_round_without_any_label_takes_no_room_from_the_next():
    exam = digits()
    learner = PackNet(**SHORT)
    x, y = exam.rounds[0]
    exam.rounds[0] = (x, np.full_like(y, -1))
    for k in (1, 2):
        learn(learner, exam, k)
    assert np.mean(answers(learner, exam, 2).argmax(1) == exam.tests[1][1]) > 0.8


def test_an_untrained_model_can_be_examined_in_any_exam():
    exam = digits()
    assert PackNet().predict(Data(exam.tests[0][0]), num_classes=10, seed=0).shape == exam.tests[0][1].shape
    assert set(answers(PackNet(), exam, 2).argmax(1)) <= {2, 3}


def test_an_exam_that_does_not_tell_the_task_is_refused():
    exam = digits()
    learner = PackNet(**SHORT)
    assert errors_of(teach, learner, exam, 1, seed=0) == [("refused-arguments", "")]
    learn(learner, exam, 1)
    assert errors_of(learner.predict, Data(exam.tests[0][0]), num_classes=10, classes_seen=(0, 1), seed=5) == [
        ("refused-arguments", "")
    ]
