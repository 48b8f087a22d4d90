"""Conversations: the forms they come in, what a learner is handed, and what is wrong with a file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.load import load_job
from ianvs.config.spec import DatasetSpec, ScenarioSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.records import read_records
from ianvs.exam.scenarios import build_exam
from tests.errors import errors_of, printed
from tests.jobs import write_job
from tests.packages import install


def said(*turns, system=None):
    """A conversation in the `messages` form: user, assistant, user, assistant, ..."""
    roles = ("user", "assistant") * len(turns)
    messages = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return {"messages": [{"role": "system", "content": system}, *messages] if system else messages}


def written(path, records):
    path.write_text(records if isinstance(records, str) else json.dumps(records, indent=1, ensure_ascii=False))
    return SourceSpec(path, "data")


def loaded(tmp_path, records, name="train.json", **settings):
    source = written(tmp_path / name, records)
    spec = DatasetSpec(train=(source,), test=(source,), **settings)
    assert data.check_dataset(spec).problems == []
    return data.load(spec, tmp_path / "cache")


def one(tmp_path, record):
    """(system, user, replies) of a file with one record."""
    dataset = loaded(tmp_path, [record])
    return dataset.train.x[0]["system"], dataset.train.x[0]["user"], dataset.train.y[0]


def test_conversations_may_have_roles_and_contents(tmp_path):
    turns = said("why?", "so", system="be short")["messages"]
    assert one(tmp_path, {"conversations": turns}) == ("be short", ["why?"], ["so"])


def refusals(tmp_path, records, name="train.json", **settings):
    source = written(tmp_path / name, records)
    return errors_of(data.load, DatasetSpec(train=(source,), test=(source,), **settings), tmp_path / "cache")


# --- forms ------------------------------------------------------------------------------------------------------------


def test_messages_of_several_turns_become_user_and_replies_in_order(tmp_path):
    record = said("Who leads?", "Ann.", "Since when?", "2022.", system="Answer for 2022.")
    assert one(tmp_path, record) == ("Answer for 2022.", ["Who leads?", "Since when?"], ["Ann.", "2022."])


QUIZ = """
from ianvs.exam.data.conversation_forms import Form, text_at


def turns(record):
    return None, [text_at(record, "riddle", ())], [text_at(record, "solution", ())]


