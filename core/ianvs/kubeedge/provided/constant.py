"""The enumerations of `core.common.constant`."""

from __future__ import annotations

from enum import Enum

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


class ModuleType(Enum):
    """Types of modules."""

    BASEMODEL = "basemodel"
    EDGEMODEL = "edgemodel"
    CLOUDMODEL = "cloudmodel"
    DATA_PROCESSOR = "dataset_processor"
    HARD_EXAMPLE_MINING = "hard_example_mining"
    TASK_DEFINITION = "task_definition"
    TASK_RELATIONSHIP_DISCOVERY = "task_relationship_discovery"
    TASK_ALLOCATION = "task_allocation"
    TASK_REMODELING = "task_remodeling"
    INFERENCE_INTEGRATE = "inference_integrate"
    TASK_UPDATE_DECISION = "task_update_decision"
    UNSEEN_TASK_ALLOCATION = "unseen_task_allocation"
    UNSEEN_SAMPLE_RECOGNITION = "unseen_sample_recognition"
    UNSEEN_SAMPLE_RE_RECOGNITION = "unseen_sample_re_recognition"
    AGGREGATION = "aggregation"


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
