"""Results in the forms of other tools, each read back with the tool's own reader. Nothing leaves the machine."""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import DatasetCard, ModelCard

import ianvs
from ianvs.api import export
from ianvs.base.errors import IanvsError
from ianvs.base.types import CaseResult
from ianvs.cli import main
from ianvs.results.exports import exporting
from ianvs.results.exports.case_runs import CaseRun, case_runs
from ianvs.results.exports.parquet_export import tables
from ianvs.results.stored import Results
from tests.contract.results.comparing.small_jobs import write_job
from tests.edits import edited
from tests.errors import errors_of, located, printed, raised

METRICS = "[{name: accuracy}, {name: BWT}, {name: AA}, {name: model_size_mb}]"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three competitors, with two seeds each; the third fails for seed 1."""
    folder = tmp_path_factory.mktemp("job")
    file = write_job(folder, {"clean": "[0.0]", "noisy": "[1.5, 8]"}, [0, 1], metrics=METRICS)
    failing = (folder / "clean.yaml").read_text() + "        - fail_for_seed: {values: [1]}\n"
    (folder / "failing.yaml").write_text(failing)
    listed = "      - {name: clean, url: ./clean.yaml}\n"
    text = file.read_text()
    assert listed in text
    file.write_text(edited(text, listed, f"{listed}      - {{name: failing, url: ./failing.yaml}}\n"))
    ianvs.run(file)
    return file


@pytest.fixture(scope="module")
def results(job: Path) -> Results:
    return ianvs.load_results(job.parent / "ws")


def by_name(results: Results) -> dict[str, CaseRun]:
    return {run.name: run for run in case_runs(results)}


def finished(results: Results) -> list[CaseResult]:
    return [result for result in results if result.status == "finished"]


def test_a_run_has_every_score_after_every_round_and_ends_with_the_numbers_of_the_leaderboard(results: Results) -> None:
    runs = by_name(results)
    assert len(runs) == len(results)
    for run in runs.values():
        if run.result.status != "finished":
            assert run.tags["failure"] == "RuntimeError: plugin.py:13: no luck"
            assert not run.numbers.get("final/accuracy")
            continue
        values = run.result.matrices["accuracy"].values
        for j, test in enumerate(run.result.matrices["accuracy"].tests):
            assert run.series[f"test/accuracy/{test}"] == tuple(enumerate(values[:, j].tolist()))
        means = [value for _, value in run.series["score/accuracy"]]
        assert means == pytest.approx(values.mean(axis=1).tolist())
        assert means[-1] == run.numbers["final/accuracy"] == run.result.metrics["accuracy"]
        # AA after round k, by its definition: the mean over the test sets of the first k rounds.
        expected = [values[k, :k].mean() for k in range(1, len(values))]
        assert [value for _, value in run.series["metric/AA"]] == pytest.approx(expected)
        assert [k for k, _ in run.series["cost/train_seconds"]] == [0, 1, 2]
        assert sum(v for _, v in run.series["cost/train_seconds"]) == pytest.approx(run.numbers["final/train_seconds"])
        assert run.params["seed"] == run.result.case.seed
        assert "torch" in run.tags["provenance.packages"]


def test_tables_are_tidy_and_have_one_type_in_each_column(results: Results) -> None:
    found = tables(results)
    cases, scores, board = found["cases"], found["scores"], found["leaderboard"]
    assert cases["case"].is_unique and len(cases) == len(results)
    assert not scores.duplicated(["case", "algorithm", "metric", "round", "test"]).any()
    for result in finished(results):
        own = scores[(scores["case"] == result.case.id) & (scores["metric"] == "accuracy")]
        matrix = own.pivot(index="round", columns="test", values="value")[list(result.matrices["accuracy"].tests)]
        np.testing.assert_array_equal(matrix.to_numpy(float), result.matrices["accuracy"].values)
    means = cases[cases["status"] == "finished"].groupby("row")["accuracy"].mean()
    complete = board[board["rank"].notna()]
    assert complete["accuracy"].tolist() == pytest.approx(means[complete["row"]].tolist())
    assert board["rank"].dtype == "Int64" and board["place"].tolist()[-1] == "-"
    assert cases["peak_gpu_memory_mb"].dtype == "Float64"  # though nothing was measured
    assert not any(str(results.workspace) in text for text in cases["directory"])


def test_a_hyperparameter_that_is_a_number_here_and_a_text_there_is_a_text(results: Results) -> None:
    first, second, *rest = results.case_list
    chosen = [
        replace(first, hyperparameters={"width": "auto", "many": 2**70, "depth": 3}),
        replace(second, hyperparameters={"width": 3, "many": 1, "lr": 1, "flag": True}),
        *(replace(case, hyperparameters={"lr": 0.5}) for case in rest),
    ]
    cases = tables(replace(results, case_list=tuple(chosen)))["cases"]
    assert cases["hp.width"].tolist()[:2] == ["auto", "3"]
    assert cases["hp.many"].tolist()[:2] == [str(2**70), "1"]
    assert (cases["hp.depth"].dtype, cases["hp.flag"].dtype, cases["hp.lr"].dtype) == ("Int64", "boolean", "Float64")
    assert cases["hp.depth"].tolist()[0] == 3 and cases["hp.depth"].isna().sum() == len(results) - 1


def test_parquet_reads_back_with_pyarrow(job: Path, results: Results, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = export(job, "parquet", tmp_path / "out")
    for name, frame in tables(results).items():
        table = parquet.read_table(out / f"{name}.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(out / f"{name}.parquet"), frame, check_dtype=False)
        told = {field.name: (field.metadata or {}).get(b"description", b"") for field in table.schema}
        assert all(told.values()), told
    note = json.loads((out / "export.json").read_text())
    assert (note["cases"], note["finished"], note["job"]) == (len(results), len(finished(results)), "small")


def test_mlflow_reads_back_with_its_client(
    job: Path, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    out = export(job, "mlflow", tmp_path / "out")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient(tracking_uri=(out / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("small")
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    runs = by_name(results)
    assert found.keys() == {*runs, "leaderboard"}
    for name, run in runs.items():
        theirs = found[name]
        assert theirs.data.params["seed"] == str(run.result.case.seed)
        assert theirs.data.params["hp.noise"] == str(run.params["hp.noise"])
        assert theirs.info.status == ("FINISHED" if run.result.status == "finished" else "FAILED")
        if run.result.status == "finished":
            assert theirs.data.metrics["final/accuracy"] == run.numbers["final/accuracy"]
            steps = [(m.step, m.value) for m in client.get_metric_history(theirs.info.run_id, "score/accuracy")]
            assert sorted(steps) == list(run.series["score/accuracy"])
            tests = [key for key in theirs.data.metrics if key.startswith("test/accuracy/")]
            assert len(tests) == len(run.result.matrices["accuracy"].tests)


def test_tensorboard_reads_back_with_its_reader(job: Path, results: Results, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = export(job, "tensorboard", tmp_path / "out")
    runs = by_name(results)
    assert {path.name for path in out.iterdir() if path.is_dir()} == {*runs, "leaderboard"}
    for name, run in runs.items():
        events = EventAccumulator(str(out / name))
        events.Reload()
        assert {*run.series, *run.numbers} <= {*events.Tags()["scalars"]}
        for series, pairs in run.series.items():
            read = [(event.step, event.value) for event in events.Scalars(series)]
            assert read == [(k, pytest.approx(value)) for k, value in pairs]  # of 32 bits
        [text] = events.Tensors("case/text_summary")
        assert run.result.case.id.encode() in text.tensor_proto.string_val[0]


def wandb_records(file: Path) -> Iterator[object]:
    """W&B's own messages; its file is a log in LevelDB's format: blocks of 32 KiB, pieces of 7 bytes and their data."""
    from wandb.proto import wandb_internal_pb2

    data, at, whole = file.read_bytes(), 7, b""  # it begins with 7 bytes of its own
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole message, or the last piece of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def test_wandb_reads_back_with_its_messages(job: Path, results: Results, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    out = export(job, "wandb", tmp_path / "out")
    runs = by_name(results)
    files = {file.stem.removeprefix("run-"): file for file in out.glob("wandb/offline-run-*/*.wandb")}
    assert files.keys() == {*runs, "leaderboard"}
    for name, run in runs.items():
        config, history, summary = {}, {}, {}
        for record in wandb_records(files[name]):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            elif kind == "history":
                items = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
                history[record.history.step.num] = items
            elif kind == "summary":
                summary |= {"/".join(i.nested_key) or i.key: i.value_json for i in record.summary.update}
        assert config["seed"] == run.result.case.seed and config["algorithm"] == run.result.case.algorithm
        for series, pairs in run.series.items():
            assert [(k, items[series]) for k, items in history.items() if series in items] == list(pairs)
        assert {key: json.loads(value) for key, value in summary.items() if key in run.numbers} == dict(run.numbers)


def test_cards_load_with_huggingface_hub(job: Path, results: Results, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out = export(job, "huggingface", tmp_path / "out")
    card = DatasetCard.load(out / "dataset" / "README.md")
    assert {config["data_files"] for config in card.data.to_dict()["configs"]} == {
        path.name for path in (out / "dataset").glob("*.parquet")
    }
    models = {path.name: ModelCard.load(path / "README.md") for path in (out / "models").iterdir()}
    runs = by_name(results)
    assert {runs[name].result.case.algorithm for name in models} == {"clean", "noisy"}  # `failing` has no rank
    for name, model in models.items():
        told = {one.metric_name: one.metric_value for one in model.data.eval_results}
        asked = ("accuracy", "BWT", "AA", "model_size_mb")
        assert told == {column: runs[name].result.metrics[column] for column in asked}
        of_row = sorted(r.metrics["accuracy"] for r in finished(results) if r.case.row == runs[name].result.case.row)
        assert told["accuracy"] == of_row[0]  # the lower one of two
        assert str(results.workspace) not in model.content


def test_nothing_is_overwritten_and_a_failure_leaves_nothing(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(results: Results, folder: Path) -> None:
        (folder / "half").write_text("half")
        raise IanvsError("no luck", code="failed-plugin")

    def installed(_: str) -> dict[str, EntryPoint]:
        point = EntryPoint("broken", "tests.contract.results.exports.test_exports:broken", exporting.GROUP)
        object.__setattr__(point, "load", lambda: broken)
        return {"broken": point}

    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine")
    arguments = ["export", "-f", str(job), "--to", "parquet", "--out"]
    assert main([*arguments, str(taken)]) == 2
    printed(capsys.readouterr().err)
    assert [path.name for path in taken.iterdir()] == ["mine"]
    monkeypatch.setattr(exporting, "installed", installed)
    assert errors_of(export, job, "broken", tmp_path / "new") == [("failed-plugin", "")]
    assert not (tmp_path / "new").exists()


def test_what_can_not_be_exported_is_said(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["export", "-f", str(job), "--to", "parket", "--out", str(tmp_path / "a")]) == 2
    assert errors_of(export, job, "parket", tmp_path / "a") == [("unknown-name", "")]
    assert main(["export", "-f", str(tmp_path), "--to", "parquet", "--out", str(tmp_path / "a")]) == 2
    assert errors_of(export, tmp_path, "parquet", tmp_path / "a") == [("missing-results", "")]
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    assert main(["export", "-f", str(job), "--to", "parquet", "--out", str(tmp_path / "a")]) == 2
    assert "pip install 'ianvs-bench[parquet]'" in capsys.readouterr().err
    with pytest.raises(IanvsError) as caught:
        export(job, "parquet", tmp_path / "a")
    assert located(raised(caught.value)) == [("missing-package", "")]
    assert not (tmp_path / "a").exists()


def test_an_installed_package_brings_a_form_of_its_own(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the entry point that docs/results.md#export shows."""
    package = tmp_path / "site"
    (package / "mine-1.0.dist-info").mkdir(parents=True)
    (package / "mine_export.py").write_text(
        "def write(results, folder):\n"
        "    (folder / 'seeds.txt').write_text(' '.join(str(result.case.seed) for result in results))\n"
    )
    (package / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (package / "mine-1.0.dist-info" / "entry_points.txt").write_text("[ianvs.exports]\nmine = mine_export:write\n")
    monkeypatch.syspath_prepend(str(package))
    out = export(f"{job.parent / 'ws'}:small", "mine", tmp_path / "out")
    assert (out / "seeds.txt").read_text() == " ".join(str(r.case.seed) for r in ianvs.load_results(job.parent / "ws"))


def test_numbers_of_runs_are_finite(results: Results) -> None:
    for run in case_runs(results):
        assert all(math.isfinite(value) for value in run.numbers.values())
        assert all(math.isfinite(value) for series in run.series.values() for _, value in series)
