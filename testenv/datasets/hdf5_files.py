"""HDF5 files (.h5, .hdf5): arrays x and y as in .npz files, or a group for each part, train and test."""

from collections.abc import Sequence
from pathlib import Path

from ianvs.base.errors import Location, first_line
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.array_names import array_names
from ianvs.exam.data.arrays import held_listing
from ianvs.exam.data.file_formats import FileFormat
from ianvs.exam.data.listing import Listing, SourceError


def _read(files: Sequence[Path], path: Path, spec: DatasetSpec, part: str) -> Listing:
    try:
        import h5py
    except ImportError:
        message = "HDF5 files are read by h5py: pip install 'ianvs-bench[hdf5]'."
        raise SourceError.single(message, Location(path), "missing-package") from None
    try:
        with h5py.File(path) as file:
            group = file[part] if isinstance(file.get(part), h5py.Group) else file
            present = [name for name in group if isinstance(group[name], h5py.Dataset)]
            wanted = {"classes", *array_names(present, part).values()}
            arrays = {name: group[name][()] for name in present if name in wanted}
    except OSError as error:
        message = f"can't be read as HDF5 ({first_line(error)}). Write it again, with datasets x and y."
        raise SourceError.single(message, Location(path), "unreadable-data") from None
    return held_listing(arrays, present, path, spec, part)


FORMS = (FileFormat((".h5", ".hdf5"), _read, fields=False),)
