"""`ianvs list` and `ianvs show`: everything that can be named, and what it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ianvs.base.entry_points import installed
from ianvs.cli import main
from ianvs.cli.catalogue.describe_entry import describe_name
from ianvs.cli.catalogue.name_registry import KINDS, first_sentence, listed
from tests.errors import errors_of
from tests.packages import install


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_a_line_of_its_own_that_says_what_it_is(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    entries = listed(kind)
    assert len(entries) > 2
    for entry in entries:
        assert len(entry.summary) > 10, entry
        names = (entry.name, f".{entry.name} ")  # "language.EWC" where another method has the name "EWC"
        assert any(line.startswith(names[0]) or names[1] in line for line in lines if entry.summary in line), entry


def test_every_installed_algorithm_is_listed_and_those_that_need_a_url_say_it() -> None:
    entries = listed("algorithms")
    assert {entry.name for entry in entries if not entry.url} == set(installed("ianvs.algorithms"))
    language = next(entry for entry in entries if entry.name == "CIA")
    assert language.url == "ianvs.testalgorithms.language.cia.basemodel"


def test_what_another_package_brings_is_listed_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = 'class Theirs:\n    """Guesses, and guesses well. Indeed."""\n    def __init__(self, luck: int = 7): ...\n'
    install(tmp_path, monkeypatch, "lucky", code, "[ianvs.algorithms]\nTheirs = lucky:Theirs\n")
    assert main(["list", "algorithms"]) == 0
    assert re.search(r"^Theirs +Guesses, and guesses well\b.*\blucky\b", capsys.readouterr().out, re.MULTILINE)
    assert re.search(r"luck +int +7$", describe_name("Theirs"), re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "EWC",
            [
                "strength +float +100.0",
                "gamma +float \\| None +null",
                ".*TorchLearner: network,",
                ".*Kirkpatrick",
            ],
        ),
        ("ewc", ["EWC: "]),
        ("multilabel", ["multilabel: ", ".*dataset: .*data_type: multilabel"]),
        ("classification", ["classification: "]),
        ("task_scores", ["task_scores: ", ".*evaluation_tasks: .task_scores."]),
        ("class-incremental", ["rounds +int \\| None +null", "class_order .*"]),
        ("CIL", ["CIL, alias of class-incremental: "]),
        ("BWT", ["matrix\\b", "Lopez-Paz & Ranzato.2017.*"]),
        ("digits", ["test_ratio +float +0.2"]),
        ("mlp", ["hidden +Sequence\\[int\\] +\\[256\\]"]),
        ("resnet18", ["weights +str \\| None +null"]),
        ("federatedlearning", ["clients +int.*", ".*basemodel, aggregation"]),
        ("inline", [".*engine: inline.*"]),
        ("digits_tuning", [".*`ianvs new job NAME --from.digits_tuning`"]),
    ],
)
def test_one_of_each_kind_at_length(name: str, lines: list[str]) -> None:
    text = describe_name(name)
    for line in lines:
        assert re.search(rf"^ *{line}", text, re.MULTILINE), line


def test_a_method_fits_a_screen_and_all_of_it_is_shown_when_asked() -> None:
    assert len(describe_name("EWC").splitlines()) <= 24
    whole = describe_name("EWC", whole=True)
    assert re.search(r"^ *learning_rate +float +0.05", whole, re.MULTILINE)
    assert "TorchLearner:" in whole
    assert "ianvs.testalgorithms.language.ewc.basemodel" in whole


def test_without_a_kind_the_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[: len(KINDS)]] == list(KINDS)


def test_a_name_of_two_kinds_shows_both() -> None:
    assert "clear10: a dataset" in describe_name("clear10")
    assert "clear10: a job" in describe_name("clear10")


def test_a_name_that_there_is_not_gets_the_closest_one() -> None:
    assert errors_of(describe_name, "GDum") == [("unknown-name", "")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One"),
        ("By Lin et al. 2021, in\ntwo lines.\n\nMore.", "By Lin et al. 2021, in two lines"),
        ("Without an end", "Without an end"),
        ("A 3.5 of it, e.g. Here. And more", "A 3.5 of it, e.g. Here"),
    ],
)
def test_a_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@pytest.mark.parametrize(
    ("name", "meant", "also"),
    [
        ("finetuning", "finetuning, alias of Finetune: an algorithm", "FineTuning"),
        ("FineTuning", "FineTuning: an algorithm", "Finetune"),
        ("Joint", "Joint: an algorithm", "joint (a paradigm)"),
        ("ewc", "EWC: an algorithm", "language.EWC"),
        ("language.EWC", "language.EWC: an algorithm", ""),
        ("FM", "FM, alias of FM_restricted: a metric", ""),
        ("acc", "acc, alias of accuracy: a metric", "AA"),
        ("CIL", "CIL, alias of class-incremental: a scenario", ""),
    ],
)
def test_a_name_shows_what_a_file_means_by_it_and_names_what_is_called_so_too(name: str, meant: str, also: str) -> None:
    lines = describe_name(name).splitlines()
    assert lines[0] == meant
    assert [line for line in lines if line.startswith("Also ")] == (
        [f"Also {also}: `ianvs show {name} --all`."] if also else []
    )
    assert len([line for line in describe_name(name, whole=True).splitlines() if ": a" in line and line[0] != " "]) == (
        2 if also else 1
    )


def test_a_name_of_an_algorithm_and_a_paradigm_shows_both() -> None:
    heads = [line for line in describe_name("joint").splitlines() if line and line[0] != " "]
    assert heads == ["Joint: an algorithm", "joint: a paradigm"]


def test_algorithms_are_listed_with_their_names_in_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "algorithms"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert lines["Replay"].endswith("; also called ER, experience replay")
    assert "also called" not in lines["language.Replay"]
