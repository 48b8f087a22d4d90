"""What of authors' files counts in the identity of a case: what its class can reach, and nothing else."""

from __future__ import annotations

import ast
import tempfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ianvs.plugins.source import file_digests, source_of
from tests.edits import edited

PLUGIN = '''\
"""A method."""
import json

import helper
from tools import distance as apart, unused
from torch import nn

RATE = 0.5
OTHER = 3


class Net(nn.Module):
    """Two layers."""

    def forward(self, x):
        return helper.scaled(x)


class Model:
    """Nearest mean."""

    def __init__(self, rate: float = RATE):
        self.rate = rate  # a share
        self.net = Net()

    def train(self, data):
        """Learn."""
        return apart(data, self.rate)


class Elsewhere(nn.Module):
    def forward(self, x):
        return x + OTHER


if __name__ == "__main__":
    print(Model())
'''
HELPER = '''\
def scaled(x):
    """Doubled."""
    return _factor() * x


def _factor():
    return 2


def lonely(x, by=None):
    return x


class Lonely(ValueError):
    size = 3

    @property
    def half(self):
        return self.size / 2
'''
TOOLS = """\
def distance(a, b):
    return a - b


def unused(a):
    return a
"""


def source(plugin: str = PLUGIN, helper: str = HELPER, tools: str = TOOLS) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        for file, text in {"plugin.py": plugin, "helper.py": helper, "tools.py": tools}.items():
            Path(name, file).write_text(text)
        return source_of(str(Path(name, "plugin.py")), "Model")


def changed(**files: str) -> set[str]:
    before, after = source(), source(**files)
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return apart(data, self.rate)", "return apart(data, 2 * self.rate)"),
        ("return helper.scaled(x)", "return helper.scaled(-x)"),
        ("RATE = 0.5", "RATE = 0.25"),
        ("import json\n", "import math\n"),
        ("class Net(nn.Module)", "class Net(nn.Sequential)"),
        ("OTHER = 3", "OTHER = print(3)"),
        ("class Elsewhere(nn.Module)", "class Elsewhere(helper.Lonely)"),
    ],
)
def test_what_the_class_reaches_counts(old: str, new: str) -> None:
    assert "plugin.py" in changed(plugin=edited(PLUGIN, old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # a share", ""),
        ('"""Learn."""\n', "\n"),
        ("OTHER = 3", "OTHER = 4"),
        ("return x + OTHER", "return x - OTHER"),
        ('"""Learn."""', '"""Learn OTHER Elsewhere."""'),
        ("(data, self.rate)", "(\n            data,\n            self.rate,\n        )"),
        ("0.5", "0.50"),
    ],
)
def test_what_it_does_not_reach_does_not_count(old: str, new: str) -> None:
    assert not changed(plugin=edited(PLUGIN, old, new))


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("return 2", "return 3", True),
        ("def lonely(x, by=None):\n    return x", "def lonely(x):\n    return 2 * x", False),
        ("size = 3", "size = 4", False),
        ("def lonely(x, by=None)", "def lonely(x, by=print())", True),
        ("class Lonely(ValueError)", "@print\nclass Lonely(ValueError)", True),
        ("class Lonely(ValueError)", "class Lonely(ValueError, metaclass=type)", True),
        ("size = 3", "size = print(3)", True),
        ("def lonely", "print()\n\n\ndef lonely", True),
        ("def _factor", "def _factor():\n    return 1\n\n\ndef _factor", True),
    ],
)
def test_of_a_shared_helper_counts_what_is_used(old: str, new: str, counts: bool) -> None:
    assert changed(helper=edited(HELPER, old, new)) == ({"helper.py"} if counts else set())


def test_a_local_class_that_notes_its_subclasses_makes_them_count() -> None:
    register = "class Registry:\n    def __init_subclass__(cls):\n        print(cls)\n\n\n"
    helper = f"{register}{HELPER}\n\nclass Entry(Registry):\n    size = 1\n"
    assert source(helper=helper) != source(helper=edited(helper, "size = 1", "size = 2"))


@pytest.mark.parametrize(
    "dynamic",
    [
        'globals()["lonely"](data)',
        'getattr(helper, "lon" + "ely")(data)',
        'exec("helper.lonely(1)")',
        'sys.modules["helper"]',
        "vars(helper)",
        "pickle.loads(data)",
        "importlib.import_module('helper')",
        "modules['helper']",
        "load('helper')",
        "exec(data)",
        "[one for one in (helper,)]",
        "helper.lonely",
        "getattr(helper, 'lonely')",
    ],
)
def test_where_names_are_computed_the_whole_file_counts(dynamic: str) -> None:
    plugin = edited(PLUGIN, "return apart", f"{dynamic}\n        return apart")
    brought = {"modules": "from sys import modules", "load": "from importlib import import_module as load"}
    plugin = edited(plugin, "import json", brought.get(dynamic.partition("[")[0].partition("(")[0], "import json"))
    if dynamic.startswith("globals"):
        other = edited(plugin, "OTHER = 3", "OTHER = 4")
        assert source(plugin)["plugin.py"] != source(other)["plugin.py"]
    else:
        assert source(plugin) != source(plugin, helper=edited(HELPER, "    return x\n", "    return 2 * x\n"))
    assert source(plugin) == source(
        plugin, helper=edited(HELPER, "    return _factor", "\n    # why\n    return _factor")
    )


