"""Folders that `save` writes into although nobody makes them, found without running it."""

import os

import numpy as np
import pytest

from ianvs.plugins.missing_folders import folder_never_made


class Relative:
    def save(self, path):
        np.save("checkpoints/last.npy", np.zeros(1))


class Opens:
    def save(self, path):
        with open("a/b/c.txt", "w") as file:  # noqa: PTH123
            file.write("")


class Joins:
    def save(self, path):
        np.save(os.path.join("models", path.name), np.zeros(1))  # noqa: PTH118


class Formats:
    def save(self, path):
        np.save(f"models/{path.name}", np.zeros(1))


class MakesIt:
    def save(self, path):
        path.parent.mkdir(exist_ok=True)
        np.save("checkpoints/last.npy", np.zeros(1))


class AtItsPath:
    def save(self, path):
        np.save(f"{path}/x.npy", np.zeros(1))
        np.save("last.npy", np.zeros(1))
        np.save("/tmp/last.npy", np.zeros(1))


FOLDERS = {Relative: "checkpoints", Opens: "a/b", Joins: "models", Formats: "models", MakesIt: None, AtItsPath: None}


@pytest.mark.parametrize(("plugin", "folder"), FOLDERS.items())
def test_a_folder_in_the_text_of_save_is_found_unless_folders_are_made(plugin: type, folder: str | None) -> None:
    assert folder_never_made(plugin.save) == folder  # type: ignore[attr-defined]
