"""`ianvs new job NAME --data PATH`: inspects data, reports what was found, and writes the files of a job over them."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ianvs.base.errors import ConfigError, IanvsError, Location, ValidationError, one_line, shown_path
from ianvs.base.package import JOB_FILE
from ianvs.cli.data_guesses import (
    guessed_label,
    has_parts,
    inner_folder,
    refuse_annotated_images,
    require_classes,
    table_hint,
)
from ianvs.cli.scaffold import from_template
from ianvs.config import load_job
from ianvs.exam.data import SourceError
from ianvs.exam.data.csv_headers import yaml_list, yaml_text
from ianvs.exam.data.folders import domain_folders, packed_domains
from ianvs.exam.data.listing import Listing
from ianvs.exam.data.sources import read_parts

_MOST_OPENED = 200  # number of images whose sizes are read
_LARGE = 64  # larger images (in pixels) should be resized for the template's network
_TESTENV = "testenv.yaml"


@dataclass(frozen=True)
class DataJob:
    """The files of a job by name, and a description of the data, in lines."""

    files: Mapping[str, str]
    facts: tuple[str, ...]


@dataclass(frozen=True)
class _Found:
    """Data that could be read. keys: the dataset's keys in testenv.yaml, as YAML."""

    keys: Mapping[str, str]
    train: Listing
    test: Listing


def data_job(data: Path, name: str, folder: Path) -> DataJob:
    """Inspect `data` (a folder or a file) and return the files of a job over them.

    Args:
        data: As the user wrote it, relative to the working directory.
        name: Of the job.
        folder: Where its files go, as the user wrote it.

    Raises:
        IanvsError: If nothing is there, or the data have no form that can be read.
    """
    if not data.exists():
        raise IanvsError(f"there is no file or folder {shown_path(data)}.", code="missing-file")
    files = from_template("job", name, str(folder))
    if data.is_dir():
        data = inner_folder(data)
        refuse_annotated_images(data)
    samples = _read(data, name, files)
    require_classes(data, samples.train)
    where = os.path.relpath(data.absolute(), folder.absolute())
    facts = tuple(_facts(data, samples))
    files[_TESTENV] = _testenv(samples, where, facts)
    rest = files[JOB_FILE].partition("\n")[2]
    files[JOB_FILE] = f"# Three methods on the data of {shown_path(data)}, each with three seeds.\n{rest}"
    return DataJob(files, facts)


def _read(data: Path, name: str, files: Mapping[str, str]) -> _Found:
    """Return the data in the first form that can be read. Raises the error of the most telling form."""
    errors: list[ConfigError | SourceError] = []
    for keys in _forms(data.absolute()):
        try:
            train, test = _parts(keys, name, files)
        except (ConfigError, SourceError) as failed:
            errors.append(failed)
            continue
        if "test_data" in keys and _equal(train, test):
            require_classes(data, train)
            continue  # it has no split: both parts hold all samples
        return _Found(_with_domains(keys, train, test), train, test)
    clearest = [error for error in errors if error.problems[0].code != "conflicting-keys"] or errors
    raise ConfigError(_placed_in(data, problem) for problem in clearest[-1].problems) from None


def _equal(train: Listing, test: Listing) -> bool:
    """Return whether both parts have samples in common, as for a source that does not tell parts apart."""
    if {*train.ids.tolist()} & {*test.ids.tolist()}:
        return True
    has_parts_warning = bool(train.warnings)  # a source that does tell them apart warns
    return train.form == "arrays" and not has_parts_warning and np.array_equal(train.x, test.x)


def _with_domains(keys: Mapping[str, str], train: Listing, test: Listing) -> Mapping[str, str]:
    """Return `keys`, plus the domains of a column if both parts have the same ones, two or more."""
    domains = sorted({*train.domains.tolist()} - {""})
    if "using" in keys or len(domains) < 2 or {*domains} != {*test.domains.tolist()}:
        return keys
    return {**keys, "using": yaml_list(domains, len(domains))}


def _placed_in(data: Path, problem: ValidationError) -> ValidationError:
    """Return the same error, located at the data if its place is in a file that exists only for this inspection."""
    place = problem.place if problem.place is not None and problem.place.file.exists() else Location(data)
    message = problem.message + table_hint(data)
    of_label = "Or name the column by `label` in the dataset."
    if message.endswith(of_label):
        message = (
            message.removesuffix(of_label) + "Rename the label's column to `label`, or write `label: COLUMN` in the "
            "dataset of a job of your own (`ianvs new job NAME`)."
        )
    return ValidationError(message, place, code=problem.code)


def _forms(data: Path) -> Iterator[dict[str, str]]:
    """Yield the keys of a dataset for each form that such data may have, the most telling form first."""
    quoted = yaml_list([str(data)])[1:-1]
    both, share = {"train_data": quoted, "test_data": quoted}, {"train_data": quoted, "test_share": "0.2"}
    if data.is_file():
        label = guessed_label(data)
        more = {} if label is None else {"label": yaml_text(label)}
        if domains := packed_domains(data):
            more |= {"using": yaml_list(domains, len(domains))}
        yield {**both, **more}
        yield {**share, **more}
        return
    domains = domain_folders(data)
    more = {"using": yaml_list(domains, len(domains))} if domains else {}
    if has_parts(data):
        yield {"root": quoted, **more}
    yield {**both, **more}
    yield {**share, **more}
    children = sorted(path for path in data.iterdir() if not path.name.startswith("."))
    if len(children) == 1 and children[0].is_file():
        yield from _forms(children[0])


