"""all_rank.csv and selected_rank.csv as Ianvs itself writes them, for who compares the two programs byte for byte.

Differences are in docs/ianvs.md. Values are those that Ianvs's own formulas and the plugins' metrics gave, with their
digits; pandas does what it does in Ianvs.
"""

import ast
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ianvs.base.secrets import without_secrets
from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.kubeedge.outcome import number
from ianvs.store.files import write_json

if TYPE_CHECKING:
    import pandas as pd

_SCORES = "case/scores.json"  # below W


def remember(folder: Path, values: Mapping[str, object]) -> None:
    """Keep what metrics gave, beside what is kept already; of a number its digits, in a list."""
    told = {
        name: [str(value)] if isinstance(value, float) or number(value) is not None else value and str(value)
        for name, value in values.items()
    }
    write_json(folder / _SCORES, {**_remembered(folder), **told})


def _remembered(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return dict(json.loads((folder / _SCORES).read_bytes()))
    return {}


def _value(told: Any) -> Any:
    if not isinstance(told, list):
        return told
    for read in (ast.literal_eval, float):
        with suppress(ValueError, SyntaxError):
            return read(told[0])
    return told[0]


def transfer(M: list[list[Mapping[str, float]]]) -> dict[str, float | None]:
    """Ianvs's BWT and FWT, added up in its order; None where it would crash: M has not T + 1 rows of T scores."""
    T = len(M) - 1
    if T < 1 or any(not isinstance(row, list) or len(row) != T for row in M):
        return {"BWT": None, "FWT": None}
    gain = ahead = 0.0
    for i in range(T):
        for j in range(T):
            if "accuracy" in M[i + 1][j] and "accuracy" in M[i][j]:
                gain += M[i + 1][j]["accuracy"] - M[i][j]["accuracy"]
        if "accuracy" in M[i][i] and "accuracy" in M[0][i]:
            ahead += M[i][i]["accuracy"] - M[0][i]["accuracy"]
    return {"BWT": gain / (T * T), "FWT": ahead / T}


def exact_tables(results: Iterable[CaseResult], rank: RankSpec) -> dict[str, str]:
    """The text of each table by its name; of every finished case a row, as Ianvs knows no seeds."""
    import pandas as pd

    rows, parts = [], [dict[str, None](), dict[str, None](), dict[str, None]()]
    for result in results:
        if result.status != "finished" or result.case.role:
            continue
        case, exact = result.case, _remembered(result.directory / "files")
        metrics = {name: _value(told) for name, told in exact.items()}
        if not exact:  # scored by an earlier version
            metrics = {name: result.texts.get(name, value) for name, value in result.metrics.items()}
        settings = {case.typed(name): str(value) for name, value in without_secrets(case.hyperparameters).items()}
        ended = datetime.fromisoformat(result.finished_at or "1970-01-01T00:00:00+00:00").astimezone(UTC)
        own = {"algorithm": case.algorithm, "paradigm": case.paradigm}
        place = {"time": f"{ended:%Y-%m-%d %H:%M:%S}", "url": str(result.directory / "files")}
        for known, more in zip(parts, (metrics, dict(case.modules), settings), strict=True):
            known.update(dict.fromkeys(more))
        rows.append({**own, **place, **metrics, **dict(case.modules), **settings})
    frame = pd.DataFrame(columns=_header(*parts))
    for i, row in enumerate(rows):
        frame.loc[i] = row  # type: ignore[call-overload]
    known = [(name, falls) for name, falls in rank.sort_by if name in parts[0]]
    frame = frame.sort_values(by=[name for name, _ in known], ascending=[not falls for _, falls in known])
    asked = (rank.metrics, rank.modules, rank.hyperparameters)
    header = _header(*(every if "all" in some else some for some, every in zip(asked, parts, strict=True)))
    chosen = pd.DataFrame(frame, columns=header).drop_duplicates(header[:-2])
    if "all" not in rank.paradigms:
        chosen = chosen.loc[chosen["paradigm"].isin(rank.paradigms)]
    whole = {} if rank.save_mode == "selected_only" else {"all_rank.csv": _text(frame)}
    return {**whole, "selected_rank.csv": _text(chosen)}


def _header(metrics: Iterable[str], modules: Iterable[str], hyperparameters: Iterable[str]) -> list[str]:
    return ["algorithm", *metrics, "paradigm", *modules, *hyperparameters, "time", "url"]


def _text(frame: "pd.DataFrame") -> str:
    frame = frame.set_axis(range(1, len(frame) + 1))
    return frame.to_csv(index_label="rank")
