"""incrementallearning: infer, mine hard examples, train on them, and adopt the new model if it is sufficiently
better.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.kubeedge.calls import Estimator, errors_in
from ianvs.kubeedge.case_storage import take_place
from ianvs.kubeedge.datafiles import true_labels
from ianvs.kubeedge.outcome import Outcome, number
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.datasources import BaseDataSource
from ianvs.store.files import write_atomic

_KINDS = ("model_inference", "model_evaluation")


def _model_name() -> str:
    return os.environ.get("MODEL_NAME") or "model_finetune_.pkl"


@dataclass
class _State:
    current: str  # path of the model in use
    untrained: str = ""  # path of the model before round 1; "": none was saved
    record: list[tuple[dict[Any, Any], list[tuple[str, str]]]] = field(default_factory=list)
    models: list[str] = field(default_factory=list)  # the model in use after each round
    gates: list[dict[str, object]] = field(default_factory=list)  # the compared scores of each round


def run(case: Case) -> Outcome:
    """Run rounds 1..n, then the test file."""
    case.required_modules("hard_example_mining")
    model, initial = Estimator(case.required_modules("basemodel")), case.work.algorithm.initial_model_url
    rounds = case.work.exam.incremental_rounds
    pairs = case.pairs(_KINDS, rounds, by_domain=True)[-rounds:]
    now: _State = case.state or _State(initial, untrained=initial or _untrained(case, model))
    for r in range(len(now.models) + 1, rounds + 1):
        with case.round(r):
            _round(case, model, now, pairs[r - 1], r)
        now.models.append(now.current)
        case.store_snapshot(now)
    with case.round("test"):
        now.record.append(_inference(case, model, now.current, case.data("test"), "test"))
    outcome = Outcome(
        result=now.record[-1][0], system={"samples_transfer_ratio": now.record}, measures={"gates": now.gates}
    )
    if case.work.using:
        with case.round("domains"):
            outcome.untrained, *outcome.R = _domain_scores(case, model, [now.untrained, *now.models])
    return outcome


def _round(case: Case, model: Estimator, now: _State, pair: tuple[str, str], r: int) -> None:
    inferred, hard = _inference(case, model, now.current, pair[0], r)
    now.record.append((inferred, hard))
    if not hard:
        return
    new = _train(case, model, now.current, _hard_index(case, pair[0], hard, r), r)
    os.environ["MODEL_URLS"] = f"{new};{now.current}"
    data = case.source(pair[1], "eval")
    with case.timed("evaluate"):
        scores = [_evaluated(case, model, data, path) for path in (new, now.current) if path]
    if len(scores) == 1:
        case.note("There is no initial model to compare with: the first one that was trained is adopted.")
    adopted = len(scores) == 1 or case.work.passes(scores[0] - scores[1])
    now.gates.append({"round": r, "scores": scores, "adopted": bool(adopted)})
    if adopted:
        now.current = new


def _inference(case: Case, model: Estimator, current: str, file: str, r: int | str) -> tuple[dict[Any, Any], list[Any]]:
    """Return all results by sample, and for each hard one its path and that of its copy."""
    os.environ["RESULT_SAVED_URL"] = case.folder("inference", "results", r)
    copies = Path(case.folder("inference", "hard_examples", r))
    mining = case.instantiate("hard_example_mining")
    results: dict[Any, Any] = {}
    hard: list[tuple[str, str]] = []
    _load(case, model, current)
    for sample, result in _predictions(case, model, file):
        results.update(result)
        with case.calling("hard_example_mining", "call"):
            chosen = mining(result)
        if chosen:
            hard.append((str(sample), _copied(Path(str(sample)), copies)))
    return results, hard


def _load(case: Case, model: Estimator, current: str) -> bool:
    """Load a model as Ianvs does. Returns whether there was a file.

    From a folder it loads the file with the default name, or nothing, so that the instance stays as it is.
    """
    os.environ["MODEL_URL"] = current
    place = Path(current, _model_name()) if current and Path(current).is_dir() else Path(current)
    with case.calling("basemodel", "load"):
        model.load(str(place) if current else "")
    return bool(current) and place.is_file()


def _predictions(case: Case, model: Estimator, file: str) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Yield each sample of an index with the model's prediction."""
    for sample in case.source(file, "inference").x:
        with case.calling("basemodel", "predict"), case.timed("predict"):
            result = model.predict([sample])
            try:
                outputs = dict(result)
            except (TypeError, ValueError):
                message = f"it has to return a mapping of samples to outputs here, not {type(result).__name__}."
                raise PluginError(message, code="broken-contract") from None
        yield sample, outputs


