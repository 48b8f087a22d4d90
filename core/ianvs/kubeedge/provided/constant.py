"""The enumerations of `core.common.constant`."""

from __future__ import annotations

from enum import Enum

from ianvs.config.models.algorithm import MODULE_TYPES

__all__ = ["DatasetFormat", "ModuleType", "ParadigmType", "SystemMetricType", "TestObjectType"]


class DatasetFormat(Enum):
    """Suffixes of data files; JSONFORLLM is a metadata.json with a data.jsonl beside it."""

    CSV = "csv"
    TXT = "txt"
    JSON = "json"
    JSONL = "jsonl"
    JSONFORLLM = "jsonforllm"


class ParadigmType(Enum):
    """Names of paradigms."""

    SINGLE_TASK_LEARNING = "singletasklearning"
    INCREMENTAL_LEARNING = "incrementallearning"
    MULTIEDGE_INFERENCE = "multiedgeinference"
    LIFELONG_LEARNING = "lifelonglearning"
    FEDERATED_LEARNING = "federatedlearning"
    FEDERATED_CLASS_INCREMENTAL_LEARNING = "federatedclassincrementallearning"
    JOINT_INFERENCE = "jointinference"


# The types of modules.
_MODULES = {"DATA_PROCESSOR" if name == "dataset_processor" else name.upper(): name for name in MODULE_TYPES}
ModuleType = Enum("ModuleType", _MODULES, module=__name__)  # type: ignore[misc]


class SystemMetricType(Enum):
    """Metrics that are computed from what a paradigm recorded."""

    SAMPLES_TRANSFER_RATIO = "samples_transfer_ratio"
    FWT = "FWT"
    BWT = "BWT"
    TASK_AVG_ACC = "task_avg_acc"
    MATRIX = "MATRIX"
    FORGET_RATE = "forget_rate"


class TestObjectType(Enum):
    """What a job tests."""

    __test__ = False  # the name is not an invitation to pytest

    ALGORITHMS = "algorithms"
