"""All metrics of exams, in the order of the listing."""

from collections.abc import Iterator
from types import ModuleType

from ianvs.exam.metrics.metric import Metric
from ianvs.testenv.data_types.detection.detection_metrics import DETECTION
from ianvs.testenv.data_types.multilabel.multilabel_metrics import MULTILABEL
from ianvs.testenv.data_types.regression import regression_metrics
from ianvs.testenv.metrics import (
    answer_scores,
    benchmarks,
    classification,
    general_change,
    hierarchies,
    online,
    overlap,
    picture_replies,
    prequential,
    routing,
    suites,
    survey,
    text,
    text_overlap,
    token_scores,
    unseen_detection,
)
from ianvs.testenv.metrics.text_meaning import semantic_similarity


def defined_in(*modules: ModuleType) -> Iterator[Metric]:
    """Yield the metrics of the modules, in the order of their definition."""
    return (value for module in modules for value in vars(module).values() if isinstance(value, Metric))


FURTHER = (
    *hierarchies.AT_DEPTHS,
    *defined_in(hierarchies, overlap, unseen_detection, routing),
    semantic_similarity,
    *defined_in(text, text_overlap, token_scores, answer_scores, picture_replies),
    *DETECTION, *MULTILABEL,
    *defined_in(regression_metrics, survey, online, suites, benchmarks, general_change, prequential),
)  # fmt: skip
"""Those that are imported only where a name is none of `classification`."""

METRICS = (*classification.METRICS, *FURTHER)
