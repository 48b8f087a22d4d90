"""Overlap of a backbone's pretraining data with an exam: the same images, or other images of the same classes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ianvs.base.errors import PluginError
from ianvs.config.spec import AlgorithmSpec, DatasetSpec, TestEnvSpec
from ianvs.exam.data.named_sources import ENTRY_POINTS
from ianvs.plugins.loader import load
from ianvs.running.planning.plan import Plan


class Collection(NamedTuple):
    """A known collection of samples.

    Attributes:
        spellings: Other ways to write its name, and words in names of weights.
        holds: Collections whose samples it contains, or many of them.
        shares: Collections whose classes it has, in other samples.
    """

    spellings: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()


KNOWN: Mapping[str, Collection] = {
    # Weights of timm named only after their method, "dino" (Caron et al. 2021) and "mae" (He et al. 2022).
    "ImageNet-1k": Collection(("ImageNet", "ILSVRC2012", "IN1k", "dino", "mae"), ("Tiny ImageNet",)),
    "ImageNet-21k": Collection(("ImageNet-22k", "IN21k", "IN22k"), ("ImageNet-1k", "ImageNet-12k")),
    "ImageNet-12k": Collection(("IN12k",)),
    "LVD-142M": Collection((), ("ImageNet-21k",)),  # Oquab et al. 2023, table 15
    "80 Million Tiny Images": Collection((), ("CIFAR-10", "CIFAR-100")),  # Krizhevsky 2009
    "YFCC100M": Collection((), ("CLEAR-10", "CLEAR-100")),  # Lin et al. 2021
    # Zhou et al. 2023 (arXiv 2303.07338): benchmarks that overlap with what transformers are pre-trained on.
    "CIFAR-10": Collection(shares=("ImageNet-1k",)),
    "CIFAR-100": Collection(shares=("ImageNet-1k",)),
    "ImageNet-R": Collection(shares=("ImageNet-1k",)),  # Hendrycks et al. 2021: renditions of 200 of its classes
    "ImageNet-A": Collection(shares=("ImageNet-1k",)),  # Hendrycks et al. 2021: other photographs of 200 of them
}


_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")
_SPELT = {
    _BETWEEN_WORDS.sub("", word.casefold()): name for name, entry in KNOWN.items() for word in (name, *entry.spellings)
}


def overlaps(plan: Plan) -> dict[str, str]:
    """Return the known overlaps by row of a job's plan."""
    exams = {exam.name if len(plan.job.testenvs) > 1 else "": exam for exam in plan.job.testenvs}
    algorithms = {algorithm.name: algorithm for algorithm in plan.job.algorithms}
    rows = {case.row: case for case, _ in plan.cases() if not case.role}
    return {
        row: message
        for row, case in rows.items()
        if (message := overlap(exams[case.testenv], algorithms[case.algorithm], case.hyperparameters))
    }


def overlap(exam: TestEnvSpec, algorithm: AlgorithmSpec, hyperparameters: Mapping[str, object]) -> str:
    """Return "samples of CIFAR-100" or "classes of ImageNet-R, in ImageNet-21k"; "" if nothing is known.

    The pretraining data are those in the algorithm's yaml (`pretrained_on`), else those known for the name of the
    weights. The exam's data are `made_of`, else those that its source names.
    """
    made = [_folded_name(name) for name in exam.dataset.made_of or _made_of(exam.dataset)]
    if not made:
        return ""
    seen = [*(algorithm.pretrained_on or pretraining_collections(hyperparameters))]
    if (backbone := exam.dataset.backbone) is not None:
        seen += backbone.pretrained_on or pretraining_collections(
            {"network": backbone.network, "weights": backbone.weights}
        )
    seen = [_folded_name(name) for name in seen]
    wanted = [("samples", name, name) for name in made]
    wanted += [("classes", name, shared) for name in made for shared in KNOWN.get(name, Collection()).shares]
    for kind, name, looked_for in wanted:
        for within in seen:
            if looked_for in _contained(within):
                return f"{kind} of {name}" + (f", in {within}" if within != name else "")
    return ""


def pretraining_collections(hyperparameters: Mapping[str, object]) -> tuple[str, ...]:
    """Return the pretraining data by the name of weights: IMAGENET1K_V1, timm/vit_base_patch16_224.augreg_in21k, ..."""
    network, weights = (str(hyperparameters.get(key) or "") for key in ("network", "weights"))
    if not weights:
        return ()
    if weights == "DEFAULT":  # all of torchvision's classifiers are trained on it
        return ("ImageNet-1k",)
    if network.startswith("timm/") and "." not in network and weights == "pretrained":
        with suppress(ImportError):
            import timm

            config = timm.get_pretrained_cfg(network.removeprefix("timm/"), allow_unregistered=True)
            network += f".{config.tag}" if config is not None else ""
    of_library = network.startswith(("timm/", "hf/")) or network.partition(".")[2]
    words = _BETWEEN_WORDS.split(f"{network if of_library else ''} {Path(weights).name}".casefold())
    return tuple(dict.fromkeys(_SPELT[word] for word in words if word in _SPELT))


def _made_of(spec: DatasetSpec) -> Sequence[str]:
    if spec.name is None or spec.url is not None:
        return ()
    try:
        source = load(None, spec.name, ENTRY_POINTS).target
    except PluginError:  # reported elsewhere
        return ()
    names: Sequence[str] = getattr(source, "made_of", ())
    return names


def _folded_name(name: str) -> str:
    return _SPELT.get(_BETWEEN_WORDS.sub("", name.casefold()), name)


def _contained(name: str) -> Iterator[str]:
    """Yield `name`, and all collections that it contains."""
    yield name
    for part in KNOWN.get(name, Collection()).holds:
        yield from _contained(part)
