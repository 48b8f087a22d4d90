"""Where a plugin failed: in which round, client, module and method, and in which line of its file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ianvs.base.errors import PluginError
from ianvs.plugins.loader import cause


class PlaceError(PluginError):
    """An error of a plugin with the way to it: "round 2: client 1: basemodel 'Net' (net.py), train: net.py:12: ..."."""

    def __init__(self, places: tuple[str, ...], what: str) -> None:
        super().__init__(places, what)
        self.places, self.what = places, what

    def __str__(self) -> str:
        return ": ".join([*self.places, self.what])


@contextmanager
def during(place: str, file: Path | str | None = None) -> Iterator[None]:
    """Say of an exception that it came here. file: the plugin's, whose line is named. exit() counts as an error."""
    try:
        yield
    except PlaceError as error:
        raise PlaceError((place, *error.places), error.what) from error.__cause__
    except PluginError as error:
        raise PlaceError((place,), str(error)) from error
    except Exception as error:
        raise PlaceError((place,), cause(error, Path(file) if file else None)) from error
    except SystemExit as error:
        raise PlaceError((place,), f"the plugin called exit({'' if error.code is None else error.code})") from error
