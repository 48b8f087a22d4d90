"""The companions of MDIL-SS: fine-tuning, feature extraction, single-task, multi-task, LwF and replay of pictures.

A shared ERFNet encoder with a decoder for each domain; Adam with L2, the schedule and the class weights of MDIL-SS, as
in test_segmentation_mdil.py. From the code of Garg et al. 2022 (prachigarg23/MDIL-SS 9db199d):

Fine-tuning trains encoder and new decoder; old decoders are frozen and not run (main_ftp1_enc_newbn.py:229-237, :288).
Feature extraction trains the new decoder alone, but all is in training mode, so that the encoder's statistics move
(:241, :272). In both a new decoder begins as it is drawn there (:217-221); ours begins as the last one stands, like
that of every method here, and `initialise: false` is the code's way.

Multi-task: each iteration makes a step on a batch of every domain, an epoch is as long as the shortest loader
(train_multi_task.py:225, :244-262), the encoder learns at lr / T (:212). A step of ours moves what has a gradient; in
the authors' PyTorch, where zero_grad kept zeros, the other decoders moved by their momentum as well.

LwF (Li & Hoiem 2017, fig. 3): L_CE(new) + alpha sum over j < t of T^2 KL(softmax(z_j,old / T) || softmax(z_j / T)), a
mean over pixels; all decoders learn. Replay (after Chaudhry et al. 2019, algorithm 1): L_CE(new) + L_CE(old), each in
its own branch; old domains take turns, and each has as many pictures in memory, a uniform sample of what it had. No
code of these two is public.
"""

import copy

import pytest
import torch
from torch import nn

from ianvs.testalgorithms.mdil_ss.losses import class_weights, weighted_cross_entropy
from ianvs.testalgorithms.mdil_ss.scene_augmentation import draw_moves
from ianvs.testalgorithms.segmentation import SegmentationLearner
from ianvs.testalgorithms.segmentation.feature_extraction.basemodel import FeatureExtraction
from ianvs.testalgorithms.segmentation.finetune.basemodel import FineTuning
from ianvs.testalgorithms.segmentation.lwf.basemodel import LwF
from ianvs.testalgorithms.segmentation.multi_task.basemodel import MultiTask
from ianvs.testalgorithms.segmentation.picture_memory import DomainMemory
from ianvs.testalgorithms.segmentation.replay.basemodel import Replay
from ianvs.testalgorithms.segmentation.single_task.basemodel import SingleTask
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Reservoir
from tests.nightly.conformance.scenes import moved, resting, segmentation


def take_up(exam, net, k, initialise=True):
    """Domain k's decoder, which begins as the last one but for the outputs."""
    exam.add_domain(net, k)
    if k > 1 and initialise:
        with torch.no_grad():
            for name, value in net.decoders[k - 2].state_dict().items():
                if "classifier" not in name:
                    net.decoders[k - 1].state_dict()[name].copy_(value)


def encoder(net):
    return [*net.encoder.parameters(), *net.units.parameters()]


def streams(exam, k):
    exam.dropout(k)
    return exam.draws(k, "order"), exam.draws(k, "augmentation")


def fine_tuning(exam, *, initialise=True):
    net = exam.network()
    for k in exam.rounds:
        take_up(exam, net, k, initialise)
        adam = exam.adam((encoder(net), exam.learning_rate), (net.decoders[k - 1].parameters(), exam.learning_rate))
        net.train()
        draws = streams(exam, k)
        with resting(*net.decoders[: k - 1]):
            for _ in exam.epochs_of(k, adam):
                for x, y in exam.one_pass(k, *draws):
                    net.zero_grad()
                    exam.surprise(net(x, k - 1), y, k).backward()
                    adam.step()
        yield exam.after(net, k)


