"""`ianvs dataset list` and `ianvs dataset prepare NAME`. Imports are inside the functions that need them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ianvs.testenv.datasets.downloads.writing import Prepared, Progress

DATASETS = (
    ("cityscapes", "19 classes; leftImg8bit/ and gtFine/ as unpacked; labelIds are mapped where trainIds are missing"),
    ("synthia", "SYNTHIA-RAND-CITYSCAPES, 22 classes; RGB/ and GT/LABELS/ (16-bit); seeded split"),
    ("cloud_robotics", "KubeEdge's robot dog, 30 classes; rgb/ and gtFine/"),
    ("bdd100k", "BDD100K segmentation, 19 classes; seg/images/ and seg/labels/"),
    ("idd", "India Driving Dataset part 1, 26 level-3 classes; leftImg8bit/ and gtFine/"),
    ("camvid", "CamVid in 11 classes, one domain a sequence; rgb/ and gt/"),
    ("streets", "generated scenes in the domains CS, SYN and CR; needs no download"),
    ("clear_drift", "generated images that drift over ten buckets, in the layout of CLEAR; needs no download"),
)
_WITH_TEST_SPLIT = {"cityscapes": "val", "bdd100k": "val", "idd": "val", "cloud_robotics": "test", "camvid": "test"}
_WITH_CLASSES = ("synthia", "idd")


def add_commands(commands: Any) -> None:
    """Add `dataset` to the subparsers of the command line."""
    dataset = commands.add_parser("dataset", help="make index files of datasets as downloaded, or generate some")
    inside = dataset.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = inside.add_parser("list", help="the datasets that a testenv can name, and those that can be prepared")
    listing.set_defaults(command=_list)
    prepare = inside.add_parser("prepare", help="write index files, class names and provenance of a dataset")
    names = prepare.add_subparsers(title="datasets", metavar="NAME", dest="dataset", required=True)
    for name, summary in DATASETS:
        parser = names.add_parser(name, help=summary, description=summary)
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the index files go")
        if name == "streets":
            _add_streets(parser)
        elif name == "clear_drift":
            _add_clear_drift(parser)
        else:
            _add_prepared(parser, name)


def _add_streets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--train", type=_positive, default=120, metavar="N", help="training images a domain (120)")
    parser.add_argument("--test", type=_positive, default=40, metavar="N", help="test images a domain (40)")
    parser.add_argument("--size", type=_positive, nargs=2, default=(64, 128), metavar=("H", "W"), help="(64 128)")
    parser.add_argument("--seed", type=_natural, default=0, metavar="N", help="another seed, other scenes (0)")
    parser.set_defaults(command=_streets)


def _add_clear_drift(parser: argparse.ArgumentParser) -> None:
    each = "images of each class in each bucket"
    parser.add_argument("--train", type=_positive, default=30, metavar="N", help=f"training {each} (30)")
    parser.add_argument("--test", type=_positive, default=15, metavar="N", help=f"test {each} (15)")
    parser.add_argument("--size", type=_positive, default=32, metavar="N", help="height and width (32)")
    parser.add_argument("--seed", type=_natural, default=0, metavar="N", help="another seed, other images (0)")
    parser.set_defaults(command=_clear_drift)


def _add_prepared(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--root", type=Path, required=True, metavar="DIR", help="where the dataset was unpacked")
    if name != "camvid":
        parser.add_argument("--domain", metavar="NAME", help="name of the domain, instead of the usual one")
    if name in _WITH_TEST_SPLIT:
        help_ = f"the folder that becomes the test part ({_WITH_TEST_SPLIT[name]})"
        parser.add_argument("--test-split", metavar="NAME", help=help_)
    if name in _WITH_CLASSES:
        parser.add_argument("--classes", choices=("own", "cityscapes"), help="the dataset's own (default), or the 19")
    if name == "synthia":
        parser.add_argument("--test-ratio", type=float, metavar="X", help="share of the test part (0.2)")
        parser.add_argument("--seed", type=_natural, metavar="N", help="of the split (0)")
    parser.add_argument("--skip-missing", action="store_true", default=None, help="leave out what has no counterpart")
    parser.add_argument("--no-check", dest="check", action="store_false", help="do not open masks that need no mapping")
    parser.set_defaults(command=_prepare)


def _list(options: argparse.Namespace) -> int:
    from ianvs.base.entry_points import installed
    from ianvs.exam.data.named_sources import ENTRY_POINTS

    print("By `dataset.name` in a testenv:")
    for name, source in installed(ENTRY_POINTS).items():
        print(f"  {name:16}{source.load().summary}")
    print("\nBy `ianvs dataset prepare NAME --root DIR --out DIR`:")
    for name, summary in DATASETS:
        print(f"  {name:16}{summary}")
    return 0


def _prepare(options: argparse.Namespace) -> int:
    from ianvs.testenv.datasets.downloads.preparers import prepare

    names = ("domain", "test_split", "classes", "test_ratio", "seed", "skip_missing")
    given = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    with _progress() as progress:
        prepared = prepare(options.dataset, options.root, options.out, check=options.check, progress=progress, **given)
    _tell(prepared)
    return 0


def _streets(options: argparse.Namespace) -> int:
    from ianvs.testenv.datasets.streets import write_streets

    size = options.size[0], options.size[1]
    with _progress() as progress:
        prepared = write_streets(options.out, options.train, options.test, size, options.seed, progress=progress)
    _tell(prepared)
    return 0


def _clear_drift(options: argparse.Namespace) -> int:
    import yaml

    from ianvs.testenv.datasets.drift import write_drift

    with _progress() as progress:
        write_drift(options.out, options.train, options.test, options.size, options.seed, progress)
    dataset = {"name": "clear10", "root": str(options.out), "image_size": options.size}
    print("# for testenv.yaml")
    print(yaml.safe_dump({"dataset": dataset}, sort_keys=False, default_flow_style=None).rstrip())
    return 0


def _tell(prepared: Sequence[Prepared]) -> None:
    """Print the written files, and the lines for a testenv."""
    import yaml

    for result in prepared:
        counts = f"{result.counts['train']} training and {result.counts['test']} test images"
        print(f"{result.domain}: {counts}, {len(result.classes)} classes, in {result.folder}")
    for warning in dict.fromkeys(f"{result.domain}: {warning}" for result in prepared for warning in result.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    dataset: dict[str, object] = {
        f"{part}_index": {result.domain: str(result.folder / f"{part}-index.txt") for result in prepared}
        for part in ("train", "test")
    }
    dataset["using"] = " ".join(result.domain for result in prepared)
    lists = {result.domain: list(result.classes) for result in prepared}
    shared = next(iter(lists.values()))
    dataset["classes"] = shared if all(names == shared for names in lists.values()) else lists
    print("\n# for testenv.yaml")
    print(yaml.safe_dump({"dataset": dataset}, sort_keys=False, default_flow_style=None, width=110).rstrip())


@contextmanager
def _progress() -> Iterator[Progress]:
    """Yield a progress bar on a terminal, and a function that does nothing elsewhere."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("pictures", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _positive(text: str) -> int:
    if (number := _natural(text)) == 0:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)
