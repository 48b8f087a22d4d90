"""Checks which keys of `dataset` may be combined."""

from collections.abc import Iterator, Mapping

from ianvs.base.errors import closest, one_line
from ianvs.config.models.base import ConfigProblem, at, entries, repeated
from ianvs.config.models.image_keys import class_name
from ianvs.config.models.samples import SOURCE_FORMS, DatasetSpec, split_words
from ianvs.config.strict_yaml import Steps


def conflicting_sources(testenv: object) -> Iterator[ConfigProblem]:
    """Find keys of `dataset` that exclude each other."""
    dataset = at(testenv, "dataset")
    if not isinstance(dataset, dict):
        return
    known_keys = DatasetSpec.known_keys()
    train_keys, test_keys = (
        [f"{part}_{end}" for end in SOURCE_FORMS if dataset.get(f"{part}_{end}")] for part in ("train", "test")
    )
    for given in (train_keys, test_keys):
        for key in given[1:]:
            yield ConfigProblem(
                f"{given[0]} and {key} are both given. Keep one.", ("dataset", key), code="conflicting-keys"
            )
    for key in test_keys[:1] if dataset.get("test_share") is not None else ():
        yield ConfigProblem(
            f"test_share and {key} are both given. Keep one.", ("dataset", "test_share"), code="conflicting-keys"
        )
    if dataset.get("name") is not None:
        for key in train_keys[:1] + test_keys[:1]:
            message = f"dataset has a name, which brings its own data, and {key}. Keep one of them."
            yield ConfigProblem(message, ("dataset", key), code="conflicting-keys")
    elif dataset.get("url") is not None:
        yield ConfigProblem(
            "url is given and no name. Add the name of what that file defines.", ("dataset", "url"), code="missing-key"
        )
    elif not (train_keys and test_keys) and not any(
        closest(key, known_keys) for key in dataset.keys() - known_keys.keys()
    ):  # else the problem is that key
        yield from _missing(dataset, train_keys, test_keys)
    if dataset.get("name") is None and dataset.get("download") is not None:
        yield ConfigProblem(
            "'download' has no effect: only a built-in source ('name') downloads.",
            ("dataset", "download"),
            code="no-effect",
            warning=True,
        )
    if dataset.get("using"):
        yield from _using(testenv, train_keys)
    classes: Steps = ("dataset", "classes")
    several = isinstance(at(testenv, *classes), dict)
    for listed in [where for where, _ in entries(testenv, *classes)] if several else [classes]:
        named = ((where, class_name(name)) for where, name in entries(testenv, *listed))
        names = ((where, name) for where, name in named if isinstance(name, str))
        yield from repeated(names, "class '{}' is given twice. Keep one.")


def _missing(dataset: Mapping[str, object], train_keys: list[str], test_keys: list[str]) -> Iterator[ConfigProblem]:
    """Find missing training or test data."""
    if not train_keys and not test_keys:
        message = "dataset names no data. Give the name of a built-in source, or train_index and test_index"
        if not dataset.get("root"):  # otherwise they are searched there
            yield ConfigProblem(
                f"{message} (train_data and test_data for files that hold the samples).",
                ("dataset",),
                code="missing-data",
            )
    elif not test_keys:
        if dataset.get("test_share") is None:
            message = (
                f"{train_keys[0]} is given and no test data. Add test_index or test_data, or `test_share: 0.2`. If the "
                "data say of which part each sample is (a column split, folders train and test), name them as "
                "test_data too."
            )
            yield ConfigProblem(message, ("dataset", train_keys[0]), code="missing-data")
    elif not train_keys:
        yield ConfigProblem(
            f"{test_keys[0]} is given and no training data. Add train_index or train_data.",
            ("dataset", test_keys[0]),
            code="missing-data",
        )


def _using(testenv: object, train_keys: list[str]) -> Iterator[ConfigProblem]:
    """Find errors in the domains to use."""
    path: Steps = ("dataset", "using")
    text = at(testenv, *path)
    words: list[tuple[Steps, object]] = list(entries(testenv, *path))
    if isinstance(text, str):
        words = [(path, word) for word in split_words(text)]
    domains = [(where, word) for where, word in words if isinstance(word, str)]
    yield from repeated(domains, "domain '{}' is given twice. Name it once.")
    missing_in = [(key, f"is not in {key}", "There are") for key in train_keys[:1]]
    missing_in.append(("classes", "has no class list in classes", "There are lists for"))
    for where, word, (key, lack, listed) in [(*domain, each) for domain in domains for each in missing_in]:
        names = at(testenv, "dataset", key)
        if isinstance(names, dict) and word not in names:
            hint = closest(word, names) or f" {listed}: {one_line(list(names))}."
            yield ConfigProblem(f"domain '{word}' {lack}.{hint}", where, key=False, code="unknown-domain")
