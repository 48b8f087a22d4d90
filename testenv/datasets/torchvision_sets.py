"""Sources that use the readers of torchvision.datasets: `cifar10`, `cifar100`, `mnist` and `fashion_mnist`."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.errors import DataError, ValidationError
from ianvs.config.spec import DatasetSpec
from ianvs.testenv.datasets.array_source import Arrays, ArraySource, numbered
from ianvs.testenv.datasets.idx_files import FILES, content_digests, find_files, read_idx

_CIFAR10 = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta")


class TorchvisionSet(ArraySource):
    """x is (N, height, width, channels) uint8, in the order of the files. `unpacked`: the files, below `root`."""

    reader: ClassVar[str]  # a class of torchvision.datasets
    unpacked: ClassVar[tuple[str, ...]]
    held: ClassVar[str] = "{folder}"  # the content of `root`, for errors

    def files(self, spec: DatasetSpec) -> list[Path]:
        """Return all unpacked files."""
        return [Path(spec.root or ".") / file for file in self.unpacked]

    def check(self, spec: DatasetSpec) -> list[ValidationError]:
        """Return an error if files are missing and downloading is not allowed."""
        place = spec.places.get("name", spec.place)
        held = self.held.format(folder=Path(self.unpacked[0]).parent)
        if spec.root is None:
            return [
                ValidationError(f"{spec.name} needs `root`, the folder that holds {held}.", place, code="missing-key")
            ]
        if spec.download or not (missing := self._missing(spec)):
            return []
        message = f"{missing[0]} is not there. Set `download: true`, or `root` to the folder that holds {held}."
        return [ValidationError(message, spec.places.get("root", place), code="missing-file")]

    def fingerprint(self, spec: DatasetSpec, cache_dir: Path) -> str:
        """Return the hash of the files; missing ones are downloaded if the spec allows it. Raises DataError."""
        if spec.download and spec.root is not None and self._missing(spec):
            from filelock import FileLock

            spec.root.mkdir(parents=True, exist_ok=True)
            with FileLock(spec.root / f".{spec.name}.lock"):
                self.fetch(spec.root)
            if missing := self._missing(spec):
                raise DataError(f"{spec.name} was downloaded, but {missing[0]} is not there.", code="missing-data")
        return super().fingerprint(spec, cache_dir)

    def fetch(self, root: Path) -> None:
        """Download the files. Raises DataError."""
        import torchvision.datasets

        try:
            getattr(torchvision.datasets, self.reader)(root=root, train=True, download=True)
        except (OSError, RuntimeError) as error:
            raise DataError(f"{self.reader} can't be downloaded to {root}: {error}", code="unreadable-data") from None

    def read(self, spec: DatasetSpec) -> Arrays:
        """Return the arrays. Raises DataError for damaged files."""
        import torchvision.datasets

        arrays: Arrays = {}
        for part in ("train", "test"):
            try:
                reader = getattr(torchvision.datasets, self.reader)
                data = reader(root=spec.root, train=part == "train", download=False)
            except RuntimeError as error:
                raise DataError(
                    f"{spec.name} can't be read below {spec.root}: {error}", code="unreadable-data"
                ) from None
            arrays |= self.columns(part, np.asarray(data.data), data.targets)
            arrays["classes"] = np.array(data.classes, dtype=str)
        return arrays

    def columns(self, part: str, x: NDArray[np.uint8], y: ArrayLike) -> Arrays:
        x, ids = x[..., None] if x.ndim == 3 else x, numbered(f"{part}/", np.arange(len(x)), 5)
        return {f"x_{part}": x, f"y_{part}": np.asarray(y, dtype=np.int64), f"ids_{part}": ids}

    def _missing(self, spec: DatasetSpec) -> list[Path]:
        return [path for path in self.files(spec) if not path.is_file()]


class Cifar10(TorchvisionSet):
    summary: ClassVar[str] = "photographs of 32x32 pixels in 10 classes; 50 000 + 10 000 (Krizhevsky 2009)"
    reader: ClassVar[str] = "CIFAR10"
    made_of: ClassVar[tuple[str, ...]] = ("CIFAR-10",)
    unpacked: ClassVar[tuple[str, ...]] = tuple(f"cifar-10-batches-py/{file}" for file in _CIFAR10)


class Cifar100(TorchvisionSet):
    summary: ClassVar[str] = "photographs of 32x32 pixels in 100 classes; 50 000 + 10 000 (Krizhevsky 2009)"
    reader: ClassVar[str] = "CIFAR100"
    made_of: ClassVar[tuple[str, ...]] = ("CIFAR-100",)
    unpacked: ClassVar[tuple[str, ...]] = tuple(f"cifar-100-python/{file}" for file in ("train", "test", "meta"))


class IdxSet(TorchvisionSet):
    """Four files in `root`/<reader>/raw, as in torchvision, or in `root` itself."""

    held: ClassVar[str] = "the four IDX files, gzipped or not, or {folder} with them"

    def files(self, spec: DatasetSpec) -> list[Path]:
        """Return the files in the first folder that has all four; else their places in torchvision's layout."""
        root = Path(spec.root or ".")
        usual = [root / name for name in self.unpacked]
        return find_files((usual[0].parent, root)) or usual

    def digests(self, spec: DatasetSpec, cache_dir: Path) -> list[str]:
        return content_digests(self.files(spec), cache_dir)

    def read(self, spec: DatasetSpec) -> Arrays:
        train_x, train_y, test_x, test_y = map(read_idx, self.files(spec))
        arrays: Arrays = {}
        for part, x, y in (("train", train_x, train_y), ("test", test_x, test_y)):
            if x.ndim != 3 or y.shape != (len(x),):
                raise DataError(
                    f"{spec.name} below {spec.root}: images {x.shape} and labels {y.shape} don't fit.",
                    code="damaged-dataset",
                )
            arrays |= self.columns(part, x, y)
        return arrays


class Mnist(IdxSet):
    summary: ClassVar[str] = "handwritten digits of 28x28 pixels; 60 000 + 10 000 (LeCun et al. 1998)"
    reader: ClassVar[str] = "MNIST"
    made_of: ClassVar[tuple[str, ...]] = ("MNIST",)
    unpacked: ClassVar[tuple[str, ...]] = tuple(f"MNIST/raw/{file}" for file in FILES)
    classes: ClassVar[tuple[str, ...] | None] = tuple("0123456789")


class FashionMnist(IdxSet):
    summary: ClassVar[str] = "images of clothes of 28x28 pixels; 60 000 + 10 000 (Xiao et al. 2017)"
    reader: ClassVar[str] = "FashionMNIST"
    made_of: ClassVar[tuple[str, ...]] = ("Fashion-MNIST",)
    unpacked: ClassVar[tuple[str, ...]] = tuple(f"FashionMNIST/raw/{file}" for file in FILES)
    classes: ClassVar[tuple[str, ...] | None] = (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    )
