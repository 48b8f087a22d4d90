"""`ianvs completion bash|zsh|fish`: a script that completes commands and options, generated from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ianvs.base.package import shipped_jobs
from ianvs.cli.catalogue.name_registry import KINDS
from ianvs.cli.parser import add_command, subparsers_of

_SHELLS = {
    "bash": "ianvs completion bash >> ~/.bashrc",
    "zsh": "ianvs completion zsh >> ~/.zshrc",
    "fish": "ianvs completion fish > ~/.config/fish/completions/ianvs.fish",
}
_JOB = ("-f", "--file", "--from")  # commands that take a job, or a file


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    about = "print a script that completes commands and options in a shell"
    parser = add_command(commands, "completion", about, _completion)
    parser.add_argument("shell", choices=tuple(_SHELLS), help="; ".join(_SHELLS.values()))


def _completion(options: argparse.Namespace) -> int:
    from ianvs.cli.command_line import command_line

    words = {path: _words(path, parser) for path, parser in _commands(command_line(), ())}
    if options.shell == "zsh":
        print("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit")
    script = _fish if options.shell == "fish" else _bash
    print("\n".join(script(words, [*shipped_jobs()])))
    return 0


_Path = tuple[str, ...]  # such as ("metrics", "compute")
_Words = list[tuple[str, str]]  # word, description


def _commands(parser: argparse.ArgumentParser, path: _Path) -> Iterator[tuple[_Path, argparse.ArgumentParser]]:
    yield path, parser
    for name, inner in subparsers_of(parser).items():
        yield from _commands(inner, (*path, name))


def _words(path: _Path, parser: argparse.ArgumentParser) -> _Words:
    """Return the possible words after a command."""
    words: _Words = []
    for action in parser._actions:
        if action.help is argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            words += [(command.dest, command.help or "") for command in action._choices_actions]
        elif action.option_strings:
            words += [(spelling, action.help or "") for spelling in action.option_strings]
        else:
            words += [(str(choice), "") for choice in action.choices or ()]
    if path == ("list",):
        words += [(kind, "") for kind in KINDS]
    return words


def _bash(words: dict[_Path, _Words], jobs: list[str]) -> Iterator[str]:
    yield "_ianvs() {"
    yield '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" path="" word'
    yield "    COMPREPLY=()"
    yield '    for word in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do'
    yield '        case "$path $word" in'
    for path in words:
        if path:
            yield f'            "{" ".join(("", *path))}") path="{" ".join(("", *path))}" ;;'
    yield "        esac"
    yield "    done"
    yield '    case "$previous" in'
    yield f'        {"|".join(_JOB)}) COMPREPLY=($(compgen -f -W "{" ".join(jobs)}" -- "$current")); return ;;'
    yield "    esac"
    yield '    case "$path" in'
    for path, listed in words.items():
        yield f'        "{" ".join(("", *path)) if path else ""}") word="{" ".join(name for name, _ in listed)}" ;;'
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$word" -- "$current"))'
    yield "}"
    yield "complete -o default -F _ianvs ianvs"


def _fish(words: dict[_Path, _Words], jobs: list[str]) -> Iterator[str]:
    yield "complete -c ianvs -f"
    for path, listed in words.items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in path) or "__fish_use_subcommand"
        for word, about in listed:
            description = f" -d {_quoted(about.split(';')[0])}" if about else ""
            if not word.startswith("-"):
                option = f"-a {word}"
            else:
                option = f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}"
                if word in _JOB:
                    option += f" -r -F -a {_quoted(' '.join(jobs))}"
            yield f"complete -c ianvs -n {_quoted(seen)} {option}{description}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
