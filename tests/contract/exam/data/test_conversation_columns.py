"""Conversations under other names, and records that are none: read by `columns`, left out by `skip_bad`."""

import json

import pytest

from ianvs.config.load import load_job
from ianvs.exam import data
from tests.errors import errors_of
from tests.jobs import write_job

ROWS = [{"question": f"Who is {i}?", "answer": f"Ann {i}", "id": str(i)} for i in range(6)]


def exam(tmp_path, rows, more="", suffix="jsonl"):
    """A job with these training records; the first two are asked for."""
    for part, some in (("train", rows), ("test", rows[:2])):
        path = tmp_path / f"{part}.{suffix}"
        if suffix == "csv":
            lines = [",".join(some[0]), *(",".join(map(str, row.values())) for row in some)]
            path.write_text("\n".join(lines) + "\n")
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in some))
    testenv = f"dataset: {{train_data: train.{suffix}, test_data: test.{suffix}{more}}}\n"
    return write_job(
        tmp_path,
        testenv=f"{testenv}scenario: {{name: instance-incremental, rounds: 2}}\nmetrics: [EM]\n",
        sort_by="[{EM: descend}]",
    )


def spec_of(*arguments, **options):
    return load_job(exam(*arguments, **options)).testenvs[0].dataset


def loaded(tmp_path, *arguments, **options):
    return data.load(spec_of(tmp_path, *arguments, **options), tmp_path / "cache")


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_columns_name_what_is_asked_and_replied(tmp_path, suffix):
    found = loaded(tmp_path, ROWS, ", columns: {prompt: question, reply: answer}", suffix=suffix)
    assert [one["user"] for one in found.train.x] == [[row["question"]] for row in ROWS]
    assert found.train.y.tolist() == [[row["answer"]] for row in ROWS]


def test_system_and_topic_have_columns_too(tmp_path):
    rows = [{**row, "who": "You are kind.", "kind": "people"} for row in ROWS]
    more = ", columns: {prompt: question, reply: answer, system: who, topic: kind}"
    found = loaded(tmp_path, rows, more)
    assert {one["system"] for one in found.train.x} == {"You are kind."} and set(found.train.topics) == {"people"}


def by_year(tmp_path, prompts):
    """Of conversations of two years, one of them with a system prompt of its own."""
    talk = lambda i, **more: {"prompt": f"Who is {i}?", "response": f"Ann {i}", **more}  # noqa: E731
    for year, rows in (("2022", [talk(1), talk(2, system="Be brief.")]), ("2023", [talk(3), talk(4)])):
        (tmp_path / f"{year}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lists = '{"2022": 2022.jsonl, "2023": 2023.jsonl}'
    dataset = f"{{train_data: {lists}, test_data: {lists}, system_prompt: {prompts}}}"
    testenv = f"dataset: {dataset}\nscenario: {{name: domain-incremental}}\nmetrics: [EM]\n"
    return load_job(write_job(tmp_path, testenv=testenv, sort_by="[{EM: descend}]")).testenvs[0].dataset


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ("It is now.", ["It is now.", "Be brief.", "It is now.", "It is now."]),
        ('{"2022": It is 2022.}', ["It is 2022.", "Be brief.", None, None]),
    ],
)
def test_conversations_without_a_system_prompt_get_that_of_their_domain(tmp_path, prompts, expected):
    spec = by_year(tmp_path, prompts)
    found = data.load(spec, tmp_path / "cache")
    for part in (found.train, found.test):
        assert [one["system"] for one in part.x] == expected
    assert data.fingerprint(spec, tmp_path) != data.fingerprint(by_year(tmp_path, "Another."), tmp_path)


def test_a_system_prompt_of_no_domain_is_refused(tmp_path):
    found = errors_of(data.load, by_year(tmp_path, '{"2021": It is 2021.}'), tmp_path / "cache")
    assert [code for code, _ in found] == ["unknown-domain"]


def test_a_prompt_and_its_response_are_a_conversation(tmp_path):
    found = loaded(tmp_path, [{"prompt": row["question"], "response": row["answer"]} for row in ROWS])
    assert found.train.y.tolist() == [[row["answer"]] for row in ROWS]


def test_a_column_that_is_not_there_is_told_once_with_a_count(tmp_path):
    found = errors_of(loaded, tmp_path, ROWS, ", columns: {prompt: question, reply: anwser}")
    assert [place.rpartition("/")[2] for _, place in found] == ["train.jsonl:1:1", "test.jsonl:1:1", "test.jsonl:2:1"]


@pytest.mark.parametrize("columns", ["{prompt: question}", "{prompts: question, reply: answer}"])
def test_columns_that_make_no_conversation_are_refused(tmp_path, columns):
    job = exam(tmp_path, ROWS, f", columns: {columns}")
    assert errors_of(load_job, job)


def test_what_columns_name_is_part_of_what_the_data_are(tmp_path):
    there, back = (
        data.fingerprint(spec_of(tmp_path, ROWS, f", columns: {columns}"), tmp_path / "cache")
        for columns in ("{prompt: question, reply: answer}", "{prompt: answer, reply: question}")
    )
    assert there != back


BAD = [
    {"conversations": [{"from": "human", "value": "Who?"}, {"from": "gpt", "value": "Ann"}]},
    {"conversations": [{"from": "human", "value": "And?"}]},
    {"conversations": []},
    {"conversations": [{"from": "human", "value": "Who is it?"}, {"from": "gpt", "value": "Bo"}]},
]


def test_records_that_are_no_conversation_are_left_out_and_counted(tmp_path):
    found = loaded(tmp_path, BAD, ", skip_bad: true")
    assert found.train.y.tolist() == [["Ann"], ["Bo"]]
    told = data.check_dataset(spec_of(tmp_path, BAD, ", skip_bad: true"), tmp_path / "other cache", 60).problems
    assert all(one.warning for one in told)
    assert any("2 of 4 records are left out by skip_bad" in str(one) for one in told)


def test_without_skip_bad_they_are_errors_and_nothing_left_is_one_too(tmp_path):
    assert errors_of(loaded, tmp_path, BAD)
    assert errors_of(loaded, tmp_path, BAD[1:3], ", skip_bad: true")


def test_equal_errors_of_many_lines_are_one_with_a_count(tmp_path):
    found = errors_of(loaded, tmp_path, [BAD[2]] * 9)
    assert [place.rpartition("/")[2] for _, place in found] == [
        "train.jsonl:1:19", "test.jsonl:1:19", "test.jsonl:2:19",
    ]  # fmt: skip
