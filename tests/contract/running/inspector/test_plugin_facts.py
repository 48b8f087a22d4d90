"""What a plan knows of plugins, without importing them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ianvs.config.spec import AlgorithmSpec, ModuleSpec, ParadigmSpec
from ianvs.running.inspector import PluginFacts
from tests.edits import edited
from tests.unit.running.inspector.own_inspector import inspector

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
    def __init__(self, strength=1, **rest): super().__init__(**rest)

class Elsewhere(Plain):
    reference = "plain.py:Plain"

class Bound(Plain):
    sees_past_rounds = True
"""


def plugin_facts(
    folder: Path, plugins: list[tuple[str | None, str]], *, inline: bool = True
) -> list[PluginFacts | None]:
    modules = [ModuleSpec("basemodel", name, url) for url, name in plugins]
    paradigm = ParadigmSpec("incrementallearning")
    asked = [
        (AlgorithmSpec(name="x", file=folder / "x.yaml", paradigm=paradigm, modules=(module,)), module)
        for module in modules
    ]
    with inspector(folder, inline=inline) as opened:
        return opened.plugins(asked)


def plain(facts: PluginFacts) -> tuple[str | None, str, tuple[str, ...] | None]:
    """The class that trains plainly, and what it takes."""
    assert facts.reference is not None
    return facts.reference.url, facts.reference.name, facts.reference.takes


def test_facts_are_of_the_class_that_trains_plainly(tmp_path: Path) -> None:
    plugin, other = tmp_path / "plugin.py", tmp_path / "plain.py"
    plugin.write_text(PLUGIN)
    other.write_text(edited(PLUGIN, "width", "depth"))
    url = str(plugin)
    names = ("Plain", "Fancy", "Elsewhere", "Bound", "Nobody")
    *found, nobody = plugin_facts(tmp_path, [(url, name) for name in names])
    assert nobody is None
    assert [(one.bound, one.arguments, plain(one)) for one in found if one is not None] == [
        (False, ("width",), (url, "Plain", ("width",))),
        (False, ("strength", "width"), (url, "Plain", ("width",))),
        (False, ("width",), (str(other), "Plain", ("depth",))),
        (True, ("width",), (url, "Bound", ("width",))),
    ]


def test_facts_follow_a_change_of_the_class_that_trains_plainly(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "plain.py").write_text(PLUGIN)
    asked: list[tuple[str | None, str]] = [(str(tmp_path / "plugin.py"), "Elsewhere")]
    [before] = plugin_facts(tmp_path, asked)
    (tmp_path / "plain.py").write_text(edited(PLUGIN, "width", "depth"))
    [after] = plugin_facts(tmp_path, asked)
    assert before is not None
    assert after is not None
    assert (plain(before)[2], plain(after)[2]) == (("width",), ("depth",))


def test_facts_are_found_out_once_and_by_another_process(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.touch()  # no file can be added beside a workspace that is closed
    note = f"import os; print(os.getpid(), file=open({str(trace)!r}, 'a'))\n"
    (tmp_path / "plugin.py").write_text(note + PLUGIN)
    for _ in range(2):
        plugin_facts(tmp_path, [(str(tmp_path / "plugin.py"), "Plain")], inline=False)
    [pid] = trace.read_text().split()
    assert int(pid) != os.getpid()


def test_plugins_are_found_where_this_process_would_find_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "only_there.py").write_text(PLUGIN)
    (tmp_path / "core").mkdir()  # no package of ours, in a working directory of the user's
    (tmp_path / "core" / "__init__.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "modules")])
    [found] = plugin_facts(tmp_path, [("only_there", "Plain")], inline=False)
    assert found is not None
    assert (found.bound, plain(found)) == (False, ("only_there", "Plain", ("width",)))
