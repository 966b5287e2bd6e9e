"""tfwire completion: a script with which a shell completes commands and their options."""

from __future__ import annotations

import argparse
import re
from shlex import quote as _quoted
from typing import NamedTuple

_FILES = ("FILE", "IN", "OUT", "A", "B")  # values that are files, as --help names them


class _Argument(NamedTuple):
    """An option of a subcommand, or what it takes besides.

    Attributes:
        spellings: Of an option.
        value: What follows it, as --help names it; none after a flag.
        is_file: Whether that is a file or a folder.
        words: The words that it may be; none: any.
        repeated: Whether it may be given several times.
        help: One sentence.
    """

    spellings: list[str]
    value: str
    is_file: bool
    words: list[str]
    repeated: bool
    help: str


def add_completion(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire completion."""
    parser.add_argument("shell", choices=_SCRIPTS, metavar="SHELL", help="bash, zsh or fish")
    parser.epilog = (
        'For one session: eval "$(tfwire completion bash)", or the same with zsh; with fish: '
        "tfwire completion fish | source. For good, write the script where the shell looks for it: "
        "~/.local/share/bash-completion/completions/tfwire, _tfwire in a folder of zsh's $fpath, "
        "or ~/.config/fish/completions/tfwire.fish."
    )
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> int:
    print(_SCRIPTS[options.shell](), end="")
    return 0


def command_parsers() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The help line and the parser of every subcommand."""
    from tfwire.cli import command_parser

    return {name: (str(each.description), each) for name, each in command_parser()[1].items()}


def _arguments(parser: argparse.ArgumentParser) -> list[_Argument]:
    return [
        _Argument(
            list(action.option_strings),
            "" if action.nargs == 0 else str(action.metavar or action.dest),
            action.dest == "folder" or action.metavar in _FILES,
            list(map(str, action.choices or ())),
            action.nargs == "+" or isinstance(action, argparse._AppendAction),
            (action.help or "") % vars(action),
        )
        for action in parser._actions
    ]


def _bash() -> str:
    """A function that knows the words of options and each subcommand's; all else are files."""
    parsers = command_parsers()
    options, words = [], []
    for name, (_, parser) in parsers.items():
        found = _arguments(parser)
        spellings = " ".join(s for argument in found for s in argument.spellings)
        besides = " ".join(w for each in found if not each.spellings for w in each.words)
        options.append(f"        {name}) options='{spellings}' words='{besides}' ;;")
        for argument in found:
            if argument.spellings and argument.words:
                patterns = "|".join(f"{name}:{spelling}" for spelling in argument.spellings)
                words.append(f"        {patterns}) words='{' '.join(argument.words)}' ;;")
    lines = [
        "_tfwire() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local command="${COMP_WORDS[1]}" options= words=',
        "    COMPREPLY=()",
        '    if [ "$current" = "=" ]; then  # bash splits --format=text at the =',
        "        current=",
        '    elif [ "$before" = "=" ]; then',
        '        before="${COMP_WORDS[COMP_CWORD-2]}"',
        "    fi",
        '    case "$command" in',
        *options,
        "    esac",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        words='{' '.join(parsers)} --help --version'",
        '    elif [ "${current:0:1}" = - ]; then',
        '        words="$options"',
        "    else",
        '        case "$command:$before" in',
        *(f"    {line}" for line in words),
        "        esac",
        "    fi",
        '    if [ -n "$words" ]; then  # without words, bash itself completes and quotes files',
        "        compopt +o default 2> /dev/null",
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    fi",
        "}",
        "complete -o default -F _tfwire tfwire",
    ]
    return "\n".join(lines) + "\n"


def _zsh() -> str:
    """A file for a folder of $fpath, whose first call runs it, or text for eval."""
    parsers = command_parsers()
    described = [_quoted(f"{name}:{help_text}") for name, (help_text, _) in parsers.items()]
    lines = [
        "#compdef tfwire",
        "_tfwire() {",
        "    local command=$words[2]",
        "    if (( CURRENT == 2 )) && [[ $command == -* ]]; then",
        "        compadd -- --help --version",
        "        return",
        "    elif (( CURRENT == 2 )); then",
        f"        local -a commands=({' '.join(described)})",
        "        _describe -t commands command commands",
        "        return",
        "    fi",
        "    shift words",
        "    (( CURRENT-- ))",
        "    case $command in",
    ]
    for name, (_, parser) in parsers.items():
        specs = [_quoted(spec) for argument in _arguments(parser) for spec in _zsh_specs(argument)]
        lines.append(f"    {name}) _arguments -S {' '.join(specs)} ;;")
    lines += [
        "    esac",
        "}",
        'if [[ "$funcstack[1]" == _tfwire ]]; then',
        '    _tfwire "$@"',
        "else",
        "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }",
        "    compdef _tfwire tfwire",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _zsh_specs(argument: _Argument) -> list[str]:
    """An argument as zsh's _arguments takes it: one text for each spelling."""
    action = f"({' '.join(argument.words)})" if argument.words else "_files" * argument.is_file
    value = f":{argument.value}:{action or ' '}" if argument.value else ""
    repeated = "*" * argument.repeated
    if not argument.spellings:
        return [f"{repeated}{value}"]
    help_text = re.sub(r"([\[\]:\\])", r"\\\1", argument.help)
    others = "" if argument.repeated else f"({' '.join(argument.spellings)})"
    return [
        f"{repeated}{others}{spelling}{_joined(spelling) if value else ''}[{help_text}]{value}"
        for spelling in argument.spellings
    ]


def _joined(spelling: str) -> str:
    """What tells zsh that a value may follow a spelling in the same word."""
    return "=" if spelling.startswith("--") else "+"


def _fish() -> str:
    lines = []
    for name, (help_text, parser) in command_parsers().items():
        is_first = "complete -c tfwire -n __fish_use_subcommand -f"
        lines.append(f"{is_first} -a {name} -d {_fish_quoted(help_text)}")
        follows = f"complete -c tfwire -n '__fish_seen_subcommand_from {name}'"
        for argument in _arguments(parser):
            words = f" -a {_fish_quoted(' '.join(argument.words))}" if argument.words else ""
            if not argument.spellings:
                lines += [f"{follows} -f{words}"] if words else []
                continue
            spellings = " ".join(
                f"-l {s[2:]}" if s.startswith("--") else f"-s {s[1:]}" for s in argument.spellings
            )
            kind = "" if not argument.value else " -r" if argument.is_file else " -x"
            help_option = f"-d {_fish_quoted(argument.help)}"
            lines.append(f"{follows} {spellings}{kind}{words} {help_option}")
    return "\n".join(lines) + "\n"


def _fish_quoted(text: str) -> str:
    """A word of fish."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
