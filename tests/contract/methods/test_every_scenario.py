"""Methods under the rules of scenarios other than class-incremental: tasks, streams, withheld labels, pre-training."""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.joint.basemodel import Joint
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.marks import slow
from tests.unit.testalgorithms.exam_of_arrays import Data, digits
from tests.unit.testalgorithms.test_methods import LEARNERS

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}
FEW = {"replay", "ewc", "gem", "icarl", "ncm"}
every_method = pytest.mark.parametrize(
    "make", [make if name in FEW else slow(make) for name, make in LEARNERS.items()], ids=LEARNERS
)


def flat(learner):
    return torch.cat([w.detach().flatten() for w in learner.network.state_dict().values()])


def context(exam, k, learner=None, **more):
    given = {"round": k, "classes_seen": exam.seen(k), "num_classes": exam.num_classes, "seed": 5}
    if getattr(learner, "sees_past_rounds", False):
        given["train_rounds"] = tuple(Data(x, y) for x, y in exam.rounds[:k])
    return {**given, **more}


# Tasks whose classes answers are chosen among.


def in_tasks(learner, exam, rounds=5):
    for k in range(1, rounds + 1):
        learner.train(Data(*exam.rounds[k - 1]), None, **context(exam, k, learner, task_classes=exam.groups[k - 1]))
    return learner


@every_method
def test_with_the_task_told_every_method_remembers_its_tasks(make):
    exam = digits()
    learner = in_tasks(make(epochs=8), exam, rounds=3)
    scores = []
    for (x, y), group in zip(exam.tests[:3], exam.groups[:3], strict=True):
        found = learner.predict(Data(x), **context(exam, 3, task_classes=group))
        assert set(found) <= set(group)
        scores.append(np.mean(found == y))
    assert np.mean(scores) > 0.85


