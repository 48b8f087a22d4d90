"""all_rank.csv and selected_rank.csv exactly as Ianvs writes them, for comparing both programs byte for byte.

Differences are in docs/ianvs.md. Values have all digits of Ianvs's own formulas and the plugins' metrics; pandas
formats them as in Ianvs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from math import isfinite, isnan
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.store.files import write_json

if TYPE_CHECKING:
    import pandas as pd

_SCORES = "case/scores.json"  # below W


def remember(folder: Path, values: Mapping[str, object]) -> None:
    """Add values of metrics to the stored ones: numbers with all digits, anything else as text."""
    stored = dict(values)
    for name, value in values.items():
        if isinstance(value, float | np.floating):
            shown = float(str(value))  # also of fewer bits, as printed
            stored[name] = shown if isfinite(shown) else None if isnan(shown) else str(shown)
        elif value is not None and not isinstance(value, int):
            stored[name] = value.item() if isinstance(value, np.integer | np.bool_) else str(value)
    write_json(folder / _SCORES, {**_remembered(folder), **stored})


def _remembered(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return dict(json.loads((folder / _SCORES).read_bytes()))
    return {}


def transfer(M: Sequence[Sequence[float | None]]) -> dict[str, float | None]:
    """Return Ianvs's BWT and FWT, summed in its order; None where it would crash: M has not T + 1 rows of T cells."""
    T = len(M) - 1
    if T < 1 or any(len(row) != T for row in M):
        return {"BWT": None, "FWT": None}
    gains = (_less(M[i + 1][j], M[i][j]) for i in range(T) for j in range(T))
    ahead = (_less(M[i][i], M[0][i]) for i in range(T))
    return {"BWT": reduce(add, gains) / (T * T), "FWT": reduce(add, ahead) / T}  # sum() is more exact since Python 3.12


def _less(value: float | None, other: float | None) -> float:
    return 0.0 if value is None or other is None else value - other


def exact_tables(results: Iterable[CaseResult], rank: RankSpec) -> dict[str, str]:
    """Return the text of each table by name, with a row for every finished case, since Ianvs has no seeds."""
    import pandas as pd

    rows, parts = [], [dict[str, None](), dict[str, None](), dict[str, None]()]
    for result in results:
        if result.status != "finished" or result.case.role:
            continue
        case, metrics = result.case, _remembered(result.directory / "files")
        if not metrics:  # scored by an earlier version
            metrics = {name: result.texts.get(name, value) for name, value in result.metrics.items()}
        settings = {case.with_module_type(name): str(value) for name, value in case.hyperparameters.items()}
        ended = datetime.fromisoformat(result.finished_at or "1970-01-01T00:00:00+00:00").astimezone(UTC)
        identity = {"algorithm": case.algorithm, "paradigm": case.paradigm}
        place = {"time": f"{ended:%Y-%m-%d %H:%M:%S}", "url": str(result.directory / "files")}
        for keys, more in zip(parts, (metrics, dict(case.modules), settings), strict=True):
            keys.update(dict.fromkeys(more))
        rows.append({**identity, **place, **metrics, **dict(case.modules), **settings})
    frame = pd.DataFrame(columns=_header(*parts))
    for i, row in enumerate(rows):
        frame.loc[i] = row
    by = [(name, descending) for name, descending in rank.sort_by if name in parts[0]]
    frame = frame.sort_values(by=[name for name, _ in by], ascending=[not descending for _, descending in by])
    selected = (rank.metrics, rank.modules, rank.hyperparameters)
    header = _header(*(every if "all" in some else some for some, every in zip(selected, parts, strict=True)))
    chosen = pd.DataFrame(frame, columns=header).drop_duplicates(header[:-2])
    if "all" not in rank.paradigms:
        chosen = chosen.loc[chosen["paradigm"].isin(rank.paradigms)]
    if rank.selected_output_columns:
        chosen = chosen[[name for name in rank.selected_output_columns if name in header]]
    whole = {} if rank.save_mode == "selected_only" else {"all_rank.csv": _text(frame)}
    return {**whole, "selected_rank.csv": _text(chosen)}


def _header(metrics: Iterable[str], modules: Iterable[str], hyperparameters: Iterable[str]) -> list[str]:
    return ["algorithm", *metrics, "paradigm", *modules, *hyperparameters, "time", "url"]


def _text(frame: "pd.DataFrame") -> str:
    frame = frame.set_axis(range(1, len(frame) + 1))
    return frame.to_csv(index_label="rank")
