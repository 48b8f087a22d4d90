"""Replies that were given before are not asked for again, as long as all is the same that they depend on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ianvs
from ianvs.base.errors import PluginError
from ianvs.plugins.contract import Adapter
from ianvs.running.session.known_replies import Replies
from tests.errors import errors_of
from tests.jobs import write_job

WITHIN = Adapter(1, 1.0, (), b"")


class Speaker:
    """A learner that says the last token of a prompt twice, and then the end. asked: what it had to answer itself."""

    def __init__(self, workspace: Path, seed: int = 0, **options: object) -> None:
        identity = {"algorithm": {"source": "a"}, "hyperparameters": options, "seed": seed}
        spec = SimpleNamespace(engine="transformers", url=None, version="")
        request: Any = SimpleNamespace(workspace=workspace, generation=spec, identity=identity)
        self.replies, self.asked = Replies(request), list[Sequence[int]]()

    def says(
        self, *prompts: list[int], weights_digest: str = "w", stops: Sequence[int] = (0,), max_tokens: int = 5
    ) -> Any:
        def generate(numbers: list[int]) -> list[list[int]]:
            self.asked += [prompts[number] for number in numbers]
            return [[prompts[number][-1]] * 2 + [0] for number in numbers]

        how = {"stops": stops, "max_tokens": max_tokens, "weights_digest": weights_digest}
        return self.replies(prompts, **how, adapter=lambda: WITHIN, generate=generate)


def test_only_what_is_new_is_generated_also_by_the_next_process(tmp_path: Path) -> None:
    first = Speaker(tmp_path)
    with first.replies.use_for("1"):
        assert first.says([1, 2], [3], [1, 2]) == [[2, 2, 0], [3, 3, 0], [2, 2, 0]]
        assert first.says([3], [4]) == [[3, 3, 0], [4, 4, 0]]
    assert first.asked == [[3], [1, 2], [4]]
    second = Speaker(tmp_path)
    with second.replies.use_for("1"):
        assert second.says([4], [1, 2], [5]) == [[4, 4, 0], [2, 2, 0], [5, 5, 0]]
    assert second.asked == [[5]]


@pytest.mark.parametrize("changed", [{"weights_digest": "v"}, {"stops": (0, 9)}, {"max_tokens": 6}])
def test_other_weights_ends_and_lengths_are_other_replies(tmp_path: Path, changed: Any) -> None:
    speaker = Speaker(tmp_path)
    with speaker.replies.use_for("1"):
        speaker.says([1, 2])
        speaker.says([1, 2], **changed)
        speaker.says([1, 2])
    assert speaker.asked == [[1, 2], [1, 2]]


@pytest.mark.parametrize("other", [{"seed": 1}, {"lora_r": 8}])
def test_nobody_speaks_for_another_case(tmp_path: Path, other: Any) -> None:
    for speaker in (Speaker(tmp_path), Speaker(tmp_path, **other)):
        with speaker.replies.use_for("1"):
            speaker.says([1, 2])
        assert speaker.asked == [[1, 2]]


def test_replies_of_one_examination_count_for_no_later_one(tmp_path: Path) -> None:
    speaker = Speaker(tmp_path)
    for when in "12":
        with speaker.replies.use_for(when):
            speaker.says([1, 2])
    assert speaker.asked == [[1, 2], [1, 2]]


def test_what_is_damaged_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    speaker = Speaker(tmp_path)
    with speaker.replies.use_for("1"):
        speaker.says([1, 2])
    [file] = (tmp_path / "cache/replies").iterdir()
    file.write_text(file.read_text().replace('"2 2 0"', '"7 7 0"'))
    assert "7 7 0" in file.read_text()
    again = Speaker(tmp_path)
    with again.replies.use_for("1"):
        assert again.says([1, 2]) == [[2, 2, 0]]
    assert again.asked == [[1, 2]]


def test_who_learns_can_not_find_out_what_is_asked(tmp_path: Path) -> None:
    speaker = Speaker(tmp_path)
    with speaker.replies.use_for("1"):
        speaker.says([1, 2])
    assert errors_of(speaker.says, [1, 2]) == [("invalid-request", "")]


def test_fewer_replies_than_prompts_are_refused(tmp_path: Path) -> None:
    speaker = Speaker(tmp_path)
    how = {"stops": (0,), "max_tokens": 5, "weights_digest": "w", "adapter": lambda: WITHIN}
    with speaker.replies.use_for("1"), pytest.raises(PluginError, match="replies"):
        speaker.replies([[1], [2]], **how, generate=lambda numbers: [[1]])


SPELLER = '''
from pathlib import Path


class Speller:
    """Replies with the letters of a question, and notes in a file that it was asked."""

    log = Path("LOG")

    def train(self, train_data, valid_data=None):
        pass

    def predict(self, data, *, round, generation=None):
        prompts = [list(map(ord, asked["user"][0])) for asked in data.x]

        def generate(numbers):
            self.log.write_text((self.log.read_text() if self.log.exists() else "") + f"{len(numbers)} in {round}\\n")
            return [prompts[number] for number in numbers]

        how = {"stops": (0,), "max_tokens": 99, "weights_digest": str(round), "adapter": None}
        said = generation(prompts, **how, generate=generate) if generation else prompts
        return [["".join(map(chr, one))] for one in said]

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass
'''
TESTENV = """
dataset: {train_data: {a: ./a.json, b: ./b.json}, test_data: {a: ./a.json, b: ./b.json}}
scenario: {name: domain-incremental}
metrics: [{name: EM}]
"""


def speller(folder: Path, more: str = "") -> Path:
    for name in "ab":
        said = [{"role": "user", "content": name}, {"role": "assistant", "content": name}]
        (folder / f"{name}.json").write_text(json.dumps([{"messages": said}]))
    return write_job(
        folder,
        plugin=SPELLER.replace("LOG", str(folder / "log")),
        name="Speller",
        hyperparameters="",
        testenv=TESTENV,
        job=f"seeds: [0]\nengine: inline\n{more}",
        sort_by="[{EM: descend}]",
    )


def test_a_case_that_runs_again_generates_nothing_and_a_repetition_all(tmp_path: Path) -> None:
    path = speller(tmp_path)
    for _ in range(2):
        [case] = ianvs.run(path)
        assert case.metrics["EM"] == 1, case.failure
        assert (tmp_path / "log").read_text() == "2 in 0\n2 in 1\n2 in 2\n"
        shutil.rmtree(tmp_path / "ws/cases")
    ianvs.run(speller(tmp_path, "repeat: 2"))
    assert (tmp_path / "log").read_text() == "2 in 0\n2 in 1\n2 in 2\n" * 2, "what differs between repetitions is noise"
