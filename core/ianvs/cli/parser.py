"""The parser of the command line, and what it answers to words that other tools have for the same."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

# What users of Optuna, benchopt, lm-eval, MTEB, Avalanche and of package managers type first -> what does it here.
_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("ls", "available", "search"), "`ianvs list jobs`, also algorithms, metrics and others"),
    **dict.fromkeys(
        ("init", "create", "create-study", "generate", "scaffold", "startproject", "add"), "ianvs new job NAME"
    ),
    **dict.fromkeys(("start", "execute", "eval", "evaluate", "benchmark", "train", "fit", "optimize"), "ianvs run JOB"),
    **dict.fromkeys(("results", "leaderboard", "publish", "best-trial", "plot", "table"), "ianvs report JOB"),
    **dict.fromkeys(("dashboard", "ui", "view", "serve", "web"), "ianvs report JOB --open"),
    **dict.fromkeys(("check", "lint", "check-config", "test"), "ianvs validate JOB"),
    **dict.fromkeys(("tasks", "benchmarks", "studies", "available-tasks", "available_tasks"), "ianvs list jobs"),
    **dict.fromkeys(("models", "methods", "solvers", "strategies", "algorithm", "algorithms"), "ianvs list algorithms"),
    **dict.fromkeys(("sys-info", "info", "env", "version", "diagnose"), "ianvs doctor"),
    **dict.fromkeys(("dry-run", "queue", "trials"), "ianvs plan JOB"),
    **dict.fromkeys(("log", "cat", "tail"), "ianvs logs CASE JOB"),
    **{kind: f"ianvs list {kind}" for kind in ("scenarios", "datasets", "networks", "paradigms", "engines")},
}
_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--tasks", "--task", "--benchmark", "--study", "--study-name"), "`ianvs list jobs`, and -f JOB"),
    **dict.fromkeys(("--model", "--models", "--solver", "--algorithm", "--method"), "--only NAME, of the job's"),
    **dict.fromkeys(("--list", "--list-tasks", "--available"), "`ianvs list KIND`"),
    **dict.fromkeys(
        ("--n-trials", "--n_trials", "--trials", "--max-runs", "--max_runs", "--n-repetitions"), "--limit N"
    ),
    **dict.fromkeys(("--seed", "--seeds"), "--set 'seeds=[0, 1, 2]'"),
    **dict.fromkeys(
        ("--output", "--output_path", "--output-folder", "--output_folder", "-o", "--storage"), "--workspace DIR"
    ),
    **dict.fromkeys(("--dataset", "--data"), "--set dataset.name=NAME"),
    **dict.fromkeys(("--metric", "--metrics"), "--set 'metrics=[accuracy, BWT]'"),
    **dict.fromkeys(("--scenario",), "--set scenario=NAME"),
    **dict.fromkeys(("--lr",), "--set learning_rate=VALUE"),
    **dict.fromkeys(("--config", "-c"), "-f JOB"),
    "--job": "-f JOB, or --jobs N for how many cases at a time",
    **dict.fromkeys(("--force", "--overwrite", "--no-cache", "--restart"), "--rerun all"),
    **dict.fromkeys(("--resume", "--continue"), "nothing: a run goes on where it stopped"),
    **dict.fromkeys(("--n-jobs", "--n_jobs", "--workers", "--num-workers"), "--jobs N"),
    **dict.fromkeys(("--gpu", "--gpus", "--cuda"), "--device cuda"),
    **dict.fromkeys(("--timeout",), "--set limits.case_seconds=N"),
    **dict.fromkeys(("-q",), "--quiet"),
    **dict.fromkeys(("-v",), "--verbose, or --version"),
}


class Parser(argparse.ArgumentParser):
    """Takes no abbreviation of an option, which would mean another one as soon as there are two."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    def command_unknown(self, name: str, known: Mapping[str, object]) -> NoReturn:
        """End with what does it here."""
        hint = _meant(_COMMANDS.get(name), name, known) or " `ianvs --help` lists the commands."
        self._end(f"there is no command '{name}', nor a job of that name.{hint}")

    def option_unknown(self, given: str) -> NoReturn:
        """End with what does it here; an option that nobody has may be meant for a hyperparameter."""
        name, equals, value = given.partition("=")
        known = [spelling for action in self._actions for spelling in action.option_strings]
        if not name.startswith("-"):
            self._end(f"'{given}' is more than `{self.prog}` takes. `{self.prog} --help` shows what that is.")
        hint = _meant(_OPTIONS.get(name), name, known)
        if not hint and "--set" in known and name.startswith("--"):
            key = name.lstrip("-").replace("-", "_")
            hint = f" A value of the files is set by --set, as in `--set {key}={value if equals else 'VALUE'}`."
        self._end(f"`{self.prog}` has no option {name}.{hint or f' `{self.prog} --help` lists them.'}")

    def _end(self, message: str) -> NoReturn:
        self.exit(2, f"{message}\n")


def _meant(here: str | None, name: str, known: Iterable[str]) -> str:
    if here is not None:
        return f" Here it is {here}." if here.startswith(("-", "`", "nothing")) else f" Here it is `{here}`."
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def subparsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Its commands by name."""
    groups = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: command for group in groups for name, command in group.choices.items()}


def job_command(
    commands: argparse._SubParsersAction[Any], name: str, help_: str, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command about a job."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_)
    parser.set_defaults(command=command)
    return parser


def add_job(parser: argparse.ArgumentParser, *, selects: bool = True) -> None:
    """Add the job, and what takes the place of things in its files. selects: whether it may be some of the cases."""
    from pathlib import Path

    about = "benchmarkingjob.yaml, a folder with one, or a name of `ianvs list jobs`; default: the one here"
    parser.add_argument("job", nargs="?", type=Path, metavar="JOB", help=about)
    spellings = ("-f", "--file", "--benchmarking_config_file")  # the last is Ianvs's
    parser.add_argument(*spellings, dest="file", type=Path, metavar="JOB", help="the same")
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="where results go, over what the file says")
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of the data, over dataset.root of the testenv")
    help_ = "a value over what the files say, as learning_rate=0.1, scenario.rounds=10, ewc.strength=5; may be repeated"
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help=help_)
    if selects:
        parser.add_argument("--only", metavar="WHICH", help="only cases that fulfil this, as ewc,seed=0")
        parser.add_argument("--limit", type=positive, metavar="N", help="only the first N cases, for a look")


def positive(text: str) -> int:
    """A number of 1 or more."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 1 or more")
    return number
