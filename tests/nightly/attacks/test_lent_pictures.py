"""Pictures that stay encoded: a learner reads those of its round, though all lie in one folder, and no others."""

import json

import numpy as np
import pytest
from PIL import Image

import ianvs
from ianvs.processes.sealing.landlock import landlock_version
from tests.jobs import write_job
from tests.nightly.attacks.test_attacks import only, plugin

pytestmark = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")

HEAD = """
import json, os, socket
from pathlib import Path

def attempt(what):
    try:
        return repr(what())
    except Exception as error:
        return type(error).__name__

def asked(door, lent, rows):
    return attempt(lambda: len(door._peer().call("rows", {"lent": lent, "rows": rows}).files))

def note(folder, what):
    with open(folder / "found.json", "a") as file:
        file.write(json.dumps(what) + "\\n")

def opened():
    return [attempt(lambda: os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd")]

KEPT = []
"""


@pytest.fixture
def one_folder(tmp_path):
    """Pictures of four classes, of training and test, all in one folder; their brightness is their class."""
    folder = tmp_path / "data"
    folder.mkdir()
    for part in ("train", "test"):
        lines = []
        for index in range(16):
            name = f"{part}{index}.png"
            pixels = np.full((4, 4, 3), 60 * (index % 4) + index, np.uint8)
            Image.fromarray(pixels).save(folder / name)
            lines.append(f"{name} {index % 4}")
        (folder / f"{part}.txt").write_text("\n".join(lines))
    return folder


def sat(tmp_path, folder, source):
    exam = (
        f"dataset: {{train_index: {folder}/train.txt, test_index: {folder}/test.txt, storage: encoded}}\n"
        "scenario: {name: class-incremental, rounds: 2}\nmetrics: [accuracy]\n"
    )
    results = ianvs.run(write_job(tmp_path / "job", plugin=source, hyperparameters="", testenv=exam, job="seeds: [0]"))
    found = only(results).directory / "files" / "found.json"
    return [json.loads(line) for line in found.read_text().splitlines()]


def test_the_files_are_closed_those_of_its_own_round_too(tmp_path, one_folder):
    names = [str(one_folder / name) for name in ("train0.png", "train1.png", "test0.png", "train.txt")]
    tries = plugin(train=f"note(folder, [attempt(lambda: Path(name).read_bytes()) for name in {names}])", head=HEAD)
    assert sat(tmp_path, one_folder, tries) == [["PermissionError"] * 4] * 2


def test_no_row_but_those_of_the_round_can_be_asked_for(tmp_path, one_folder):
    rows = [[0], [7], [8], [-1], [0, 15], ["0"], [True and 10**6], list(range(8)) * 4000]
    tries = plugin(
        train=f"""
        door = train_data._columns["x"]._door
        note(folder, [asked(door, 0, rows) for rows in {rows}] + [asked(door, lent, [0]) for lent in (1, -1, None)])
        """,
        head=HEAD,
    )
    refused = ["PluginError"] * 9
    assert sat(tmp_path, one_folder, tries) == [["1", "1", *refused]] * 2


def test_a_door_that_was_kept_is_shut_when_its_round_is_over(tmp_path, one_folder):
    tries = plugin(
        train="""
        column = train_data._columns["x"]
        KEPT.append((os.dup(column._door._door.fileno()), column._door._peer()))
        first = KEPT[0]
        note(folder, [attempt(lambda: first[1].call("rows", {"lent": 0, "rows": [0]}).body["files"])[:1]])
        if round == 2:
            ours, theirs = socket.socketpair()
            note(folder, [attempt(lambda: socket.send_fds(socket.socket(fileno=first[0]), [b"+"], [theirs.fileno()]))])
        """,
        head=HEAD,
    )
    assert sat(tmp_path, one_folder, tries) == [["["], ["Gone"[:1]], ["BrokenPipeError"]]


def test_no_descriptor_leads_to_a_file_of_the_data(tmp_path, one_folder):
    """Its name, its owner's marks and its neighbours would be within reach."""
    tries = plugin(
        train="""
        door = train_data._columns["x"]._door
        got = door._peer().call("rows", {"lent": 0, "rows": [0, 1]})
        note(folder, opened())
        """,
        head=HEAD,
    )
    shown = [name for names in sat(tmp_path, one_folder, tries) for name in names]
    assert shown
    assert not [name for name in shown if str(one_folder) in name or "png" in name]


def test_a_copy_answers_with_its_own_rows_and_tells_nobody_which(tmp_path, one_folder):
    """It reads what it is asked, and its learner's door is none of its own."""
    answering = plugin(
        train="""
        kept = os.dup(train_data._columns["x"]._door._door.fileno())
        KEPT.append((os.readlink(f"/proc/self/fd/{kept}"), os.getpid()))
        train_data.x
        note(folder, "trained")
        """,
        predict="""
        if KEPT and os.getpid() != KEPT[0][1]:  # else it tries what it has saved, on training samples
            assert repr(KEPT[0][0]) not in opened(), opened()
        assert not [name for name in opened() if "png" in name]
        return [int(one[0, 0, 0]) // 60 for one in data]
        """,
        head=HEAD,
    )
    assert sat(tmp_path, one_folder, answering) == ["trained"] * 2
