"""MDIL-SS over three rounds: what must not change of earlier domains, and what its switches change."""

import numpy as np
import pytest
import torch

from ianvs.errors import PluginError
from ianvs.testalgorithms.mdil_ss.basemodel import MDILSS
from ianvs.testalgorithms.mdil_ss.protocol import frozen_copy
from tests.testalgorithms.exam_of_scenes import LISTS, SHORT, answers, changed, domain_weights, scenes, teach, weights

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def taught(rounds, **options):
    learner = MDILSS(**{**SHORT, "shared_learning_rate": 1e-3, **options})
    for k in range(1, rounds + 1):
        teach(learner, k)
    return learner


def test_a_round_leaves_every_tensor_of_earlier_domains_bit_identical_and_moves_all_others():
    learner = taught(1)
    for k in (2, 3):
        before = [domain_weights(learner, domain) for domain in range(k - 1)]
        shared = {name: value.clone() for name, value in learner.network.encoder.state_dict().items()}
        teach(learner, k)
        for domain, state in enumerate(before):
            assert not changed(state, domain_weights(learner, domain)), domain
        assert len(changed(shared, learner.network.encoder.state_dict())) == len(shared)


def test_heads_have_an_output_for_each_class_and_one_to_ignore():
    assert taught(3).network.classes == tuple(len(classes) + 1 for classes in LISTS)


def test_with_no_distillation_and_still_shared_weights_old_predictions_are_bit_identical():
    learner = taught(2, kd_weight=0.0, shared_learning_rate=0.0)
    before = [answers(learner, domain) for domain in (0, 1)]
    teach(learner, 3)
    for domain, said in enumerate(before):
        np.testing.assert_array_equal(said, answers(learner, domain))


def first_steps(learner, k=2):
    """(losses as asked for, domain -> logits asked of the student) in the first call of step() of round k."""
    losses, plain = [], learner.descend

    def observed(wanted):
        seen = []

        def passing():
            for loss in wanted:
                seen.append(loss.item())
                yield loss

        plain(passing())
        losses.append(seen)

    learner.descend = observed
    teach(learner, k, data=scenes(k - 1, count=4))  # one batch
    return losses


def test_at_the_first_step_distillation_is_zero_when_nothing_is_drawn_in_the_student():
    still = {"dropout": (0.0, 0.0)}
    ((cross_entropy, kl),) = first_steps(taught(1, **still))
    assert cross_entropy > 0.1 and kl == 0.0
    ((_, first, second),) = first_steps(taught(2, **still), 3)
    assert first == second == 0.0


def test_the_quirk_of_the_authors_loss_is_negative_there():
    ((_, quirk),) = first_steps(taught(1, dropout=(0.0, 0.0), kd="reference_quirk", kd_weight=0.1))
    assert quirk < 0.0


def test_two_steps_are_made_if_that_is_asked_for_and_end_elsewhere():
    one, two = taught(1), taught(1, optimizer_steps=2)
    assert [len(losses) for losses in first_steps(one)] == [2]
    assert [len(losses) for losses in first_steps(two)] == [1, 1]
    assert changed(weights(one), weights(two))


def test_in_the_second_of_two_steps_only_shared_weights_move():
    learner = taught(1, optimizer_steps=2)
    seen, plain = [], learner.descend

    def observed(losses):
        before = weights(learner)
        plain(losses)
        moved = changed(before, weights(learner))
        seen.append({name.split(".")[0] for name in moved if not name.endswith(STATISTICS)})

    learner.descend = observed
    teach(learner, 2, data=scenes(1, count=4))
    assert seen == [{"encoder", "units", "decoders"}, {"encoder"}]


def test_old_statistics_drift_with_the_quirk_and_old_parameters_do_not():
    learner = taught(1, old_statistics_drift=True)
    before = domain_weights(learner, 0)
    teach(learner, 2)
    assert sorted(changed(before, domain_weights(learner, 0))) == sorted(n for n in before if n.endswith(STATISTICS))


@pytest.mark.parametrize(("mode", "training"), [("eval", False), ("train", True)])
def test_the_teacher_is_in_the_mode_that_was_asked_for(mode, training):
    learner, modes = taught(1, teacher_mode=mode), []
    plain = learner.step

    def observed(batch):
        modes.append({module.training for module in learner.teacher.modules()})
        plain(batch)

    learner.step = observed
    teach(learner, 2)
    assert all(found == {training} for found in modes) and modes


