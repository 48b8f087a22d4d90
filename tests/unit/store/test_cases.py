"""Case directories."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import DamagedError
from ianvs.base.types import Asked, Failure, Predictions, RoundResult, TestCase
from ianvs.store import CaseStore, StoredModule
from ianvs.store.at_rest import UNKNOWN, Known
from tests.edits import edited


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
        folder.fill(result, {Asked(0): said, Asked(0, 120): said, Asked(1): Predictions(np.zeros(2))}, modules)


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
    assert stored.keys() == {Asked(0), Asked(0, 120), Asked(1)}
    assert stored[Asked(0)].labels.tolist() == stored[Asked(0, 120)].labels.tolist() == [1, 1, 1]
    assert stored[Asked(0)].extras["sure"].tolist() == [1, 1, 1]
    assert stored[Asked(1)].extras == {}
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
    (store.round_folder("c1", 1) / "round.json").write_text("{")
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
    store.write_score("c1", "accuracy", [[None, 0.5]], [[None, {"a": 0.5}]], {30: [None, 0.25]})
    found = store.score("c1", "accuracy")
    assert found is not None
    values, details, between = found[:3]
    assert np.isnan(values[0, 0])
    assert values[0, 1] == 0.5
    assert details == [[None, {"a": 0.5}]]
    np.testing.assert_array_equal(between[30], [np.nan, 0.25])


def finished(store: CaseStore) -> Path:
    """The folder of a case of two rounds with a score."""
    store.begin(case(), {"exam_id": "e1"})
    for index in range(3):
        keep_round(store, index)
    store.write_score("c1", "accuracy", [[0.5, None]], [[None, None]], between={120: [0.25, None]}, left_out=[[0.5, 0]])
    store.finish("c1", {"bound": False, "finished_at": "2026-01-01", "provenance": {}})
    return store.folder("c1")


def told(store: CaseStore, known: Known) -> list[object]:
    """What a report reads, given what is known."""
    score = store.score("c1", "accuracy", known=known)
    assert score is not None
    between = {samples: row.tolist() for samples, row in score.between.items()}
    read = [score.values.tolist(), score.details, between, None if score.left_out is None else score.left_out.tolist()]
    return [repr([store.exam_id("c1", known), store.complete_rounds("c1", known=known), *read])]


def unpacked(store: CaseStore) -> Path:
    folder = finished(store)
    store.unpack("c1")
    return folder


def test_a_finished_case_rests_in_two_files_beside_its_model(store: CaseStore) -> None:
    folder = finished(store)
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == ["answers.zip", "result.json", "rounds/2/model/model.pt"]
    state = store.state("c1", thoroughly=True, known=True)
    assert (state.status, state.damaged, state.rounds, state.scores) == ("finished", (), 3, {"accuracy"})
    assert store.case("c1") == case()
    assert store.identity("c1") == {"exam_id": "e1"}
    assert store.predictions("c1", 1)[Asked(0, 120)].labels.tolist() == [1, 1, 1]
    assert store.extras("c1", 1) == {"sure"}
    last = store.modules("c1", 2)
    assert last is not None
    assert last[0].path is not None
    assert last[0].path.read_text() == "weights 2"
    assert [one.index for one in store.complete_rounds("c1", thoroughly=True)] == [0, 1, 2]


def test_what_is_known_of_a_case_is_what_its_records_say(store: CaseStore) -> None:
    finished(store)
    known = store.state("c1", known=True).known
    assert known.rounds is not None
    assert known.exam_id == "e1"
    assert told(store, known) == told(store, UNKNOWN)
    store.unpack("c1")
    assert told(store, store.state("c1", known=True).known) == told(store, known)


def test_a_failure_of_a_case_at_rest_costs_none_of_its_rounds(store: CaseStore) -> None:
    finished(store)
    store.fail("c1", Failure("killed", "SIGKILL", "", None))
    assert store.status("c1") == "failed"
    assert len(store.complete_rounds("c1", thoroughly=True)) == 3


def test_a_score_that_is_written_anew_takes_the_place_of_that_at_rest(store: CaseStore) -> None:
    finished(store)
    store.write_score("c1", "accuracy", [[0.25, 0.25]], [[None, None]])
    store.finish("c1", store.facts("c1"))
    known = store.state("c1", known=True).known
    score = store.score("c1", "accuracy", known=known)
    assert score is not None
    assert score.values.tolist() == [[0.25, 0.25]]


def test_a_case_gets_the_files_back_that_it_had(store: CaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as large:
        large.setattr("ianvs.store.at_rest._LARGEST", 0)
        folder = finished(store)
    before = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    store.finish("c1", store.facts("c1"))
    assert len([path for path in folder.rglob("*") if path.is_file()]) < len(before)
    store.unpack("c1")
    after = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after.keys() == before.keys()
    result = Path("result.json")  # holds times of files
    assert {name: text for name, text in after.items() if name != result} == {
        name: text for name, text in before.items() if name != result
    }
    assert store.state("c1", thoroughly=True).status == "finished"


@pytest.mark.parametrize("last", range(1, 40))
def test_killed_at_any_moment_nothing_is_lost(store: CaseStore, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """Each change of the disk in turn is the last: a rename, or a removal."""
    unpacked(store)
    before = told(store, UNKNOWN)
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
        store.finish("c1", store.facts("c1"))
        store.unpack("c1")
        store.finish("c1", store.facts("c1"))
    state = store.state("c1", thoroughly=True, known=True)
    assert (state.status, state.damaged) == ("finished", ())
    assert told(store, state.known) == told(store, UNKNOWN) == before
    assert store.predictions("c1", 2)[Asked(0)].labels.tolist() == [1, 1, 1]
    store.sweep("c1")
    store.unpack("c1")
    store.finish("c1", store.facts("c1"))
    assert len([path for path in store.folder("c1").rglob("*") if path.is_file()]) == 3
    assert told(store, UNKNOWN) == before


def test_records_whose_own_seal_holds_survive_a_damaged_result(store: CaseStore) -> None:
    folder = finished(store)
    path = folder / "result.json"
    path.write_text(edited(path.read_text(), '"strength":100.0', '"strength":101.0'))
    assert store.state("c1").damaged == ("result.json",)
    with pytest.raises(DamagedError):
        store.case("c1")
    store.unpack("c1")
    assert store.status("c1") is None
    assert len(store.complete_rounds("c1", thoroughly=True)) == 3
    assert store.has_score("c1", "accuracy")
    assert store.predictions("c1", 1)[Asked(0)].labels.tolist() == [1, 1, 1]


@pytest.mark.parametrize("change", ["gone", "cut off", "of another case", "flipped"])
def test_answers_at_rest_are_not_believed_when_they_are_others(store: CaseStore, change: str) -> None:
    folder = finished(store)
    path = folder / "answers.zip"
    content = path.read_bytes()
    flipped = content[:400] + bytes([content[400] ^ 1]) + content[401:]
    changed = {
        "cut off": content[:-30],
        "of another case": b"PK",
        "flipped": flipped,
    }
    path.unlink() if change == "gone" else path.write_bytes(changed[change])
    state = store.state("c1")
    assert (state.status, state.damaged, state.is_whole) == ("unfinished", ("answers.zip",), False)
    with pytest.raises(DamagedError):
        store.predictions("c1", 0)
    store.unpack("c1")
    assert [name.rpartition("/")[2] for name in store.state("c1").damaged][:1] == ["predictions.npz"]


def test_the_record_of_one_case_is_not_believed_as_that_of_another(store: CaseStore) -> None:
    folder = finished(store)
    folder.rename(folder.with_name("c2"))
    assert store.state("c2").damaged == ("result.json",)
    store.unpack("c2")
    assert store.complete_rounds("c2") == ()


def test_a_case_that_is_damaged_is_known_by_nothing(store: CaseStore) -> None:
    path = unpacked(store) / "rounds" / "1" / "round.json"
    path.write_text(edited(path.read_text(), "0.25", "0.75"))
    state = store.state("c1", known=True)
    assert (state.status, state.damaged, state.known) == ("unfinished", ("rounds/1/round.json",), UNKNOWN)


def test_large_records_stay_files_of_their_own(store: CaseStore) -> None:
    folder = unpacked(store)
    store.write_score("c1", "large", np.random.default_rng(0).random((1, 50_000)), [])
    store.finish("c1", store.facts("c1"))
    assert (folder / "scores" / "large.json").exists()
    known = store.state("c1", known=True).known
    assert (known.rounds, len(known.files)) == (None, 9)
    assert told(store, known) == told(store, UNKNOWN)
