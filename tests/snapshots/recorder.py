"""Messages of errors in one file, `messages.txt`: a test asserts codes and locations, a reviewer reads the wording.

A test that calls `tests.errors.errors_of` has an entry, by its id, with each error that it met: the line of the file
that is wrong, the code, the location, and the message. `pytest --update-snapshots` writes the entries of the tests
that run.
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock

from ianvs.base.errors import Location

FILE = Path(__file__).with_name("messages.txt")
_HEAD = "== "
_TEMPORARY = re.compile(r"(?:/[\w.-]+)*?/pytest-of-[\w.-]+/pytest-\d+/(?:popen-gw\d+/)?[\w-]+")

Met = tuple[str, Location | None, str]
"""Code, location and message of an error."""


class Recorder:
    """What the tests of this process met.

    Attributes:
        update: Whether entries are written instead of compared.
        deselected: Ids of tests that do not run, such as those marked `slow`: their entries stay.
        met: Entries by the id of the test; an entry has a line or two for each error.
    """

    def __init__(self) -> None:
        self.update = False
        self.deselected: set[str] = set()
        self.met: dict[str, list[str]] = {}

    def record(self, errors: Sequence[Met]) -> None:
        """Add errors to the entry of the test that runs, and compare them with what the file has there.

        Raises:
            AssertionError: A message differs from the one in the file.
        """
        test = current_test()
        before = self.met.setdefault(test, [])
        lines = [line for error in errors for line in _lines(*error)]
        if not self.update:
            stored = entries().get(test, [])[len(before) : len(before) + len(lines)]
            assert stored == lines, "messages differ from tests/snapshots/messages.txt: pytest --update-snapshots"
        before += lines

    def write(self, whole: bool) -> None:
        """Merge the entries into the file; several processes may do so at once.

        Args:
            whole: Whether test functions ran with all their parameters: then entries of others are dropped.
        """
        with FileLock(Path(tempfile.gettempdir()) / "ianvs-messages.lock"):
            entries.cache_clear()
            ran = {test.partition("[")[0] for test in self.met} if whole else set()
            kept = {
                test: lines
                for test, lines in entries().items()
                if test.partition("[")[0] not in ran or test in self.deselected
            }
            merged = sorted((kept | self.met).items())
            FILE.write_text("".join("\n".join([_HEAD + test, *lines, "", ""]) for test, lines in merged if lines))


RECORDER = Recorder()


def current_test() -> str:
    """The id of the test that runs, as in "tests/unit/config/test_mistakes.py::test_a_slip[name]"."""
    return os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]


@cache
def entries() -> dict[str, list[str]]:
    """The entries of the file, by the id of the test."""
    found: dict[str, list[str]] = {}
    for entry in (FILE.read_text() if FILE.is_file() else "").split("\n\n"):
        test, *lines = entry.strip("\n").split("\n")
        if test:
            found[test.removeprefix(_HEAD)] = lines
    return found


def _lines(code: str, location: Location | None, message: str) -> list[str]:
    """The line of the file that is wrong, if it is a text, and one line for each line of the message."""
    file = location.file if location else None
    text = ""
    if location and location.line and file is not None and file.is_file():
        with contextlib.suppress(UnicodeDecodeError):  # of a compressed file no two are alike: they have their time
            lines = file.read_text(encoding="utf-8").splitlines()
            text = lines[location.line - 1].strip() if location.line <= len(lines) else ""
    said = "  ".join(filter(None, [code, str(location or ""), message]))
    said = _TEMPORARY.sub("<folder>", said).replace(str(Path.cwd()), "<here>")
    told = [line for line in said.split("\n") if line]
    return [*([f"    | {_TEMPORARY.sub('<folder>', text)[:100]}"] if text else []), *told]
