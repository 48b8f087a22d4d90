"""Settings of plugins for KubeEdge Ianvs, besides data, modules and metrics (`contract: ianvs`).

Keys, defaults and meanings are Ianvs's own. Keys that a file leaves out keep their default.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ianvs.config.models.base import Name, path_text
from ianvs.config.models.section import NULL_IS_ABSENT, PlacedSpec, Spec
from ianvs.config.strict_yaml import resolve_scalar

SplittingMethod = Literal["default", "fwt_splitting", "hard-example_splitting", "city_splitting"]
_Share = Annotated[float, Field(gt=0, le=1)]


AnyPath = Annotated[Path | None, BeforeValidator(lambda value: None if value in (None, "") else Path(path_text(value)))]
"""A path that need not exist yet: a later check reports missing ones. Nothing, or an empty string, is None."""


def _number(value: object) -> object:
    """Convert a number written as text, such as "8.0"."""
    return resolve_scalar(value) if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True)
class ModelMetric(PlacedSpec):
    """The function by which incremental, lifelong and federated class-incremental learning evaluate a model.

    mode: of lifelong learning; None: the mapping has none.
    """

    name: Annotated[str, NULL_IS_ABSENT] = ""
    url: AnyPath = None
    mode: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelEval(PlacedSpec):
    """incrementallearning adopts a new model if new - old `operator` threshold.

    lifelonglearning only reports the tasks whose score `operator` threshold.
    """

    model_metric: Annotated[ModelMetric, NULL_IS_ABSENT] = ModelMetric(mode="")
    threshold: float = 0.9
    operator: Literal[">", "<", "=", ">=", "<="] = ">"


@dataclass(frozen=True, kw_only=True)
class LinkSpec(PlacedSpec):
    """See ianvs.exam.paradigms.Link."""

    rtt_ms: Annotated[float, Field(ge=0)] = 0.0
    up_mbps: Annotated[float, Field(gt=0)]
    down_mbps: Annotated[float, Field(gt=0)]


@dataclass(frozen=True, kw_only=True)
class ExamSettings(PlacedSpec):
    """The keys of a testenv that Ianvs's paradigms read.

    incremental_rounds: number of parts of the training data. round: rounds of federated learning within such a part.
    """

    incremental_rounds: Annotated[int, Field(ge=1)] = 2
    round: Annotated[int, Field(ge=1)] = 1
    client_number: Annotated[int, Field(ge=1)] = 1
    use_gpu: bool = False
    gpu_num: Annotated[int, Field(ge=1)] = 1
    if_mode_llm: bool = False
    hard_example_mining_mode: Annotated[str, NULL_IS_ABSENT] = "mining-then-inference"
    model_eval: Annotated[ModelEval, NULL_IS_ABSENT] = ModelEval()
    min_compute_capability: Annotated[float | None, BeforeValidator(_number)] = None  # of the GPU that cases run on
    link: LinkSpec | None = None  # between edge and cloud of joint inference; not Ianvs's, as the two below
    edge_ms: Annotated[float, Field(ge=0)] = 0.0  # what an answer takes there
    cloud_ms: Annotated[float, Field(ge=0)] = 0.0


@dataclass(frozen=True, kw_only=True)
class DataSetting(PlacedSpec):
    """How training data are cut into rounds, and which share of a round is trained on; the rest evaluates."""

    train_ratio: _Share = 0.8
    splitting_method: SplittingMethod = "default"


@dataclass(frozen=True, kw_only=True)
class FederatedDataSetting(DataSetting):
    """The same for federated learning, and how a round is divided among clients."""

    train_ratio: _Share = 1.0
    data_partition: Literal["iid", "non-iid"] = "iid"
    non_iid_ratio: _Share = 0.6  # of the classes, for each client
    label_data_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0  # of a client's samples that have labels


@dataclass(frozen=True)
class ThirdPartyPackage(Spec):
    name: Name
    url: AnyPath = None


@dataclass(frozen=True, kw_only=True)
class AlgorithmSettings(PlacedSpec):
    """The keys of an algorithm's file that Ianvs's paradigms read, beside modules.

    initial_model_url: an absolute path if something is there; else as it is written: a name in some hub, say.
    mode: "with_compression" or "", of singletasklearning. `quantization_type` and `llama_quantize_path` go with it.
    """

    initial_model_url: Annotated[str, NULL_IS_ABSENT] = ""
    mode: Annotated[str, NULL_IS_ABSENT] = ""
    quantization_type: Annotated[str, NULL_IS_ABSENT] = ""
    llama_quantize_path: Annotated[str, NULL_IS_ABSENT] = ""
    incremental_learning_data_setting: Annotated[DataSetting, NULL_IS_ABSENT] = DataSetting()
    lifelong_learning_data_setting: Annotated[DataSetting, NULL_IS_ABSENT] = DataSetting()
    fl_data_setting: Annotated[FederatedDataSetting, NULL_IS_ABSENT] = FederatedDataSetting()
    third_party_packages: Annotated[tuple[ThirdPartyPackage, ...], Field(strict=False), NULL_IS_ABSENT] = ()

    def data_setting(self, paradigm: str) -> DataSetting | None:
        """That of `paradigm`, an Ianvs name; None: it cuts nothing."""
        if paradigm.startswith("federated"):
            return self.fl_data_setting
        if paradigm == "lifelonglearning":
            return self.lifelong_learning_data_setting
        return self.incremental_learning_data_setting if paradigm == "incrementallearning" else None
