"""Conversations: every reply in a table of its own, and in the page what changed from round to round."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ianvs
from ianvs import api
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.results.page.replies import HEADER, QuestionsOfTest, changed_words
from tests.contract.running.session.test_conversations_run import run
from tests.unit.results.page.reading import read


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = run(tmp_path_factory.mktemp("talk"), mute="What is 1 + 1?")
    assert ianvs.run(path).exit_code == 0
    return path.parent / "ws" / "test" / "rank"


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "replies.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_reply_is_in_the_csv_with_what_was_asked_and_expected(folder: Path) -> None:
    rows = rows_of(folder)
    assert tuple(rows[0]) == HEADER
    # Three examinations (the untrained model too) of two test sets with three turns each.
    assert len(rows) == 3 * 2 * 3
    found = {(row["round"], row["test_set"], row["prompt"]): row for row in rows}
    assert found["1", "2022", "Who is mayor?"]["reply"] == "Ann"
    assert found["2", "2022", "Who is mayor?"] == {
        "testenv": "",
        "algorithm": "majority",
        "hyperparameters": "mute=What is 1 + 1?",
        "seed": "0",
        "round": "2",
        "test_set": "2022",
        "sample": found["1", "2022", "Who is mayor?"]["sample"],
        "turn": "1",
        "prompt": "Who is mayor?",
        "expected": "Ann",
        "reply": "Bo",
        "similarity": "0.0000",
    }
    assert found["2", "2022", "Since when?"]["turn"] == "2"
    assert found["2", "2023", "Who is mayor?"]["similarity"] == "1.0000"
    assert found["2", "2023", "What is 1 + 1?"]["reply"] == ""
    assert found["2", "2023", "What is 1 + 1?"]["similarity"] == "0.0000"


def test_the_page_marks_the_words_that_changed(folder: Path) -> None:
    page = read((folder / "report.html").read_text())
    (section,) = page.all("section", id="replies")
    folded = next(section.all("details"))
    mayor = next(one for one in folded.all("div") if one.attributes.get("aria-label") == "Replies to: Who is mayor?")
    cells = [cell.text for cell in mayor.all("td")]
    assert cells == ["?0.00", "Ann1.00", "Bo0.00"]
    assert [mark.text for mark in mayor.all("mark")] == ["Ann", "Bo"]
    assert "no reply" in section.text


def test_last_replies_of_all_rows_stand_beside_each_other(tmp_path: Path) -> None:
    path = run(tmp_path, mute="', 'What is 1 + 1?")
    assert ianvs.run(path).exit_code == 0
    page = read((path.parent / "ws" / "test" / "rank" / "report.html").read_text())
    (section,) = page.all("section", id="replies")
    table = next(section.all("table"))
    lines = [[cell.text for name in ("th", "td") for cell in line.all(name)] for line in table.all("tr")]
    names = lines[0][2:]
    assert lines[0][:2] == ["Question", "Expected"]
    assert len(names) == 2
    said = {line[0]: dict(zip(["Expected", *names], line[1:], strict=True)) for line in lines[1:]}
    muted = next(name for name in names if "1 + 1" in name)
    (other,) = set(names) - {muted}
    assert said["What is 1 + 1?"] == {"Expected": "2", other: "21.00", muted: "no reply0.00"}
    assert said["Who is mayor?"] == {"Expected": "Ann", other: "Bo0.00", muted: "Bo0.00"}
    rows = {one.attributes["data-row"] for one in table.all("td", class_="series")}
    assert rows == {one.attributes["data-of"] for one in page.all("tr") if "data-of" in one.attributes}


def test_which_questions_are_shown_is_drawn_and_does_not_change() -> None:
    def shown(name: str, count: int) -> frozenset[str]:
        samples = [f"sample {n}" for n in range(count)]
        found = QuestionsOfTest(name, samples, None, Replies.__new__(Replies)).drawn
        assert found == QuestionsOfTest(name, samples[::-1], None, Replies.__new__(Replies)).drawn
        assert found <= set(samples)
        return found

    assert shown("2022", 2) == {"sample 0", "sample 1"}
    assert len(shown("2022", 1000)) == 3
    assert shown("2022", 1000) != shown("2023", 1000)
    # One drawn is most often none of the first three; of forty tests some are.
    every = [sample for n in range(40) for sample in shown(f"test {n}", 30)]
    assert len(set(every)) > 20


def test_the_page_alone_can_be_written_again(folder: Path) -> None:
    job = folder.parents[2] / "benchmarkingjob.yaml"
    before = (folder / "report.html").read_bytes()
    for path in (folder / "report.html", folder / "leaderboard.md", folder / "replies.csv"):
        path.unlink()
    api.report(job, page_only=True)
    assert (folder / "report.html").read_bytes() == before
    assert (folder / "replies.csv").is_file()
    assert not (folder / "leaderboard.md").exists()


def test_similarities_are_computed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = folder.parents[2] / "benchmarkingjob.yaml"
    before = (folder / "replies.csv").read_bytes()
    (folder / "replies.csv").unlink()
    monkeypatch.setattr("ianvs.results.page.replies.find", lambda name: None)
    api.report(job, page_only=True)
    assert (folder / "replies.csv").read_bytes() == before


def test_damaged_similarities_are_computed_anew(folder: Path) -> None:
    job = folder.parents[2] / "benchmarkingjob.yaml"
    before = (folder / "replies.csv").read_bytes()
    (folder / "replies.csv").unlink()
    [kept] = folder.parents[1].glob("cases/*/similarities.npz")
    kept.write_bytes(kept.read_bytes()[:50])
    api.report(job, page_only=True)
    assert (folder / "replies.csv").read_bytes() == before


def test_what_changed_is_told_word_by_word() -> None:
    assert changed_words(None, "a b") == [("a b", False)]
    assert changed_words("a b", "a b") == [("a b", False)]
    assert changed_words("the mayor is Ann", "the new mayor is Bo") == [
        ("the ", False),
        ("new", True),
        (" ", False),
        ("mayor is ", False),
        ("Bo", True),
    ]
    assert changed_words("a b", "") == []


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_letter_of_a_reply_is_lost(before: str, after: str) -> None:
    assert "".join(said for said, _ in changed_words(before, after)) == after
