"""Case directories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import DamagedError
from ianvs.base.types import Failure, PredictionKey, Predictions, RoundResult, TestCase
from ianvs.store import CaseStore, StoredModule
from ianvs.store.stored_score import score_record
from tests.marks import slow


def case(**changes: object) -> TestCase:
    facts = {
        "id": "c1",
        "row": "r1",
        "algorithm": "ewc",
        "paradigm": "incrementallearning",
        "modules": (("basemodel", "EWC"),),
        "hyperparameters": {"strength": 100.0},
        "seed": 0,
    }
    return TestCase(**{**facts, **changes})  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> CaseStore:
    return CaseStore(tmp_path)


def keep_round(store: CaseStore, index: int, label: int = 1) -> None:
    result = RoundResult(index=index, name=f"round {index}", train_seconds=0.5, gate_scores=(0.25, 0.5))
    with store.new_round("c1", index) as folder:
        (folder.model / "model.pt").write_text(f"weights {index}")
        said = Predictions(np.full(3, label), {"sure": np.ones(3)})
        modules = [StoredModule("basemodel", "", folder.model / "model.pt", index, (0, 1), (1,))]
        folder.write(
            result,
            modules,
            {PredictionKey(0): said, PredictionKey(0, 120): said, PredictionKey(1): Predictions(np.zeros(2))},
        )


def test_a_case_is_unknown_then_unfinished_then_finished(store: CaseStore) -> None:
    assert store.status("c1") is None
    store.begin(case(), {})
    assert store.status("c1") == "unfinished"
    store.finish("c1", {"bound": False, "finished_at": "2026-01-01", "provenance": {}})
    assert store.status("c1") == "finished"


def test_a_failure_comes_back_as_it_was(store: CaseStore) -> None:
    failure = Failure("exception", "RuntimeError", "out of cheese", Path("cases/c1/log.txt"))
    store.begin(case(), {})
    store.fail("c1", failure)
    assert (store.status("c1"), store.failure("c1")) == ("failed", replace(failure, log=store.log("c1")))


def test_a_cut_off_result_file_counts_as_unfinished(store: CaseStore) -> None:
    store.begin(case(), {})
    store.finish("c1", {"bound": False, "finished_at": "x", "provenance": {}})
    path = store.folder("c1") / "result.json"
    path.write_bytes(path.read_bytes()[:10])
    assert store.status("c1") == "unfinished"


def test_rounds_come_back_in_order_and_only_the_last_model_is_kept(store: CaseStore) -> None:
    for index in range(3):
        keep_round(store, index, label=index)
    rounds = store.complete_rounds("c1")
    assert [(found.index, found.gate_scores) for found in rounds] == [
        (0, (0.25, 0.5)),
        (1, (0.25, 0.5)),
        (2, (0.25, 0.5)),
    ]
    stored = store.predictions("c1", 1)
    assert stored.keys() == {PredictionKey(0), PredictionKey(0, 120), PredictionKey(1)}
    assert stored[PredictionKey(0)].labels.tolist() == stored[PredictionKey(0, 120)].labels.tolist() == [1, 1, 1]
    assert stored[PredictionKey(0)].extras["sure"].tolist() == [1, 1, 1]
    assert stored[PredictionKey(1)].extras == {}
    assert store.extras("c1", 1) == {"sure"}
    assert (store.modules("c1", 0), store.modules("c1", 1)) == (None, None)
    last = store.modules("c1", 2)
    assert last is not None
    [module] = last
    assert module.path is not None
    assert module.path.read_text() == "weights 2"
    assert (module.kind, module.calls, module.seen, module.new) == ("basemodel", 2, (0, 1), (1,))


def test_a_gap_ends_the_complete_rounds(store: CaseStore) -> None:
    for index in range(3):
        keep_round(store, index)
    (store.folder("c1") / "rounds/1/round.json").write_text("{")
    assert [found.index for found in store.complete_rounds("c1")] == [0]


def test_the_predecessor_of_a_changed_case_is_remembered(store: CaseStore) -> None:
    store.begin(case(), {"algorithm": "before"})
    assert store.predecessor(case()) is None
    assert store.predecessor(case(id="c2")) == "c1"
    assert store.predecessor(case(id="c3", seed=1)) is None
    assert store.identity("c1") == {"algorithm": "before"}


def test_a_case_comes_back_with_everything_that_names_it(store: CaseStore) -> None:
    store.begin(case(), {})
    assert store.case("c1") == case()
    assert store.case("c2") is None


def test_a_score_comes_back_with_nan_where_nothing_was_evaluated(store: CaseStore) -> None:
    assert not store.has_score("c1", "accuracy")
    store.write_score("c1", "accuracy", score_record([[np.nan, 0.5]], [[None, {"a": 0.5}]], {30: [np.nan, 0.25]}))
    found = store.score("c1", "accuracy")
    assert found is not None
    values, details, between = found[:3]
    assert np.isnan(values[0, 0])
    assert values[0, 1] == 0.5
    assert details == [[None, {"a": 0.5}]]
    np.testing.assert_array_equal(between[30], [np.nan, 0.25])


FACTS = {"bound": False, "finished_at": "2026-01-01", "provenance": {}}
ACCURACY = score_record([[0.5, np.nan]], [[None, None]], between={120: [0.25, np.nan]}, left_out=[[0.5, 0]])


def finished(store: CaseStore) -> Path:
    """The folder of a case of two rounds with a score."""
    store.begin(case(), {"exam_id": "e1"})
    for index in range(3):
        keep_round(store, index)
    store.write_score("c1", "accuracy", ACCURACY)
    store.finish("c1", FACTS)
    return store.folder("c1")


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def contents(store: CaseStore) -> str:
    """What a report and a new metric read of the case."""
    score = store.score("c1", "accuracy")
    assert score is not None
    between = {samples: row.tolist() for samples, row in score.between.items()}
    values = [
        score.values.tolist(),
        score.details,
        between,
        None if score.left_out is None else score.left_out.tolist(),
    ]
    labels = [{asked: p.labels.tolist() for asked, p in store.predictions("c1", k).items()} for k in range(3)]
    return repr([store.case("c1"), store.identity("c1"), store.complete_rounds("c1", thoroughly=True), values, labels])


def test_a_finished_case_has_the_same_content_in_fewer_files(store: CaseStore) -> None:
    store.begin(case(), {"exam_id": "e1"})
    for index in range(3):
        keep_round(store, index)
    store.write_score("c1", "accuracy", ACCURACY)
    before = contents(store)
    store.finish("c1", FACTS)
    expected = ["case.json", "predictions.zip", "result.json", "rounds.json", "rounds/2/model/model.pt", "scores.json"]
    assert files_of(store.folder("c1")) == expected
    assert contents(store) == before
    state = store.state("c1", thoroughly=True)
    assert (state.status, state.damaged, state.score_keys, state.exam_id) == (
        "finished",
        (),
        frozenset({"accuracy"}),
        "e1",
    )
    records, _ = store.finished_records("c1")
    assert store.round_results("c1", records) == store.complete_rounds("c1")
    assert store.extras("c1", 1) == {"sure"}
    last = store.modules("c1", 2)
    assert last is not None and last[0].path is not None
    assert last[0].path.read_text() == "weights 2"


def test_a_failure_of_a_finished_case_costs_none_of_its_rounds(store: CaseStore) -> None:
    finished(store)
    store.fail("c1", Failure("killed", "SIGKILL", "", None))
    assert store.status("c1") == "failed"
    assert len(store.complete_rounds("c1", thoroughly=True)) == 3


def test_a_case_whose_scoring_failed_is_scored_again_without_evaluating_it(store: CaseStore) -> None:
    store.begin(case(), {})
    store.store_evaluated("c1", FACTS)
    assert (store.status("c1"), store.result("c1"), store.evaluated_facts("c1")) == ("unfinished", None, FACTS)
    for _ in range(2):
        store.fail("c1", Failure("exception", "ValueError", "", None))
        assert (store.status("c1"), store.evaluated_facts("c1")) == ("failed", FACTS)
    store.finish("c1", FACTS)
    assert (store.status("c1"), store.evaluated_facts("c1"), store.facts("c1")) == ("finished", None, FACTS)


def test_a_score_that_is_written_again_replaces_the_first(store: CaseStore) -> None:
    finished(store)
    store.write_score("c1", "accuracy", score_record([[0.25, 0.25]]))
    assert store.status("c1") == "finished"
    score = store.score("c1", "accuracy")
    assert score is not None
    assert score.values.tolist() == [[0.25, 0.25]]


def test_scores_of_the_first_rounds_survive_a_later_round_and_scores_of_all_do_not(store: CaseStore) -> None:
    keep_round(store, 0)
    store.write_score("c1", "accuracy", ACCURACY)
    store.write_score("c1", "accuracy", ACCURACY, after=0)
    keep_round(store, 1)
    assert (store.has_score("c1", "accuracy"), store.has_score("c1", "accuracy", after=0)) == (False, True)


def test_a_round_that_is_made_again_takes_later_ones_with_it(store: CaseStore) -> None:
    for index in range(4):
        keep_round(store, index)
    keep_round(store, 1, label=5)
    assert [found.index for found in store.complete_rounds("c1", thoroughly=True)] == [0, 1]


def test_a_round_can_be_trained_first_and_evaluated_later(store: CaseStore) -> None:
    keep_round(store, 0)
    for index in (1, 2):
        with store.new_round("c1", index) as folder:
            (folder.model / "model.pt").write_text(f"weights {index}")
            result = RoundResult(index, f"round {index}", train_samples=5)
            folder.write(result, [StoredModule("basemodel", "", folder.model / "model.pt", index)])
    assert (len(store.complete_rounds("c1")), store.broken_round("c1")) == (1, None)
    assert [one.train_samples for one in store.trained_rounds("c1")] == [0, 5, 5]
    for index in (1, 2):
        modules = store.modules("c1", index)
        assert modules is not None and modules[0].path is not None
        assert modules[0].path.read_text() == f"weights {index}"  # the model of every round that is not evaluated
        said = {PredictionKey(0): Predictions(np.full(3, index))}
        store.add_predictions("c1", index, RoundResult(index, f"round {index}"), said)
        assert store.predictions("c1", index)[PredictionKey(0)].labels.tolist() == [index] * 3
    assert [found.index for found in store.complete_rounds("c1", thoroughly=True)] == [0, 1, 2]
    assert (len(store.trained_rounds("c1")), store.modules("c1", 1)) == (3, None)
    assert store.modules("c1", 2) is not None


def test_a_trained_round_whose_model_was_changed_is_damaged(store: CaseStore) -> None:
    with store.new_round("c1", 0) as folder:
        (folder.model / "model.pt").write_text("weights")
        folder.write(RoundResult(0, "untrained"))
    (store.model_folder("c1", 0) / "model.pt").write_text("weightz")
    with pytest.raises(DamagedError, match=r"model\.pt"):
        store.modules("c1", 0)


@pytest.mark.parametrize("last", range(1, 25))
def test_killed_at_any_moment_nothing_is_lost(store: CaseStore, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """Each change of the disk in turn is the last: a rename, or a removal."""
    store.begin(case(), {"exam_id": "e1"})
    for index in range(3):
        keep_round(store, index)
    store.write_score("c1", "accuracy", ACCURACY)
    before = contents(store)
    store.store_evaluated("c1", FACTS)
    count = 0

    def dying(change: Callable[..., object]) -> Callable[..., object]:
        def changed(*given: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count > last:
                raise KeyboardInterrupt
            return change(*given, **named)

        return changed

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        for name in ("replace", "unlink", "rmdir"):
            patched.setattr(Path, name, dying(getattr(Path, name)))
        store.finish("c1", FACTS)
    assert contents(store) == before
    if store.status("c1") != "finished":
        assert (store.evaluated_facts("c1"), store.broken_round("c1")) == (FACTS, None)
        store.remove_partial_files("c1")
        store.finish("c1", FACTS)
    state = store.state("c1", thoroughly=True)
    assert (state.status, state.damaged) == ("finished", ())
    assert contents(store) == before
    assert len(files_of(store.folder("c1"))) == 6


@pytest.mark.parametrize("name", ["case.json", "result.json", "rounds.json", "scores.json", "predictions.zip"])
@pytest.mark.parametrize("change", ["gone", "cut off", "empty", "flipped", "a folder", "of another case"])
def test_a_damaged_file_is_named_and_nothing_of_it_is_used(store: CaseStore, name: str, change: str) -> None:
    path = finished(store) / name
    text = path.read_bytes()
    path.unlink()
    if change == "a folder":
        path.mkdir()
    elif change != "gone":
        flipped = text[: len(text) // 2] + bytes([text[len(text) // 2] ^ 1]) + text[len(text) // 2 + 1 :]
        other = text.replace(b"c1", b"c2") if name != "predictions.zip" else b"PK"
        path.write_bytes({"cut off": text[:-30], "empty": b"", "flipped": flipped, "of another case": other}[change])
    state = store.state("c1")
    if name == "result.json" and change == "gone":
        assert (state.status, state.damaged) == ("unfinished", ())
    else:
        assert (state.status, state.damaged) == ("unfinished", (name,))
        assert state.is_whole == (name in ("case.json", "scores.json"))
    if name in ("rounds.json", "predictions.zip"):
        with pytest.raises(DamagedError):
            store.predictions("c1", 1)
        assert store.complete_rounds("c1") == ()
    store.remove_damaged("c1", state.damaged)
    assert len(store.complete_rounds("c1", thoroughly=True)) == (0 if name in ("rounds.json", "predictions.zip") else 3)


@pytest.mark.parametrize("step", [97, slow(13)])
def test_any_byte_of_the_predictions_that_changes_unnoticed_is_found_when_they_are_read(
    store: CaseStore, step: int
) -> None:
    path = finished(store) / "predictions.zip"
    whole, stat = path.read_bytes(), path.stat()
    expected = contents(store)
    for at in sorted({*range(0, len(whole), step), *range(len(whole) - 100, len(whole), step // 10)}):  # its directory
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert store.state("c1", thoroughly=True).damaged == ("predictions.zip",)
        for index in range(3):
            try:
                labels = store.predictions("c1", index)[PredictionKey(0)].labels
            except DamagedError:
                continue
            assert labels.tolist() == [1, 1, 1]
    path.write_bytes(whole)
    assert contents(store) == expected


def test_a_copied_folder_is_not_taken_for_another_case(store: CaseStore) -> None:
    folder = finished(store)
    folder.rename(folder.with_name("c2"))
    assert store.state("c2").damaged == ("result.json",)
    assert store.complete_rounds("c2") == ()


def test_a_workspace_that_was_moved_without_its_times_is_the_same(store: CaseStore, tmp_path: Path) -> None:
    finished(store)
    before = contents(store)
    shutil.copytree(tmp_path / "cases", tmp_path / "moved" / "cases", copy_function=shutil.copyfile)
    moved = CaseStore(tmp_path / "moved")
    assert moved.status("c1") == "finished"
    assert contents(moved) == before
