"""What a plan knows of plugins, without importing them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ianvs.running.planning.info import PluginInfo, plugin_info
from tests.edits import edited

METHODS = """
    def train(self, train_data, **context): ...
    def predict(self, data): ...
    def save(self, path): ...
    def load(self, path): ...
"""
PLUGIN = f"""
class Plain:
    def __init__(self, width=1): ...
{METHODS}

class Fancy(Plain):
    reference = "Plain"
    def __init__(self, strength=1, **rest): ...

class Elsewhere(Plain):
    reference = "plain.py:Plain"

class Bound(Plain):
    sees_past_rounds = True
"""


def test_facts_are_of_the_class_that_trains_plainly(tmp_path: Path) -> None:
    plugin, other = tmp_path / "plugin.py", tmp_path / "plain.py"
    plugin.write_text(PLUGIN)
    other.write_text(edited(PLUGIN, "width", "depth"))
    url = str(plugin)
    names = ("Plain", "Fancy", "Elsewhere", "Bound", "Nobody")
    assert plugin_info([(url, name) for name in names], tmp_path / "cache") == [
        PluginInfo(False, url, "Plain", ("width",)),
        PluginInfo(False, url, "Plain", ("width",)),
        PluginInfo(False, str(other), "Plain", ("depth",)),
        PluginInfo(True, url, "Bound", ("width",)),
        None,
    ]


def test_facts_follow_a_change_of_the_class_that_trains_plainly(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "plain.py").write_text(PLUGIN)
    asked = [(str(tmp_path / "plugin.py"), "Elsewhere")]
    [before] = plugin_info(asked, tmp_path / "cache")
    (tmp_path / "plain.py").write_text(edited(PLUGIN, "width", "depth"))
    [after] = plugin_info(asked, tmp_path / "cache")
    assert before is not None
    assert after is not None
    assert (before.takes, after.takes) == (("width",), ("depth",))


def test_facts_are_found_out_once_and_by_another_process(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    note = f"import os; print(os.getpid(), file=open({str(trace)!r}, 'a'))\n"
    (tmp_path / "plugin.py").write_text(note + PLUGIN)
    for _ in range(2):
        plugin_info([(str(tmp_path / "plugin.py"), "Plain")], tmp_path / "cache")
    [pid] = trace.read_text().split()
    assert int(pid) != os.getpid()


def test_plugins_are_found_where_this_process_would_find_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "only_there.py").write_text(PLUGIN)
    (tmp_path / "core").mkdir()  # no package of ours, in a working directory of the user's
    (tmp_path / "core" / "__init__.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "modules")])
    [found] = plugin_info([("only_there", "Plain")], tmp_path / "cache")
    assert found == PluginInfo(False, "only_there", "Plain", ("width",))
