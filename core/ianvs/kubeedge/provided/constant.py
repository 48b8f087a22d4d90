"""The enumerations of `core.common.constant`."""

from enum import Enum

from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_METRICS

__all__ = ["DatasetFormat", "ModuleType", "ParadigmType", "SystemMetricType", "TestObjectType"]


class ParadigmType(Enum):
    SINGLE_TASK_LEARNING = "singletasklearning"
    INCREMENTAL_LEARNING = "incrementallearning"
    MULTIEDGE_INFERENCE = "multiedgeinference"
    LIFELONG_LEARNING = "lifelonglearning"
    FEDERATED_LEARNING = "federatedlearning"
    FEDERATED_CLASS_INCREMENTAL_LEARNING = "federatedclassincrementallearning"
    JOINT_INFERENCE = "jointinference"


# Suffixes of data files; JSONFORLLM is a metadata.json with a data.jsonl beside it.
_FORMATS = {name.upper(): name for name in ("csv", "txt", "json", "jsonl", "jsonforllm")}
DatasetFormat = Enum("DatasetFormat", _FORMATS, module=__name__)  # type: ignore[misc]

# The types of modules.
_MODULES = {"DATA_PROCESSOR" if name == "dataset_processor" else name.upper(): name for name in MODULE_TYPES}
ModuleType = Enum("ModuleType", _MODULES, module=__name__)  # type: ignore[misc]

# Metrics that are computed from the records of a paradigm.
_METRICS = {name.upper(): name for name in KUBEEDGE_METRICS}
SystemMetricType = Enum("SystemMetricType", _METRICS, module=__name__)  # type: ignore[misc]


class TestObjectType(Enum):
    __test__ = False  # the name is not an invitation to pytest

    ALGORITHMS = "algorithms"
