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
