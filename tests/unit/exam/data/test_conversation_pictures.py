"""Pictures in conversations: how forms name them, what is refused with file and line, and what a learner is handed."""

import base64
import copy
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ianvs.base.lazy_images import Picture, Pictures
from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.conversation_forms import Form
from ianvs.exam.data.conversation_pictures import PictureFiles
from ianvs.exam.data.data_warnings import find_data_warnings
from tests.errors import errors_of, located, printed, recorded

RED, BLUE = np.full((5, 7, 3), (200, 10, 10), np.uint8), np.full((4, 4, 3), (10, 10, 200), np.uint8)


def png(picture: np.ndarray) -> bytes:
    held = io.BytesIO()
    Image.fromarray(picture).save(held, "PNG")
    return held.getvalue()


def written(folder: Path, records: object, name: str = "train.json") -> Path:
    for file, picture in (("red.png", RED), ("blue.png", BLUE)):
        (folder / file).write_bytes(png(picture))
    (folder / "deep.png").write_bytes(png(np.full((5, 7), 4095, np.uint16)))
    (folder / "broken.png").write_bytes(b"this is no picture")
    path = folder / name
    text = json.dumps(records, indent=1) if name.endswith("json") else "\n".join(map(json.dumps, records))
    path.write_text(text)
    return path


def loaded(folder: Path, records: object, name: str = "train.json", **keys: object) -> data.Dataset:
    source = SourceSpec(written(folder, records, name), "data")
    return data.load(DatasetSpec(train=(source,), test=(source,), **keys), folder / "cache")


def llava(text: str, **beside: object) -> dict[str, object]:
    return {**beside, "conversations": [{"from": "human", "value": text}, {"from": "gpt", "value": "a cat"}]}


