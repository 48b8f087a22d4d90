"""Paradigms: how a case trains, predicts and is evaluated."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError, closest
from ianvs.base.types import Measure, Predictions
from ianvs.config.spec import ParadigmSpec
from ianvs.exam.data.options import Options
from ianvs.exam.paradigms.federated import FederatedClassIncrementalLearning, FederatedLearning
from ianvs.exam.paradigms.joint_inference import JointInference
from ianvs.exam.paradigms.lifelong import LifelongLearning
from ianvs.exam.paradigms.link import Link
from ianvs.exam.paradigms.paradigm import Context, DetectsUnseen, Paradigm, Session
from ianvs.exam.paradigms.single_model import IncrementalLearning, Joint, SingleTaskLearning, Solo
from ianvs.exam.paradigms.test_time import Stateless, TestTimeLearning
from ianvs.plugins.loader import Loaded, load

__all__ = [
    "GROUP",
    "PARADIGMS",
    "Context",
    "DetectsUnseen",
    "Link",
    "Measure",
    "Options",
    "Paradigm",
    "Predictions",
    "Session",
    "find_paradigm",
]

GROUP = "ianvs.paradigms"
"""The group of entry points for paradigms of installed packages."""

_ALL: tuple[type[Paradigm], ...] = (
    IncrementalLearning,
    SingleTaskLearning,
    LifelongLearning,
    FederatedLearning,
    FederatedClassIncrementalLearning,
    JointInference,
    TestTimeLearning,
    Joint,
    Solo,
    Stateless,
)
PARADIGMS: Mapping[str, type[Paradigm]] = MappingProxyType({paradigm.name: paradigm for paradigm in _ALL})


def find_paradigm(spec: ParadigmSpec, loading: Callable[[str | None, str, str], Loaded] = load) -> type[Paradigm]:
    """Return the class that `spec` names, running the author's code at a `url`.

    Raises PluginError for an unknown one.
    """
    if spec.url is None and spec.name in PARADIGMS:
        return PARADIGMS[spec.name]
    if spec.url is None and spec.name not in installed(GROUP):
        names = [*PARADIGMS, *installed(GROUP)]
        there_are = f" There are: {', '.join(names)}."
        if spec.name == "multiedgeinference":
            raise PluginError(
                f"paradigm '{spec.name}' is for plugins under `contract: ianvs` only.{there_are}",
                code="unsupported-by-contract",
            )
        raise PluginError(
            f"paradigm '{spec.name}' is not known.{closest(spec.name, names) or there_are}", code="invalid-choice"
        )
    target = loading(spec.url, spec.name, GROUP).target
    if not isinstance(target, type) or not any(
        "train" in vars(layer) for layer in target.__mro__ if layer is not Paradigm
    ):
        reason = "it has no method train()" if isinstance(target, type) else "it is no class"
        raise PluginError(
            f"'{spec.name}' is no paradigm: {reason}. ianvs.exam.paradigms.Paradigm says what one has.",
            code="broken-contract",
        )
    if Paradigm in target.__mro__:
        return target
    with_defaults: type[Paradigm] = type(
        target.__name__, (target, Paradigm), {"name": getattr(target, "name", spec.name)}
    )
    return with_defaults
