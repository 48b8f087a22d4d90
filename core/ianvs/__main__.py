"""The command `ianvs`, also as `python -m ianvs`. Ctrl-C ends it in one word from its first import on."""

import sys


def main() -> int:
    """Run the command line; its exit status (`ianvs.cli.main`)."""
    try:
        from ianvs.cli import main as command_line

        return command_line()
    except KeyboardInterrupt:  # while the command line is imported or parsed, which is most of the first half second
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