def message(*parts: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": list(parts)}, {"role": "assistant", "content": "a cat"}]}


URL = "data:image/png;base64," + base64.b64encode(png(BLUE)).decode()
TEXT = {"type": "text", "text": "What?"}
FORMS = {
    "CoIN": (llava("<image>\nWhat?", image="red.png"), [RED]),
    "a list": (llava("<image>\n<image>\nWhat?", image=["red.png", "blue.png"]), [RED, BLUE]),
    "images": (llava("<image>\nWhat?", images=["blue.png"]), [BLUE]),
    "CoIN, test": ({"question_id": 7, "image": "red.png", "text": "What?", "answer": "a cat"}, [RED]),
    "parts": (message({"type": "image", "image": "red.png"}, TEXT), [RED]),
    "parts by path": (message({"type": "image", "path": "blue.png"}, TEXT), [BLUE]),
    "parts of OpenAI": (message({"type": "image_url", "image_url": {"url": URL}}, TEXT), [BLUE]),
    "parts and a field": ({"images": ["red.png"], **message({"type": "image"}, TEXT)}, [RED]),
}


@pytest.mark.parametrize(("record", "pictures"), FORMS.values(), ids=FORMS)
def test_every_form_brings_its_pictures_in_the_order_of_their_marks(tmp_path, record, pictures):
    sample = loaded(tmp_path, [record]).train.x[0]
    assert sample["user"] == ["<image>\n" * len(pictures) + "What?"]
    assert len(sample["pictures"]) == len(pictures)
    for found, right in zip(sample["pictures"], pictures, strict=True):
        assert found.dtype == np.uint8 and np.array_equal(found, right)


def test_pictures_of_several_turns_keep_their_order(tmp_path):
    turns = [("<image>\nThis?", "red"), ("And <image> that?", "blue")]
    said = [{"from": who, "value": text} for turn in turns for who, text in zip(("human", "gpt"), turn, strict=True)]
    sample = loaded(tmp_path, [{"image": ["red.png", "blue.png"], "conversations": said}]).train.x[0]
    assert [picture.shape for picture in sample["pictures"]] == [RED.shape, BLUE.shape]


def test_a_form_may_name_its_pictures_itself(tmp_path):
    written(tmp_path, [])
    form = Form("own", ("q",), lambda record: (None, [f"<image>{record['q']}"], ["a"], [record["file"]]))
    said = form.read({"q": "What?", "file": "blue.png"}, PictureFiles(tmp_path))
    assert np.array_equal(said.pictures[0].pixels, BLUE)


WRONG = {
    "more marks": (llava("<image>\n<image>\nWhat?", image="red.png"), '"red.png"', "mismatched-data"),
    "fewer marks": (llava("What?", image="red.png"), '"red.png"', "mismatched-data"),
    "missing": (llava("<image>\nWhat?", image="green.png"), '"green.png"', "missing-file"),
    "unreadable": (llava("<image>\nWhat?", image="broken.png"), '"broken.png"', "unreadable-data"),
    "more than 8 bits": (llava("<image>\nWhat?", image="deep.png"), '"deep.png"', "unreadable-data"),
    "network": (llava("<image>\nWhat?", image="https://a.org/b.png"), '"https', "invalid-path"),
    "data": (llava("<image>\nWhat?", image="data:image/png;base64,!!"), '"data', "invalid-record"),
    "data, no picture": (llava("<image>\nWhat?", image="data:;base64,AAAA"), '"data', "unreadable-data"),
    "a number": (llava("<image>\nWhat?", image=3), "3", "invalid-record"),
}


@pytest.mark.parametrize(("record", "at", "code"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_file_and_line_before_anything_is_trained(tmp_path, record, at, code):
    path = written(tmp_path, [llava("<image>\nWhat?", image="red.png"), record])
    spec = DatasetSpec(train=(SourceSpec(path, "data"),), test=(SourceSpec(path, "data"),))
    problems = data.check_dataset(spec, tmp_path / "cache").problems
    problem = problems[0]
    assert (located if code == "unreadable-data" else recorded)([problem])[0][0] == code
    assert path.read_text().splitlines()[problem.place.line - 1][problem.place.column - 1 :].startswith(at)


def test_pictures_are_looked_for_in_the_folder_that_the_dataset_names(tmp_path):
    written(tmp_path, [])
    (tmp_path / "elsewhere").mkdir()
    records = [llava("<image>\nWhat?", image="red.png")]
    (tmp_path / "elsewhere" / "a.jsonl").write_text(json.dumps(records[0]))
    source = SourceSpec(tmp_path / "elsewhere" / "a.jsonl", "data")
    found = data.load(DatasetSpec(train=(source,), test=(source,), pictures=str(tmp_path)), tmp_path / "cache")
    assert np.array_equal(found.train.x[0]["pictures"][0], RED)


def test_ignored_pictures_are_left_out_and_noted(tmp_path):
    found = loaded(tmp_path, [llava("<image>\nWhat?", image="gone.png"), llava("Why?")], pictures="ignore")
    assert found.train.x[0].keys() == {"id", "system", "user"} and found.train.x[0]["user"] == ["What?"]
    printed("\n".join(found.notes))


def test_where_some_have_pictures_the_others_have_none(tmp_path):
    found = loaded(tmp_path, [llava("<image>\nWhat?", image="red.png"), llava("Why?")]).train.x
    assert [len(one["pictures"]) for one in found] == [1, 0]


def test_other_pixels_are_another_dataset_and_another_sample(tmp_path):
    records = [llava("<image>\nWhat?", image=name) for name in ("red.png", "blue.png", "red.png")]
    first = loaded(tmp_path, records)
    ids = [one["id"] for one in first.train.x]
    assert ids[0] == ids[2] != ids[1]
    path = tmp_path / "red.png"
    path.write_bytes(png(RED + 1))
    source = SourceSpec(tmp_path / "train.json", "data")
    second = data.load(DatasetSpec(train=(source,), test=(source,)), tmp_path / "cache")
    assert second.fingerprint != first.fingerprint and second.train.x[0]["id"] != ids[0]


def test_the_same_question_of_another_picture_is_no_training_sample(tmp_path):
    for name, picture in (("a", "red.png"), ("b", "blue.png")):
        written(tmp_path, [llava("<image>\nWhat?", image=picture)], f"{name}.json")
    a, b = (SourceSpec(tmp_path / f"{name}.json", "data") for name in "ab")
    for test, doubts in ((b, 0), (a, 1)):
        dataset = data.load(DatasetSpec(train=(a,), test=(test,)), tmp_path / "cache")
        find_data_warnings(dataset, tmp_path / "cache")
        assert len(data.data_warnings_of(dataset.fingerprint, tmp_path / "cache")) == doubts


def test_a_picture_that_changes_after_it_was_listed_is_not_read(tmp_path):
    sample = loaded(tmp_path, [llava("<image>\nWhat?", image="red.png")]).train.x[0]
    (tmp_path / "red.png").write_bytes(png(BLUE))
    assert errors_of(lambda: sample["pictures"][0]) == [("changed-since-plan", "")]


def test_pictures_pass_between_processes_as_they_were_written_and_each_once():
    kept = Picture(png(RED)), Picture.from_value(BLUE)
    samples = [{"user": ["<image>"], "pictures": Pictures([one])} for one in (*kept, kept[0])]
    pickled = pickle.dumps([*samples, {"user": ["no"], "pictures": Pictures([])}])
    assert pickled.count(png(RED)) == 1
    received = pickle.loads(pickled)
    assert received[:3] == samples and len(received[3]["pictures"]) == 0
    assert np.array_equal(received[0]["pictures"][0], RED) and np.array_equal(received[1]["pictures"][-1], BLUE)
    assert copy.deepcopy(received[0])["pictures"] is received[0]["pictures"]
