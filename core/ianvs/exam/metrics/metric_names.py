"""Names of metrics in papers and in other libraries, with their names in ianvs."""

import re
from collections.abc import Mapping
from types import MappingProxyType

_SURVEY = "Wang et al. 2024, arXiv 2302.00487 (survey)"
_CHAUDHRY = "Chaudhry et al. 2018, arXiv 1801.10112"
_GEM = "Lopez-Paz & Ranzato 2017, arXiv 1706.08840 (GEM)"
_ICARL = "Rebuffi et al. 2017, arXiv 1611.07725 (iCaRL)"
_EQUAL = "which weighs samples: the same if test sets are equally large"
_FACIL = "Masana et al. 2022, arXiv 2010.15277 (FACIL)"
_AVALANCHE = "Lomonaco et al. 2021, arXiv 2104.00405 (Avalanche)"
_CLEAR = "Lin et al. 2021, arXiv 2201.06289 (CLEAR)"
_MAMMOTH = "Buzzega et al. 2020, arXiv 2004.07211 (Mammoth)"

ALIASES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "average_accuracy": ("AA", f"{_GEM}, ACC; {_SURVEY}"),
        "final_accuracy": ("AA", f"{_GEM}, ACC"),
        "last_accuracy": ("AA", f"{_ICARL}, {_EQUAL}"),
        "A_T": ("AA", _CHAUDHRY),
        "A_last": ("AA", f"accuracy after the last round, {_EQUAL}"),
        "avg_acc": ("AA", f"{_GEM}, ACC, in words"),
        "average_incremental_accuracy": ("AIA", f"{_ICARL}, {_EQUAL}; {_SURVEY}"),
        "incremental_accuracy": ("AIA", _FACIL),
        "A_bar": ("AIA", "Douillard et al. 2020, arXiv 2004.13513 (PODNet)"),
        "forgetting": ("FM_restricted", f"{_CHAUDHRY}; {_SURVEY}"),
        "forgetting_measure": ("FM_restricted", f"{_CHAUDHRY}; {_SURVEY}"),
        "average_forgetting": ("FM_restricted", _CHAUDHRY),
        "F_T": ("FM_restricted", _CHAUDHRY),
        "stream_forgetting": ("CIA_forgetting_diag", f"{_AVALANCHE}, StreamForgetting"),
        "backward_transfer": ("BWT", _GEM),
        "stream_bwt": ("BWT", f"{_AVALANCHE}, StreamBWT"),
        "forward_transfer": ("FWT", _GEM),
        "FWT_GEM": ("FWT", _GEM),
        "FWT_Wang": ("FWT_survey", _SURVEY),
        "intransigence": ("IM", _CHAUDHRY),
        "intransigence_measure": ("IM", f"{_CHAUDHRY}; {_SURVEY}"),
        "plasticity": ("learning_accuracy", "Riemer et al. 2019, arXiv 1810.11910 (MER), LA"),
        "average_anytime_accuracy": ("AAA", "Caccia et al. 2022, arXiv 2104.05025 (ER-ACE)"),
        "worst_case_accuracy": ("WC_ACC", "De Lange et al. 2023, arXiv 2205.13452"),
        "min_accuracy": ("min_ACC", "De Lange et al. 2023, arXiv 2205.13452"),
        "top1": ("accuracy", _ICARL),
        "top-1 accuracy": ("accuracy", _ICARL),
        "Acc@1": ("accuracy", "the usual name of top-1 accuracy"),
        "Avg": ("AA", f"{_MAMMOTH}, {_SURVEY}, tables"),
        "mean_accuracy": ("AA", _GEM),
        "CLEAR_BWT": ("CLEAR_backward_transfer", _CLEAR),
        "CLEAR_FWT": ("CLEAR_forward_transfer", _CLEAR),
        "task_il": ("task_incremental_accuracy", _MAMMOTH),
        "mean_class_accuracy": ("balanced_accuracy", "accuracy of each class, averaged: macro-averaged recall"),
        "macro_f1": ("f1", "van Rijsbergen 1979"),
        "mean_iou": ("mIoU", "Everingham et al. 2015 (PASCAL VOC)"),
        "params": ("parameters", "PyTorch"),
        "number_of_parameters": ("parameters", "PyTorch"),
        "parameter_count": ("parameters", "PyTorch"),
        "buffer_bytes": ("memory_bytes", _MAMMOTH),
        "inference_time": ("inference_ms", "ianvs"),
    }
)
"""Aliases with the name of the metric in ianvs and the source.

Case, hyphens, underscores and blanks make no difference, here and in the names of metrics, unless two metrics differ in
nothing else: `acc` is a score, `ACC` is `AA`. A name of the table is never one of a metric.
"""


def normalize(name: str) -> str:
    """Normalize `name`: remove what makes no difference."""
    return re.sub(r"[-_ ]", "", name.casefold())


def named_by_alias(name: str) -> str:
    """Return the metric of an alias in the table; "" if there is no such alias."""
    spelling = normalize(name)
    return next((target for alias, (target, _) in ALIASES.items() if normalize(alias) == spelling), "")


def aliases_of(name: str) -> tuple[str, ...]:
    """Return the aliases of the metric `name` in the table."""
    return tuple(alias for alias, (target, _) in ALIASES.items() if target == name)
