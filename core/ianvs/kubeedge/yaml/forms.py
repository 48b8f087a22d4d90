"""Normalises the variants in which people write the files of KubeEdge Ianvs.

Each function changes a file's `Rewriting`, with messages. Errors that all variants share are left to the models.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ianvs.base.errors import ValidationError
from ianvs.config.messages import sections_at
from ianvs.config.models import JobFile
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, grids
from ianvs.config.models.base import at, entries, leaves, one_or_several
from ianvs.config.models.section import Spec
from ianvs.config.models.testenv import TestEnvSpec
from ianvs.config.paths import Want
from ianvs.config.strict_yaml import Step, Steps, resolve_scalar
from ianvs.kubeedge.yaml.file_models import ENDINGS, HUB_NAME, PARTS, KubeEdgeAlgorithm, KubeEdgeTestEnv, parser_of
from ianvs.kubeedge.yaml.path_lookup import FoundElsewhereError, KubeEdgeLookup
from ianvs.kubeedge.yaml.rewriting import Rewriting

_RANK_KEYS = ("visualization", "selected_dataitem", "save_mode")
_LEFT_OUT = {
    "hard_example_mining_mode": "acts in the testenv only",
    "simulation": "would start a Kubernetes cluster in Ianvs",
}
_COMPRESSION = {"singletasklearning_with_compression", "singletasklearningwithcompression"}
_DATA_SETTINGS = ("incremental_learning_data_setting", "lifelong_learning_data_setting", "fl_data_setting")
_FORM_OF = {"metadata": "data_info", "jsonl": "data"}  # keys for `train_url` by its reader; otherwise an index


def job_form(job: Rewriting, lookup: KubeEdgeLookup, metrics: Callable[[], Sequence[str]]) -> None:
    """Normalise a job.

    Metrics: returns the testenv's metrics in order; called after the links of the job were resolved.
    """
    top: Steps = ("benchmarkingjob",)
    for key, why in _LEFT_OUT.items():
        if key in at(job.data, *top):
            job.drop((*top, key), f"'{key}' {why}; left out.")
    _into_rank(job, top)
    links = job.below(*top, "test_object", "algorithms")
    rank = [["rank"], ["rank", "visualization"], ["rank", "selected_dataitem"]]
    _ignore(job, JobFile, top, *rank, ["test_object"], *(where[1:] for where in links))
    for link in (*one_or_several(job.data, *top, "testenv"), *((*where, "url") for where in links)):
        _find(job, link, lookup, "file", "leave")
    _sort_by(job, (*top, "rank"), metrics())


def _into_rank(job: Rewriting, top: Steps) -> None:
    """Move keys of `rank` from the places where people write them."""
    for section in (top, (*top, "test_object"), (*top, "rank", "visualization")):
        for key in _RANK_KEYS:
            given = at(job.data, *section)
            if not (isinstance(given, dict) and key in given):
                continue
            if at(job.data, *top, "rank") is None:
                job.put((*top, "rank"), {})
            rank = at(job.data, *top, "rank")
            if isinstance(rank, dict) and key not in rank:
                message = f"'{key}' belongs in rank, and is read as if it were there."
                job.move((*section, key), (*top, "rank", key), message)


def _sort_by(job: Rewriting, path: Steps, metrics: Sequence[str]) -> None:
    """Keep only existing metrics; the first metric if none is left."""
    if at(job.data, *path) is None:
        job.put(path, {})
    rank = at(job.data, *path)
    if not metrics or not isinstance(rank, dict) or not isinstance(rank.get("sort_by"), list | None):
        return
    listed = []
    path = (*path, "sort_by")
    for where, entry in entries(job.data, *path):
        if isinstance(entry, str):
            job.put(where, {entry: "ascend"}, f"'{entry}' without a direction sorts ascending, as in Ianvs.")
    for where, entry in entries(job.data, *path):
        absent = [name for name in entry if name not in metrics] if isinstance(entry, dict) and len(entry) == 1 else []
        if absent:
            message = f"sort_by names '{absent[0]}', which the testenv does not list; left out."
            job.changed(path, message, about=where)
        else:
            listed.append(where)
    if listed:
        job.relist(path, listed)
        for where in [named for each in job.below(*path) for named in job.below(*each)]:
            if isinstance(word := at(job.data, *where), str) and word not in ("ascend", "descend"):
                job.put(where, "descend", f"'{word}' sorts as descend, as any word but ascend does in Ianvs.")
        return
    message = f"rank.sort_by names no metric of the testenv: sorted by the first one, '{metrics[0]}', descending."
    job.put(path, [{metrics[0]: "descend"}], message)


def testenv_form(testenv: Rewriting, lookup: KubeEdgeLookup) -> None:
    top: Steps = ("testenv",)
    metrics: Steps = (*top, "metrics")
    if isinstance(at(testenv.data, *metrics), dict):
        testenv.changed(metrics, "metrics in groups are read as one list.")
        testenv.relist(metrics, [where for where, _ in leaves(testenv.data, *metrics)])
    _dataset(testenv, (*top, "dataset"))
    if at(testenv.data, *top, "model_eval", "operator") == "==":
        testenv.put((*top, "model_eval", "operator"), "=", "the operator '==' is '=' in Ianvs, and read so.")
    below: list[Sequence[Step]] = [["dataset"], ["model_eval"], ["model_eval", "model_metric"]]
    below += [where[1:] for where in testenv.below(*metrics)]
    # A native key without effect here is refused, since its author expects an effect.
    ours = [key for key, entry in TestEnvSpec.known_keys().items() if entry.field]
    _ignore(testenv, KubeEdgeTestEnv, top, *below, also=ours)
    _repeated(testenv, metrics)
    samples = replace(lookup, alike=2)  # many files are called train.txt
    for part in PARTS:
        for ending in ENDINGS:
            _find(testenv, (*top, "dataset", f"{part}_{ending}"), samples, "file", "assume")
    for metric in testenv.below(*metrics):
        _find(testenv, (*metric, "url"), lookup, "any")
    _find(testenv, (*top, "model_eval", "model_metric", "url"), lookup, "any", "assume")


def _repeated(testenv: Rewriting, path: Steps) -> None:
    """Drop repeated metrics."""
    seen: list[object] = []
    first_uses = []
    for where, metric in entries(testenv.data, *path):
        if metric in seen:
            message = f"the metric '{at(metric, 'name')}' is listed twice; the second is left out."
            testenv.changed(path, message, about=where)
        else:
            seen.append(metric)
            first_uses.append(where)
    if isinstance(at(testenv.data, *path), list):
        testenv.relist(path, first_uses)


def _dataset(testenv: Rewriting, path: Steps) -> None:
    """Keep one file for each part, under the key of its format."""
    dataset = at(testenv.data, *path)
    if not isinstance(dataset, dict):
        return
    for part in PARTS:
        given = [f"{part}_{ending}" for ending in ENDINGS if dataset.get(f"{part}_{ending}")]
        old, text = f"{part}_url", dataset.get(f"{part}_url")
        for key in [*given[1:], *([old] if given and old in dataset else [])]:
            testenv.drop((*path, key), f"{given[0]} is given, and '{key}' is not read then; left out.")
        if not given and isinstance(text, str) and text:
            key = f"{part}_{_FORM_OF.get(parser_of(Path(text)), 'index')}"
            dataset.pop(key, None)
            testenv.move((*path, old), (*path, key), f"'{old}' is an old name, read as {key} by its suffix.")
            given = [key]
        if given and isinstance(dataset.get("name"), str):
            message = (
                f"'name' beside files is a label ('{dataset['name']}'), not the name of a built-in source; left out."
            )
            testenv.drop((*path, "name"), message)


def algorithm_form(algorithm: Rewriting, lookup: KubeEdgeLookup) -> None:
    top: Steps = ("algorithm",)
    name = at(algorithm.data, *top, "paradigm_type")
    if isinstance(name, str) and name in _COMPRESSION:
        message = f"'{name}' is singletasklearning with `mode: with_compression`, and read so."
        algorithm.put((*top, "paradigm_type"), "singletasklearning", message)
        algorithm.put((*top, "mode"), "with_compression")
    if "fl_learning_data_setting" in at(algorithm.data, *top):
        message = "'fl_learning_data_setting' is not read; the key is fl_data_setting. Left out."
        algorithm.drop((*top, "fl_learning_data_setting"), message)
    modules = algorithm.below(*top, "modules")
    _ignore(algorithm, KubeEdgeAlgorithm, top, *([key] for key in _DATA_SETTINGS), *(where[1:] for where in modules))
    for where in [entry for key in _DATA_SETTINGS for entry in algorithm.below(*top, key)]:
        value = at(algorithm.data, *where)
        number = resolve_scalar(value) if isinstance(value, str) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            algorithm.put(where, number, f"'{value}' is text, and read as the number {number}.")
    for where in (*modules, *algorithm.below(*top, "third_party_packages")):
        _find(algorithm, (*where, "url"), lookup, "any")
        grid_paths = [grid for grid, name, _ in grids(algorithm.data, where) if name == OTHER_HYPERPARAMETERS]
        for link in [entry for grid in grid_paths for entry in algorithm.below(*grid, "values")]:
            _find(algorithm, link, lookup, "file", "leave")
    for key in ("initial_model_url", "llama_quantize_path"):
        _weights(algorithm, (*top, key), lookup)


def _weights(algorithm: Rewriting, path: Steps, lookup: KubeEdgeLookup) -> None:
    """Make existing paths absolute; other values stay as they are written."""
    text = at(algorithm.data, *path)
    if not isinstance(text, str) or not text.strip():
        return
    try:
        # A folder may have the name of a model.
        located = _located(algorithm, path, replace(lookup, alike=2), text, "any")
    except ValueError:
        if not HUB_NAME.fullmatch(text):
            message = (
                f"there is no file '{text}'. If the plugin needs it, put it there; the plugin gets the path as written."
            )
            algorithm.problems.append(
                ValidationError(message, algorithm.place(path), warning=True, code="missing-path")
            )
        return
    algorithm.lead(path, located)


def _ignore(file: Rewriting, model: type[Spec], top: Steps, *below: Sequence[Step], also: Collection[str] = ()) -> None:
    """Leave out keys that Ianvs does not read either, with one message."""
    ignored: list[str] = []
    for section in ((), *below):
        keys = [key for spec in sections_at(model, tuple(section)) for key in spec.known_keys()]
        ignored += file.ignore((*top, *section), [*keys, *(also if not section else ())])
    if ignored:
        listed = ", ".join(f"'{key}'" for key in dict.fromkeys(ignored))
        file.changed(top, f"keys that Ianvs does not read are left out: {listed}.")


def _find(
    file: Rewriting,
    path: Steps,
    lookup: KubeEdgeLookup,
    want: Want = "file",
    missing: Literal["tell", "assume", "leave"] = "tell",
) -> None:
    """Replace a path by its absolute path.

    Args:
        file: The file.
        path: The place of the value.
        lookup: Resolves paths.
        want: "any" for imports, a file or a package's folder.
        missing: For a missing path: "tell" reports it and assumes its place; "assume" only assumes it, since not every
            paradigm reads it; "leave" keeps what is written, since the loader reports it.
    """
    text = at(file.data, *path)
    if not isinstance(text, str) or not text.strip():
        return
    try:
        located = lookup.assumed(text)
    except ValueError as error:  # an unset variable
        file.problems.append(ValidationError.from_exception(error, file.place(path)))
        return
    try:
        located = _located(file, path, lookup, text, want)
    except ValueError as error:
        if missing == "leave":
            return
        if missing == "tell":
            file.problems.append(ValidationError.from_exception(error, file.place(path)))
    file.lead(path, located)


def _located(file: Rewriting, path: Steps, lookup: KubeEdgeLookup, text: str, want: Want) -> Path:
    """Return the path that `text` at `path` leads to, with a message if it is at another place. Raises ValueError."""
    try:
        return lookup.find(text, want)
    except FoundElsewhereError as moved:
        file.changed(path, str(moved), renamed=moved.renamed)
        return moved.path
