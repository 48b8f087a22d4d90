"""MDIL-SS over three rounds: what must not change of earlier domains, and what its switches change."""

import numpy as np
import pytest

from ianvs.testalgorithms.mdil_ss.basemodel import MDILSS
from tests.unit.testalgorithms.exam_of_scenes import (
    LISTS,
    SHORT,
    answers,
    changed,
    domain_weights,
    scenes,
    teach,
    weights,
)


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
