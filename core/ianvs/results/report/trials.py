"""Searches in reports: the trials, their outcomes, and which hyperparameters mattered."""

from collections.abc import Iterator, Sequence

from ianvs.base.secrets import without_secrets
from ianvs.results.report.document import Table, text_table
from ianvs.results.report.values import Value, method_name
from ianvs.store import Study, Trial

_SHOWN = 10  # trials in the text; trials.csv has all of them


def drawn_text(trial: Trial) -> str:
    """Return "learning_rate=0.1, strength=5", without secrets."""
    return ", ".join(f"{name}={value}" for name, value in without_secrets(trial.drawn).items())


def study_text(study: Study) -> str:
    """Return the course of a search, in sentences."""
    how, count = study.search_settings, len(study.trials)
    sampler = f" ({how['sampler']})" if how.get("sampler") else ""
    summary = f"{how['name']}{sampler}: {count} trials by {study.metric} {study.values_description}."
    went = []
    if len(study.rungs) > 1:
        looked = ", ".join(map(str, study.rungs))
        went.append(f"Trials were looked at after rounds {looked}, and one in {how['reduction']} went on.")
    failed = sum(trial.failed for trial in study.trials)
    went += [f"{failed} failed."] if failed else []
    if study.rounds_of_all:
        share = 100 * study.rounds_trained / study.rounds_of_all
        went.append(
            f"They trained {study.rounds_trained} rounds; without stopping these would be {study.rounds_of_all} "
            f"({share:.0f} %)."
        )
    if not study.ended:
        went.append("The search goes on with the next run.")
    if study.importance:
        shares = sorted(study.importance.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {share:.2f}" for name, share in shares)
        went.append(f"Importance of hyperparameters (fANOVA, of values after round {study.rungs[0]}): {listed}.")
    return " ".join([summary, *went])


def became(study: Study, trial: Trial) -> str:
    if study.ended and trial.number == study.winner:
        return "winner"
    if trial.failed:
        return f"failed after round {trial.reached}" if trial.reached else "failed"
    if trial.waits or not study.ended:
        return f"came to round {trial.reached}" if trial.reached else "under way"
    return "finished" if trial.reached == study.rungs[-1] else f"stopped after round {trial.reached}"


def search_table(study: Study) -> Table:
    """Return the course of a search, and its best trials."""
    names = [axis.name for axis in study.axes]
    shown = _ranked(study)[:_SHOWN]
    heads = ["Trial", *names, *(f"after round {rung}" for rung in study.rungs), ""]
    lines = [
        [
            str(trial.number),
            *(str(trial.drawn[name]) for name in names),
            *(_shown(trial.values.get(rung)) for rung in study.rungs),
            became(study, trial),
        ]
        for trial in shown
    ]
    name = method_name(study.algorithm, study.testenv)
    left_out = f"The best {len(shown)} of {len(study.trials)}; all are in trials.csv."
    below = left_out if len(study.trials) > len(shown) else ""
    return text_table("search", heads, lines, title=name, above=study_text(study), below=below)


def trials_records(studies: Sequence[Study]) -> Iterator[list[Value]]:
    """Yield all trials, with a header: for trials.csv."""
    names = list(dict.fromkeys(axis.name for study in studies for axis in study.axes))
    rungs = sorted({rung for study in studies for rung in study.rungs})
    yield ["Testenv", "Algorithm", "Trial", *names, "Metric", *(f"after_round_{rung}" for rung in rungs), "Became"]
    for study in studies:
        for trial in study.trials:
            settings = (_cell(trial.drawn.get(name)) for name in names)
            worth = (trial.values.get(rung) for rung in rungs)
            about = study.testenv, study.algorithm, trial.number
            yield [*about, *settings, study.metric, *worth, became(study, trial)]


def _ranked(study: Study) -> list[Trial]:
    """Return the trials: those with more rounds first, then better ones."""
    sign = 1 if study.higher_is_better else -1

    def order(trial: Trial) -> tuple[bool, int, float, int]:
        value = trial.value
        return value is None, -trial.reached, 0.0 if value is None else -sign * value, trial.number

    return sorted(study.trials, key=order)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _cell(value: object) -> Value:
    return value if isinstance(value, int | float | str | None) else str(value)