def _parts(keys: Mapping[str, str], name: str, files: Mapping[str, str]) -> tuple[Listing, Listing]:
    lines = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    testenv = (
        f"testenv:\n  dataset:\n{lines}  scenario: {{name: instance-incremental, rounds: 1}}\n  metrics: [accuracy]\n"
    )
    with tempfile.TemporaryDirectory(prefix="ianvs-") as folder:
        for file, text in {**files, _TESTENV: testenv}.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        job = Path(folder) / JOB_FILE
        job.write_text(job.read_text(encoding="utf-8").replace("- BWT: descend", ""), encoding="utf-8")
        return read_parts(load_job(job).testenvs[0].dataset)


def _facts(data: Path, samples: _Found) -> Iterator[str]:
    train, test = samples.train, samples.test
    counts = Counter(train.y.tolist())
    few, many = min(counts.values()), max(counts.values())
    each = f"{few} training samples each" if few == many else f"{few} to {many} training samples each"
    yield f"{shown_path(data)}: {len(train.y)} training and {len(test.y)} test samples, {_split(samples)}"
    yield f"{len(counts)} {'class' if len(counts) == 1 else 'classes'}: {one_line(sorted(map(str, counts)), 8)}; {each}"
    if "label" in samples.keys:
        yield f"label: the column {samples.keys['label']}, a guess: the only one without numbers"
    if "using" in samples.keys:
        yield f"domains: {samples.keys['using'][1:-1]}"
        if train.form == "files" or data.suffix.lower() == ".zip":
            yield "a guess: the outer folders are domains, the inner ones classes; if not, take out `using`"
    elif any(train.domains):
        yield f"domains, which the parts do not share: {one_line(sorted({*map(str, train.domains)} - {''}), 8)}"
    if (sizes := _sizes(train)) is not None:
        yield f"images of {_shown(*sizes)}"
    untested = sorted(set(counts) - set(test.y.tolist()))
    if untested:
        yield f"no test samples: {one_line(untested, 8)}"


def _split(samples: _Found) -> str:
    if "test_share" in samples.keys:
        return "the test part drawn from them (test_share)"
    return "by the split that the data have"


def _sizes(listing: Listing) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the smallest and the largest (height, width); None if the samples are not image files."""
    from PIL import Image

    if listing.form != "files":
        return None
    every = max(1, len(listing.x) // _MOST_OPENED)
    sizes = set()
    for path in listing.x[::every]:
        try:
            with Image.open(path) as picture:
                sizes.add((picture.height, picture.width))
        except OSError:  # `validate` reports the error
            continue
    return (min(sizes), max(sizes)) if sizes else None


def _shown(low: tuple[int, int], high: tuple[int, int]) -> str:
    low_text, high_text = (f"{height} x {width}" for height, width in (low, high))
    return low_text if low == high else f"{low_text} to {high_text} pixels (height x width)"


def _testenv(samples: _Found, where: str, facts: tuple[str, ...]) -> str:
    """Return the text of testenv.yaml, with a comment for each choice."""
    comments = {
        "root": "folder with the parts train and test",
        "train_data": "the data",
        "test_data": "the same: each sample is of the part that the data say",
        "test_share": "share of each class that becomes the test part; with `test_data: PATH` in its place it is given",
        "using": "the domains, in their order",
        "label": "the column of the class, a guess",
    }
    path = yaml_list([where])[1:-1]
    lines = [*(f"# {fact}" for fact in facts), "testenv:", "  dataset:"]
    for key, value in samples.keys.items():
        lines.append(f"    {key}: {path if key in ('root', 'train_data', 'test_data') else value}   # {comments[key]}")
    sizes = _sizes(samples.train)
    if sizes is not None and (sizes[0] != sizes[1] or max(sizes[1]) > _LARGE):
        lines.append(f"    image_size: {_LARGE}   # to which images are resized; larger: better and slower")
    classes = len(set(samples.train.y.tolist()))
    name, rounds, why = "class-incremental", 0, "new classes in each round; `ianvs list scenarios`"
    if "using" in samples.keys:
        name, why = "domain-incremental", "a domain in each round; `ianvs list scenarios`"
    elif classes < 3:
        name, rounds, why = (
            "instance-incremental",
            4,
            "the samples in parts: rounds of classes need three or more",
        )
    else:
        rounds = classes if classes == 3 else min(5, classes // 2)
    lines += ["  scenario:", f"    name: {name}   # {why}"]
    lines += [f"    rounds: {rounds}"] if rounds else []
    if name == "class-incremental" and classes % rounds:
        first = classes - (rounds - 1) * (classes // rounds)
        lines.append(f"    first: {first}   # classes of the first round; the others have {classes // rounds} each")
    lines += ["  metrics:   # `ianvs list metrics`", "    - accuracy", "    - BWT"]
    return "\n".join(lines) + "\n"
