"""Instruction data as people have them: files in the containers and forms of the field's own data sets."""

import gzip
import json
from pathlib import Path

import pytest

import ianvs
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from tests.errors import errors_of, printed
from tests.jobs import write_job

pytestmark = pytest.mark.usefixtures("in_own_folder")

pyarrow = pytest.importorskip("pyarrow")

CLIPS = {
    "question": "Natalia sold clips to 48 of her friends in April, and then she sold half as many in May. How many?",
    "answer": "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nNatalia sold 48+24 = <<48+24=72>>72 clips.\n#### 72",
}
MMLU = {
    "question": "Which planet is the largest?",
    "subject": "astronomy",
    "choices": ["Mars", "Jupiter", "Venus", "Earth"],
}
LINES = "Which planet is the largest?\nA. Mars\nB. Jupiter\nC. Venus\nD. Earth\nAnswer:"
ARC = {
    "id": "Mercury_7220990",
    "question": "Which factor will most likely cause a person to develop a fever?",
    "choices": {"text": ["a muscle relaxing", "a bacterial population"], "label": ["1", "2"]},
    "answerKey": "2",
}
SQUAD = {
    "id": "5733be284776f41900661182",
    "title": "University_of_Notre_Dame",
    "context": "The grotto is a replica of the one at Lourdes, France.",
    "question": "Where is the original?",
    "answers": {"text": ["Lourdes, France", "Lourdes", "Lourdes"], "answer_start": [38, 38, 38]},
}
ALPACA = {"instruction": "Give three tips for staying healthy.", "input": "", "output": "Eat, sleep, move."}
CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
SAID_ALPACA = (None, [ALPACA["instruction"]], [ALPACA["output"]])
SAID_CHAT = (None, ["Hi"], ["Hello."])


def loaded(folder: Path, *paths: Path, **more: object):
    sources = tuple(SourceSpec(path, "data") for path in paths)
    return data.load(DatasetSpec(train=sources, test=sources, **more), folder / "cache")


def said(samples) -> list[tuple[str | None, list[str], list[str]]]:
    pairs = zip(samples.x, samples.y, strict=True)
    return [(asked["system"], asked["user"], replies) for asked, replies in pairs]


def jsonl(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def packed(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content))
    else:
        with pyarrow.output_stream(str(path), compression="zstd") as file:
            file.write(content)
    return path


# --- containers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz", "a.jsonl.zst", "a.json.zst"])
def test_compressed_json_is_read_as_it_was_before(tmp_path, name):
    content = jsonl(CHAT, CHAT) if "jsonl" in name else json.dumps([CHAT, CHAT], indent=1).encode()
    found = loaded(tmp_path, packed(tmp_path / name, content))
    assert said(found.train) == [SAID_CHAT] * 2 and found.train.ids.tolist() == ["a/000000", "a/000001"]


def test_a_slip_in_a_compressed_file_is_told_with_its_line(tmp_path):
    path = packed(tmp_path / "a.jsonl.gz", jsonl(CHAT, {"messages": [CHAT["messages"][0]]}))
    assert errors_of(loaded, tmp_path, path) == [("invalid-record", "a.jsonl.gz:2:14")]


