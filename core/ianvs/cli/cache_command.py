"""`ianvs cache`: what the cache of a workspace holds, and what of it nobody has used for long."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("cache", help="what decoded data take on the disk, and making room")
    parser.add_argument("workspace", type=Path, metavar="WORKSPACE", help="a workspace, or the cache itself")
    parser.add_argument(
        "--prune",
        type=float,
        metavar="DAYS",
        help="show what nobody has used for so many days; with --yes, remove it. All of it can be made again",
    )
    parser.add_argument("--yes", action="store_true", help="remove what --prune shows")
    parser.set_defaults(command=_cache)


def _cache(options: argparse.Namespace) -> int:
    from ianvs.base.errors import IanvsError, shown_path
    from ianvs.exam.data.cache_entries import CacheEntry, cache_entries, remove_entries
    from ianvs.exam.data.pace import in_units

    below = options.workspace / "cache"
    cache = below if below.is_dir() else options.workspace
    if not (cache / "digests").is_dir() and cache != below:
        raise IanvsError(f"{shown_path(options.workspace)} is no workspace that holds a cache.")
    if options.yes and options.prune is None:
        raise IanvsError("--yes goes with --prune DAYS, which says what is to be removed.")
    if options.prune is not None and options.prune < 0:
        raise IanvsError(f"--prune {options.prune:g}: expected a number of days, 0 or more.")
    chosen = cache_entries(cache)
    if options.prune is not None:
        chosen = [one for one in chosen if one.unused_for(options.prune)]

    def total(entries: list[CacheEntry]) -> str:
        count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        return f"{count}, {in_units(sum(one.size for one in entries))}"

    for one in chosen:
        days = max(0.0, time.time() - one.used) / 86400
        print(f"{in_units(one.size):>11}  used {days:5.1f} days ago  {one.folder.name[:24]:<26}{one.what}")
    if options.prune is None:
        print(f"{shown_path(cache)}: {total(chosen)}")
    elif options.yes:
        removed = remove_entries(chosen)
        print(f"removed: {total(removed)}")
    else:
        print(f"not used for {options.prune:g} days: {total(chosen)}" + ("; --yes removes them" if chosen else ""))
    return 0
