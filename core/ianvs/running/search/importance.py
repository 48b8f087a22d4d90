"""How much of what makes trials differ comes from each hyperparameter."""

from __future__ import annotations

from collections.abc import Mapping

from ianvs.config.spec import Range
from ianvs.running.search.drawing import study_of
from ianvs.store import Study

__all__ = ["importance_of"]

_FEWEST = 4  # trials of which anything can be said


def importance_of(study: Study, space: Mapping[str, Range]) -> dict[str, float] | None:
    """By hyperparameter its share, together 1: fANOVA (Hutter, Hoos & Leyton-Brown, ICML 2014) by Optuna.

    Of what trials were worth at the first rung, which all have come to. None where that is too little, or all the same.
    """
    import optuna

    rung = study.rungs[0]
    known = [trial for trial in study.trials if trial.values.get(rung) is not None]
    if len(known) < _FEWEST or len({trial.values[rung] for trial in known}) == 1:
        return None
    if len(space) == 1:
        return dict.fromkeys(space, 1.0)
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    told = study_of(space, known, study.higher_is_better, rung)
    found = optuna.importance.get_param_importances(told, evaluator=evaluator)
    return {name: float(found[name]) for name in space if name in found}
