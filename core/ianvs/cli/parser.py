"""The parser of the command line, and the arguments and output that commands about a job share.

Words that other tools use for a command or an option are answered with the name that ianvs uses.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ianvs.base.errors import InvalidValue, ValidationError, closest, counted_cases
from ianvs.base.secrets import without_secret
from ianvs.base.visible_text import visible

if TYPE_CHECKING:
    from ianvs.api import Results


# Commands of Optuna, benchopt, lm-eval, MTEB, Avalanche and package managers -> the command of ianvs.
_FOREIGN_COMMANDS: Mapping[str, str] = {
    "ls available search": "`ianvs list jobs`, also algorithms, metrics and others",
    "init create create-study generate scaffold startproject add": "ianvs new job NAME",
    "start execute eval evaluate benchmark train fit optimize": "ianvs run JOB",
    "results leaderboard publish best-trial table": "ianvs report JOB",
    "dashboard ui view serve web": "ianvs report JOB --open",
    "chart charts draw figure figures": "ianvs plot JOB",
    "check lint check-config test": "ianvs validate JOB",
    "tasks benchmarks studies available-tasks available_tasks": "ianvs list jobs",
    "models methods solvers strategies algorithm algorithms": "ianvs list algorithms",
    "sys-info info env version diagnose": "ianvs doctor",
    "dry-run queue trials": "ianvs plan JOB",
    "log cat tail": "ianvs logs CASE JOB",
    "history": "ianvs compare A B C",
} | {kind: f"ianvs list {kind}" for kind in ("scenarios", "datasets", "networks", "paradigms", "engines")}
_FOREIGN_OPTIONS: Mapping[str, str] = {
    "--tasks --task --benchmark --study --study-name": "`ianvs list jobs`, and -f JOB",
    "--model --models --solver --algorithm --method": "--only NAME, of the job's",
    "--list --list-tasks --available": "`ianvs list KIND`",
    "--n-trials --n_trials --trials --max-runs --max_runs --n-repetitions": "--limit N",
    "--seed --seeds": "--set 'seeds=[0, 1, 2]'",
    "--output --output_path --output-folder --output_folder -o --storage": "--workspace DIR",
    "--dataset --data": "--set dataset.name=NAME",
    "--metric --metrics": "--set 'metrics=[accuracy, BWT]'",
    "--scenario": "--set scenario=NAME",
    "--lr": "--set learning_rate=VALUE",
    "--config -c": "-f JOB",
    "--job": "-f JOB, or --jobs N for how many cases at a time",
    "--force --overwrite --no-cache --restart": "--rerun all",
    "--resume --continue": "nothing: a run goes on where it stopped",
    "--n-jobs --n_jobs --workers --num-workers": "--jobs N",
    "--gpu --gpus --cuda": "--device cuda",
    "--timeout": "--set limits.case_seconds=N",
    "-q": "--quiet",
    "-v": "--verbose, or --version",
}


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that accepts no abbreviated options: an abbreviation could later become ambiguous."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    def command_unknown(self, name: str, commands: Mapping[str, object]) -> NoReturn:
        """Exit with status 2 and name the command of ianvs that is meant, if there is one like it."""
        hint = _meant(_FOREIGN_COMMANDS, name, commands) or " `ianvs --help` lists the commands."
        self._end(f"unknown command '{name}', and there is no job of that name.{hint}")

    def option_unknown(self, given: str) -> NoReturn:
        """Exit with status 2 and name the option of ianvs that is meant.

        An option unknown everywhere may be meant as a hyperparameter.
        """
        name, equals, value = given.partition("=")
        spellings = [spelling for action in self._actions for spelling in action.option_strings]
        if not name.startswith("-"):
            self._end(f"'{given}' is more than `{self.prog}` takes. `{self.prog} --help` shows what that is.")
        hint = _meant(_FOREIGN_OPTIONS, name, spellings)
        if not hint and "--set" in spellings and name.startswith("--"):
            key = name.lstrip("-").replace("-", "_")
            hint = f" A value of the files is set by --set, as in `--set {key}={value if equals else 'VALUE'}`."
        self._end(f"`{self.prog}` has no option {name}.{hint or f' `{self.prog} --help` lists them.'}")

    def _end(self, message: str) -> NoReturn:
        self.exit(2, f"{message}\n")


def _meant(foreign: Mapping[str, str], name: str, choices: Iterable[str]) -> str:
    ours = next((answer for words, answer in foreign.items() if name in words.split()), None)
    if ours is not None:
        return f" Here it is {ours}." if ours.startswith(("-", "`", "nothing")) else f" Here it is `{ours}`."
    return closest(name, choices)


def subparsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser by name."""
    groups = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: command for group in groups for name, command in group.choices.items()}


