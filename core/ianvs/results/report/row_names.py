"""What rows are called: as short as tells them apart, and the same in tables, charts and files."""

from collections.abc import Iterable, Mapping, Sequence

from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.values import Value, cell_text, fit

_LONGEST = 24  # characters of a setting


def row_names(rows: Iterable[LeaderboardRow]) -> dict[RowKey, str]:
    """ "threshold .6", "ewc strength 10, epochs 5": the algorithm, with the fewest settings that tell rows of an exam
    apart. One number stands alone. Where settings say nothing, the beginning of the row's id does.

    Names are the keys of the page's selection, and so of no two rows of an exam.
    """
    alike: dict[str, list[LeaderboardRow]] = {}
    every = list(rows)
    for row in every:
        alike.setdefault(row.algorithm, []).append(row)
    found: dict[RowKey, str] = {}
    for of in alike.values():
        telling = _fewest([(row.testenv, _settings(row)) for row in of])
        found |= {(row.id, row.algorithm): _name(row, telling) for row in of}
    names = {(row.id, row.algorithm): found[row.id, row.algorithm] for row in every}
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


def _fewest(of: Sequence[tuple[str, Mapping[str, Value]]]) -> list[str]:
    """Names of settings without which rows of an exam would read alike; the first ones stay. of: exam and settings."""

    def apart(names: Sequence[str]) -> int:
        return len({(exam, *(str(settings.get(name)) for name in names)) for exam, settings in of})

    every = list(dict.fromkeys(name for _, settings in of for name in settings))
    kept = [name for name in every if apart([name]) > apart([])]
    wanted = apart(kept)
    for name in kept[::-1]:
        if apart(less := [other for other in kept if other != name]) == wanted:
            kept = less
    return kept


def _name(row: LeaderboardRow, telling: Sequence[str]) -> str:
    told = [(name, value) for name, value in _settings(row).items() if name in telling]
    alone = len(telling) == 1 and all(not isinstance(value, bool) for _, value in told)
    said = ", ".join(_short(value) if alone else f"{name} {_short(value)}" for name, value in told)
    return " ".join(filter(None, (row.algorithm, said)))


def _short(value: Value) -> str:
    """Numbers without what they can do without: .6 for 0.6."""
    text = cell_text(value).removesuffix(".0") if isinstance(value, float) else cell_text(value)
    if isinstance(value, float) and abs(value) < 1:
        text = text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
    return fit(text, _LONGEST)
