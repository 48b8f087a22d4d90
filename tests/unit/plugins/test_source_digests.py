"""What of an author's files counts in the identity of a case: all of their code, and nothing that is no code."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.plugins.source import source_of
from tests.edits import edited

PLUGIN = '''\
"""A method."""
import json

import helper

RATE = 0.5


class Net:
    """Two layers."""

    def forward(self, x):
        return helper.scaled(x)


class Model:
    """Nearest mean."""

    def __init__(self, rate: float = RATE):
        self.rate = rate  # a share

    def train(self, data):
        """Learn."""
        return data


if __name__ == "__main__":
    print(Model())
'''
HELPER = '''\
def scaled(x):
    """Doubled."""
    return 2 * x


def lonely(x, by=None):
    return x
'''


def source(plugin: str = PLUGIN, helper: str = HELPER) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        for file, text in {"plugin.py": plugin, "helper.py": helper}.items():
            Path(name, file).write_text(text)
        return source_of(str(Path(name, "plugin.py")), "Model")


def changed(**files: str) -> set[str]:
    before, after = source(), source(**files)
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return data", "return 2 * data"),
        ("RATE = 0.5", "RATE = 0.25"),
        ("import json\n", "import math\n"),
        ("rate: float", "rate: int"),
        ("    print(Model())\n", "    pass\n"),
        ("return helper.scaled(x)", "return helper.scaled(x, 'named')"),
        ("return data", "return None if data is None else data"),
    ],
)
def test_any_change_of_code_counts(old: str, new: str) -> None:
    assert changed(plugin=edited(PLUGIN, old, new)) == {"plugin.py"}


@pytest.mark.parametrize(
    ("old", "new"), [("2 * x", "3 * x"), ("by=None", "by=1"), ("    return x\n", "    return -x\n")]
)
def test_of_an_imported_file_counts_what_the_class_does_not_use_as_well(old: str, new: str) -> None:
    assert changed(helper=edited(HELPER, old, new)) == {"helper.py"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # a share", ""),
        ('"""Learn."""\n', "\n"),
        ('"""Learn."""', '"""Learn more."""'),
        ("(self, data)", "(\n        self,\n        data,\n    )"),
        ("0.5", "0.50"),
        ('"__main__"', "'__main__'"),
    ],
)
def test_comments_docstrings_and_formatting_do_not_count(old: str, new: str) -> None:
    assert not changed(plugin=edited(PLUGIN, old, new))


def test_a_file_that_cannot_be_parsed_counts_by_its_text() -> None:
    assert source("class Model\n") != source("class Model  # said\n")


def test_the_bytes_are_known_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "plugin.py"
    path.write_text("class Model: pass\n")
    before = source_of(str(path), "Model"), source_of(str(path), "Model", exactly=True)
    path.write_text("class Model: pass  # said\n")
    after = source_of(str(path), "Model"), source_of(str(path), "Model", exactly=True)
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_built_in_methods_count_by_their_code_as_well() -> None:
    found = source_of(None, "EWC")
    assert {"basemodel.py", "ianvs/authoring/torch_learner.py"} <= set(found)
    assert all(digest.startswith("tree:") for digest in found.values())


LINES = [node.lineno - 1 for node in ast.walk(ast.parse(PLUGIN)) if isinstance(node, ast.stmt)]
WORDS = st.text("abc def=()[]'#:\\,", max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(LINES), st.one_of(st.just(""), WORDS.map("# {}".format))), max_size=6))
def test_comments_and_blank_lines_never_count(put: list[tuple[int, str]]) -> None:
    lines = PLUGIN.split("\n")
    for number, text in sorted(put, reverse=True):
        lines.insert(number, " " * (len(lines[number]) - len(lines[number].lstrip())) + text)
    assert not changed(plugin="\n".join(lines))


@pytest.mark.slow
@given(st.text(max_size=40), st.sampled_from(["A method.", "Two layers.", "Nearest mean.", "Learn."]))
def test_docstrings_never_count(text: str, which: str) -> None:
    quoted = f'"""{which}"""'
    assert not changed(plugin=edited(PLUGIN, quoted, ascii(text)))
