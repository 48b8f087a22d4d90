"""What is said of a module that a plugin imports and that is nowhere."""

from __future__ import annotations

import pytest

from ianvs.kubeedge.needed_packages import missing_packages


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("ROOT = '/home/author/ianvs/examples/toy/plugin/parts'\n", "belongs to the plugin"),
        ("ROOT = '/home/author/parts'\n", "its README may tell"),
    ],
)
def test_a_folder_that_the_code_expects_beside_itself_belongs_to_the_plugin(tmp_path, code, remedy):
    folder = tmp_path / "plugin"
    folder.mkdir()
    file = folder / "basemodel.py"
    file.write_text(f"{code}from parts.training import run\n")
    [missing] = missing_packages([file], [])
    assert remedy in missing.remedy and not missing.lazily