def test_running_statistics_are_copied_on_request_only():
    def encoder_statistics(copying):
        learner = taught(1, copy_running_statistics=copying)
        learner.epochs = 0
        teach(learner, 2)
        old, new = (learner.network.units[d].state_dict() for d in (0, 1))
        return [torch.equal(value, new[name]) for name, value in old.items() if name.endswith("running_mean")]

    assert not any(encoder_statistics(False))
    assert all(encoder_statistics(True))


def test_shared_weights_and_those_of_the_domain_learn_at_rates_of_their_own():
    learner = MDILSS()
    assert learner.rates(0) == (5e-4, 5e-4)
    assert learner.rates(1) == (5e-6, 5e-4)


@pytest.mark.parametrize(
    "switch",
    [
        {"kd": "reference_quirk"},
        {"old_statistics_drift": True},
        {"teacher_mode": "train"},
        {"optimizer_steps": 2},
        {"shift_border": "reference_quirk"},
        {"kd_weight": 5.0},
        {"copy_running_statistics": True},
        {"initialise": False},
        {"amp": True},
    ],
    ids=lambda switch: next(iter(switch)),
)
def test_every_switch_changes_what_is_learnt(switch):
    assert changed(weights(taught(2)), weights(taught(2, **switch)))


@pytest.mark.parametrize("wrong", [{"kd": "kll"}, {"teacher_mode": "evl"}, {"optimizer_steps": 3}])
def test_a_switch_that_is_not_known_is_refused_by_name(wrong):
    with pytest.raises(PluginError, match=next(iter(wrong))):
        MDILSS(**wrong)


def written_out(teacher, student, epochs, lr_shared, lr_new):
    """Round 2 of MDIL-SS, all pictures in one batch: Adam on L_CE + 0.1 L_KLD, in one backward pass."""
    data = scenes(1)
    x = torch.from_numpy(data.x).permute(0, 3, 1, 2).float() / 255
    y = torch.full(data.y.shape, len(LISTS[1]))
    for position, c in enumerate(LISTS[1]):
        y[torch.from_numpy(data.y == c)] = position
    share = (torch.bincount(y.flatten(), minlength=5) + 1) / (y.numel() + 5)
    w = 1 / torch.log(1.1 + share)
    w[-1] = 0
    own = [*student.units[1].parameters(), *student.decoders[1].parameters()]
    shared = list(student.encoder.parameters())
    for p in own + shared:
        p.requires_grad_(True)
    adam = torch.optim.Adam([{"params": shared}, {"params": own}], weight_decay=1e-4)
    student.train()
    student.units[0].eval()
    student.decoders[0].eval()
    for e in range(epochs):
        for group, rate in zip(adam.param_groups, (lr_shared, lr_new), strict=True):
            group["lr"] = rate * (1 - e / epochs) ** 0.9
        with torch.no_grad():
            told = teacher(x, 0)
        p_t, p_s = told.softmax(1), student(x, 0).softmax(1)
        kl = (p_t * (p_t / p_s).log()).sum(1).mean()
        loss = torch.nn.functional.cross_entropy(student(x, 1), y, weight=w) + 0.1 * kl
        adam.zero_grad()
        loss.backward()
        adam.step()


def test_a_round_equals_the_method_written_out_plainly():
    still = {"dropout": (0.0, 0.0), "flip": 0.0, "max_shift": 0, "batch_size": 8, "epochs": 3}
    learner, plain = taught(1, **still), taught(1, **still)
    teacher = frozen_copy(learner.network)
    plain.epochs = 0
    teach(plain, 2)  # takes up the domain, and no step
    start = weights(plain)
    teach(learner, 2)
    written_out(teacher, plain.network, 3, 1e-3, 5e-3)

    def update(state):
        return torch.cat([(state[n] - start[n]).flatten() for n in start if "num_batches" not in n])

    # Adam makes whole steps of gradients that are next to nothing, so single weights may differ.
    ours, theirs = update(weights(learner)), update(weights(plain))
    assert (ours - theirs).norm() < 0.02 * theirs.norm()
