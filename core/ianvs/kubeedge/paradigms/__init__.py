"""The paradigms of Ianvs, one file each: the calls of plugins in order."""

from collections.abc import Callable

from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.paradigms import (
    edge_and_cloud,
    federated_class_incremental_learning,
    federated_learning,
    incremental_learning,
    lifelong_learning,
    multi_edge_inference,
    single_task_learning,
)
from ianvs.kubeedge.plugin_case import Case

Run = Callable[[Case], Outcome]

PARADIGMS: dict[str, Run] = {
    "singletasklearning": single_task_learning.run,
    "incrementallearning": incremental_learning.run,
    "lifelonglearning": lifelong_learning.run,
    "jointinference": edge_and_cloud.run,
    "multiedgeinference": multi_edge_inference.run,
    "federatedlearning": federated_learning.run,
    "federatedclassincrementallearning": federated_class_incremental_learning.run,
}
