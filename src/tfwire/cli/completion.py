"""tfwire completion: a script with which a shell completes commands and their options."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import NamedTuple

__all__ = ["command_parsers"]


class _Option(NamedTuple):
    """An option of a subcommand: its spellings, the words that it takes, and its help."""

    spellings: list[str]
    words: list[str]
    help: str


def add_completion(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire completion."""
    parser.add_argument("shell", choices=_SCRIPTS, metavar="SHELL", help="bash, zsh or fish")
    parser.epilog = (
        'For one session: eval "$(tfwire completion bash)". For good, write the script where the '
        "shell looks for it: ~/.local/share/bash-completion/completions/tfwire, "
        "~/.config/fish/completions/tfwire.fish, or a line in ~/.zshrc: "
        'eval "$(tfwire completion zsh)".'
    )
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> int:
    print(_SCRIPTS[options.shell](), end="")
    return 0


def command_parsers() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The help line and the parser of every subcommand."""
    from tfwire.cli import _COMMANDS

    parsers = {}
    for name, (module, help_text) in _COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"tfwire {name}", description=help_text)
        getattr(import_module(f"tfwire.cli.{module}"), f"add_{name}")(parser)
        parsers[name] = (help_text, parser)
    return parsers


def _options(parser: argparse.ArgumentParser) -> list[_Option]:
    return [
        _Option(
            list(action.option_strings), list(map(str, action.choices or ())), action.help or ""
        )
        for action in parser._actions
        if action.option_strings
    ]


def _bash() -> str:
    """A function that knows the options of each subcommand; all else are files."""
    parsers = command_parsers()
    options, words = [], []
    for name, (_, parser) in parsers.items():
        found = _options(parser)
        spellings = " ".join(s for option in found for s in option.spellings)
        options.append(f"        {name}) options='{spellings}' ;;")
        for option in found:
            if option.words:
                patterns = "|".join(f"{name}:{spelling}" for spelling in option.spellings)
                words.append(f"        {patterns}) words='{' '.join(option.words)}' ;;")
    lines = [
        "_tfwire() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local command="${COMP_WORDS[1]}" options= words=',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        COMPREPLY=($(compgen -W '{' '.join(parsers)} --help --version' -- \"$current\"))",
        "        return",
        "    fi",
        '    case "$command:$before" in',
        *words,
        "    esac",
        '    if [ -n "$words" ]; then',
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "        return",
        "    fi",
        '    case "$command" in',
        *options,
        "    esac",
        '    case "$current" in',
        '        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;',
        '        *) COMPREPLY=($(compgen -f -- "$current")) ;;',
        "    esac",
        "}",
        "complete -o filenames -F _tfwire tfwire",
    ]
    return "\n".join(lines) + "\n"


def _zsh() -> str:
    """That of bash, which zsh runs."""
    loaded = "".join(f"autoload -U +X {each} && {each}\n" for each in ("compinit", "bashcompinit"))
    return loaded + _bash()


def _fish() -> str:
    lines = []
    for name, (help_text, parser) in command_parsers().items():
        is_first = "complete -c tfwire -n __fish_use_subcommand -f"
        lines.append(f"{is_first} -a {name} -d {_quoted(help_text)}")
        for option in _options(parser):
            spellings = " ".join(
                f"-l {s[2:]}" if s.startswith("--") else f"-s {s[1:]}" for s in option.spellings
            )
            words = f" -x -a {_quoted(' '.join(option.words))}" if option.words else ""
            text = _quoted(option.help.replace("%(default)s", "default"))
            follows = f"complete -c tfwire -n '__fish_seen_subcommand_from {name}'"
            lines.append(f"{follows} {spellings}{words} -d {text}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A word of fish."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
