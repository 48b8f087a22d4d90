"""Particular metrics, each with its source. ianvs finds them by the entry points `ianvs.metrics` in pyproject.toml."""

from ianvs.testenv.data_types.detection.detection_metrics import DETECTION
from ianvs.testenv.data_types.multilabel.multilabel_metrics import MULTILABEL
from ianvs.testenv.data_types.regression.regression_metrics import REGRESSION
from ianvs.testenv.metrics.benchmarks import BENCHMARKS
from ianvs.testenv.metrics.classification import SCORES
from ianvs.testenv.metrics.hierarchies import HIERARCHIES
from ianvs.testenv.metrics.masked_accuracy import TASK_SCORES
from ianvs.testenv.metrics.online import ONLINE
from ianvs.testenv.metrics.overlap import OVERLAPS
from ianvs.testenv.metrics.routing import ROUTING
from ianvs.testenv.metrics.suites import SUITES
from ianvs.testenv.metrics.survey import SURVEY
from ianvs.testenv.metrics.text_meaning import TEXT
from ianvs.testenv.metrics.token_scores import TOKEN_SCORES
from ianvs.testenv.metrics.unseen_detection import OPEN_WORLD

__all__ = ["METRICS"]

METRICS = (
    *SCORES, *TASK_SCORES, *HIERARCHIES, *OVERLAPS, *OPEN_WORLD, *ROUTING, *TEXT, *TOKEN_SCORES,
    *DETECTION, *MULTILABEL, *REGRESSION,
    *SURVEY, *ONLINE, *SUITES, *BENCHMARKS,
)  # fmt: skip
"""In the order in which they are listed."""