def test_a_star_import_takes_all_of_a_file() -> None:
    plugin = edited(PLUGIN, "import helper\n", "import helper\nfrom helper import *\n")
    assert source(plugin) != source(plugin, helper=edited(HELPER, "size = 3", "size = 4"))


def test_a_module_within_a_package_that_is_kept_for_later_counts_whole(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import pack.sub\nkept = pack.sub\nclass Model:\n    def train(self): kept.f()\n")
    told = []
    for number in (1, 2):
        (tmp_path / "pack" / "sub.py").write_text(f"def f():\n    return {number}\n")
        told.append(source_of(str(plugin), "Model"))
    assert told[0] != told[1]


def test_a_list_of_what_a_file_offers_takes_none_of_it() -> None:
    offers = f"__all__ = ['scaled', 'lonely']\n{HELPER}"
    assert source(helper=offers) == source(helper=edited(offers, "size = 3", "size = 4", "return x\n", "return -x\n"))


def test_a_star_import_may_stand_in_a_try(tmp_path: Path) -> None:
    star = "try:\n    from tools import *\nexcept ImportError:\n    raise\n"
    assert source(star + PLUGIN) != source(star + PLUGIN, tools=edited(TOOLS, "return a\n", "return -a\n"))


def test_what_a_package_hands_on_is_found(tmp_path: Path) -> None:
    for name, text in {
        "plugin.py": "import pack\nfrom pack import named\nclass Model:\n    x = pack.sub.used\n    y = named\n",
        "pack/__init__.py": "from . import sub\nfrom .deep import named, other\n",
        "pack/sub.py": "used = [1]\n",
        "pack/deep.py": "named = 1\nother = 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    told = [source_of(str(tmp_path / "plugin.py"), "Model")]
    for name, text in (("sub", "used = [2]\n"), ("deep", "named = 1\nother = 2\n"), ("deep", "named = 2\nother = 2\n")):
        (tmp_path / "pack" / f"{name}.py").write_text(text)
        told.append(source_of(str(tmp_path / "plugin.py"), "Model"))
    assert told[0] != told[1] == told[2] != told[3]


def test_code_that_reads_its_own_text_counts_by_its_bytes() -> None:
    plugin = edited(PLUGIN, "return apart", "print(Model.__doc__)\n        return apart")
    assert source(plugin) != source(edited(plugin, "Nearest mean.", "Nearest means."))


def test_a_class_that_is_not_found_by_its_name_may_be_anything() -> None:
    plugin = edited(PLUGIN, "Model", "Mine")
    assert source(plugin) != source(edited(plugin, "x + OTHER", "x - OTHER"))


def test_the_bytes_are_known_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "plugin.py"
    path.write_text("class Model: pass\n")
    before = source_of(str(path), "Model"), file_digests(str(path), "Model")
    path.write_text("class Model: pass  # said\n")
    after = source_of(str(path), "Model"), file_digests(str(path), "Model")
    assert before[0] == after[0]
    assert before[1] != after[1]


LINES = [node.lineno - 1 for node in ast.walk(ast.parse(PLUGIN)) if isinstance(node, ast.stmt)]
WORDS = st.text("abc def=()[]'#:\\,", max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(LINES), st.one_of(st.just(""), WORDS.map("# {}".format))), max_size=6))
@settings(max_examples=60, deadline=None)
def test_comments_and_blank_lines_never_count(put: list[tuple[int, str]]) -> None:
    lines = PLUGIN.split("\n")
    for number, text in sorted(put, reverse=True):
        lines.insert(number, " " * (len(lines[number]) - len(lines[number].lstrip())) + text)
    assert not changed(plugin="\n".join(lines))


@pytest.mark.slow
@given(st.text(max_size=40), st.sampled_from(["A method.", "Two layers.", "Nearest mean.", "Learn."]))
@settings(max_examples=60, deadline=None)
def test_docstrings_never_count(text: str, which: str) -> None:
    quoted = f'"""{which}"""'
    assert not changed(plugin=edited(PLUGIN, quoted, ascii(text)))


NAMES = st.sampled_from([f"f{k}" for k in range(6)])


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=2), min_size=2), st.data())
@settings(max_examples=80, deadline=None)
def test_a_change_counts_exactly_where_calls_lead(calls: dict[str, list[str]], data: st.DataObject) -> None:
    first, touched = data.draw(st.sampled_from(sorted(calls))), data.draw(st.sampled_from(sorted(calls)))

    def helper(values: dict[str, int]) -> str:
        bodies = (f"def {one}():\n    return {[values[one]]}, {', '.join(calls[one]) or 0}" for one in calls)
        return "\n\n\n".join(bodies) + "\n"

    plugin = textwrap.dedent(f"""\
        import helper
        class Model:
            def train(self, data):
                return helper.{first}()
    """)
    reach, waiting = set(), [first]
    while waiting:
        one = waiting.pop()
        if one in calls and one not in reach:
            reach.add(one)
            waiting += calls[one]
    values = dict.fromkeys(calls, 1)
    before = source(plugin, helper(values))
    after = source(plugin, helper({**values, touched: 2}))
    assert (before != after) == (touched in reach)
