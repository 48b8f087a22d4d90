"""The paradigms of Ianvs, a file each: which calls a plugin gets, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ianvs.errors import PluginError, closest
from ianvs.kubeedge.case import Case
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.paradigms import (
    federated,
    federated_class_incremental,
    incremental,
    joint_inference,
    lifelong,
    multi_edge,
    single_task,
)

__all__ = ["PARADIGMS", "find"]

Run = Callable[[Case, Any], Outcome]  # with the state that the case goes on from, None at its beginning

PARADIGMS: dict[str, Run] = {
    "singletasklearning": single_task.run,
    "incrementallearning": incremental.run,
    "lifelonglearning": lifelong.run,
    "jointinference": joint_inference.run,
    "multiedgeinference": multi_edge.run,
    "federatedlearning": federated.run,
    "federatedclassincrementallearning": federated_class_incremental.run,
}


def find(name: str) -> Run:
    """The paradigm of this name. Raises PluginError if there is none."""
    if name not in PARADIGMS:
        raise PluginError(
            f"there is no paradigm '{name}'.{closest(name, PARADIGMS)} There are: {', '.join(PARADIGMS)}."
        )
    return PARADIGMS[name]
