"""The command `ianvs`: a thin shell over the Python API.

Nothing heavy is imported here: each command imports what it needs when it is called.
"""

import argparse
import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ianvs.base.errors import IanvsError
from ianvs.base.package import JOB_FILE, own_version, shipped_jobs
from ianvs.base.secrets import hide_secrets
from ianvs.base.visible_text import visible
from ianvs.cli.ascii_streams import write_what_can_be_written
from ianvs.cli.parser import Parser, subparsers_of

_DESCRIPTION = """\
Examines continual-learning algorithms and ranks them.

  ianvs new job mine                       write a small job to begin with; also algorithm, metric, dataset, paradigm
  ianvs list algorithms                    what a file can name: also scenarios, metrics, datasets, networks, jobs, ...
  ianvs show EWC                           one of them: what it does, its options, types and defaults
  ianvs -f benchmarkingjob.yaml            run what is not finished, write and show the leaderboard
  ianvs -f digits_class_incremental        the same with a job that comes with ianvs
  ianvs jobs [NAME]                        list the jobs that come with ianvs, or print the files of one
  ianvs validate -f benchmarkingjob.yaml   make every check of a run, train nothing
  ianvs plan -f benchmarkingjob.yaml       list the test cases: new, finished, failed, and why
  ianvs exam -f benchmarkingjob.yaml       show the rounds, test sets and rules; --save FILE to share them
  ianvs status -f benchmarkingjob.yaml     how a job stands that runs in another terminal
  ianvs logs CASE -f benchmarkingjob.yaml  what a case printed; CASE is the beginning of its id
  ianvs report -f benchmarkingjob.yaml     write and show the leaderboard of what is stored
  ianvs plot -f benchmarkingjob.yaml       charts for a paper, as svg and pdf: over rounds, over hyperparameters
  ianvs prune -f benchmarkingjob.yaml      what the workspace could do without, with sizes; --yes removes it
  ianvs compare A B                        what differs between workspaces, and what got better or worse
  ianvs merge A B --out DIR                results of several workspaces in a new one, one leaderboard
  ianvs export -f JOB --to parquet --out D results for pandas, MLflow, TensorBoard, W&B, Hugging Face
  ianvs metrics                            list the metrics and their definitions
  ianvs migrate JOB --out DIR              write a job for KubeEdge Ianvs in our own form
  ianvs examples CHECKOUT                  try every job of a checkout of KubeEdge Ianvs, and write one table
  ianvs doctor                             whether what a run needs is here, and what to do where it is not
  ianvs schema testenv                     the JSON schema of a file, for editors
  ianvs dataset prepare NAME --root --out  index files for a dataset as it was downloaded
  ianvs metrics compute FILE               every metric of a score matrix (json or csv), as json
"""

GROUPS: Mapping[str, str] = {
    "run validate prepare plan exam": "ianvs.cli.run_command:add_commands",
    "status logs prune report": "ianvs.cli.stored_commands:add_commands",
    "plot": "ianvs.cli.plot_command:add_plot",
    "new": "ianvs.cli.installed_commands:add_new",
    "list show": "ianvs.cli.installed_commands:add_list",
    "compare merge": "ianvs.cli.stored_commands:add_comparing",
    "jobs migrate": "ianvs.cli.installed_commands:add_jobs",
    "examples": "ianvs.cli.ianvs_examples.examples_command:add_examples",
    "metrics": "ianvs.cli.installed_commands:add_metrics",
    "schema": "ianvs.cli.installed_commands:add_schema",
    "export": "ianvs.cli.stored_commands:add_export",
    "cache": "ianvs.cli.stored_commands:add_cache",
    "doctor": "ianvs.cli.installed_commands:add_doctor",
    "dataset": "ianvs.testenv.datasets.dataset_command:add_commands",
    "completion": "ianvs.cli.completion_command:add_commands",
}
"""Commands in the order of the help, and what adds them to a parser. It is imported when one of them is called."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    0: success, 1: a case failed or got worse, 2: wrong input, 130: interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    write_what_can_be_written()
    if not given:
        command_line().print_help()
        return 2
    options = _parsed(given)
    if "numpy" not in sys.modules:
        # Our own sums are small: more threads of numpy's library would only wait for work, which costs a report of
        # thousands of cases a tenth of its time. Engines give cases as many as the job says.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    # Slurm and Kubernetes end a job by SIGTERM: it ends as by Ctrl-C.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if hasattr(options, "job") and hasattr(options, "file"):
            options.file = _job(options)
            if "ianvs.api" not in sys.modules:
                # Without garbage collection imports take a sixth less, and later collections pass over what they made.
                gc.disable()
                importlib.import_module("ianvs.api")
                gc.freeze()
                gc.enable()
        status: int = options.command(options)
        sys.stdout.flush()
        return status
    except IanvsError as error:
        print(visible(hide_secrets(str(error), environment=os.environ)), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `ianvs plan ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _parsed(given: list[str]) -> argparse.Namespace:
    """Return the parsed arguments. Raises SystemExit with a suggestion for unknown ones."""
    names = " ".join(GROUPS).split()
    first = given[0]
    if first in ("-h", "--help", "--version"):
        parser = command_line()
    else:
        if first not in names:
            if not (first.startswith("-") or Path(first).exists() or first in shipped_jobs()):
                command_line().command_unknown(first, dict.fromkeys(names))
            given.insert(0, "run")  # `ianvs -f JOB`, as Ianvs's users type it
        parser = command_line(given[0])
    options, unknown = parser.parse_known_args(given)
    if unknown:
        command = subparsers_of(parser)[given[0]]
        for word in given[1:]:
            inner = subparsers_of(command).get(word)
            command = command if inner is None else inner
        assert isinstance(command, Parser)
        command.option_unknown(unknown[0])
    return options


def _job(options: argparse.Namespace) -> Path:
    """Return the job's file: from -f, from the positional argument, or the only one in this folder."""
    if options.file is not None and options.job is not None:
        raise IanvsError(f"two jobs are named, {options.job} and {options.file}. Name one.", code="invalid-argument")
    if (path := options.file or options.job) is not None:
        return Path(path)
    if not Path(JOB_FILE).is_file():
        raise IanvsError(
            f"no job is named, and there is no {JOB_FILE} here. Name one with -f: a file, a folder with one in it, or "
            "a name of `ianvs list jobs`; `ianvs new job NAME` writes one.",
            code="missing-file",
        )
    return Path(JOB_FILE)


def command_line(command: str = "") -> Parser:
    """Return the parser of all commands, or of `command` and those of its group."""
    parser = Parser(prog="ianvs", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    if not command:
        parser.add_argument("--version", action="version", version=f"ianvs {own_version()}", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for names, where in GROUPS.items():
        if not command or command in names.split():
            module, _, name = where.partition(":")
            getattr(importlib.import_module(module), name)(commands)
    return parser
