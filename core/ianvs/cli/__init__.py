"""The command line: commands, progress, first files, what can be named, schemas, doctor. A thin shell over api.py.

Nobody imports from here but the console script: `main`. Neither torch nor pandas is loaded by this import.
"""

from ianvs.cli.command_line import main

__all__ = ["main"]
