"""The forms in which people write the files of a job for KubeEdge Ianvs, read as the one form of ours.

Each function takes a file's copy (`Rewriting`) and changes it. What it changes, it says: the same list is what a user
is warned of and what `ianvs migrate` writes down. What is wrong in any form is left to the models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ianvs.config.kubeedge.finding import FoundElsewhereError, KubeEdgeLookup, module_file
from ianvs.config.kubeedge.rewriting import Rewriting
from ianvs.config.models import JobFile
from ianvs.config.models.algorithm import OTHER_HYPERPARAMETERS, grids
from ianvs.config.models.base import at, entries, leaves
from ianvs.config.models.form import Spec
from ianvs.config.models.kubeedge import ENDINGS, PARTS, KubeEdgeAlgorithm, KubeEdgeTestEnv, parser_of
from ianvs.config.models.testenv import TestEnvSpec
from ianvs.config.paths import Want
from ianvs.config.scalars import resolve_scalar
from ianvs.config.shape import sections_at
from ianvs.config.strict_yaml import Step, Steps
from ianvs.errors import Problem

__all__ = ["algorithm_form", "job_form", "testenv_form"]

_RANK_KEYS = ("visualization", "selected_dataitem", "save_mode")
_COMPRESSION = {"singletasklearning_with_compression", "singletasklearningwithcompression"}
_DATA_SETTINGS = ("incremental_learning_data_setting", "lifelong_learning_data_setting", "fl_data_setting")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*")
_FORM_OF = {"metadata": "data_info", "jsonl": "data"}  # of `train_url`, by who reads it; else an index


# --- job ----------------------------------------------------------------------------------------------------------


def job_form(job: Rewriting, lookup: KubeEdgeLookup, metrics: Callable[[], Sequence[str]]) -> None:
    """metrics: the names that the testenv lists, in their order; asked for once the links of the job are found."""
    top: Steps = ("benchmarkingjob",)
    section = at(job.data, *top)
    if not isinstance(section, dict):
        return
    if "hard_example_mining_mode" in section:
        job.drop((*top, "hard_example_mining_mode"), "'hard_example_mining_mode' acts in the testenv only; left out.")
    if "simulation" in section:
        job.drop((*top, "simulation"), "'simulation' would start a Kubernetes cluster in Ianvs; left out.")
    _into_rank(job, top)
    links = [where for where, _ in entries(section, "test_object", "algorithms")]
    rank = [["rank"], ["rank", "visualization"], ["rank", "selected_dataitem"]]
    _ignore(job, JobFile, top, *rank, ["test_object"], *links)
    several = isinstance(section.get("testenv"), list)
    testenvs = [where for where, _ in entries(job.data, *top, "testenv")] if several else [(*top, "testenv")]
    for link in (*testenvs, *((*top, *where, "url") for where in links)):
        _find(job, link, lookup, "file", "leave")
    _sort_by(job, (*top, "rank"), metrics())


def _into_rank(job: Rewriting, top: Steps) -> None:
    """Keys of `rank` in the places where people put them."""
    for section in (top, (*top, "test_object"), (*top, "rank", "visualization")):
        for key in _RANK_KEYS:
            given = at(job.data, *section)
            if not (isinstance(given, dict) and key in given):
                continue
            if at(job.data, *top, "rank") is None:
                job.put((*top, "rank"), {})
            rank = at(job.data, *top, "rank")
            if isinstance(rank, dict) and key not in rank:
                said = f"'{key}' belongs in rank, and is read as if it were there."
                job.move((*section, key), (*top, "rank", key), said)


def _sort_by(job: Rewriting, path: Steps, metrics: Sequence[str]) -> None:
    """Only metrics that there are; the first one where that leaves none."""
    if at(job.data, *path) is None:
        job.put(path, {})
    rank = at(job.data, *path)
    if not metrics or not isinstance(rank, dict) or not isinstance(rank.get("sort_by"), list | None):
        return
    kept = []
    path = (*path, "sort_by")
    for where, entry in list(entries(job.data, *path)):
        absent = [name for name in entry if name not in metrics] if isinstance(entry, dict) and len(entry) == 1 else []
        if absent:
            said = f"sort_by names '{absent[0]}', which the testenv does not list; left out."
            job.changed(path, said, of=where)
        else:
            kept.append(where)
    if kept:
        job.relist(path, kept)
        for where, _ in [named for each in kept for named in entries(job.data, *path, kept.index(each))]:
            if isinstance(word := at(job.data, *where), str) and word not in ("ascend", "descend"):
                job.put(where, "descend", f"'{word}' sorts as descend, as any word but ascend does in Ianvs.")
        return
    said = f"rank.sort_by names no metric of the testenv: sorted by the first one, '{metrics[0]}', descending."
    job.put(path, [{metrics[0]: "descend"}], said)


# --- testenv ------------------------------------------------------------------------------------------------------


def testenv_form(testenv: Rewriting, lookup: KubeEdgeLookup) -> None:
    top: Steps = ("testenv",)
    section = at(testenv.data, *top)
    if not isinstance(section, dict):
        return
    _groups(testenv, (*top, "metrics"))
    _dataset(testenv, (*top, "dataset"))
    if at(section, "model_eval", "operator") == "==":
        testenv.put((*top, "model_eval", "operator"), "=", "the operator '==' is '=' in Ianvs, and read so.")
    metrics = [where for where, _ in entries(section, "metrics")]
    below: list[Sequence[Step]] = [["dataset"], ["model_eval"], ["model_eval", "model_metric"], *metrics]
    # A key of our testenvs that does nothing here is refused: its author expects something of it.
    ours = [key for key, known in TestEnvSpec.known_keys().items() if known.field]
    _ignore(testenv, KubeEdgeTestEnv, top, *below, also=ours)
    _repeated(testenv, (*top, "metrics"))
    samples = replace(lookup, alike=2)  # many files are called train.txt
    for part in PARTS:
        for ending in ENDINGS:
            _find(testenv, (*top, "dataset", f"{part}_{ending}"), samples, "file", "assume")
    testenv.each((*top, "metrics"), lambda metric: _find(testenv, (*metric, "url"), lookup, "any"))
    _find(testenv, (*top, "model_eval", "model_metric", "url"), lookup, "any", "assume")


def _groups(testenv: Rewriting, path: Steps) -> None:
    if isinstance(at(testenv.data, *path), dict):
        testenv.changed(path, "metrics in groups are read as one list.")
        testenv.relist(path, [where for where, _ in list(leaves(testenv.data, *path))])


def _repeated(testenv: Rewriting, path: Steps) -> None:
    """A metric that is listed twice is one column."""
    seen: list[object] = []
    kept = []
    for where, metric in list(entries(testenv.data, *path)):
        if metric in seen:
            said = f"the metric '{at(metric, 'name')}' is listed twice; the second is left out."
            testenv.changed(path, said, of=where)
        else:
            seen.append(metric)
            kept.append(where)
    if isinstance(at(testenv.data, *path), list):
        testenv.relist(path, kept)


def _dataset(testenv: Rewriting, path: Steps) -> None:
    """One file for each part, by the key of its form."""
    dataset = at(testenv.data, *path)
    if not isinstance(dataset, dict):
        return
    for part in PARTS:
        given = [f"{part}_{ending}" for ending in ENDINGS if dataset.get(f"{part}_{ending}")]
        for key in given[1:]:
            testenv.drop((*path, key), f"{given[0]} is given, and '{key}' is not read then; left out.")
        old, text = f"{part}_url", dataset.get(f"{part}_url")
        if given and old in dataset:
            testenv.drop((*path, old), f"{given[0]} is given, and '{old}' is not read then; left out.")
        elif isinstance(text, str) and text:
            key = f"{part}_{_FORM_OF.get(parser_of(Path(text)), 'index')}"
            dataset.pop(key, None)
            testenv.move((*path, old), (*path, key), f"'{old}' is an old name, read as {key} by its suffix.")
            given = [key]
        if given and isinstance(dataset.get("name"), str):
            said = f"'name' beside files is a label ('{dataset['name']}'), not the name of a built-in source; left out."
            testenv.drop((*path, "name"), said)


# --- algorithm ----------------------------------------------------------------------------------------------------


def algorithm_form(algorithm: Rewriting, lookup: KubeEdgeLookup) -> None:
    top: Steps = ("algorithm",)
    section = at(algorithm.data, *top)
    if not isinstance(section, dict):
        return
    _paradigm(algorithm, (*top, "paradigm_type"))
    if "fl_learning_data_setting" in section:
        said = "'fl_learning_data_setting' is not read; the key is fl_data_setting. Left out."
        algorithm.drop((*top, "fl_learning_data_setting"), said)
    modules = [where for where, _ in entries(section, "modules")]
    _ignore(algorithm, KubeEdgeAlgorithm, top, *([key] for key in _DATA_SETTINGS), *modules)
    for where in ((*top, key) for key in _DATA_SETTINGS):
        algorithm.each(where, lambda entry: _number(algorithm, entry))
    for where, _ in list(entries(algorithm.data, *top, "modules")):
        _find(algorithm, (*where, "url"), lookup, "any")
        for grid, name, _ in list(grids(algorithm.data, where)):
            if name == OTHER_HYPERPARAMETERS:
                algorithm.each((*grid, "values"), lambda link: _find(algorithm, link, lookup, "file", "leave"))
    for where, _ in list(entries(algorithm.data, *top, "third_party_packages")):
        _find(algorithm, (*where, "url"), lookup, "any")
    for key in ("initial_model_url", "llama_quantize_path"):
        _weights(algorithm, (*top, key), lookup)


def _paradigm(algorithm: Rewriting, path: Steps) -> None:
    name = at(algorithm.data, *path)
    if isinstance(name, str) and name in _COMPRESSION:
        said = f"'{name}' is singletasklearning with `mode: with_compression`, and read so."
        algorithm.put(path, "singletasklearning", said)
        algorithm.put((*path[:-1], "mode"), "with_compression")


def _number(algorithm: Rewriting, path: Steps) -> None:
    """A number in quotes."""
    value = at(algorithm.data, *path)
    number = resolve_scalar(value) if isinstance(value, str) else None
    if isinstance(number, int | float) and not isinstance(number, bool):
        algorithm.put(path, number, f"'{value}' is text, and read as the number {number}.")


def _weights(algorithm: Rewriting, path: Steps, lookup: KubeEdgeLookup) -> None:
    """What is there is handed out as an absolute path, all else as it is written."""
    text = at(algorithm.data, *path)
    if not isinstance(text, str) or not text.strip():
        return
    try:
        found = replace(lookup, alike=2).find(text, "any")  # the name of a model may be that of a folder anywhere
    except FoundElsewhereError as moved:
        algorithm.changed(path, str(moved), renamed=moved.renamed)
        found = moved.path
    except ValueError:
        if not _HUB_NAME.fullmatch(text):
            said = f"there is no file '{text}'. If the plugin needs it, put it there; it is handed the path as written."
            algorithm.problems.append(Problem(said, algorithm.place(path), warning=True))
        return
    algorithm.paths[path] = (text, found)
    algorithm.put(path, str(found))


# --- all three ----------------------------------------------------------------------------------------------------


def _ignore(file: Rewriting, model: type[Spec], top: Steps, *below: Sequence[Step], also: Collection[str] = ()) -> None:
    """Leave out what Ianvs does not read either, with one word about all of it."""
    ignored: list[str] = []
    for section in ((), *below):
        known = [key for one in sections_at(model, tuple(section)) for key in one.known_keys()]
        ignored += file.ignore((*top, *section), [*known, *(also if not section else ())])
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
    """Let the absolute path stand where one is written. want: "any" for what is imported, a file or a package's folder.

    missing: of what is nowhere: tell, and assume where it would be; assume that alone, where not every paradigm reads
    it; or leave what is written, where the loader follows it and tells.
    """
    text = at(file.data, *path)
    if not isinstance(text, str) or not text.strip():
        return
    try:
        assumed = lookup.assumed(text)
    except ValueError as error:  # a variable that is not set
        file.problems.append(Problem(str(error), file.place(path)))
        return
    try:
        found = lookup.find(module_file(text) if want == "any" else text, want)
    except FoundElsewhereError as moved:
        file.changed(path, str(moved), renamed=moved.renamed)
        found = moved.path
    except ValueError as error:
        if missing == "leave":
            return
        if missing == "tell":
            file.problems.append(Problem(str(error), file.place(path)))
        found = assumed
    file.paths[path] = (text, found)
    file.put(path, str(found))