def add_command(
    commands: argparse._SubParsersAction[Any], name: str, help_: str, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command. command: the function that is called with the parsed options."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help_)
    parser.set_defaults(command=command)
    return parser


def add_job(parser: argparse.ArgumentParser, *, selects: bool = True) -> None:
    """Add the job, and the options that replace values in its files. selects: whether cases can be selected."""
    about = "benchmarkingjob.yaml, a folder with one, or a name of `ianvs list jobs`; default: the one here"
    parser.add_argument("job", nargs="?", type=path_text, metavar="JOB", help=about)
    spellings = ("-f", "--file", "--benchmarking_config_file")  # the last one is the option of Ianvs
    parser.add_argument(*spellings, dest="file", type=path_text, metavar="JOB", help="the same")
    parser.add_argument("--workspace", type=path_text, metavar="DIR", help="where results go, over what the file says")
    parser.add_argument(
        "--root", type=path_text, metavar="DIR", help="folder of the data, over dataset.root of the testenv"
    )
    help_ = "a value over what the files say, as learning_rate=0.1, scenario.rounds=10, ewc.strength=5; may be repeated"
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help=help_)
    if selects:
        help_ = "only cases that fulfil this, as ewc,seed=0; may be repeated"
        parser.add_argument("--only", action="append", metavar="WHICH", help=help_)
        parser.add_argument("--limit", type=positive, metavar="N", help="only the first N cases, for a look")


def path_text(text: str) -> str:
    """Return a path, or a text that begins with one, with `${NAME}` and `~` replaced as in the files of a job."""
    if "$" in text:
        from ianvs.config.paths import expand  # pydantic, which not all commands need

        try:
            text = expand(text, os.environ)
        except InvalidValue as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return str(Path(text).expanduser()) if text.startswith("~") else text


def to_path(text: str) -> Path:
    """Return a path with `${NAME}` and `~` replaced as in the files of a job."""
    return Path(path_text(text))


def positive(text: str) -> int:
    """Return a number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 1 or more")
    return number


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that all commands about a job share, and the selected cases where they can be selected."""
    names = ("workspace", "root", "settings", "only", "limit")
    settings: dict[str, Any] = {name: getattr(options, name) for name in names if name in options}
    if settings.get("only"):
        settings["only"] = ";".join(settings["only"])
    return settings


def job_arguments(options: argparse.Namespace) -> str:
    """Return the arguments for a further command about the same job, without secrets."""
    parts = ["-f", str(options.file)]
    for name in ("workspace", "root"):
        if (value := getattr(options, name)) is not None:
            parts += [f"--{name}", str(value)]
    for setting in options.settings:
        parts += ["--set", without_secret(setting)]
    return shlex.join(parts)


def counted(states: Counter[str]) -> str:
    """Return the number of cases in each state, in words."""
    return f"{counted_cases(states.total())}: " + ", ".join(f"{count} {state}" for state, count in states.items())


def warn(warnings: Sequence[ValidationError]) -> None:
    for warning in warnings:
        print(visible(f"warning: {warning}"), file=sys.stderr)


def show(results: Results, job: str, *, explain: bool = False) -> None:
    """Print the leaderboard, and where its files are. job: the arguments of a further command about the job."""
    from ianvs.results.report.terminal import render
    from ianvs.store.job_store import report_folder

    render(results.leaderboard, explain=explain)
    if failed := results.leaderboard.failures:
        row, failure = failed[0]
        others = f"; {len(failed) - 1} more failed, see `ianvs status {job}`" if len(failed) > 1 else ""
        print(f"`ianvs logs {failure.id[:8]} {job}` shows why {row.algorithm} failed{others}.")
    if not explain and results.leaderboard.rows:
        print(f"`ianvs report {job} --explain` says what the columns mean, and how sure the ranks are.")
    print(f"files: {os.path.relpath(report_folder(results.workspace / results.name))}")
