"""File operations for plugins, on local files only: nothing is transferred between machines."""

import hashlib
import importlib
import os
import pickle
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["FileOps"]

_REMOTE = ("s3://", "gs://", "http://", "https://")
_LOCAL = "file://"


def _new_file() -> str:
    handle, name = tempfile.mkstemp()
    os.close(handle)
    return name


def _same(path: str | Path, other: str | Path) -> bool:
    return Path(path).exists() and Path(other).exists() and Path(path).samefile(other)


def _refuse_remote(*urls: str) -> None:
    for url in urls:
        if FileOps.is_remote(url):
            raise OSError(f"{url} lies on another machine. ianvs copies local files only: fetch it before the run.")


class FileOps:
    """Copies, moves and stores files."""

    @classmethod
    def upload(cls, src: str, dst: str | None, tar: bool = False, clean: bool = True) -> str:
        """Copy a file or folder to `dst`, into it if that is an existing folder. Returns `dst`, or a temporary file.

        tar: pack it as SRC.tar.gz first. clean: delete `src` afterwards, unless it is `dst`.
        """
        src, dst = str(src), _new_file() if dst is None else str(dst)
        _refuse_remote(src, dst)
        if tar:
            packed = f"{src}.tar.gz"
            with tarfile.open(packed, "w:gz") as archive:
                archive.add(src, arcname=Path(src).name)
            src = packed
        cls.copy_file(src, dst)
        if clean and not _same(src, dst):
            cls.delete(src)
        return dst

    @classmethod
    def download(cls, src: str, dst: str | None = None, unzip: bool = False) -> str:
        """Copy `src` to `dst` or to a temporary file, and return that. unzip: unpack a .tar.gz beside itself."""
        src, dst = str(src).removeprefix(_LOCAL), _new_file() if dst is None else str(dst)
        _refuse_remote(src)
        cls.copy_file(src, dst)
        if unzip and dst.endswith(".tar.gz"):
            with tarfile.open(dst) as archive:
                archive.extractall(Path(dst).parent, filter="data")
        return dst

    @classmethod
    def exists(cls, path: str) -> bool:
        return Path(path).exists()

    @classmethod
    def is_local(cls, src: str) -> bool:
        """Return whether a file exists, or is written as file://."""
        return str(src).startswith(_LOCAL) or cls.exists(src)

    @classmethod
    def is_remote(cls, src: str) -> bool:
        return str(src).startswith(_REMOTE)

    @classmethod
    def join_path(cls, *args: str) -> str:
        """Return the parts joined; leading slashes of all but the first don't count."""
        first, *rest = map(str, args)
        return os.path.join(first, *(part.lstrip(os.sep) for part in rest)) if rest else first  # noqa: PTH118 - text

    @classmethod
    def remove_path_prefix(cls, org_str: str, prefix: str) -> str:
        """Return `org_str` without `prefix`, if it begins with it."""
        return org_str.removeprefix(prefix.removesuffix(os.sep)) if prefix else org_str

    @classmethod
    def make_dir(cls, *args: str) -> None:
        Path(cls.join_path(*args)).mkdir(parents=True, exist_ok=True)

    @classmethod
    def make_base_dir(cls, *args: str) -> None:
        """Create the parent folder of the path that the parts form."""
        Path(cls.join_path(*args)).parent.mkdir(parents=True, exist_ok=True)

    @classmethod
    def clean_folder(cls, target: str | Sequence[str], clean: bool = True) -> Sequence[str]:
        """Create folders. clean: empty existing ones."""
        folders = [target] if isinstance(target, str) else target
        for folder in folders:
            if clean:
                cls.delete(folder)
            Path(folder).mkdir(parents=True, exist_ok=True)
        return folders

    @classmethod
    def delete(cls, path: str) -> None:
        """Delete a file or folder, ignoring errors."""
        if Path(path).is_dir() and not Path(path).is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                Path(path).unlink()

    @classmethod
    def copy_folder(cls, src: str, dst: str) -> None:
        """Copy the content of a folder into another one, which is created if it is missing."""
        if dst and Path(src).is_dir() and not _same(src, dst):
            shutil.copytree(src, dst, dirs_exist_ok=True)

    @classmethod
    def copy_file(cls, src: str, dst: str) -> None:
        """Copy a file to `dst`, into it if that is a folder; or the content of a folder.

        A missing source is ignored.
        """
        source, target = Path(src), Path(dst)
        if source.is_dir():
            cls.copy_folder(src, dst)
        elif source.is_file() and dst:
            if target.is_dir():
                target = target / source.name
            if not _same(source, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    @classmethod
    def dump(cls, obj: object, dst: str | None = None) -> str:
        """Pickle an object to `dst` or a temporary file, and return its path."""
        name = _new_file()
        Path(name).write_bytes(pickle.dumps(obj))
        return cls.upload(name, dst)

    @classmethod
    def load(cls, src: str) -> Any:
        """Load a file written by `dump` or joblib."""
        try:
            joblib = importlib.import_module("joblib")
        except ImportError:
            return pickle.loads(Path(src).read_bytes())
        return joblib.load(src)

    @classmethod
    def dump_pickle(cls, obj: object, filename: str) -> None:
        cls.make_base_dir(filename)
        Path(filename).write_bytes(pickle.dumps(obj))

    @classmethod
    def load_pickle(cls, filename: str) -> Any:
        """Return the object in a file; None without the file."""
        return pickle.loads(Path(filename).read_bytes()) if Path(filename).is_file() else None

    @classmethod
    def get_file_hash(cls, filepath: str) -> str:
        """Return the md5 digest of a file; "" without one."""
        if not (filepath and Path(filepath).is_file()):
            return ""
        with Path(filepath).open("rb") as stream:
            return hashlib.file_digest(stream, "md5").hexdigest()
