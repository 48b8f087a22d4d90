"""Splitting, against values worked by hand from the specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.base.errors import PluginError
from ianvs.kubeedge.datafiles import absolute_index, split, write_pairs

TEN = [str(i) for i in range(10)]


def shown(pairs: dict[int, tuple[list[str], list[str]]]) -> dict[int, str]:
    return {number: "".join(train) + "|" + "".join(rest) for number, (train, rest) in pairs.items()}


def test_default_gives_equal_parts_and_the_last_takes_the_remainder():
    assert shown(split(TEN, "default", 0.8, 3)) == {1: "01|2", 2: "34|5", 3: "678|9"}


def test_fwt_begins_with_the_first_line_alone():
    assert shown(split(TEN, "fwt_splitting", 0.5, 2)) == {0: "0|0", 1: "01|234", 2: "56|789"}


def test_hard_example_begins_with_half_and_sizes_come_from_the_whole():
    # 11 lines: half 5, of which int(11 * .8 / 2) = 4; then lines 5..10 in 2 parts of 11 // 4 = 2, the last with 4
    eleven = [*TEN, "A"]
    assert shown(split(eleven, "hard-example_splitting", 0.8, 2)) == {0: "0123|4", 1: "5|6", 2: "789|A"}
    # 13 lines, 3 rounds: half 6, int(13 * .5 / 2) = 3, parts of 13 // 6 = 2: 67, 89, ABC
    assert shown(split([*eleven, "B", "C"], "hard-example_splitting", 0.5, 3)) == {
        0: "012|345",
        1: "6|7",
        2: "8|9",
        3: "A|BC",
    }


def test_city_begins_with_what_a_simulator_drew():
    lines = ["synthia_sim1", "synthia_sim2", *TEN[:5]]
    pairs = split(lines, "city_splitting", 0.5, 3)
    assert pairs[1] == (["synthia_sim1"], ["synthia_sim2"])
    assert shown({i: pairs[i] for i in (2, 3)}) == {2: "0|1", 3: "2|34"}
    assert split(lines[:2], "city_splitting", 0.5, 2) == {1: ([], []), 2: (["synthia_sim1"], ["synthia_sim2"])}
    with pytest.raises(PluginError, match="at least 2 rounds"):
        split(lines, "city_splitting", 0.5, 1)


def test_files_are_named_by_kind_and_number_and_empty_lines_count(tmp_path):
    (tmp_path / "i.txt").write_text("a 1\n\n b\t2 \nc 3\n")
    pairs = write_pairs(str(tmp_path / "i.txt"), tmp_path / "W", ("model_train", "model_eval"), "default", 0.5, 2)
    assert [[Path(file).read_text() for file in pair] for pair in pairs] == [["a 1\n", "\n"], ["b\t2\n", "c 3\n"]]
    assert [file.rpartition("/")[2] for pair in pairs for file in pair] == [
        "model_train-1.txt",
        "model_eval-1.txt",
        "model_train-2.txt",
        "model_eval-2.txt",
    ]
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n")
    pairs = write_pairs(str(tmp_path / "t.csv"), tmp_path / "W", ("a", "b"), "default", 0.5, 1)
    assert [Path(file).read_text() for file in pairs[0]] == ["x,y\n1,2\n", "x,y\n3,4\n"]


def test_relative_words_become_absolute_where_they_are_files(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.png").write_text("")
    (tmp_path / "1").mkdir()  # a folder that is called as a label
    index = tmp_path / "i.txt"
    index.write_text("d/a.png\td/a.png 1\n\nd/gone.png 0\n")
    target = tmp_path / "W" / "i.txt"
    assert absolute_index(str(index), target) == str(target)
    here = str(tmp_path)
    assert target.read_text().splitlines() == [f"{here}/d/a.png {here}/d/a.png 1", "", "d/gone.png 0"]
    index.write_text("/x/a.png d/a.png\n")  # the first words are absolute: the file is used as it is
    assert absolute_index(str(index), target) == str(index)