def test_what_is_not_compressed_or_cut_off_is_refused(tmp_path):
    whole = gzip.compress(jsonl(CHAT))
    for content in (jsonl(CHAT), whole[: len(whole) // 2]):
        (tmp_path / "a.jsonl.gz").write_bytes(content)
        assert errors_of(loaded, tmp_path, tmp_path / "a.jsonl.gz") == [("unreadable-data", "a.jsonl.gz")]
    (tmp_path / "a.json.zst").write_bytes(jsonl(CHAT))
    assert errors_of(loaded, tmp_path, tmp_path / "a.json.zst") == [("unreadable-data", "a.json.zst")]


def test_a_table_of_numbers_may_be_tsv_or_compressed(tmp_path):
    (tmp_path / "a.tsv").write_text("height\twidth\tlabel\n1\t2\tcat\n3\t4\tdog\n")
    packed(tmp_path / "b.csv.gz", b"height,width,label\n1,2,cat\n3,4,dog\n")
    for name in ("a.tsv", "b.csv.gz"):
        found = loaded(tmp_path, tmp_path / name)
        assert found.train.x.tolist() == [[1, 2], [3, 4]] and found.classes == ("cat", "dog")


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
def test_alpaca_in_a_table(tmp_path, name, mark):
    rows = [["instruction", "input", "output"], ["Name, in order:", "two\nplanets", "Mars; Venus"], ["Hi", "", "Hello"]]
    text = "\n".join(mark.join(f'"{cell}"' for cell in row) for row in rows)
    (tmp_path / name).write_text(text)
    assert said(loaded(tmp_path, tmp_path / name).train) == [
        (None, ["Name, in order:\ntwo\nplanets"], ["Mars; Venus"]),
        (None, ["Hi"], ["Hello"]),
    ]


def test_a_slip_in_a_table_of_conversations_is_told_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("instruction,output\nHi,Hello\nBye,\n")
    assert errors_of(loaded, tmp_path, tmp_path / "a.csv") == [("invalid-record", "a.csv:3:1")]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_messages_in_a_table_of_arrow(tmp_path, name):
    """Where a message lacks a field that another one has, arrow says null."""
    call = {"id": "1", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    with_call = [
        {"role": "user", "content": "How is it in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "4 degrees"},
        {"role": "assistant", "content": "Cold."},
    ]
    table = pyarrow.Table.from_pylist([{"messages": with_call}, CHAT])
    write_table(table, tmp_path / name)
    first, second = said(loaded(tmp_path, tmp_path / name).train)
    assert second == SAID_CHAT
    assert first[1:] == (
        ["How is it in Oslo?", "<tool_response>\n4 degrees\n</tool_response>"],
        ['<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>', "Cold."],
    )


def write_table(table, path: Path) -> None:
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def test_a_folder_of_save_to_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([CHAT, CHAT]).save_to_disk(str(tmp_path / "set"))
    assert said(loaded(tmp_path, tmp_path / "set").train) == [SAID_CHAT] * 2


def hub(folder: Path, below: str) -> Path:
    """A dataset as huggingface_hub keeps it: files are links to blobs."""
    root = folder / "datasets--openai--clips"
    snapshot = root / "snapshots" / "abc123" / below
    for made in (root / "refs", root / "blobs", snapshot):
        made.mkdir(parents=True)
    (root / "refs" / "main").write_text("abc123")
    named = {
        "train-00000-of-00002": ALPACA,
        "train-00001-of-00002": {**ALPACA, "output": "Run."},
        "test-00000-of-00001": ALPACA,
    }
    for name, record in named.items():
        write_table(pyarrow.Table.from_pylist([record]), root / "blobs" / f"{name}.parquet")
        (snapshot / f"{name}.parquet").symlink_to(root / "blobs" / f"{name}.parquet")
    return root


@pytest.mark.parametrize("below", ["", "data"])
def test_a_dataset_in_the_cache_of_the_hub(tmp_path, below):
    found = data.load(DatasetSpec(root=hub(tmp_path, below)), tmp_path / "cache")
    assert said(found.train) == [SAID_ALPACA, (*SAID_ALPACA[:2], ["Run."])] and said(found.test) == [SAID_ALPACA]


def test_a_folder_with_the_files_of_a_split(tmp_path):
    (tmp_path / "set").mkdir()
    for number in range(2):
        write_table(pyarrow.Table.from_pylist([ALPACA]), tmp_path / "set" / f"part-{number}.parquet")
    assert said(loaded(tmp_path, tmp_path / "set").train) == [SAID_ALPACA] * 2


# --- forms --------------------------------------------------------------------------------------------------------

# [what a record is, (system, user, replies), further right replies]
FORMS = [
    (CLIPS, (None, [CLIPS["question"]], [CLIPS["answer"]]), []),
    ({**MMLU, "answer": 1}, (None, [LINES], ["B"]), []),
    ({**MMLU, "answer": "B"}, (None, [LINES], ["B"]), []),
    ({**MMLU, "answer": "Jupiter"}, (None, [LINES], ["B"]), []),
    (ARC, (None, [f"{ARC['question']}\n1. a muscle relaxing\n2. a bacterial population\nAnswer:"], ["2"]), []),
    (SQUAD, (None, [f"{SQUAD['context']}\nWhere is the original?"], ["Lourdes, France"]), ["Lourdes"]),
    ({"question": "who won?", "answer": ["Ann", "Ann Lee"]}, (None, ["who won?"], ["Ann"]), ["Ann Lee"]),
    (
        {"Definition": ["Answer."], "input": "2 + 2?", "output": ["4", "four"]},
        (None, ["Answer.\n2 + 2?"], ["4"]),
        ["four"],
    ),
    ({"text": "Once upon a time."}, (None, [], ["Once upon a time."]), []),
    ({"text": "Once.", "meta": {"set": "Books"}, "id": 4}, (None, [], ["Once."]), []),
    (
        {"messages": [{"role": "developer", "content": "Be brief."}, *CHAT["messages"]]},
        ("Be brief.", ["Hi"], ["Hello."]),
        [],
    ),
    ({**CHAT, "text": "<|user|>Hi<|assistant|>Hello."}, SAID_CHAT, []),
]


@pytest.mark.parametrize(("record", "expected", "further"), FORMS)
def test_a_record_of_a_known_data_set_is_read(tmp_path, record, expected, further):
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(record))
    train = loaded(tmp_path, path).train
    assert said(train) == [expected]
    assert (train.references.tolist() if further else train.references) == ([further] if further else None)


@pytest.mark.parametrize("record", [row[0] for row in FORMS[:3] + FORMS[4:9]])
def test_a_record_of_a_known_data_set_is_read_from_parquet(tmp_path, record):
    record = {name: value for name, value in record.items() if name != "id"}  # one stands there once
    write_table(pyarrow.Table.from_pylist([record, record]), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_bytes(jsonl(record, record))
    assert said(loaded(tmp_path, tmp_path / "a.parquet").train) == said(loaded(tmp_path, tmp_path / "b.jsonl").train)


OTHERS = [
    ({"question": "Is it good?", "answer": "yes"}, {}, "text"),
    ({"text": "It is good.", "label": "yes"}, {"input": "text"}, "text"),
    ({"review": "It is good.", "stars": "5"}, {"input": "review", "label": "stars"}, "text"),
    ({"text": "It is good.", "answer": "yes"}, {"input": "text", "label": "answer"}, "text"),
    ({"a": 1.0, "b": 2.0, "label": "cat"}, {}, "classification"),
]


@pytest.mark.parametrize(("record", "columns", "kind"), OTHERS)
def test_other_data_stay_what_they_were(tmp_path, record, columns, kind):
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(record, record))
    assert loaded(tmp_path, path, **columns).kind == kind


def test_several_messages_of_tools_are_one_turn(tmp_path):
    calls = [{"function": {"name": name, "arguments": {"n": 1}}} for name in ("a", "b")]
    turns = [
        {"from": "human", "value": "Do it."},
        {"from": "function_call", "value": '{"name": "a"}'},
        {"from": "observation", "value": "done"},
        {"from": "gpt", "value": "It is done."},
    ]
    messages = [
        {"role": "user", "content": "Both?"},
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "content": "1", "tool_call_id": "x"},
        {"role": "tool", "content": "2"},
        {"role": "assistant", "content": "3"},
    ]
    (tmp_path / "a.jsonl").write_bytes(jsonl({"conversations": turns}, {"messages": messages}))
    first, second = said(loaded(tmp_path, tmp_path / "a.jsonl").train)
    response = "<tool_response>\n{}\n</tool_response>"
    assert first == (
        None,
        ["Do it.", response.format("done")],
        ['<tool_call>\n{"name": "a"}\n</tool_call>', "It is done."],
    )
    assert second[1] == ["Both?", f"{response.format(1)}\n{response.format(2)}"]
    assert second[2][0].startswith(
        'I look.\n<tool_call>\n{"name": "a", "arguments": {"n": 1}}\n</tool_call>\n<tool_call>'
    )


def weighted(first: object, second: object) -> dict[str, object]:
    hello, again = CHAT["messages"], [{"role": "user", "content": "And?"}, {"role": "assistant", "content": "Bye."}]
    return {"messages": [hello[0], {**hello[1], "weight": first}, again[0], {**again[1], "weight": second}]}


def test_a_reply_of_weight_0_is_handed_on_as_one_not_to_be_learnt(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl(weighted(0, 1), weighted(1, None), weighted(True, False)))
    found = loaded(tmp_path, tmp_path / "a.jsonl")
    assert [one.get("unlearnt") for one in found.train.x] == [[0], None, [1]]
    printed("\n".join(found.notes))


def test_weights_and_references_change_what_the_data_are(tmp_path):
    """They were left out up to ianvs 0.2: stored results are of other data."""
    prints = set()
    for number, record in enumerate((weighted(1, 1), weighted(0, 1))):
        path = tmp_path / "a.jsonl"
        path.write_bytes(jsonl(record))
        found = data.check_dataset(DatasetSpec(train=(SourceSpec(path, "data"),), test=(SourceSpec(path, "data"),)))
        prints.add(loaded(tmp_path / str(number), path).fingerprint)
        assert found.problems == []
    assert len(prints) == 2


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (weighted(0, 0), [("invalid-record", "a.jsonl:1:1")]),
        (weighted(0.5, 1), [("invalid-record", "a.jsonl:1:103")]),
        (
            {**MMLU, "answer": "E"},
            [("invalid-record", "a.jsonl:1:130")],
        ),
        ({**MMLU, "answer": 4}, [("invalid-record", "a.jsonl:1:130")]),
        ({**MMLU, "choices": [], "answer": 0}, [("invalid-record", "a.jsonl:1:81")]),
        ({**SQUAD, "answers": {"text": []}}, [("invalid-record", "a.jsonl:1:191")]),
        ({"question": "a", "answer": ["b", 3]}, [("invalid-record", "a.jsonl:1:29")]),
        (
            {"messages": [CHAT["messages"][0], {"role": "tool", "content": "4"}]},
            [("invalid-record", "a.jsonl:1:50")],
        ),
        (
            {"messages": [CHAT["messages"][0], {"role": "assistant", "tool_calls": [{"function": {}}]}]},
            [("invalid-record", "a.jsonl:1:50")],
        ),
        (
            {"source": "Guten Tag.", "target_text": "Hello."},
            [("invalid-record", "a.jsonl:1:1")],
        ),
    ],
)
def test_what_is_refused_is_told_with_its_line(tmp_path, record, expected):
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(record))
    assert errors_of(loaded, tmp_path, path) == expected


LEARNER = """
algorithm:
  paradigm_type: incrementallearning
  modules:
    - {type: basemodel, name: Sequential, url: ianvs.testalgorithms.language.sequential.basemodel}
"""


def test_validate_refuses_a_learner_of_conversations_what_is_none(tmp_path):
    pytest.importorskip("transformers")
    testenv = """
    dataset: {train_data: qa.jsonl, test_data: qa.jsonl}
    scenario: {name: instance-incremental, rounds: 2}
    metrics: [reply_exact_match]
    """
    path = write_job(
        tmp_path,
        plugin="class Never: ...",
        name="Never",
        hyperparameters="",
        testenv=testenv,
        sort_by="[{reply_exact_match: descend}]",
    )
    (tmp_path / "algorithm.yaml").write_text(LEARNER)
    (tmp_path / "qa.jsonl").write_bytes(jsonl(*({"question": f"Is {n} even?", "answer": "yes"} for n in range(8))))
    assert errors_of(ianvs.validate, path) == [("refused-arguments", "algorithm.yaml:5:31")]
