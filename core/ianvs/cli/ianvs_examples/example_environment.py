"""An environment for each example: the packages that its code imports and this interpreter lacks.

Which packages are missing is determined by ianvs's own checks. Versions come from lists: the requirements files in the
example's folder and, for what these leave open, a file of the caller. A name is installed only if one of these lists or
the table of known packages (kubeedge/known_packages.json) has it.
"""

import hashlib
import json
import re
import site
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import yaml

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.cli.ianvs_examples.failure_owner import MISSING_IMPORT
from ianvs.processes.interpreters.lock import make_environment

_ADVICE = re.compile(r"pip install (\S+?)\)")
_WHEEL = re.compile(r"The checkout brings it: pip install (.+\.whl)\.")
_AT_IMPORT = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_LINE = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w,-]*\])?\s*((?:[<>=!~]=?=?\s*[\w.*]+\s*,?\s*)*)")
_PROVIDED = ("ianvs", "sedna")
_KNOWN = json.loads(Path(ianvs.__file__).with_name("kubeedge").joinpath("known_packages.json").read_bytes())
_MODULES = {name: module for module, name in _KNOWN["called_otherwise"].items()}
"""Name of the imported module, by the name that `pip install` takes."""


@dataclass(frozen=True)
class Environment:
    """An interpreter, and the packages installed for it, as lines of a requirements file."""

    python: str = sys.executable
    requirements: tuple[str, ...] = ()


class Environments:
    """Environments in a folder, one for each set of requirements: examples that need the same packages share one."""

    def __init__(self, folder: Path, lists: Mapping[str, Sequence[str]]):
        self.folder, self.lists, self._lock = folder, lists, Lock()

    def first(self, job: Path, checkout: Path, source: str) -> Environment:
        """Return an environment with the packages that the caller's file lists for this job, and those of the example's
        own requirements that `source` imports.

        The checks leave out an import whose absence the code handles. job: relative to the checkout.

        Raises:
            IanvsError: A package can't be installed.
        """
        given = [line for words, lines in self.lists.items() if words in str(job) for line in lines]
        for name, line in {_plain(name): (name, line) for name, line in _listed(job, checkout)}.values():
            module = _MODULES.get(_plain(name), name.replace("-", "_"))
            if re.search(rf"^\s*(import|from) {re.escape(module)}\b", source, re.MULTILINE) and not _installed(module):
                given.append(line)
        return self._made(list(dict.fromkeys(given))) if given else Environment()

    def next(self, environment: Environment, output: str, job: Path, checkout: Path) -> Environment:
        """Return an environment that also has the packages reported missing in `output`, or the same one if there are
        none.

        Raises:
            IanvsError: A package can't be installed.
        """
        listed = {_plain(name): line for name, line in _listed(job, checkout)}
        wanted = dict.fromkeys(environment.requirements)
        for name, advice in MISSING_IMPORT.findall(output):
            if wheel := _WHEEL.search(advice):
                wanted[wheel[1]] = None
            elif advised := _ADVICE.search(advice):
                wanted[listed.get(_plain(advised[1]), advised[1])] = None
            elif line := listed.get(_plain(name.partition(".")[0])):
                wanted[line] = None
        for name in _AT_IMPORT.findall(output):  # imported by a file that our checks don't follow
            package = _KNOWN["called_otherwise"].get(name, name if name in _KNOWN["called_the_same"] else "")
            if line := listed.get(_plain(package or name), package):
                wanted[line] = None
        return environment if tuple(wanted) == environment.requirements else self._made([*wanted])

    def _made(self, requirements: Sequence[str]) -> Environment:
        with self._lock:
            try:
                return self._environment(requirements)
            except IanvsError:
                newest = [line if line.endswith(".whl") else _LINE.match(line)[1] for line in requirements]  # type: ignore[index]
                if newest == [*requirements]:
                    raise
                return self._environment(newest)  # the requested versions do not exist for this Python

    def _environment(self, requirements: Sequence[str]) -> Environment:
        text = "\n".join((*sorted(requirements), sys.executable))
        folder = self.folder / hashlib.sha256(text.encode()).hexdigest()[:16]
        python = folder / "bin" / "python"
        if not python.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            arguments = ["--no-warn-script-location", "--prefer-binary", *requirements]
            make_environment(Path(sys.executable), arguments, folder, "an example", self.folder, site.getsitepackages())
        return Environment(str(python), tuple(requirements))


def read_lists(file: Path | None) -> dict[str, list[str]]:
    """Return requirements by words of a job's path, from a yaml file; empty without a file.

    Raises:
        IanvsError: The file can't be read, or has another form.
    """
    if file is None:
        return {}
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
        return {str(words): [str(line) for line in lines] for words, lines in content.items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, TypeError) as error:
        message = f"{file} can't be read ({error}). Name a yaml with a list of requirements for each part of a path."
        raise IanvsError(message, code="missing-file" if isinstance(error, OSError) else "invalid-record") from None


def _listed(job: Path, checkout: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, line) in the requirements files of the example's folders, those nearest to the job last."""
    inside = [checkout / folder for folder in job.parents if len(folder.parts) > 1]
    for folder in reversed(inside):
        for file in sorted(folder.glob("*requirement*.txt")):
            content = file.read_bytes()
            encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
            for line in content.decode(encoding, errors="replace").splitlines():
                match = _LINE.match(line.strip())
                if match and match[1].lower() not in _PROVIDED:
                    yield match[1], "".join(match[0].split())


def _installed(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
