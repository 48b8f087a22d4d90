"""What users of other tools type first works, or is answered with what works here."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ianvs.cli import main
from tests.errors import printed
from tests.jobs import MAJORITY, write_job


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("ls tasks", "`ianvs list jobs`"),  # lm-eval
        ("--tasks list", "`ianvs list jobs`"),
        ("run mine --model ewc", "--only NAME"),
        ("run mine --tasks digits", "-f JOB"),
        ("run mine --output_path out", "--workspace DIR"),
        ("run mine --seed 3", "--set 'seeds=[0, 1, 2]'"),
        ("available_tasks", "`ianvs list jobs`"),  # MTEB
        ("leaderboard", "`ianvs report JOB`"),
        ("create-study", "`ianvs new job NAME`"),  # Optuna
        ("studies", "`ianvs list jobs`"),
        ("run mine --n-trials 20", "--limit N"),
        ("dashboard", "`ianvs report JOB --open`"),
        ("best-trial", "`ianvs report JOB`"),
        ("run mine --solver ewc", "--only NAME"),  # benchopt
        ("run mine --max-runs 3", "--limit N"),
        ("run mine --n-jobs 4", "--jobs N"),
        ("sys-info", "`ianvs doctor`"),
        ("init mine2", "`ianvs new job NAME`"),
        ("train mine", "`ianvs run JOB`"),
        ("check mine", "`ianvs validate JOB`"),
        ("run mine --lr 0.1", "--set learning_rate=VALUE"),
        ("run mine --batch-size 8", "--set batch_size=VALUE"),
        ("run mine --job 2", "--jobs N"),  # no abbreviations
        ("run mine --work ws", "--workspace"),
        ("repot", "'report'"),
        ("gibberish", "`ianvs --help`"),
        ("plan mine more", "'more'"),
    ],
)
def test_the_way_that_works_is_named(
    typed: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(tmp_path / "mine")
    with pytest.raises(SystemExit) as end:
        main(shlex.split(typed))
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert answer in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("typed", ["plan mine", "plan -f mine", "mine --dry-run", "run mine --dry-run", "list metric"])
def test_these_work(typed: str, tmp_path: Path) -> None:
    write_job(tmp_path / "mine")
    assert main(shlex.split(typed)) == 0


def test_a_job_in_this_folder_need_not_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 2
    printed(capsys.readouterr().err)
    write_job(tmp_path)
    assert main(["plan"]) == 0
    assert main(["plan", "one", "-f", "two"]) == 2


def test_list_of_what_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "models"]) == 2
    printed(capsys.readouterr().err)


def test_a_report_of_nothing_says_so_and_where_it_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path)
    for command in ("report", "status", "prune"):
        status = main([command, "--workspace", "nowhere"])
        printed(capsys.readouterr().err)
        assert status == (0 if command == "status" else 2)
    assert not (tmp_path / "nowhere" / "test").exists()


def test_a_failure_prints_the_command_that_shows_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, hyperparameters="- fail_in_round: {values: [2]}", job="seeds: [0]", engine="local")
    assert main(["-f", "benchmarkingjob.yaml", "--workspace", "elsewhere"]) == 1
    shown = capsys.readouterr()
    commands = [text.split("`")[1] for text in shown.err.splitlines() if "`ianvs logs" in text]
    assert commands
    assert f"`{commands[0]}`" in shown.out
    assert main(shlex.split(commands[0])[1:]) == 0
    assert "RuntimeError: " in capsys.readouterr().out


def test_an_empty_log_says_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path, plugin=MAJORITY, job="seeds: [0]", hyperparameters="", engine="local")
    assert main(["run"]) == 0
    capsys.readouterr()
    assert main(["plan"]) == 0
    case = capsys.readouterr().out[:8]
    assert main(["logs", case]) == 0
    printed(capsys.readouterr().out.replace(case, "<case>"))


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ianvs re", "report"),
        ("ianvs new al", "algorithm"),
        ("ianvs run --li", "--limit"),
        ("ianvs -f digits_t", "digits_tuning"),
    ],
)
def test_bash_completes(line: str, offered: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    words = line.split()
    ask = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _ianvs; echo ${{COMPREPLY[@]}}"
    script = f"complete() {{ :; }}\n{capsys.readouterr().out}\n{ask}"
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert offered in found.stdout.split()
    assert not found.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(("line", "offered"), [("ianvs val", "validate"), ("ianvs list me", "metrics")])
def test_fish_completes(line: str, offered: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    (tmp_path / "ianvs.fish").write_text(capsys.readouterr().out)
    asked = f"source {tmp_path}/ianvs.fish; complete -C '{line}'"
    found = subprocess.run(["fish", "-c", asked], capture_output=True, text=True, check=True)
    assert offered in [one.split("\t")[0] for one in found.stdout.splitlines()]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(("line", "offered"), [("ianvs val", "validate"), ("ianvs list me", "metrics")])
def test_zsh_completes(line: str, offered: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    (tmp_path / "ianvs.zsh").write_text(capsys.readouterr().out)
    words = line.split()
    ask = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _ianvs; echo ${{COMPREPLY[@]}}"
    asked = f"source {tmp_path}/ianvs.zsh; setopt ksharrays; {ask}"
    found = subprocess.run(["zsh", "-f", "-c", asked], capture_output=True, text=True, check=True)
    assert offered in found.stdout.split()
    assert not found.stderr


@pytest.mark.parametrize(
    "typed",
    [
        "run -f mine --workspace",
        "report -f",
        "validate -f mine --root",
        "plot -f mine --out",
        "compare",
        "doctor --workspace",
    ],
)
def test_variables_in_paths_are_those_of_the_files(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*shlex.split(typed), "$HOME/ws"])
    assert "'$HOME/ws': variables have braces here. Write ${HOME}." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*shlex.split(typed), "${NO_SUCH_VARIABLE}/ws"])
    assert "the variable NO_SUCH_VARIABLE is not set." in capsys.readouterr().err


def test_a_variable_in_the_workspace_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path)
    monkeypatch.setenv("RESULTS", str(tmp_path / "elsewhere"))
    assert main(["run", str(job), "--workspace", "${RESULTS}/ws", "--quiet"]) == 0
    assert (tmp_path / "elsewhere" / "ws").is_dir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert main(["run", str(job), "--workspace", "~/ws", "--quiet"]) == 0
    assert (tmp_path / "home" / "ws").is_dir()


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("mien", "Did you mean the folder 'mine'?"),
        ("digits_tunning", "Did you mean 'digits_tuning'?"),
        ("something", "Here are: mine. `ianvs list jobs` lists those that come with ianvs."),
        ("mine/benchmarkingjob.yml", "Did you mean 'benchmarkingjob.yaml'?"),
        ("mien/benchmarkingjob.yaml", "Did you mean 'mine/benchmarkingjob.yaml'?"),
    ],
)
def test_a_misspelt_job_gets_the_folder_here_first(
    typed: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(tmp_path / "mine")
    assert main(["-f", typed]) == 2
    assert answer in capsys.readouterr().err