def feature_extraction(exam, *, keep_statistics=False, initialise=True):
    net = exam.network()
    for k in exam.rounds:
        take_up(exam, net, k, initialise)
        learning = [*(encoder(net) if k == 1 else []), *net.decoders[k - 1].parameters()]
        adam = exam.adam((learning, exam.learning_rate))
        net.train()
        draws = streams(exam, k)
        with resting(*net.decoders[: k - 1], *([net.units] if keep_statistics and k > 1 else [])):
            for _ in exam.epochs_of(k, adam):
                for x, y in exam.one_pass(k, *draws):
                    net.zero_grad()
                    exam.surprise(net(x, k - 1), y, k).backward()
                    adam.step()
        yield exam.after(net, k)


def single_task(exam):
    nets = nn.ModuleList()
    for k in exam.rounds:
        net = exam.network_of(k)
        nets.append(net)
        adam = exam.adam((net.parameters(), exam.learning_rate))
        net.train()
        draws = streams(exam, k)
        for _ in exam.epochs_of(k, adam):
            for x, y in exam.one_pass(k, *draws):
                adam.zero_grad()
                exam.surprise(net(x, 0), y, k).backward()
                adam.step()
        yield exam.after(nets, k, ask=lambda x, j: nets[j](x, 0))


def multi_task(exam, *, epoch_length="shortest"):
    for k in exam.rounds:
        net = exam.network()
        for j in range(1, k + 1):
            exam.add_domain(net, j)
        rate = exam.learning_rate
        adam = exam.adam((encoder(net), rate / k), (net.decoders.parameters(), rate))
        net.train()
        order, moves = streams(exam, k)
        sizes = [-(-len(exam.pictures(j)[0]) // exam.batch_size) for j in range(1, k + 1)]
        for _ in exam.epochs_of(k, adam):
            passes = [iter(()) for _ in sizes]
            for _ in range(min(sizes) if epoch_length == "shortest" else max(sizes)):
                for j in range(1, k + 1):
                    batch = next(passes[j - 1], None)
                    if batch is None:
                        passes[j - 1] = exam.one_pass(j, order, moves)
                        batch = next(passes[j - 1])
                    adam.zero_grad()
                    exam.surprise(net(batch[0], j - 1), batch[1], j).backward()
                    adam.step()
        yield exam.after(net, k)


def lwf(exam, *, alpha, temperature):
    net, T = exam.network(), temperature
    for k in exam.rounds:
        take_up(exam, net, k)
        teacher = copy.deepcopy(net).eval()
        adam = exam.adam((net.parameters(), exam.learning_rate))
        net.train()
        draws = streams(exam, k)
        for _ in exam.epochs_of(k, adam):
            for x, y in exam.one_pass(k, *draws):
                loss = exam.surprise(net(x, k - 1), y, k)
                for j in range(k - 1):
                    p = (teacher(x, j).detach() / T).softmax(1)
                    loss = loss + alpha * T**2 * (p * (p.log() - (net(x, j) / T).log_softmax(1))).sum(1).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
        yield exam.after(net, k)


def replay(exam, *, capacity):
    net, memories = exam.network(), []
    for k in exam.rounds:
        take_up(exam, net, k)
        adam = exam.adam((net.parameters(), exam.learning_rate))
        net.train()
        order, moves = streams(exam, k)
        draws, turn = exam.draws(k, "memory"), 0
        for _ in exam.epochs_of(k, adam):
            for x, y in exam.one_pass(k, order, moves):
                adam.zero_grad()
                exam.surprise(net(x, k - 1), y, k).backward()
                if memories:
                    j = turn % len(memories)
                    old_x, old_y = memories[j].drawn(len(y), draws)
                    old_x, old_y = moved(old_x, old_y, draw_moves(len(old_y), moves), exam.outputs(j + 1) - 1)
                    exam.surprise(net(old_x, j), old_y, j + 1).backward()
                    turn += 1
                adam.step()
        memories.append(Reservoir(0))
        for j, memory in enumerate(memories, start=1):
            memory.capacity = capacity // k
            memory.offer(draws, *(column if j == k else column[:0] for column in exam.pictures(j)))
        yield exam.after(net, k, [column for memory in memories for column in memory.columns])


SCHEDULE = Mutant("first epoch only", "in range(1, self.epochs + 1):", "in range(1, 2):", SegmentationLearner)
DECODERS = [
    SCHEDULE,
    Mutant("factor", 'poly_lr(group["initial_lr"]', 'poly_lr(2 * group["initial_lr"]', SegmentationLearner),
    Mutant("factor", "weights[-1] = 0.0", "weights[0] = 0.0", class_weights),
    Mutant("mask", "weight=weights, ", "", weighted_cross_entropy),
    Mutant(
        "order of rounds",
        "initialise_domain(self.network, domain, domain - 1)",
        "initialise_domain(self.network, domain, 0)",
        SegmentationLearner,
    ),
]
CHECKS = [
    segmentation(FineTuning, fine_tuning, DECODERS),
    segmentation(FineTuning, fine_tuning, DECODERS[:3], title="FineTuning, the code's first weights", initialise=False),
    segmentation(
        FeatureExtraction,
        feature_extraction,
        [
            SCHEDULE,
            Mutant("freezing", "(0.0 if domain else self.learning_rate)", "self.learning_rate"),
            Mutant("statistics", "if self.keep_statistics and batch.domain:", "if batch.domain:"),
        ],
    ),
    segmentation(
        FeatureExtraction,
        feature_extraction,
        [
            SCHEDULE,
            Mutant("statistics", "if self.keep_statistics and batch.domain:", "if self.keep_statistics:"),
            Mutant("statistics", "self.network.units.eval()", "self.network.eval()"),
        ],
        title="FeatureExtraction, still statistics",
        keep_statistics=True,
    ),
    segmentation(
        SingleTask,
        single_task,
        [
            SCHEDULE,
            DECODERS[2],
            Mutant("order of rounds", "return self.networks[domain].parameters()",
                   "return self.networks[0].parameters()"),
        ],
    ),
    segmentation(
        MultiTask,
        multi_task,
        [
            SCHEDULE,
            Mutant("factor", "self.learning_rate / len(self.domains)", "self.learning_rate"),
            Mutant("order of rounds", "{**self.domains, task: labels}", "{task: labels, **self.domains}"),
            Mutant("epoch", '"shortest" else max', '"longest" else max'),
            Mutant("order of rounds", "map(next, streams)", "map(next, streams[::-1])"),
        ],
    ),
    segmentation(
        MultiTask,
        multi_task,
        [
            SCHEDULE,
            Mutant("factor", "self.learning_rate / len(self.domains)", "self.learning_rate"),
            Mutant("epoch", '== "shortest" else max', '== "longest" else max'),
        ],
        title="MultiTask, longest",
        epoch_length="longest",
    ),
    segmentation(
        LwF,
        lwf,
        [
            SCHEDULE,
            Mutant("sign", "yield self.alpha * loss", "yield -self.alpha * loss"),
            Mutant("factor", "temperature=self.temperature", "temperature=1.0"),
            Mutant("missing teacher", "self.logits(x, domain, self.teacher)", "self.logits(x, domain)"),
            Mutant("order of rounds", "if domain != batch.domain]", "if domain == batch.domain - 1]"),
        ],
        alpha=5.0,
        temperature=2.0,
    ),
    segmentation(
        Replay,
        replay,
        [
            SCHEDULE,
            Mutant("memory before or after the step", "def after_round(self, data):",
                   "def after_round(self, data):\n        data.x, data.y = data.x[-3:], data.y[-3:]"),
            Mutant("order of rounds", "self.turns.pop(0)", "self.turns.pop()"),
            Mutant("factor", "self.weights |= {d: w.to(data.device)", "self.weights |= {d: w.to(data.device) * 0 + 1"),
            Mutant("factor", "self.capacity // len(self.parts)", "self.capacity // 2", DomainMemory),
        ],
        capacity=5,
    ),
]  # fmt: skip


@pytest.mark.slow
def test_companions_of_mdil_ss_go_where_plain_loops_go():
    for check in CHECKS:
        check.conforms()
