"""MDIL-SS as Garg et al. 2022 state it (WACV, arXiv 2110.12205), with each of the switches for what their code does.

L = L_CE(student(x, t), y) + lambda sum over j < t of KL(teacher(x, j) || student(x, j)), a mean over pixels, on
pictures of the new domain. W_t, the adapters, batch normalisations and decoder of domain t, starts from W_(t-1), its
class outputs as drawn; those of earlier domains are frozen. Adam with L2; W_s at a rate of its own from the second
domain on; rates fall by (1 - (e - 1) / N)^0.9.

From the code (prachigarg23/MDIL-SS 9db199d): what W_t begins with, not the running statistics of the encoder
(train_new_task_step2.py:511-530), two groups of parameters (:231-239), the schedule (:244-254), class weights
1 / ln(1.1 + share), 0 for what is ignored (cal_class_weights.py:58-68), "ignore" within the softmax, a teacher in
evaluation mode (:272).

Where the code is not what the paper says, the paper is our default and the code a switch: softmax in place of its
logarithm, and a mean over classes, too (:296, `kd: reference_quirk`); old branches in training mode (:271, :288,
`old_statistics_drift`); the teacher in training mode (train_new_task_step3.py:301, `teacher_mode`); a step down L_CE
and then one down L_KLD (:329-356, `optimizer_steps: 2`). In the second of these ours moves what has a gradient; in the
authors' PyTorch, where zero_grad kept zeros, W_t moved by its momentum as well.
"""

import copy

import torch

from ianvs.testalgorithms.mdil_ss.basemodel import MDILSS
from ianvs.testalgorithms.mdil_ss.losses import distillation
from ianvs.testalgorithms.mdil_ss.protocol import initialise_domain, training_mode
from ianvs.testalgorithms.segmentation import SegmentationLearner
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.scenes import resting, segmentation


def naive(
    exam,
    *,
    kd_weight,
    shared_learning_rate,
    kd="kl",
    teacher_mode="eval",
    optimizer_steps=1,
    old_statistics_drift=False,
    copy_running_statistics=False,
):
    net = exam.network(adapters=True)
    for k in exam.rounds:
        exam.add_domain(net, k)
        new, old = k - 1, range(k - 1)
        if old:
            begin(net.units[new], net.units[new - 1], "" if copy_running_statistics else "running_ num_batches")
            begin(net.decoders[new], net.decoders[new - 1], "classifier")
        teacher = copy.deepcopy(net).train(teacher_mode == "train")
        own = [*net.units[new].parameters(), *net.decoders[new].parameters()]
        shared = list(net.encoder.parameters())
        net.requires_grad_(False)
        for p in own + shared:
            p.requires_grad_(True)
        adam = exam.adam((shared, shared_learning_rate if old else exam.learning_rate), (own, exam.learning_rate))
        order, moves = exam.draws(k, "order"), exam.draws(k, "augmentation")
        exam.dropout(k)
        net.train()
        at_rest = [m for j in old for m in (net.units[j], net.decoders[j])] if not old_statistics_drift else []
        with resting(*at_rest):
            for _ in exam.epochs_of(k, adam):
                for x, y in exam.one_pass(k, order, moves):
                    adam.zero_grad()
                    exam.surprise(net(x, new), y, k).backward()
                    if optimizer_steps == 2:
                        adam.step()
                        adam.zero_grad()
                    for j in old:
                        with torch.no_grad():
                            z = teacher(x, j)
                        (kd_weight * apart(z, net(x, j), kd)).backward()
                    if optimizer_steps == 1 or old:
                        adam.step()
        yield exam.after(net, k)


def begin(new, old, but):
    """The weights of `old`, except those whose names have one of these words in them."""
    with torch.no_grad():
        for name, value in old.state_dict().items():
            if not any(word in name for word in but.split()):
                new.state_dict()[name].copy_(value)


def apart(teacher, student, kd):
    p, q = teacher.softmax(1), student.softmax(1)
    if kd == "kl":
        return (p * (teacher.log_softmax(1) - student.log_softmax(1))).sum(1).mean()
    return (p * (p.log() - q)).mean()


RATES = {"shared_learning_rate": 5e-4, "kd_weight": 1000.0}
SLIPS = [
    Mutant("factor", "yield self.kd_weight * loss", "yield loss"),
    Mutant("sign", "yield self.kd_weight * loss", "yield -self.kd_weight * loss"),
    Mutant("order of rounds", "in range(len(self.domains)) if", "in range(1) if"),
]
CHECKS = [
    segmentation(
        MDILSS,
        naive,
        [
            *SLIPS,
            Mutant("missing teacher", "yield from self.distillation(batch.x)", "pass"),
            Mutant("mask", '("classifier.weight", "classifier.bias")', "()", initialise_domain),
            Mutant("order of rounds", "if domain and self.initialise:", "if domain > 1 and self.initialise:"),
            Mutant(
                "first epoch only",
                'poly_lr(group["initial_lr"], epoch, self.epochs)',
                'poly_lr(group["initial_lr"], 1, self.epochs)',
                SegmentationLearner,
            ),
            Mutant(
                "statistics", "                    module.eval()", "                    module.train()", training_mode
            ),
        ],
        **RATES,
    ),
    segmentation(
        MDILSS,
        naive,
        [*SLIPS, Mutant("factor", 'reduction="sum") / student.numel()', 'reduction="batchmean")', distillation)],
        title="MDIL-SS, the code's distillation",
        **RATES,
        kd="reference_quirk",
    ),
    segmentation(
        MDILSS,
        naive,
        [*SLIPS, Mutant("statistics", "if not old_statistics_drift:", "if True:", training_mode)],
        title="MDIL-SS, the code's second step",
        **RATES,
        old_statistics_drift=True,
        copy_running_statistics=True,
    ),
    segmentation(
        MDILSS,
        naive,
        [*SLIPS, Mutant("statistics", 'self.teacher_mode == "train"', "False")],
        title="MDIL-SS, the code's third step",
        **RATES,
        teacher_mode="train",
        optimizer_steps=2,
    ),
]


def test_mdil_ss_goes_where_its_paper_and_its_code_go():
    for check in CHECKS:
        check.conforms()
