"""Files of conversations in every form, whole and broken: read as expected, or refused with file, line and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import DataError, IanvsError
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from tests.jobs import write_job


def message(role: str, content: object) -> dict[str, object]:
    return {"role": role, "content": content}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


ASKED, REPLY = message("user", "Who leads?"), message("assistant", "Ann.")
PICTURE = {"type": "image_url", "image_url": {"url": "a.png"}}
TASK = {
    "Contributors": ["A"],
    "Definition": ["Name the leader."],
    "Positive Examples": [],
    "Instances": [{"id": "task1-a", "input": "Who leads?", "output": ["Ann.", "It is Ann."]}],
}
SAID = [(None, ["Who leads?"], ["Ann."])]

# [name, content of the file, (system, user, replies) of each conversation]
WHOLE = [
    ("messages.json", [{"messages": [ASKED, REPLY]}], SAID),
    ("messages.jsonl", [{"messages": [message("system", "2022"), ASKED, REPLY]}], [("2022", *SAID[0][1:])]),
    ("parts.json", [{"messages": [message("user", [text("Who "), text("leads?")]), REPLY]}], SAID),
    ("parts_of_reply.json", [{"messages": [ASKED, message("assistant", [text("Ann.")])]}], SAID),
    ("picture.json", [{"messages": [message("user", [PICTURE, text("Who leads?")]), REPLY]}], SAID),
    ("sharegpt.json", [{"conversation": [{"human": "Who leads?", "assistant": "Ann."}]}], SAID),
    (
        "llava.json",
        [{"conversations": [{"from": "human", "value": "Who leads?"}, {"from": "gpt", "value": "Ann."}]}],
        SAID,
    ),
    ("coin_test.json", [{"question_id": 1, "text": "Who leads?", "answer": "Ann."}], SAID),
    ("alpaca.json", [{"instruction": "Who leads?", "input": "", "output": "Ann."}], SAID),
    (
        "dolly.jsonl",
        [{"instruction": "Who leads?", "context": "In 2022.", "response": "Ann.", "category": "open_qa"}],
        [(None, ["Who leads?\nIn 2022."], ["Ann."])],
    ),
    ("dolly_without_context.jsonl", [{"instruction": "Who leads?", "context": "", "response": "Ann."}], SAID),
    ("query.json", [{"query": "Who leads?", "response": "Ann."}], SAID),
    ("completion.jsonl", [{"prompt": "Who leads?", "completion": "Ann."}], SAID),
    ("completion_of_messages.jsonl", [{"prompt": [ASKED], "completion": [REPLY]}], SAID),
    (
        "completion_of_turns.json",
        [{"prompt": [message("system", "2022"), ASKED, REPLY, ASKED], "completion": [message("assistant", "Bo.")]}],
        [("2022", ["Who leads?", "Who leads?"], ["Ann.", "Bo."])],
    ),
    ("trace.json", [{"prompt": "Who leads?", "answer": "Ann."}], SAID),
    ("task001.json", TASK, [(None, ["Name the leader.\nWho leads?"], ["Ann."])]),
    (
        "task_of_text.json",
        {"Definition": "Say it.", "Instances": [{"input": "", "output": "It."}]},
        [(None, ["Say it."], ["It."])],
    ),
    (
        "task_flat.jsonl",
        [{"id": "task1-a", "definition": "Name the leader.", "inputs": "Who leads?", "targets": "Ann."}],
        [(None, ["Name the leader.\nWho leads?"], ["Ann."])],
    ),
    ("two_forms.json", [{"messages": [ASKED, REPLY]}, {"prompt": "Who leads?", "completion": "Ann."}], SAID * 2),
    ("ids.json", [{"id": None, "messages": [ASKED, REPLY]}, {"id": None, "messages": [ASKED, REPLY]}], SAID * 2),
]

INSTANCES = [{"id": "a", "input": "b", "output": ["c"]}]

# [name, content, what the file has at the line and column that are told, and what is said]
BROKEN = [
    (
        "messages.jsonl",
        [{"messages": [ASKED, REPLY]}, {"messages": [ASKED]}],
        '[{"role": "user", "content": "Who leads?"}]}',
        "without an assistant turn",
    ),
    ("role.json", [{"messages": [ASKED, message("asistant", "b")]}], '"asistant"', "Did you mean 'assistant'?"),
    ("mesages.json", [{"mesages": [ASKED, REPLY]}], "{", "Did you mean 'messages'?"),
    (
        "part.json",
        [{"messages": [message("user", [{"type": "txt", "text": "a"}]), REPLY]}],
        '"txt"',
        "a part of type 'txt' can't be read. Did you mean 'text'? There are: text, image, image_url.",
    ),
    ("sound.json", [{"messages": [message("user", [{"type": "input_audio"}]), REPLY]}], '"input_audio"', "input_audio"),
    (
        "part_text.json",
        [{"messages": [message("user", [{"type": "text", "txt": "a"}]), REPLY]}],
        "{",
        "has no 'text'. Did you mean 'txt'? It has: type, txt.",
    ),
    (
        "part_list.json",
        [{"messages": [message("user", ["a"]), REPLY]}],
        '"a"',
        "content[0] is a text; expected an object with 'type' and 'text'.",
    ),
    ("null.json", [{"messages": [ASKED, message("assistant", None)]}], "null", "'content' is null"),
    (
        "sharegpt.json",
        [{"conversation": [{"human": "a", "asistant": "b"}]}],
        "{",
        "has no 'assistant'. Did you mean 'asistant'?",
    ),
    ("llava.json", [{"conversations": [{"from": "humn", "value": "a"}]}], '"humn"', "Did you mean 'human'?"),
    ("coin_test.json", [{"question_id": 1, "text": "a", "answr": "b"}], "{", "has no 'answer'. Did you mean 'answr'?"),
    ("alpaca.json", [{"instruction": "a", "input": "b", "ouput": "c"}], "{", "has no 'output'. Did you mean 'ouput'?"),
    ("dolly.jsonl", [{"instruction": "a", "response": 5}], "5}", "'response' is a number; expected a text."),
    (
        "dolly_twice.jsonl",
        [{"instruction": "a", "response": "b", "output": "c"}],
        '"c"}',
        "has 'response' and 'output', which both are a reply. Keep one of them.",
    ),
    ("query.json", [{"query": "a", "respose": "b"}], "{", "Did you mean 'response'?"),
    ("empty.jsonl", [{"prompt": "a", "completion": " "}], "{", "reply of turn 1 is empty"),
    (
        "completion.jsonl",
        [{"prompt": "a", "compleion": "b"}],
        "{",
        "is no conversation. Did you mean 'completion'? It has: prompt, compleion.",
    ),
    (
        "both.jsonl",
        [{"prompt": "a", "completion": "b", "answer": "c"}],
        '"c"}',
        "has 'prompt' with 'completion' and 'prompt' with 'answer', which are two forms of a conversation. Keep one",
    ),
    (
        "mixed.jsonl",
        [{"prompt": [ASKED], "completion": "b"}],
        '"b"}',
        "'prompt' is an array, 'completion' a text; both are texts, or both lists of messages.",
    ),
    (
        "no_reply.jsonl",
        [{"prompt": [ASKED], "completion": [ASKED]}],
        '{"role": "user", "content": "Who leads?"}]}',
        "two messages of the user follow",
    ),
    ("number.jsonl", [{"prompt": 3, "completion": "b"}], "3,", "'prompt' is a number; expected a text."),
    ("trace.json", [{"prompt": "a", "answer": ["b"]}], "[", "'answer' is an array; expected a text."),
    ("task1.json", {"Definition": ["a"], "Instance": INSTANCES}, "{", "without 'Instances'. Did you mean 'Instance'?"),
    (
        "task2.json",
        {"Definitions": ["a"], "Instances": INSTANCES},
        "{",
        "without 'Definition'. Did you mean 'Definitions'?",
    ),
    ("task3.json", {"Definition": ["a"], "Instances": {}}, "{}", "'Instances' is an object; expected an array."),
    ("task4.json", {"Definition": ["a"], "Instances": []}, "[]", "'Instances' is empty"),
    ("task5.json", {"Definition": ["a"], "Instances": [{"input": "b", "output": []}]}, "[]", "'output' is empty"),
    ("task6.json", {"Definition": ["a"], "Instances": [{"input": "b"}]}, "{", "is no conversation"),
    ("task7.json", {"Definition": [4], "Instances": INSTANCES}, "{", "'Definition' is a number"),
    ("task8.json", {"Definition": ["a"], "Instances": ["b"]}, '"b"', "expected an object with names"),
    ("flat.jsonl", [{"definition": "a", "inputs": "b", "target": "c"}], "{", "Did you mean 'targets'?"),
    (
        "twice.jsonl",
        [{"id": 7, "query": "a", "response": "b"}, {"id": 7, "query": "c", "response": "d"}],
        '7, "query": "c"',
        "the id '7' occurs twice, first on line 1. Take one of the two out, or give",
    ),
    ("cut.jsonl", '{"prompt": "a", "completion"', "", "is not json"),
]


def written(path: Path, content: object) -> SourceSpec:
    lines = path.suffix == ".jsonl" and not isinstance(content, str)
    whole = content if isinstance(content, str) else json.dumps(content, indent=1)
    path.write_text("\n".join(map(json.dumps, content)) if lines else whole)
    return SourceSpec(path, "data")


@pytest.mark.parametrize(("name", "content", "expected"), WHOLE, ids=[row[0] for row in WHOLE])
def test_a_whole_file_is_read(tmp_path, name, content, expected):
    source = written(tmp_path / name, content)
    spec = DatasetSpec(train=(source,), test=(source,), pictures="ignore" if name == "picture.json" else None)
    assert data.check_dataset(spec).problems == []
    loaded = data.load(spec, tmp_path / "cache")
    samples = zip(loaded.train.x, loaded.train.y, strict=True)
    assert [(asked["system"], asked["user"], replies) for asked, replies in samples] == expected


def stands_at(path: Path, told: str) -> str:
    """What the file has from the line and column on that are told."""
    line, column, *_ = told.partition(f"{path.name}:")[2].split(":")
    return path.read_text().splitlines()[int(line) - 1][int(column) - 1 :]


@pytest.mark.parametrize(("name", "content", "at", "said"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_file_is_refused_with_its_line(tmp_path, name, content, at, said):
    source = written(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        data.load(DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache")
    [told, *_] = str(caught.value).splitlines()
    assert told.startswith(f"{source.path}:") and said in told
    found = stands_at(source.path, told)
    assert found.startswith(at)


def test_a_picture_among_parts_that_is_ignored_is_noted(tmp_path):
    source = written(tmp_path / "a.json", {name: content for name, content, _ in WHOLE}["picture.json"])
    notes = data.load(DatasetSpec(train=(source,), test=(source,), pictures="ignore"), tmp_path / "cache").notes
    assert notes[0] == "1 of the 1 conversations of the train part come with images, which are left out."


def test_of_several_right_replies_the_first_is_taught_which_is_noted(tmp_path):
    more = {**TASK, "Instances": [*TASK["Instances"], {"id": "b", "input": "And now?", "output": ["Bo."]}]}
    source = written(tmp_path / "task001.json", more)
    notes = data.load(DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache").notes
    told = "1 of the 2 conversations of the train part have several right replies, of which the first "
    told += "is taught; in scores all count."
    assert notes[0] == told


def test_the_category_of_dolly_is_the_topic(tmp_path):
    records = [{"instruction": "a", "context": "", "response": "b", "category": "open_qa"}]
    source = written(tmp_path / "dolly.jsonl", records)
    assert data.load(DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache").train.topics.tolist() == [
        "open_qa"
    ]


EXAM = """
dataset: {train_data: {old: %(name)s, new: %(name)s}, test_data: {old: %(name)s, new: %(name)s}}
scenario: {name: domain-incremental}
metrics: [reply_exact_match]
"""
NEVER = """
class Never:
    def train(self, train_data): raise SystemExit(9)
    def predict(self, data): raise SystemExit(9)
    def save(self, path): ...
    def load(self, path): ...
"""


def test_every_broken_file_is_refused_by_validate_and_by_run_before_training(tmp_path, monkeypatch):
    for number, (name, content, at, said) in enumerate(BROKEN):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        written(folder / name, content)
        path = write_job(
            folder, plugin=NEVER, name="Never", hyperparameters="", testenv=EXAM % {"name": f"./{name}"},
            sort_by="[{reply_exact_match: descend}]", job="engine: inline",
        )  # fmt: skip
        with pytest.raises(IanvsError) as caught:
            (ianvs.run if number == 0 else ianvs.validate)(path)
        message = str(caught.value)
        assert said in message and stands_at(folder / name, message.splitlines()[0]).startswith(at)
        assert not list(folder.glob("ws/cases/*"))