def _copied(sample: Path, folder: Path) -> str:
    """Copy a sample and return the path; a second sample with the same basename gets a number."""
    target, count = folder / sample.name, 1
    while target.exists():
        count += 1
        target = folder / f"{sample.stem}-{count}{sample.suffix}"
    shutil.copytree(sample, target) if sample.is_dir() else shutil.copy(sample, target)
    return str(target)


def _hard_index(case: Case, file: str, hard: list[tuple[str, str]], r: int) -> str:
    """Write a txt file of the copies with their labels, and return its path."""
    labelled = case.source(file, "train label")
    labels = dict(zip(map(str, labelled.x), map(str, labelled.y), strict=True))
    target = case.root / "dataset" / f"hard_examples-{r}.txt"
    write_atomic(target, "".join(f"{copy} {labels[sample]}\n" for sample, copy in hard).encode())
    return str(target)


def _train(case: Case, model: Estimator, current: str, file: str, r: int) -> str:
    """Train a model and return its path."""
    folder = Path(case.folder("train", r))
    os.environ["MODEL_URL"], os.environ["BASE_MODEL_URL"] = str(folder), current
    with case.calling("basemodel", "train"), case.timed("train"):
        trained = model.train(case.source(file, "train"), valid_data=None)
    return _saved(case, model, folder, trained)


def _untrained(case: Case, model: Estimator) -> str:
    """Return the path of the untrained model; "" if its scores are not requested, or it can't be saved."""
    if not case.work.using:
        return ""
    try:
        return _saved(case, model, Path(case.folder("train", 0)))
    except PluginError as error:
        case.note(f"There is no model before round 1, so BWT and FWT are missing: {error}")
        return ""


def _saved(case: Case, model: Estimator, folder: Path, trained: object = None) -> str:
    """Save a model and return its path. trained: the return value of train()."""
    name = _model_name()
    path = Path(tempfile.mkdtemp()) / name
    with case.calling("basemodel", "save"):
        saved = model.instance.save(str(path)) if hasattr(model.instance, "save") else None
        if path.exists():
            target = folder / name
            if path.is_dir() and isinstance(saved, str) and Path(saved).is_relative_to(path):
                target /= Path(saved).relative_to(path)
            take_place(path, folder / name)
            return str(target)
        for returned in (saved, trained):
            if isinstance(returned, str) and returned and Path(returned).exists():
                return returned
        raise PluginError(
            f"there is no model at {path} afterwards, and none where a path was returned. "
            f"Let save(path) write the file that it is given, or return the path of the one that it wrote.",
            code="broken-contract",
        )


def _evaluated(case: Case, model: Estimator, data: BaseDataSource, path: str) -> Any:
    """Return the score of the model at `path`, by its own `evaluate`."""
    name, function = case.metric()
    with case.calling("basemodel", "evaluate"):
        returned = model.evaluate(data, model_path=path, metric=(name, function))
        value = returned.get(name) if isinstance(returned, Mapping) else returned
        if number(value) is None:
            raise PluginError(
                f"it has to return a mapping with a number as '{name}', not {returned!r}.", code="broken-contract"
            )
    return value


def _domain_scores(case: Case, model: Estimator, paths: Sequence[str]) -> list[list[float | None]]:
    """Return the score of each model on each domain's test set. Ianvs does not do this, so it comes last."""
    scores: dict[str, list[float | None]] = {}
    name, metric = case.metric()
    files = case.domain_files("test").values()
    for path in dict.fromkeys(paths):
        if not path or not _load(case, model, path):
            case.note("A model can't be loaded once more, so its scores on single domains are missing.")
            scores[path] = [None] * len(files)
            continue
        scores[path] = []
        for file in files:
            predictions: dict[Any, Any] = {}
            for _, result in _predictions(case, model, file):
                predictions.update(result)
            with errors_in(f"metric '{name}'"):
                scores[path].append(number(metric(true_labels(file, case.work.label), predictions)))
    return [scores[path] for path in paths]
