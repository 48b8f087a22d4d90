"""A job with secrets in its files: they are nowhere in what the run leaves, and the variables that hold some are."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.cli import main
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

SECRETS = ("sesame-open-1234", "sesame-shut-5678", "hunter-two-22", "s3cret-in-a-query")
GRID = """
- api_keys: {values: [sesame-open-1234, sesame-shut-5678]}
- database: {values: ["postgres://me:hunter-two-22@db.example/x"]}
- token: {values: ["${IANVS_TEST_TOKEN}"]}
- fail_in_round: {values: [null, 2]}
"""
PLUGIN = edited(
    edited(
        edited(MAJORITY, "bias=0,", "bias=0, api_keys='', database='', token='',"),
        "self.bias,",
        "self.remark, self.database, self.bias,",
        count=1,
    ),
    "= bias,",
    "= f'{api_keys} {database}', database, bias,",
    'no luck in round {round}"',
    'no luck with {self.remark}"',
)
# In pieces: the file itself is kept as it is written.
PRINTS = "print(self.remark, 'https://hub.example/m?token=' + '-'.join('s3cret in a query'.split()), flush=True)"
FAILS = "        if round == self.fail_in_round:"
PLUGIN = edited(PLUGIN, FAILS, f"        {PRINTS}\n{FAILS}")


def test_secrets_are_in_no_file_of_ours_and_still_tell_cases_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "somebodys-folder"
    data.mkdir()
    monkeypatch.setenv("IANVS_TEST_DATA", str(data))
    testenv = """
    dataset: {name: digits, root: "${IANVS_TEST_DATA}"}
    scenario: {name: class-incremental, rounds: 5}
    metrics: [{name: accuracy}]
    """
    settings = {"hyperparameters": GRID, "job": "seeds: [0]", "engine": "local"}
    path = write_job(tmp_path / "job", plugin=PLUGIN, testenv=testenv, **settings)
    results = ianvs.run(path)
    assert [found.status for found in results] == ["finished", "failed"] * 2
    assert len({found.case.row for found in results}) == 4
    assert not any(secret in found.remark for found in results for secret in SECRETS)
    left = {file: file.read_bytes() for file in (tmp_path / "job" / "ws").rglob("*") if file.is_file()}
    assert not [(file, secret) for file, text in left.items() for secret in SECRETS if secret.encode() in text]
    failing = next(found for found in results if found.status == "failed")
    for words in (["plan"], ["status"], ["report"], ["logs", failing.case.id]):
        assert main([*words, "-f", str(path)]) == 0
    assert not any(secret in text for text in capfd.readouterr() for secret in SECRETS)
    assert "?token=***" in failing.failure.log.read_text()
    table = (tmp_path / "job" / "ws" / "test" / "rank" / "all_rank.csv").read_text()
    assert "${IANVS_TEST_TOKEN}" in table
    assert "postgres://***@db.example/x" in table
    job = next(text.decode() for file, text in left.items() if file.suffix == ".json" and b'"configuration"' in text)
    assert "${IANVS_TEST_TOKEN}" in job
    assert '"root":"${IANVS_TEST_DATA}"' in job.replace(": ", ":")
