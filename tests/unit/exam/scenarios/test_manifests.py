"""A manifest is the exam itself: saved and loaded it is the same one, and what it doesn't fit is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import ConfigError, Location
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import build_exam, check_scenario, load_manifest, manifest, read_manifest, save_manifest
from tests.call_counts import calls_of
from tests.errors import errors_of, recorded
from tests.packages import install
from tests.unit.exam.scenarios.exams import exam_of, same_exam
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets, texts

PICTURES = dataset_of([*range(6)] * 4, [*range(6)] * 2, shape=(6, 6, 1))
BUCKETS = dataset_of([0, 1] * 6, [0, 1] * 3, domains=([*"aaaabbbbcccc"], [*"aabbcc"]))
EXAMS = [
    (PICTURES, "CIL", {"rounds": 3, "order_seed": 1}),
    (PICTURES, "TIL", {"rounds": 3}),
    (PICTURES, "IIL", {"rounds": 3, "test": "per_round"}),
    (PICTURES, "DIL", {"permutation": True, "rounds": 3, "seed": 2}),
    (PICTURES, "DIL", {"rotation": [0, 22.5, 90]}),
    (PICTURES, "DIL", {"corruption": ["clean", "fog"], "severity": 2}),
    (BUCKETS, "DIL", {"streaming": True}),
    (PICTURES, "TFCL", {"rounds": 3, "batch": 2, "eval_every": 5}),
    (PICTURES, "OCL", {"rounds": 3, "batch": 1, "passes": 2}),
    (PICTURES, "BBCL", {"rounds": 3, "M": 30}),
    (PICTURES, "BBCL", {"rounds": 3, "kind": "i-blurry", "batch": 4}),
    (PICTURES, "BBCL", {"rounds": 3, "kind": "dirichlet", "alpha": 1}),
    (PICTURES, "BBCL", {"rounds": 3, "kind": "gaussian", "sigma": 0.2, "batch": 4}),
    (PICTURES, "CPT", {"rounds": 3, "shots": 2}),
    (
        PICTURES,
        "CIL",
        {"rounds": 3, "modifiers": {"few_shot": 3, "label_noise": 0.3, "labelled": 0.5, "long_tail": 0.5}},
    ),
    (streets(), "DIL", {}),
    (texts(), "IIL", {"rounds": 2}),
]
CONTENT = manifest(exam_of(PICTURES, "CIL", {"rounds": 3}))


@pytest.mark.parametrize(("dataset", "name", "options"), EXAMS)
def test_an_exam_is_the_same_after_saving_and_loading(dataset, name, options, tmp_path):
    exam = exam_of(dataset, name, options)
    save_manifest(exam, tmp_path / "exam.json")
    assert same_exam(load_manifest(dataset, read_manifest(tmp_path / "exam.json")), exam)
    assert same_exam(exam_of(dataset, "manifest", {"file": str(tmp_path / "exam.json")}), exam)


def test_loading_needs_names_and_not_the_order_of_the_data(tmp_path):
    exam = exam_of(PICTURES, "BBCL", {"rounds": 3, "M": 30})
    order = np.random.default_rng(0).permutation(len(PICTURES.train))
    turned = replace(
        PICTURES,
        train=replace(
            PICTURES.train, x=PICTURES.train.x[order], y=PICTURES.train.y[order], ids=PICTURES.train.ids[order]
        ),
    )
    loaded = load_manifest(turned, manifest(exam))
    for round_, same in zip(loaded.rounds, exam.rounds, strict=True):
        assert turned.train.ids[round_.train].tolist() == PICTURES.train.ids[same.train].tolist()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": 2}, [("invalid-value", "")]),
        ({"version": None}, [("invalid-value", "")]),
        ({"fingerprint": "0" * 64}, [("mismatched-data", "")]),
        ({"dataset": "other"}, [("mismatched-data", "")]),
        ({"classes": ["c0"]}, [("mismatched-data", "")]),
        ({"rounds": []}, [("invalid-value", "")]),
        ({"rules": {**CONTENT["rules"], "asked": "past"}}, [("invalid-value", "")]),
        ({"rules": {**CONTENT["rules"], "task_in_testin": True}}, [("invalid-value", "")]),
        ({"extra": 1}, [("invalid-value", "")]),
        ({"rules": {**CONTENT["rules"], "boundaries": False}}, [("conflicting-keys", "")]),
        ({"stream": {"batch": 2, "eval_every": None, "shuffled": True}}, [("conflicting-keys", "")]),
        ({"rules": {**CONTENT["rules"], "output_space": "task"}}, [("conflicting-keys", "")]),
    ],
)
def test_what_is_no_manifest_of_these_data_is_refused(change, expected):
    assert errors_of(load_manifest, PICTURES, {**CONTENT, **change}, "exam.json") == expected


@pytest.mark.parametrize(
    ("where", "change", "expected"),
    [
        ("rounds", {"samples": ["train/0", "train/99"]}, [("mismatched-data", "")]),
        ("rounds", {"samples": []}, [("empty-value", "")]),
        ("rounds", {"samples": ["train/0", "train/1", "train/0"]}, [("duplicate-entry", "")]),
        ("tests", {"samples": ["test/1", "test/1"]}, [("duplicate-entry", "")]),
        ("rounds", {"classes": ["c9"]}, [("unknown-class", "")]),
        ("rounds", {"labels": [0]}, [("invalid-value", "")]),
        ("rounds", {"labels": [6] * 8}, [("invalid-value", "")]),
        ("rounds", {"transform": {"name": "rotatoin", "options": {}}}, [("invalid-choice", "")]),
        ("rounds", {"transform": {"name": "rotation", "options": {"angle": 3}}}, [("invalid-option", "")]),
        ("rounds", {"name": 3}, [("invalid-value", "")]),
        ("tests", {"adapt": ["test/0"]}, [("mismatched-data", "")]),
    ],
)
def test_a_part_that_does_not_fit_is_named(where, change, expected):
    changed = {**CONTENT, where: [{**CONTENT[where][0], **change}, *CONTENT[where][1:]]}
    assert errors_of(load_manifest, PICTURES, changed, "exam.json") == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("{", "it is not json"), ("[]", "holds no mapping"), ("{}", "version None")]
)
def test_a_file_that_is_no_manifest_is_named_at_the_place_in_the_yaml(text, expected, tmp_path):
    file = tmp_path / "exam.json"
    file.write_text(text)
    place = Location(Path("testenv.yaml"), 4, 27)
    with pytest.raises(ConfigError) as caught:
        build_exam(PICTURES, ScenarioSpec("manifest", {"file": str(file)}, places={"file": place}))
    (problem,) = caught.value.problems
    assert problem.place == place
    assert expected in problem.message
    assert "exam.json" in problem.message


def test_a_file_that_is_not_there_is_found_without_the_data(tmp_path):
    assert recorded(check_scenario(ScenarioSpec("manifest", {"file": str(tmp_path / "none.json")}))) == [
        ("invalid-scenario", "")
    ]
    assert recorded(check_scenario(ScenarioSpec("manifest"))) == [("invalid-scenario", "")]
    assert errors_of(read_manifest, tmp_path / "none.json") == [("unreadable-file", "")]


def test_modifiers_and_rounds_that_contradict_a_manifest_are_refused(tmp_path):
    save_manifest(exam_of(PICTURES, "CIL", {"rounds": 3}), tmp_path / "exam.json")
    options = {"file": str(tmp_path / "exam.json")}
    assert recorded(check_scenario(ScenarioSpec("manifest", {**options, "modifiers": {"few_shot": 3}}))) == [
        ("invalid-scenario", "")
    ]
    assert errors_of(exam_of, PICTURES, "manifest", {**options, "rounds": 2}) == [("invalid-scenario", "")]
    assert len(exam_of(PICTURES, "manifest", {**options, "rounds": 3}).rounds) == 3


def test_samples_of_one_name_are_refused():
    ids = np.array(["train/0"] * len(PICTURES.train))
    assert errors_of(load_manifest, replace(PICTURES, train=replace(PICTURES.train, ids=ids)), CONTENT) == [
        ("duplicate-entry", "")
    ]


def test_a_manifest_of_a_hundred_thousand_samples_is_small_and_read_with_few_calls_for_each(tmp_path):
    dataset = dataset_of(np.arange(100_000) % 100, np.arange(10_000) % 100, shape=(1,))
    exam = exam_of(dataset, "BBCL", {"rounds": 10, "kind": "i-blurry"})
    path, loaded = tmp_path / "exam.json", []
    calls = calls_of(lambda: (save_manifest(exam, path), loaded.append(load_manifest(dataset, read_manifest(path)))))
    assert calls < 1_000_000
    assert same_exam(loaded[0], exam)
    assert path.stat().st_size < 3_000_000


def test_what_a_manifest_holds_is_json():
    assert json.loads(json.dumps(CONTENT)) == CONTENT


NEGATIVES = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Negative:
    strength: float

    def __call__(self, x):
        return self.strength * (255 - x)
"""


def test_a_transformation_of_an_installed_package_is_told_by_its_name(tmp_path, monkeypatch):
    exam = exam_of(PICTURES, "CIL", {"rounds": 3})
    install(tmp_path, monkeypatch, "of_negatives", NEGATIVES, "[ianvs.transforms]\nnegative = of_negatives:Negative\n")
    from of_negatives import Negative

    darker = replace(exam, rounds=tuple(replace(round_, transform=Negative(0.5)) for round_ in exam.rounds))
    content = manifest(darker)
    assert content["rounds"][0]["transform"] == {"name": "negative", "options": {"strength": 0.5}}
    assert same_exam(load_manifest(PICTURES, content), darker)