def test_a_task_is_trained_among_its_own_classes_and_replayed_among_those_of_its_past():
    exam = digits()
    learner, batches = Replay(capacity=60, **SHORT), []
    plain = learner.loss
    learner.loss = lambda batch: batches.append(batch) or plain(batch)
    in_tasks(learner, exam, rounds=3)
    replayed = set()
    for batch in batches:
        assert batch.outputs.isfinite().all()
        for label, allowed in zip(batch.y.tolist(), batch.logits.isfinite(), strict=True):
            assert allowed.nonzero()[:, 0].tolist() == list(exam.groups[label // 2])
            replayed.add(label)
    assert replayed == set(range(6))


def test_tasks_are_still_known_after_loading(tmp_path):
    exam = digits()
    straight, resumed = Replay(capacity=60, **SHORT), Replay(capacity=60, **SHORT)
    in_tasks(straight, exam, rounds=2)
    resumed.load(straight.save(tmp_path / "model"))
    for learner in (straight, resumed):
        learner.train(Data(*exam.rounds[2]), None, **context(exam, 3, task_classes=exam.groups[2]))
    assert torch.equal(flat(straight), flat(resumed))


# Streams.


def chunks(exam, size=10, rounds=5):
    n, seen = 0, ()
    for k in range(rounds):
        x, y = exam.rounds[k]
        order = np.random.default_rng(k).permutation(len(y))[:100]
        for some in np.array_split(order, range(size, len(order), size)):
            n += 1
            seen = tuple(sorted({*seen, *y[some].tolist()}))
            yield n, seen, x[some], y[some]


@every_method
def test_a_stream_is_learned_chunk_by_chunk_and_goes_on_after_loading(make, tmp_path):
    exam = digits()
    options = {"learning_rate": 0.005}  # every chunk adds to the penalty of EWC
    learner, past, resumed = make(**options), (), None
    for n, seen, x, y in chunks(exam, rounds=2):
        past = (*past, Data(x, y))
        given = {"round": n, "classes_seen": seen, "num_classes": 10, "seed": 5, "passes": 1}
        if getattr(learner, "sees_past_rounds", False):
            given["train_rounds"] = past
        for each in filter(None, (learner, resumed)):
            each.train(Data(x, y), None, **given)
        if n == 12:
            resumed = make(**options)
            resumed.load(learner.save(tmp_path / "model"))
    asked = {"round": n, "classes_seen": seen, "num_classes": 10, "seed": 5}
    answers = [each.predict(Data(exam.tests[0][0]), **asked) for each in (learner, resumed)]
    np.testing.assert_array_equal(*answers)
    assert torch.equal(flat(learner), flat(resumed))


@pytest.mark.parametrize("passes, expected", [(None, 3), (1, 1), (2, 2), (7, 3)])
def test_no_sample_is_shown_more_often_than_the_exam_allows(passes, expected):
    exam = digits()
    learner, shown = Finetune(**{**SHORT, "epochs": 3}), []
    plain = learner.loss
    learner.loss = lambda batch: shown.append(len(batch.y)) or plain(batch)
    shares = []
    learner.train(Data(*exam.rounds[0]), None, passes=passes, progress=shares.append, **context(exam, 1))
    assert sum(shown) == expected * len(exam.rounds[0][1])
    assert shares[-1] == 1.0


def test_a_bound_that_sees_past_rounds_is_not_held_to_passes():
    exam = digits()
    held, free = Joint(**SHORT), Joint(**SHORT)
    held.train(Data(*exam.rounds[0]), None, passes=1, **context(exam, 1, held))
    free.train(Data(*exam.rounds[0]), None, **context(exam, 1, free))
    assert torch.equal(flat(held), flat(free))


# Withheld labels.


@every_method
def test_with_a_tenth_of_the_labels_a_method_learns_from_those(make):
    exam = digits()
    learner = make(epochs=10)
    for k in (1, 2):
        x, y = exam.rounds[k - 1]
        told = np.where(np.random.default_rng(k).random(len(y)) < 0.1, y, -1)
        exam.rounds[k - 1] = (x, told)
        learner.train(Data(x, told), None, **context(exam, k, learner))
    found = learner.predict(Data(exam.tests[1][0]), **context(exam, 2))
    assert all(bool(p.isfinite().all()) for p in learner.network.parameters())
    assert np.mean(found == exam.tests[1][1]) > 0.4  # of four classes


def test_without_labels_fine_tuning_takes_no_step_whatever_the_optimiser_would_do():
    exam = digits()
    learner = Finetune(weight_decay=0.1, **SHORT)
    learner.train(Data(*exam.rounds[0]), None, **context(exam, 1))
    before = flat(learner).clone()
    x, y = exam.rounds[1]
    learner.train(Data(x, np.full_like(y, -1)), None, **context(exam, 2))
    assert torch.equal(flat(learner), before)


def test_the_loss_of_a_batch_is_the_mean_over_its_labelled_samples():
    exam = digits()
    learner, seen = Finetune(**SHORT), []
    plain = learner.loss
    learner.loss = lambda batch: seen.append((batch, plain(batch))) or seen[-1][1]
    x, y = exam.rounds[0]
    told = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    learner.train(Data(x, told), None, **context(exam, 1))
    for batch, loss in seen:
        known = batch.y >= 0
        torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(batch.logits[known], batch.y[known]))


def test_a_memory_keeps_no_sample_that_nothing_can_be_learned_from():
    exam = digits()
    for name in ("replay", "agem", "gem", "der++", "gdumb", "biased reservoir", "er-ace", "icarl"):
        learner = LEARNERS[name]()
        x, y = exam.rounds[0]
        learner.train(Data(x, np.where(np.arange(len(y)) % 9 == 0, y, -1)), None, **context(exam, 1))
        parts = getattr(learner.memory, "parts", [learner.memory])
        assert all(set(part.y.tolist()) == {0, 1} for part in parts), name


# Continual pre-training.


def pretrained(learner, exam, rounds=2):
    for k in range(1, rounds + 1):
        x, _ = exam.rounds[k - 1]
        exam.rounds[k - 1] = (x[:100], np.full(100, -1))
        given = context(exam, k, learner, pretraining=True)
        learner.train(Data(*exam.rounds[k - 1]), None, **given)
    return learner


def adapted(make, path, exam, j):
    """A copy, adapted to downstream task j by 10 samples, and its score."""
    copy = make()
    copy.load(path)
    x, y = exam.rounds[j]
    given = {"num_classes": 10, "seed": 5, "task_classes": exam.groups[j]}
    copy.train(Data(x[:10], y[:10]), None, round=2, pretraining=False, **given)
    return copy, np.mean(copy.predict(Data(exam.tests[j][0]), **given) == exam.tests[j][1])


@every_method
@pytest.mark.parametrize("adaptation", ["probe", slow("finetune")])
def test_a_copy_is_adapted_after_a_stage_and_the_learner_goes_on(make, adaptation, tmp_path):
    exam = digits()
    options = {"adaptation": adaptation, "epochs": 20}
    learner = pretrained(make(**options), exam)
    before = flat(learner).clone()
    written = learner.save(tmp_path / "model")
    copies = [adapted(lambda: make(**options), written, exam, 3) for _ in range(2)]
    assert copies[0][1] > 0.8
    assert torch.equal(flat(copies[0][0]), flat(copies[1][0]))
    assert torch.equal(flat(learner), before)


def test_pretraining_goes_on_bit_for_bit_after_loading(tmp_path):
    straight, resumed = Replay(capacity=60, **SHORT), Replay(capacity=60, **SHORT)
    exam = digits()
    pretrained(straight, exam, rounds=1)
    resumed.load(straight.save(tmp_path / "model"))
    x, y = exam.rounds[1]
    for learner in (straight, resumed):
        learner.train(Data(x, np.full_like(y, -1)), None, **context(exam, 2, pretraining=True))
    assert torch.equal(flat(straight), flat(resumed))


def test_pretraining_looks_at_no_label():
    exam, blind = digits(), digits()
    told, untold = Finetune(**SHORT), Finetune(**SHORT)
    x, y = exam.rounds[0]
    told.train(Data(x[:100], y[:100]), None, **context(exam, 1, pretraining=True))
    pretrained(untold, blind, rounds=1)
    assert torch.equal(flat(told), flat(untold))


def test_pretraining_rebuilds_what_it_has_not_seen_better_and_better():
    exam = digits()
    learner, errors = Finetune(**{**SHORT, "epochs": 30}), []
    plain = learner.loss
    learner.loss = lambda batch: errors.append(plain(batch)) or errors[-1]
    pretrained(learner, exam, rounds=1)
    errors = [error.item() for error in errors]
    assert np.mean(errors[:3]) > 0.8  # 1 is no better than the mean
    assert np.mean(errors[-10:]) < 0.4


def test_replay_shows_unlabelled_samples_of_earlier_stages():
    exam = digits()
    learner = pretrained(Replay(capacity=60, **SHORT), exam, rounds=1)
    assert len(learner.memory) == 60
    sizes = []
    plain = learner.loss
    learner.loss = lambda batch: sizes.append(len(batch.y)) or plain(batch)
    x, y = exam.rounds[1]
    learner.train(Data(x, np.full_like(y, -1)), None, **context(exam, 2, pretraining=True))
    assert sizes[0] == 64
