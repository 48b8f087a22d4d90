"""Draws pictures: many of them in several processes, since each takes a third of a second."""

from __future__ import annotations

import hashlib
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ianvs.processes.engines.engine import Reporter, Task, Workload, usable_cores
from ianvs.store.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "draw_file", "draw_pictures", "warm_up"]

_LOOK = "3"  # counts up when the drawing changes, so that pictures of the old look are drawn anew
_INPUTS = "Ianvs-Inputs"  # name of the text in the PNG that tells from what it was drawn
_FEW = 3  # pictures that are drawn sooner than processes have begun


@dataclass(frozen=True)
class Picture:
    """A PNG at `path`, of what `figure(*arguments)` draws; a function of a module, which another process can call.

    inputs: all that it shows, and nothing else.
    """

    path: Path
    inputs: tuple[str, ...]
    figure: Callable[..., Figure]
    arguments: tuple[Any, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256("\0".join([_LOOK, *self.inputs]).encode()).hexdigest()

    @property
    def is_there(self) -> bool:
        """Whether it was drawn from the same inputs: looking takes much less time than drawing."""
        from PIL import Image

        try:
            with Image.open(self.path) as picture:
                return bool(picture.info.get(_INPUTS) == self.digest)
        except (OSError, SyntaxError):  # UnidentifiedImageError is an OSError
            return False

    def draw(self) -> None:
        stream = BytesIO()
        # Without Software the bytes would carry matplotlib's version; a date is not written to begin with.
        figure = self.figure(*self.arguments)
        figure.savefig(stream, format="png", metadata={"Software": None, _INPUTS: self.digest})
        write_atomic(self.path, stream.getvalue())


def draw_pictures(pictures: Iterable[Picture]) -> list[Path]:
    """The paths of all, in order. Those that are there already are not drawn again."""
    apart = sys.platform == "linux" and usable_cores() > 1
    paths: list[Path] = []
    waiting: list[Picture] = []
    with ExitStack() as stack:
        crew: _Crew | None = None
        for picture in pictures:
            paths.append(picture.path)
            if picture.is_there:
                continue
            if not apart:
                picture.draw()
                continue
            waiting.append(picture)
            if crew is None and len(waiting) > _FEW:
                crew = stack.enter_context(closing(_Crew()))
            if crew is not None:
                while waiting:
                    crew.draw(waiting.pop())
        if crew is not None:
            waiting = crew.rest()
    for picture in waiting:  # few, or those that failed: with the real error
        picture.draw()
    return paths


class _Crew:
    """Processes that draw."""

    def __init__(self) -> None:
        from ianvs.processes.engines.forking import ForkEngine

        self._engine = ForkEngine(Workload(preload=(f"{__name__}:warm_up",)))
        self._folder = tempfile.TemporaryDirectory()
        self._at_work: dict[str, Picture] = {}
        self._failed: list[Picture] = []
        self._count = 0

    def draw(self, picture: Picture) -> None:
        while len(self._at_work) >= self._engine.slots:
            self._wait()
        self._count += 1
        key = str(self._count)
        file = Path(self._folder.name, key)
        file.write_bytes(pickle.dumps(picture))  # too large for a message
        self._at_work[key] = picture
        self._engine.submit(Task(key, f"{__name__}:{draw_file.__name__}", file))

    def rest(self) -> list[Picture]:
        """After the last one: what could not be drawn."""
        while self._at_work:
            self._wait()
        return self._failed

    def _wait(self) -> None:
        for event in self._engine.events(1.0):
            if event.kind == "ended":
                picture = self._at_work.pop(event.key)
                Path(self._folder.name, event.key).unlink()
                if event.payload != 0:
                    self._failed.append(picture)

    def close(self) -> None:
        self._engine.close()
        self._folder.cleanup()


def draw_file(file: Path, report: Reporter) -> None:
    """Draw the picture that was pickled into `file`."""
    picture: Picture = pickle.loads(file.read_bytes())
    picture.draw()


def warm_up() -> None:
    """Have loaded what every picture needs."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    figure.subplots().set_title("-")
    figure.savefig(BytesIO(), format="png")
