"""Checks a DatasetSpec, fingerprints it without decoding, and loads it as a Dataset through the decode-once cache."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ianvs.base.errors import DataError, Location, ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.backbone_features import check_backbone, compute_features, features_fingerprint
from ianvs.exam.data.cache import Progress, slice_of
from ianvs.exam.data.content_digests import Say
from ianvs.exam.data.data_warnings import data_warnings_of, find_data_warnings
from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.data.encoded_pictures import try_pictures
from ianvs.exam.data.fingerprint import files_fingerprint
from ianvs.exam.data.large_tables import (
    cache_image_dataset,
    cache_listing,
    is_large,
    load_large_table,
    read_cached_dataset,
    read_cached_fingerprint,
    table_key,
)
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.load_listing import check_listed, load_listed, warnings_of
from ianvs.exam.data.named_sources import Source, check_named, find_source
from ianvs.exam.data.sources import read_parts
from ianvs.exam.data.user_dataset import load_user_dataset
from ianvs.processes.isolated import IsolatedCaller, IsolatedCallError

__all__ = [
    "Checked",
    "Dataset",
    "Progress",
    "Samples",
    "Source",
    "SourceError",
    "checked",
    "data_warnings_of",
    "find_data_warnings",
    "fingerprint",
    "load",
    "try_pictures",
]

_LONG = 1e6  # seconds; a user can interrupt a long read
CHECK_SECONDS = 120.0  # default of limits.check_seconds


@dataclass(frozen=True)
class DatasetCheck:
    """Result of `checked`.

    Attributes:
        problems: Errors and warnings.
        samples: Fingerprint of the samples; None if it is not known yet.
    """

    problems: list[ValidationError]
    samples: str | None = None


def check_dataset(
    spec: DatasetSpec, cache_dir: Path | None = None, seconds: float = CHECK_SECONDS, say: Say = None
) -> DatasetCheck:
    """Check names, options, files and labels of the data without decoding them.

    There may be warnings of data that are read in an unexpected way. A user's function is called for at most `seconds`
    unless its result is cached; without a cache it is not called. say: receives the progress of reading files.
    """
    if cache_dir is not None and spec.url is None and spec.name is None and is_large(spec):
        result = _check_large(spec, cache_dir, say)
    else:
        result = _check_samples(spec, cache_dir, seconds, say)
    if spec.backbone is None:
        return result
    return DatasetCheck([*result.problems, *check_backbone(spec, spec.backbone)], result.samples)


def check_in_subprocess(request: tuple[DatasetSpec, Path | None]) -> Iterator[str | list[Any]]:
    """Check data in a subprocess. Yields progress texts, and finally [problems, fingerprint of the samples]."""
    progress = SimpleQueue[str | None]()
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(_check_samples, *request, CHECK_SECONDS, progress.put)
        checking.add_done_callback(lambda _: progress.put(None))
        yield from iter(progress.get, None)
    result = checking.result()
    places = [(str(place.file), place.line, place.column) if (place := p.place) else None for p in result.problems]
    problems = [(p.message, place, p.warning, p.code) for p, place in zip(result.problems, places, strict=True)]
    yield [problems, result.samples]


def _check_large(spec: DatasetSpec, cache_dir: Path, say: Say) -> DatasetCheck:
    """Check large files in a subprocess, so that this process stays small during the job."""
    key = table_key(spec, cache_dir)
    if key is not None and (stored := read_cached_fingerprint(key, cache_dir)) is not None:
        return DatasetCheck([], stored)
    rows, samples = [], None
    try:
        with closing(IsolatedCaller()) as process:
            for answer in process.call_iter(f"{__name__}:{check_in_subprocess.__name__}", (spec, cache_dir), _LONG):
                if not isinstance(answer, str):
                    rows, samples = answer
                elif say is not None:
                    say(answer)
    except IsolatedCallError as error:
        raise DataError(
            f"the process that reads the data {error}. It may have run out of memory.", code="insufficient-resources"
        ) from None
    problems = [
        ValidationError(message, place and Location(Path(place[0]), *place[1:]), warning, code=code)
        for message, place, warning, code in rows
    ]
    return DatasetCheck(problems, samples)


def fingerprint(spec: DatasetSpec, cache_dir: Path, samples: str | None = None, say: Say = None) -> str:
    """Return a hash of the samples. A file is read only once as long as it does not change.

    samples: their fingerprint from `checked`. say: as there.
    """
    if samples is None and spec.url is not None:
        samples = load_user_dataset(spec, cache_dir, CHECK_SECONDS).fingerprint(spec, cache_dir)
    elif samples is None and spec.name is not None:
        samples = find_source(spec).fingerprint(spec, cache_dir)
    elif samples is None:
        key = table_key(spec, cache_dir)
        cached = None if key is None else read_cached_fingerprint(key, cache_dir)
        samples = cached or files_fingerprint(spec, cache_dir, say=say)
    return samples if spec.backbone is None else features_fingerprint(samples, spec.backbone, cache_dir)


def load(
    spec: DatasetSpec, cache_dir: Path, progress: Progress | None = None, fingerprint: str | None = None
) -> Dataset:
    """Load the samples. Images are decoded into `cache_dir` at the first call only. Raises DataError or ConfigError.

    Features of a `backbone` are computed at the first call, too.

    Args:
        spec: The dataset.
        cache_dir: The cache.
        progress: Receives the completed share, 0 to 1.
        fingerprint: The planned fingerprint of the samples: decoded image files are not examined again, encoded ones
            are compared with it when they are read.
    """
    share = 1.0 if spec.backbone is None else 0.2
    dataset = None
    if fingerprint is not None and spec.backbone is None:
        dataset = read_cached_dataset(spec, fingerprint, cache_dir, of_images=True)
    if dataset is None:
        dataset = _load_samples(spec, cache_dir, slice_of(progress, 0.0, share))
        cache_image_dataset(dataset, spec, cache_dir)
    if spec.backbone is not None:
        dataset = compute_features(dataset, spec, spec.backbone, cache_dir, slice_of(progress, share, 1.0))
    if progress is not None:
        progress(1.0)
    return dataset


def _check_samples(spec: DatasetSpec, cache_dir: Path | None, seconds: float, say: Say) -> DatasetCheck:
    if spec.name is not None and spec.url is None:
        return DatasetCheck(check_named(spec))
    if spec.url is not None and cache_dir is None:
        return DatasetCheck([])
    key = table_key(spec, cache_dir)
    if cache_dir is not None and key is not None and (stored := read_cached_fingerprint(key, cache_dir)) is not None:
        return DatasetCheck([], stored)
    try:
        parts = (
            read_parts(spec)
            if cache_dir is None or spec.url is None
            else load_user_dataset(spec, cache_dir, seconds).parts
        )
        check_listed(parts, spec)
        warnings = warnings_of(parts, spec)
        if cache_dir is not None and key is not None and not warnings:
            return DatasetCheck([], cache_listing(parts, spec, key, cache_dir, say))
    except SourceError as broken:
        return DatasetCheck(list(broken.problems))
    return DatasetCheck(warnings)


def _load_samples(spec: DatasetSpec, cache_dir: Path, progress: Progress | None) -> Dataset:
    if spec.url is not None:
        returned = load_user_dataset(spec, cache_dir, CHECK_SECONDS)
        return load_listed(returned.parts, spec, returned.fingerprint(spec, cache_dir), cache_dir, progress)
    if spec.name is not None:
        return find_source(spec).load(spec, cache_dir, progress)
    if (key := table_key(spec, cache_dir)) is not None:
        return load_large_table(spec, key, cache_dir, progress)
    parts = read_parts(spec)
    return load_listed(parts, spec, files_fingerprint(spec, cache_dir, parts), cache_dir, progress)
