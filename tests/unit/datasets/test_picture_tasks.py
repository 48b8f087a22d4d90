"""The generated exam of pictures: what is asked and answered is what is drawn."""

import json
from collections import Counter

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec
from ianvs.exam import data
from ianvs.testenv.datasets.picture_tasks import COLOURS, CORNERS, TASKS, PictureTasks

DARKEST = 60  # of what a thing is drawn in, above the ground


def loaded(**options):
    return PictureTasks(**options).load(DatasetSpec(name="picture_tasks", options=options), None)


def rows(dataset, task):
    of = dataset.test.domains == task
    return [(x["user"][0], x["pictures"][0], y[0]) for x, y in zip(dataset.test.x[of], dataset.test.y[of], strict=True)]


@pytest.fixture(scope="module")
def exam():
    return loaded(tasks=6, samples=192)


def drawn(picture):
    """(colour, {cells of 8 x 8 pixels where something is})"""
    bright = picture.max(axis=2) > DARKEST
    [shade] = {tuple(pixel) for pixel in picture[bright].tolist()}
    cells = bright.reshape(4, 8, 4, 8).any(axis=(1, 3))
    return next(name for name, value in COLOURS.items() if value == shade), set(zip(*np.nonzero(cells), strict=True))


def test_every_task_has_its_samples_in_order(exam):
    assert Counter(exam.train.domains.tolist()) == dict.fromkeys(TASKS, 192)
    assert list(dict.fromkeys(exam.test.domains.tolist())) == list(TASKS)
    assert len(exam.test.x) == 6 * 96 and exam.test.x[0]["pictures"][0].shape == (32, 32, 3)
    assert all(x["user"][0].startswith("<image>\n") and len(x["pictures"]) == 1 for x in exam.train.x)


def test_answers_are_what_the_pictures_show(exam):
    for _, picture, reply in rows(exam, "colour"):
        assert drawn(picture)[0] == reply
    for _, picture, reply in rows(exam, "count"):
        assert len(drawn(picture)[1]) == int(reply)
    for asked, picture, reply in rows(exam, "yes-no"):
        assert (f"Is it {drawn(picture)[0]}?" in asked) == (reply == "yes")
    for asked, picture, reply in rows(exam, "corner"):
        y, x = next(iter(drawn(picture)[1]))
        assert f"{reply}. {list(CORNERS)[2 * (y // 2) + x // 2]}" in asked.splitlines()
    for _, picture, reply in rows(exam, "box"):
        y, x = (np.array(one) for one in zip(*drawn(picture)[1], strict=True))
        assert json.loads(reply) == [3 * x.min(), 3 * y.min(), 3 * x.max() + 3, 3 * y.max() + 3]


def test_a_shape_is_the_same_wherever_and_the_four_differ(exam):
    found = {}
    for _, picture, reply in rows(exam, "shape"):
        bright = picture.max(axis=2) > DARKEST
        for y, x in drawn(picture)[1]:
            found.setdefault(reply, set()).add(bright[8 * y : 8 * y + 8, 8 * x : 8 * x + 8].tobytes())
    assert len(found) == 4 and all(len(one) == 1 for one in found.values()) and len(set.union(*found.values())) == 4


def test_kinds_of_answers_come_equally_often(exam):
    many = loaded(tasks=6, samples=384)
    for task, most in (("shape", 1 / 4), ("colour", 1 / 4), ("yes-no", 1 / 2)):
        counts = Counter(reply for *_, reply in rows(many, task))
        assert max(counts.values()) == 192 * most


def test_no_test_sample_is_a_training_sample(exam):
    assert not {x["id"] for x in exam.train.x} & {x["id"] for x in exam.test.x}


def test_the_seed_decides():
    first, again, other = (loaded(tasks=1, samples=8, seed=seed) for seed in (0, 0, 1))
    assert first.train.x.tolist() == again.train.x.tolist() != other.train.x.tolist()
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_the_same_question_contradicts_itself_and_a_shared_format_is_a_letter():
    same = loaded(tasks=3, samples=32, instruction="same")
    assert {x["user"][0] for x in same.train.x} == {"<image>\nDescribe it with one word."}
    assert {y[0] for y in same.train.y[same.train.domains == "corner"]} == set(CORNERS.values())
    shared = loaded(tasks=6, samples=32, format="shared")
    assert {y[0] for y in shared.train.y} == set("ABCD")
    for x, y in zip(shared.train.x, shared.train.y, strict=True):
        choices = [line for line in x["user"][0].splitlines() if line[1:3] == ". "]
        assert len(set(choices)) == len(choices) and y[0] in {line[0] for line in choices}


def test_the_corner_by_a_word_is_the_one_in_the_picture():
    for asked, picture, reply in rows(loaded(tasks=["corner"], samples=32, format="word"), "corner"):
        y, x = next(iter(drawn(picture)[1]))
        assert reply == list(CORNERS.values())[2 * (y // 2) + x // 2] and reply not in asked


@pytest.mark.parametrize(
    ("options", "said"),
    [({"tasks": 7}, "1 to 6"), ({"tasks": ["shape", "smell"]}, "some of"), ({"tasks": ["shape", "shape"]}, "some of"),
     ({"tasks": 4, "instruction": "same"}, "1 to 3"),
     ({"instruction": "same", "tasks": 2, "format": "shared"}, "Keep")],
)  # fmt: skip
def test_wrong_options_are_refused(options, said):
    [problem] = data.check_dataset(DatasetSpec(name="picture_tasks", options=options)).problems
    assert said in problem.message


def test_tasks_can_be_chosen_by_using():
    [problem] = data.check_dataset(DatasetSpec(name="picture_tasks", using=("box",))).problems
    assert "box" in problem.message
    assert data.check_dataset(DatasetSpec(name="picture_tasks", using=("shape",))).problems == []
