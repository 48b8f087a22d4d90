"""The command line: commands, progress display, scaffolding, catalogue, schemas, doctor. A thin shell over api.py.

Only the console script imports from here: `main`. This import loads neither torch nor pandas.
"""

from ianvs.cli.command_line import main

__all__ = ["main"]
