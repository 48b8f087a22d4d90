"""`ianvs jobs`: the jobs that come with ianvs, and their files."""

from __future__ import annotations

import argparse

__all__ = ["add_commands"]


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `jobs` to the command line."""
    parser = commands.add_parser("jobs", help="list the jobs that come with ianvs, or print the files of one")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this job's files, each below its path")
    parser.set_defaults(command=_jobs)


def _jobs(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ianvs.config.load import files_of_job
    from ianvs.shipped import job_path, shipped_jobs

    if options.name is not None:
        for path in files_of_job(job_path(Path(options.name))):
            print(f"# {path}\n{path.read_text(encoding='utf-8')}")
        return 0
    width = max(map(len, shipped_jobs()))
    for name, file in shipped_jobs().items():
        first = file.read_text(encoding="utf-8").splitlines()[0]
        print(f"{name:<{width}}  {first.removeprefix('#').strip()}")
    print("\n`ianvs -f NAME` runs one; `ianvs jobs NAME` prints its files.")
    return 0