FORMS = (Form("quiz", ("riddle",), turns),)
"""


def test_a_form_of_an_installed_package(tmp_path, monkeypatch):
    points = "[ianvs.conversation_forms]\nquiz = of_riddles:FORMS\nbroken = tomorrow:FORMS\n"
    install(tmp_path / "installed", monkeypatch, "of_riddles", QUIZ, points)
    assert one(tmp_path, {"riddle": "What has teeth?", "solution": "A comb."}) == (
        None,
        ["What has teeth?"],
        ["A comb."],
    )
    assert one(tmp_path, said("a", "b")) == (None, ["a"], ["b"])


def test_sharegpt_with_human_and_assistant_pairs(tmp_path):
    record = {"system": "S", "conversation": [{"human": "a", "assistant": "b"}, {"human": "c", "assistant": "d"}]}
    assert one(tmp_path, record) == ("S", ["a", "c"], ["b", "d"])


def test_alpaca_puts_the_input_below_the_instruction(tmp_path):
    record = {"instruction": "Translate.", "input": "Haus", "output": "house"}
    assert one(tmp_path, record) == (None, ["Translate.\nHaus"], ["house"])
    assert one(tmp_path, {"instruction": "Hi", "input": "", "output": "Hello"})[1] == ["Hi"]


def test_query_and_response_follow_their_history(tmp_path):
    record = {"system": "", "query": "c", "response": "d", "history": [["a", "b"]]}
    assert one(tmp_path, record) == (None, ["a", "c"], ["b", "d"])


def test_coin_files_lose_the_mark_of_a_picture_that_is_ignored_and_it_is_noted(tmp_path):
    question = "<image>\nWhat is it?\nAnswer with one word."
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": "a cat"}]
    train = written(tmp_path / "train.json", [{"id": "1", "image": "a.jpg", "conversations": turns}])
    asked = [
        {"question_id": 7, "image": "b.jpg", "text": question, "answer": "a dog"},
        {"question_id": 8, "text": "Where?", "answer_bbox": [0.1, 0.25]},
    ]
    spec = DatasetSpec(train=(train,), test=(written(tmp_path / "test.json", asked),), pictures="ignore")
    dataset = data.load(spec, tmp_path / "cache")
    assert dataset.train.x[0]["user"] == ["What is it?\nAnswer with one word."]
    assert dataset.test.y.tolist() == [["a dog"], ["[0.1, 0.25]"]]
    assert [note.split(" of ")[0] for note in dataset.notes] == ["1", "1"]


def test_a_picture_without_a_mark_in_the_text_is_noted_too(tmp_path):
    records = [{"image": "a.jpg", **said("a", "b")}, {"image": None, **said("c", "d")}]
    printed("\n".join(loaded(tmp_path, records, pictures="ignore").notes))


def test_a_text_that_speaks_of_image_marks_stays_as_it_is(tmp_path):
    assert one(tmp_path, said("What does <image> mean?", "A tag."))[1] == ["What does <image> mean?"]
    assert loaded(tmp_path, [said("a", "b")]).notes == ()


def test_lines_of_json_give_the_same_conversations_as_a_list(tmp_path):
    records = [said("a", "b\nc"), {"query": "é", "response": "f"}]
    as_list = loaded(tmp_path, records)
    as_lines = loaded(tmp_path, "\n\n".join(map(json.dumps, records)) + "\n", name="train.jsonl")
    assert as_list.train.x.tolist() == as_lines.train.x.tolist()
    assert as_list.train.y.tolist() == as_lines.train.y.tolist() == [["b\nc"], ["f"]]


def test_questions_with_answers_stay_texts(tmp_path):
    assert loaded(tmp_path, [{"question": "q", "answer": "a"}]).kind == "text"


# --- what a learner is handed -----------------------------------------------------------------------------------------


def test_a_learner_is_handed_no_answer_to_predict_from(tmp_path):
    dataset = loaded(tmp_path, [said("Who?", "SECRET", "And?", "SECRET too")])
    handed = dataset.test.x[0]
    assert set(handed) == {"id", "system", "user"}
    assert "SECRET" not in json.dumps(handed)


def test_an_id_tells_no_more_than_what_the_user_said(tmp_path):
    dataset = loaded(tmp_path, [said("a", "b"), said("c", "d"), said("a", "e"), said("a", "b", system="S")])
    first, second, again, prompted = (x["id"] for x in dataset.train.x)
    assert first == again  # whichever round it is from, whatever the answer
    assert len({first, second, prompted}) == 3
    turned = loaded(tmp_path, [said("c", "x"), said("a", "y")], name="other.json")
    assert [x["id"] for x in turned.train.x] == [second, first]


def test_equally_many_turns_do_not_become_a_matrix(tmp_path):
    dataset = loaded(tmp_path, [said("a", "b"), said("c", "d")])
    assert dataset.train.x.shape == dataset.train.y.shape == (2,)
    assert (dataset.kind, dataset.classes) == ("conversation", ())


def test_topics_are_kept_beside_the_samples(tmp_path):
    dataset = loaded(tmp_path, [said("a", "b") | {"topic": "sports"}, said("c", "d")])
    assert dataset.train.topics.tolist() == ["sports", ""]
    assert loaded(tmp_path, [said("a", "b")]).train.topics is None


def test_a_changed_reply_changes_the_fingerprint(tmp_path):
    prints = {loaded(tmp_path, [said("a", reply)], name=f"{reply}.json").fingerprint for reply in ("b", "c", "b2")}
    assert len(prints) == 3


# --- rounds -----------------------------------------------------------------------------------------------------------


def domains_of(exam):
    return [(round_.name, len(round_.train)) for round_ in exam.rounds], [(t.name, len(t.test)) for t in exam.tests]


def test_one_file_per_round_gives_one_round_per_domain(tmp_path):
    first = written(tmp_path / "2022.json", [said("a", "b"), said("c", "d")])
    second = written(tmp_path / "2023.json", [said("a", "x")])
    sources = tuple(SourceSpec(s.path, "data", domain=s.path.stem) for s in (first, second))
    dataset = data.load(DatasetSpec(train=sources, test=sources), tmp_path / "cache")
    exam = build_exam(dataset, ScenarioSpec("domain-incremental"))
    assert domains_of(exam) == ([("2022", 2), ("2023", 1)],) * 2


def test_a_field_names_the_round(tmp_path):
    records = [said("a", "b") | {"year": 2022}, said("a", "c") | {"year": 2023}, said("d", "e") | {"year": 2022}]
    dataset = loaded(tmp_path, records, domain="year")
    exam = build_exam(dataset, ScenarioSpec("domain-incremental"))
    assert domains_of(exam) == ([("2022", 2), ("2023", 1)],) * 2


def test_conversations_arrive_in_batches_too(tmp_path):
    dataset = loaded(tmp_path, [said(str(i), "b") for i in range(7)])
    exam = build_exam(dataset, ScenarioSpec("instance-incremental", {"rounds": 3}), incremental_rounds=3)
    assert sorted(i for round_ in exam.rounds for i in round_.train) == list(range(7))


def test_a_testenv_may_name_the_field(tmp_path):
    written(tmp_path / "news.json", [said("a", "b") | {"year": 2022}, said("a", "c") | {"year": 2023}])
    testenv = """
    dataset: {train_data: ./news.json, test_data: ./news.json, domain: year}
    scenario: {name: domain-incremental}
    metrics: [{name: lexical_similarity}]
    """
    job = load_job(write_job(tmp_path, testenv=testenv, sort_by="[{lexical_similarity: descend}]"))
    assert data.load(job.testenvs[0].dataset, tmp_path / "cache").train.domains.tolist() == ["2022", "2023"]


def test_a_field_that_no_record_has_is_told_with_the_closest_one(tmp_path):
    assert refusals(tmp_path, [said("a", "b") | {"year": 2022}], domain="yaer") == [("missing-column", "train.json")]


def test_a_field_beside_a_domain_for_each_file_is_refused(tmp_path):
    source = SourceSpec(written(tmp_path / "2022.json", [said("a", "b") | {"year": 2022}]).path, "data", domain="2022")
    assert errors_of(data.load, DatasetSpec(train=(source,), test=(source,), domain="year"), tmp_path / "cache") == [
        ("conflicting-keys", "")
    ]


def test_a_field_of_a_source_without_fields_is_refused(tmp_path):
    assert refusals(tmp_path, "a.png 1", name="index.txt", domain="year") == [("unfit-key", "")]


def test_a_record_without_the_field_is_told_with_its_line(tmp_path):
    lines = [json.dumps(said("a", "b") | {"year": 2022}), json.dumps(said("a", "b"))]
    assert refusals(tmp_path, "\n".join(lines), "train.jsonl", domain="year") == [("invalid-record", "train.jsonl:2:1")]


def test_a_column_of_a_table_may_be_named_too(tmp_path):
    rows = [{"question": "q", "answer": "a", "era": "old"}, {"question": "q", "answer": "b", "era": "new"}]
    assert loaded(tmp_path, rows, domain="era").train.domains.tolist() == ["old", "new"]
    assert refusals(tmp_path, rows, domain="ear") == [("missing-column", "")]


# --- what is wrong ----------------------------------------------------------------------------------------------------

BROKEN = """[
 {"messages": [
   {"role": "user", "content": "a"},
   {"role": "assistant", "content": "b"}
 ]},
 {"messages": [
   {"role": "user", "content": "a"},
   %s
 ]}
]"""


@pytest.mark.parametrize(
    ("line", "place", "code"),
    [
        ('{"role": "asistant", "content": "b"}', "8:13", "invalid-record"),
        ('{"role": "narrator", "content": "b"}', "8:13", "invalid-record"),
        ('{"role": "user", "content": "b"}', "8:4", "invalid-record"),
        ('{"role": "system", "content": "b"}', "8:4", "invalid-record"),
        ('{"role": "assistant", "content": 5}', "8:37", "invalid-record"),
        ('{"role": "assistant", "text": "b"}', "8:4", "invalid-record"),
        ('["assistant", "b"]', "8:4", "invalid-record"),
        ('{"role": "assistant", "content": " "}', "6:2", "invalid-record"),
        ('{"role": "assistant", "content": "b"},,', "8:42", "unreadable-data"),
    ],
)
def test_a_slip_is_told_with_line_and_column(tmp_path, line, place, code):
    assert refusals(tmp_path, BROKEN % line) == [(code, f"train.json:{place}")]


def test_a_conversation_without_an_assistant_turn_is_told_with_its_line(tmp_path):
    records = "\n".join(map(json.dumps, [said("a", "b"), said("only the user")]))
    assert refusals(tmp_path, records, "train.jsonl") == [("invalid-record", "train.jsonl:2:14")]


def test_a_conversation_that_ends_with_the_user_is_refused(tmp_path):
    assert refusals(tmp_path, [said("a", "b", "c")]) == [("invalid-record", "train.json:12:4")]


def test_all_problems_of_a_file_are_told_at_once(tmp_path):
    assert refusals(tmp_path, [said("a"), said("a", "b"), said("c")]) == [
        ("invalid-record", "train.json:3:15"),
        ("invalid-record", "train.json:23:15"),
    ]


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ("", [("empty-dataset", "train.json")]),
        ("[]", [("empty-dataset", "train.json")]),
        ('{"messages": []}', [("invalid-record", "train.json:1:1")]),
        (
            '{"query": "a", "response": "b"}\n{"query": "c", "response": "d"}',
            [("unreadable-data", "train.json:2:1")],
        ),
        ('[{"query": "a", "response": "b"}', [("unreadable-data", "train.json:1:33")]),
        ('[{"query": "a", "response": "b"}] x', [("unreadable-data", "train.json:1:35")]),
        ('[{"query": "a"', [("unreadable-data", "train.json:1:15")]),
        ([said("a", "b"), {"prompt": "c"}], [("invalid-record", "train.json:14:2")]),
        ([said("a", "b"), {"mesages": []}], [("invalid-record", "train.json:14:2")]),
        ([{"mesages": [{"role": "user", "content": "a"}]}], [("invalid-record", "train.json:2:2")]),
        ([said("a", "b"), "c"], [("invalid-record", "train.json:14:2")]),
        ([said("a", "b") | {"query": "c", "response": "d"}], [("ambiguous-data", "train.json:14:15")]),
        ([{"messages": "a"}], [("invalid-record", "train.json:3:15")]),
        ([{"messages": []}], [("invalid-record", "train.json:3:15")]),
        ([{"instruction": "a", "input": "b"}], [("invalid-record", "train.json:2:2")]),
        ([{"query": "a", "response": "b", "history": [["c"]]}], [("invalid-record", "train.json:6:4")]),
    ],
)
def test_what_is_no_conversation_is_refused_with_the_reason(tmp_path, records, why):
    assert refusals(tmp_path, records) == why


def test_settings_of_labels_have_no_meaning_for_conversations(tmp_path):
    assert refusals(tmp_path, [said("a", "b")], classes=("x", "y")) == [("unfit-key", "")]
    assert refusals(tmp_path, [said("a", "b")], label="answer") == [("unfit-key", "")]


def test_a_test_part_of_another_kind_is_refused(tmp_path):
    train = written(tmp_path / "train.json", [said("a", "b")])
    test = written(tmp_path / "test.json", [{"question": "q", "answer": "a"}])
    assert errors_of(data.load, DatasetSpec(train=(train,), test=(test,)), tmp_path / "cache") == [
        ("mismatched-data", "test.json")
    ]


# --- records ----------------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(VALUES, min_size=1, max_size=5), indent=st.none() | st.integers(0, 3), data=st.data())
def test_every_part_of_a_record_is_found_where_it_stands(tmp_path_factory, values, indent, data):
    path = tmp_path_factory.mktemp("records") / "r.json"
    path.write_text(json.dumps(values, indent=indent), encoding="utf-8")
    records = read_records(path)
    assert list(records.values) == values
    lines = records.text.split("\n")
    for index, value in enumerate(values):
        steps = []
        while isinstance(value, list | dict) and value:
            steps.append(data.draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value)))))
            value = value[steps[-1]]
        place = records.place(index, *steps)
        rest = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
        assert json.JSONDecoder().raw_decode(rest)[0] == value
        assert records.lines[index] == records.place(index).line
