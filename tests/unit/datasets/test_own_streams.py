"""A stream of one's own: questions with answers, what they are about, and what is said of answers."""

import json

import pytest

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data

SAID = [("Who is the mayor?", "Ada", "mon", ""), ("The mayor's name?", "Ben", "tue", "Ask Ben.")]


def record(kind: str, question: str, answer: str, domain: str, feedback: str) -> dict[str, object]:
    asked: dict[str, object] = {"question": question, "answer": answer}
    if kind == "conversation":
        turns = (("user", question), ("assistant", answer))
        asked = {"messages": [{"role": role, "content": text} for role, text in turns]}
    return {**asked, "domain": domain, "topic": "council", "fact": "mayor", "feedback": feedback}


@pytest.mark.parametrize("kind", ["text", "conversation"])
def test_what_a_record_is_about_is_read(tmp_path, kind):
    for part in ("train", "test"):
        lines = [json.dumps(record(kind, *said)) + "\n" for said in SAID]
        (tmp_path / f"{part}.jsonl").write_text("".join(lines))
    sources = {part: (SourceSpec(tmp_path / f"{part}.jsonl", "data"),) for part in ("train", "test")}
    found = data.load(DatasetSpec(**sources), tmp_path / "cache")
    assert found.kind == kind
    assert found.train.topics.tolist() == ["council", "council"]
    assert found.train.facts.tolist() == ["mayor", "mayor"]
    assert found.train.feedback.tolist() == ["", "Ask Ben."]


@pytest.mark.parametrize("kind", ["text", "conversation"])
def test_files_that_are_joined_keep_what_each_record_is_about(tmp_path, kind):
    plain = {name: value for name, value in record(kind, *SAID[1]).items() if name not in ("topic", "fact", "feedback")}
    files = {"a": record(kind, *SAID[0]), "b": plain, "c": record(kind, *SAID[1])}
    for name, told in files.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(told) + "\n")
    sources = tuple(SourceSpec(tmp_path / f"{name}.jsonl", "data") for name in files)
    found = data.load(DatasetSpec(train=sources, test=sources[1:]), tmp_path / "cache")
    assert found.train.topics.tolist() == ["council", "", "council"]
    assert found.train.feedback.tolist() == ["", "", "Ask Ben."]
    assert found.test.facts.tolist() == ["", "mayor"]
