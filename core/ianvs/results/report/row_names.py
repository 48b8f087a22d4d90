"""Names of rows: as short as possible but distinct, and the same in tables, charts and files."""

from collections.abc import Iterable, Mapping, Sequence

from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.values import Value, cell_text, fit

_LONGEST = 24  # characters of a setting


def row_names(rows: Iterable[LeaderboardRow]) -> dict[RowKey, str]:
    """Return names such as "threshold .6" or "ewc strength 10, epochs 5": the algorithm with the fewest distinguishing
    settings.

    A single number is written alone. If settings do not distinguish rows, the beginning of the row's id does. Names are
    the keys of the page's selection, so no two rows of an exam share one.
    """
    alike: dict[str, list[LeaderboardRow]] = {}
    every = list(rows)
    for row in every:
        alike.setdefault(row.algorithm, []).append(row)
    by_key: dict[RowKey, str] = {}
    for group in alike.values():
        differing = _fewest([(row.testenv, _settings(row)) for row in group])
        by_key |= {(row.id, row.algorithm): _name(row, differing) for row in group}
    names = {(row.id, row.algorithm): by_key[row.id, row.algorithm] for row in every}
    shared: dict[tuple[str, str], list[RowKey]] = {}
    for row in every:
        key = (row.id, row.algorithm)
        shared.setdefault((row.testenv, names[key]), []).append(key)
    for keys in shared.values():
        ids = [id_ for id_, _ in keys]
        end = next((n for n in range(6, max(map(len, ids))) if len({id_[:n] for id_ in ids}) == len(ids)), None)
        names |= {key: f"{names[key]} ({key[0][:end]})" for key in keys if len(keys) > 1}
    return names


def _settings(row: LeaderboardRow) -> dict[str, Value]:
    return {**row.hyperparameters, **row.modules}


def _fewest(rows: Sequence[tuple[str, Mapping[str, Value]]]) -> list[str]:
    """Return names of settings without which rows of an exam would read alike; the first ones stay.

    Rows: exam, settings.
    """

    def apart(names: Sequence[str]) -> int:
        return len({(exam, *(str(settings.get(name)) for name in names)) for exam, settings in rows})

    every = list(dict.fromkeys(name for _, settings in rows for name in settings))
    needed = [name for name in every if apart([name]) > apart([])]
    wanted = apart(needed)
    for name in needed[::-1]:
        if apart(less := [other for other in needed if other != name]) == wanted:
            needed = less
    return needed


def _name(row: LeaderboardRow, differing: Sequence[str]) -> str:
    settings = [(name, value) for name, value in _settings(row).items() if name in differing]
    alone = len(differing) == 1 and all(not isinstance(value, bool) for _, value in settings)
    text = ", ".join(_short(value) if alone else f"{name} {_short(value)}" for name, value in settings)
    return " ".join(filter(None, (row.algorithm, text)))


def _short(value: Value) -> str:
    """Return a number without its leading zero: .6 for 0.6."""
    text = cell_text(value).removesuffix(".0") if isinstance(value, float) else cell_text(value)
    if isinstance(value, float) and abs(value) < 1:
        text = text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
    return fit(text, _LONGEST)
