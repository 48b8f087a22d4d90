"""`ianvs export`: the results of a job in the form of another tool."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["add_commands"]


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("export", help="stored results for pandas, MLflow, TensorBoard, W&B, Hugging Face")
    parser.add_argument(
        *("-f", "--file"),
        dest="file",
        required=True,
        metavar="JOB",
        help="a job file, the name of a job, WORKSPACE, or WORKSPACE:JOB",
    )
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="where the results are, over what the file says")
    parser.add_argument(
        "--to",
        required=True,
        metavar="TOOL",
        help="parquet, mlflow, tensorboard, wandb, huggingface, or what an installed package brings",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder; nothing is overwritten")
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> int:
    from ianvs import api
    from ianvs.base.errors import shown_path

    out = api.export(options.file, options.to, options.out, workspace=options.workspace)
    print(f"files: {shown_path(out)}")
    return 0
