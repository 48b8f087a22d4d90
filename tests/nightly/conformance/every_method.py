"""Every method that ships, small enough for tests, with its rounds: what promises that all keep are held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import torch

from tests.unit.testalgorithms import conversation_fixtures, exam_of_arrays, exam_of_scenes, exam_of_shapes

SHORT = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}
TRANSFORMER = {"epochs": 2, "batch_size": 64, "learning_rate": 0.003, "optimizer": "adam"}
ADAPTER = {"lora_r": 4, "experts": 2}


def method(place: str, name: str) -> type:
    """The class `name` of testalgorithms/`place`/basemodel.py."""
    found: type = getattr(import_module(f"ianvs.testalgorithms.{place}.basemodel"), name)
    return found


@dataclass(frozen=True)
class Candidate:
    """A class with options, and the rounds that it takes.

    teach: (learner, k, seed). answers: (learner, k, seed) -> an array, after round k, or of an untrained one for k = 0.
    draws: whether the seed decides anything.
    """

    place: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    teach: Callable[[Any, int, int], object] = lambda learner, k, seed: None
    answers: Callable[[Any, int, int], Any] = lambda learner, k, seed: None
    rounds: int = 3
    draws: bool = True

    @property
    def method(self) -> type:
        return method(self.place, self.name)

    def make(self, **more: Any) -> Any:
        return self.method(**{**self.options, **more})


# Classifiers.

digits = cache(exam_of_arrays.digits)


@cache
def few_digits() -> exam_of_arrays.Exam:
    """A third of them: transformers are slow."""
    exam = exam_of_arrays.digits()
    return exam_of_arrays.Exam([(x[:90], y[:90]) for x, y in exam.rounds], exam.tests, exam.groups, exam.num_classes)


def teach_classes(
    learner: Any, k: int, seed: int, exam: Callable[[], exam_of_arrays.Exam] = digits, told: bool = False
) -> None:
    exam_of_arrays.teach(learner, exam(), k, seed, **({"task_classes": exam().groups[k - 1]} if told else {}))


def classes(
    learner: Any, k: int, seed: int, exam: Callable[[], exam_of_arrays.Exam] = digits, told: bool = False
) -> Any:
    tests = list(zip(exam().tests, exam().groups, strict=True))[: k if told else None] or [
        (exam().tests[0], exam().groups[0])
    ]
    context = {"round": k, "classes_seen": exam().seen(k), "num_classes": exam().num_classes, "seed": seed}
    found = [
        learner.predict(exam_of_arrays.Data(x), **context, **({"task_classes": group} if told and k else {}))
        for (x, _), group in tests
    ]
    return np.concatenate(found)


def classifier(place: str, name: str, *, draws: bool = True, told: bool = False, **options: Any) -> Candidate:
    return Candidate(
        place, name, {**SHORT, **options}, partial(teach_classes, told=told), partial(classes, told=told), 5, draws
    )


def transformer(place: str, name: str, **options: Any) -> Candidate:
    of = {"exam": few_digits}
    return Candidate(place, name, {**TRANSFORMER, **options}, partial(teach_classes, **of), partial(classes, **of))


CLASSIFIERS = {
    "finetune": classifier("finetune", "Finetune"),
    "joint": classifier("joint", "Joint"),
    "cumulative": classifier("cumulative", "Cumulative"),
    "replay": classifier("replay", "Replay", capacity=60),
    "ewc": classifier("ewc", "EWC", strength=300.0),
    "online ewc": classifier("ewc", "EWC", strength=300.0, gamma=0.9),
    "lwf": classifier("lwf", "LwF", alpha=2.0),
    "agem": classifier("agem", "AGEM", capacity=60),
    "gem": classifier("gem", "GEM", samples_per_round=20),
    "si": classifier("si", "SI", strength=1.0),
    "der": classifier("der", "DER", capacity=60),
    "der, filled after the round": classifier("der", "DER", capacity=60, fill="after_round"),
    "replay, as in a stream": classifier("replay", "Replay", capacity=60, fill="during_round", replay_batch=10),
    "balanced replay": classifier("replay", "Replay", capacity=60, selection="balanced"),
    "replay of each round": classifier("replay", "Replay", capacity=20, selection="per_round"),
    "ewc, exact fisher": classifier("ewc", "EWC", strength=300.0, fisher="exact", fisher_samples=50),
    "lwf, head first": classifier("lwf", "LwF", alpha=2.0, alpha_growth=0.5, head_epochs=1),
    "optimiser kept": classifier(
        "finetune", "Finetune", keep_optimizer=True, optimizer="adamw", decay="cosine", warm_up=0.1
    ),
    "der++": classifier("derpp", "DERpp", capacity=60),
    "er-ace": classifier("er_ace", "ERACE", capacity=60),
    "mir": classifier("mir", "MIR", capacity=60),
    "mir, as in a stream": classifier("mir", "MIR", capacity=60, fill="during_round", replay_batch=10, candidates=30),
    "icarl": classifier("icarl", "ICaRL", capacity=60),
    "wa": classifier("wa", "WA", capacity=60),
    "lucir": classifier("lucir", "LUCIR", capacity=60),
    "bic": classifier("bic", "BiC", capacity=60, correction_epochs=10),
    "dynamic er": classifier("dynamic_er", "DynamicER", capacity=60, head_epochs=10),
    "dynamic er, aligned": classifier("dynamic_er", "DynamicER", capacity=60, balance="align"),
    "foster": classifier("foster", "FOSTER", capacity=60),
    "mas": classifier("mas", "MAS"),
    "rwalk": classifier("rwalk", "RWalk"),
    "replay of exemplars": classifier("replay", "Replay", capacity=60, selection="herding"),
    "gdumb": classifier("gdumb", "GDumb", capacity=60),
    "cwr*": classifier("cwr_star", "CWRStar"),
    "linear probe": classifier("linear_probe", "LinearProbe"),
    "max softmax": classifier("max_softmax", "MaxSoftmax", capacity=60),
    "energy": classifier("energy", "Energy", capacity=60),
    "class means": classifier("class_means", "ClassMeans", capacity=60),
    "biased reservoir": classifier("biased_reservoir", "BiasedReservoir", capacity=60, alpha=2.0),
    "plain reservoir": classifier("biased_reservoir", "BiasedReservoir", capacity=60, formula="reservoir", reset=True),
    "ncm": classifier("ncm", "NCM", draws=False),
    "slda": classifier("slda", "SLDA", draws=False),
    "ranpac": classifier("ranpac", "RanPAC", width=200),
    "ranpac, tuned in the first round": classifier("ranpac", "RanPAC", width=200, tuning="finetune", network="mlp"),
    "simplecil": classifier("simplecil", "SimpleCIL", draws=False),
    "aper": classifier("aper", "APER", tuning="finetune", network="mlp"),
    "slca": classifier("slca", "SLCA", head_learning_rate=0.1, alignment_epochs=2, alignment_samples=32),
}
TOLD_THE_TASK = {"packnet": classifier("packnet", "PackNet", told=True, epochs=3)}
TRANSFORMERS = {
    "ease": transformer("ease", "EASE", bottleneck=4),
    "mos": transformer("mos", "MOS", bottleneck=4, alignment_epochs=2, alignment_samples=32),
    "sd-lora": transformer("sd_lora", "SDLoRA", rank=3),
    "aper, adapters": transformer("aper", "APER", bottleneck=4),
    "l2p": transformer("l2p", "L2P", pool=4, length=2, chosen=2),
    "dualprompt": transformer("dualprompt", "DualPrompt", general_length=2, length=3),
    "coda-prompt": transformer("coda_prompt", "CODAPrompt", per_round=3, length=4, orthogonality=0.1, rounds=2),
    "inflora": transformer("inflora", "InfLoRA", rank=3),
}

# Segmentation.


def segmenter(place: str, name: str, **options: Any) -> Candidate:
    return Candidate(
        place,
        name,
        {**exam_of_scenes.SHORT, **options},
        exam_of_scenes.teach,
        lambda learner, k, seed: np.stack([exam_of_scenes.answers(learner, j, k, seed) for j in range(3)]),
    )


def dense_segmenter(place: str, name: str) -> Candidate:
    """Of one head for all classes; SHORT without what only the methods of domains take."""
    candidate = segmenter(place, name)
    options = {key: candidate.options[key] for key in ("epochs", "batch_size", "learning_rate")}
    return replace(candidate, options={**options, "network": "erfnet_narrow"})


SEGMENTERS = {
    "mdil-ss": segmenter("mdil_ss", "MDILSS"),
    "segmentation, finetune": segmenter("segmentation.finetune", "FineTuning"),
    "segmentation, feature extraction": segmenter("segmentation.feature_extraction", "FeatureExtraction"),
    "segmentation, multi-task": segmenter("segmentation.multi_task", "MultiTask"),
    "segmentation, single task": segmenter("segmentation.single_task", "SingleTask"),
    "segmentation, lwf": segmenter("segmentation.lwf", "LwF"),
    "segmentation, replay": segmenter("segmentation.replay", "Replay", capacity=6),
    "segmentation by classes, finetune": dense_segmenter("class_segmentation.finetune", "DenseFinetune"),
    "segmentation by classes, joint": dense_segmenter("class_segmentation.joint", "DenseJoint"),
    "segmentation by classes, MiB": dense_segmenter("class_segmentation.mib", "MiB"),
    "segmentation by classes, PLOP": dense_segmenter("class_segmentation.plop", "PLOP"),
}

# Boxes and several labels, in two rounds of shapes.


def of_shapes(place: str, name: str, **options: Any) -> Candidate:
    several = place.startswith("multilabel")

    def teach(learner: Any, k: int, seed: int) -> None:
        exam_of_shapes.teach(learner, k, several=several, seed=seed)

    def said(learner: Any, k: int, seed: int) -> Any:
        found = exam_of_shapes.answers(learner, k, seed=seed)
        return found if several else np.concatenate([np.column_stack(list(one.values())) for one in found])

    return Candidate(place, name, {**exam_of_shapes.SHORT, **options}, teach, said, rounds=2)


SHAPES = {
    "boxes, finetune": of_shapes("detection.finetune", "DetectionFinetune"),
    "boxes, replay": of_shapes("detection.replay", "DetectionReplay", capacity=10),
    "boxes, lwf": of_shapes("detection.lwf", "DetectionLwF"),
    "boxes, pseudo-labels": of_shapes("detection.pseudo_labels", "DetectionPseudoLabels", threshold=0.1),
    "boxes, joint": of_shapes("detection.joint", "DetectionJoint"),
    "several labels, finetune": of_shapes("multilabel.finetune", "MultilabelFinetune"),
    "several labels, replay": of_shapes("multilabel.replay", "MultilabelReplay", capacity=10),
    "several labels, prs": of_shapes("multilabel.prs", "MultilabelPRS", capacity=10),
    "several labels, ocdm": of_shapes("multilabel.ocdm", "MultilabelOCDM", capacity=10),
    "several labels, pseudo-labels": of_shapes("multilabel.pseudo_labels", "MultilabelPseudoLabels"),
    "several labels, joint": of_shapes("multilabel.joint", "MultilabelJoint"),
}

# Language.

TALKS = (conversation_fixtures.FIRST, conversation_fixtures.SECOND, conversation_fixtures.FIRST)


def teach_talks(learner: Any, k: int, seed: int) -> None:
    context = {"train_rounds": TALKS[:k]} if getattr(learner, "sees_past_rounds", False) else {}
    learner.train(TALKS[k - 1], None, round=k, seed=seed, folder=None, **context)


def replies(learner: Any, k: int, seed: int) -> Any:
    return np.array(
        [str(reply) for reply in learner.predict(conversation_fixtures.asked(conversation_fixtures.FIRST), seed=seed)]
    )


def talker(place: str, name: str, **options: Any) -> Candidate:
    return Candidate(f"language.{place}", name, {**conversation_fixtures.SIZE, **options}, teach_talks, replies)


TALKERS = {
    "language, sequential": talker("sequential", "Sequential"),
    "language, replay": talker("replay", "Replay"),
    "language, ewc": talker("ewc", "EWC"),
    "language, lwf": talker("lwf", "LwF"),
    "language, gem": talker("gem", "GEM"),
    "language, agem": talker("agem", "AGEM"),
    "language, moelora": talker("moelora", "MoELoRA", **ADAPTER),
    "language, cia": talker("cia", "CIA"),
    "language, o-lora": talker("olora", "OLoRA", **ADAPTER),
    "language, multi-task": talker("multi_task", "MultiTask"),
    "language, shuffled pictures": talker("shuffled_pictures", "ShuffledPictures"),
}

EVERY = {**CLASSIFIERS, **TOLD_THE_TASK, **TRANSFORMERS, **SEGMENTERS, **SHAPES, **TALKERS}


def weights(learner: Any) -> list[torch.Tensor]:
    if not hasattr(learner, "network"):  # it is trained when it is asked
        learner.learn("cpu")
    return [w.detach().clone() for w in learner.network.state_dict().values()]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
