"""`ianvs jobs`: the jobs that come with ianvs, and their files. `ianvs migrate`: jobs of KubeEdge Ianvs."""

from __future__ import annotations

import argparse

__all__ = ["add_commands"]


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("jobs", help="list the jobs that come with ianvs, or print the files of one")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this job's files, each below its path")
    parser.set_defaults(command=_jobs)
    help_ = "write a job for KubeEdge Ianvs in our own form, with a comment at each change"
    parser = commands.add_parser("migrate", help=help_)
    parser.add_argument("job", metavar="JOB", help="benchmarkingjob.yaml as Ianvs takes it")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the files go; plugins stay where they are")
    parser.add_argument("--root", metavar="DIR", help="a further folder that relative paths may start from")
    parser.set_defaults(command=_migrate)


def _jobs(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ianvs.base.shipped import job_path, shipped_jobs
    from ianvs.config.load import files_of_job

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


def _migrate(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ianvs import api
    from ianvs.base.errors import shown_path

    files = api.migrate(options.job, options.out, root=options.root)
    for file, text in files.items():
        comments = sum(line.lstrip().startswith("#") for line in text.splitlines()) - 1
        print(f"{shown_path(file)}: {comments} comment{'s' * (comments != 1)}")
    print(f"\n`ianvs validate -f {shown_path(Path(next(iter(files))))}` tells what is missing.")
    return 0
