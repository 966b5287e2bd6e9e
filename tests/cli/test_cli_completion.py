"""The scripts for shells, and the manual page."""

import os
import select
import shutil
import subprocess
import sys
import time

import pytest

from helpers.command import ENVIRONMENT
from helpers.paths import ROOT
from tfwire.cli import _COMMANDS, main


@pytest.fixture
def script(capsys):
    def script(shell):
        assert 0 == main(["completion", shell])
        return capsys.readouterr().out

    return script


def needs(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def complete(script, *words):
    """What bash's function offers for the last word."""
    line = " ".join(f"'{word}'" for word in ("tfwire", *words))
    code = (
        f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _tfwire; echo "${{COMPREPLY[@]}}"'
    )
    result = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert not result.stderr
    return result.stdout.split()


@needs("bash")
def test_bash_completes_commands_options_and_words(script):
    bash = script("bash")
    assert {*_COMMANDS, "--help", "--version"} == set(complete(bash, ""))
    assert ["verify", "view"] == sorted(complete(bash, "v"))
    assert "--where" in complete(bash, "head", "--w")
    assert ["table", "records", "json", "protojson", "text", "raw"] == complete(
        bash, "cat", "--format", ""
    )
    assert ["table", "records", "json", "protojson", "text", "raw"] == complete(
        bash, "cat", "--format", "="
    )
    assert ["raw"] == complete(bash, "cat", "--format", "=", "ra")
    assert ["gzip"] == complete(bash, "cat", "--compression", "g")
    assert ["bash", "zsh", "fish"] == complete(bash, "completion", "")
    assert [] == complete(bash, "cat", "tr")  # bash completes files by itself
    assert [] == complete(bash, "nothing", "--w")


# What is typed, and the words that the command gets. The folder has one file, "my file.tfrecord".
TYPED = [
    ("ver\t", ["verify"]),
    ("verify --rec\t my\t", ["verify", "--receipt", "my file.tfrecord"]),
    ("cat --format js\t my\t", ["cat", "--format", "json", "my file.tfrecord"]),
    ("cat --format=ra\t", ["cat", "--format=raw"]),
    ("schema -o my\t", ["schema", "-o", "my file.tfrecord"]),
    ("verify --same-as=my\t", ["verify", "--same-as=my file.tfrecord"]),
    ("completion z\t", ["completion", "zsh"]),
]
BEGIN = {
    "bash": ["source ./script"],
    "zsh by eval": ['eval "$(cat script)"'],
    "zsh of fpath": [
        "mkdir functions; mv script functions/_tfwire; fpath=($PWD/functions $fpath)",
        "autoload -Uz compinit; compinit -u -d dump",
    ],
}


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=[needs(way.split()[0]), *[pytest.mark.slow] * ("eval" in way)])
        for way in BEGIN
    ],
)
def test_what_is_typed_is_completed(way, script, tmp_path):
    """As a user does it: in a terminal, with the tab key."""
    shell = way.split()[0]
    (tmp_path / "my file.tfrecord").touch()
    (tmp_path / "script").write_text(script(shell))
    (tmp_path / "told").touch()
    lines = [
        *BEGIN[way],
        "tfwire() { for word; do printf '%s|' \"$word\"; done >> told; echo >> told; }",
    ]
    type_lines(shell, [*lines, *(f"tfwire {line}" for line, _ in TYPED), "exit"], tmp_path)
    told = [line.split("|")[:-1] for line in (tmp_path / "told").read_text().splitlines()]
    assert [words for _, words in TYPED] == told


def type_lines(shell, lines, folder):
    """Types lines into an interactive shell; each when the shell is ready for it."""
    pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")
    options = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    environment = {**ENVIRONMENT, "PS1": "READY ", "TERM": "dumb", "INPUTRC": os.devnull}
    environment["HOME"] = environment["ZDOTDIR"] = str(folder)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [shell, *options],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            for line in lines:
                read_until(ours, "READY ")
                os.write(ours, line.encode() + b"\n")
            read_until(ours, None)
            process.wait(20)
        finally:
            process.kill()
            os.close(ours)


def read_until(terminal, text):
    """Reads what a shell shows up to a text, or to its end."""
    shown, deadline = "", time.monotonic() + 30
    while text is None or text not in shown:
        if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
            pytest.fail(f"the shell does not go on: {shown!r}")
        try:
            part = os.read(terminal, 1000)
        except OSError:  # EIO: the shell has ended
            part = b""
        if not part:
            assert text is None, shown
            return
        shown += part.decode(errors="replace")


@needs("fish")
def test_fish_completes_commands_options_and_words(script, tmp_path):
    (tmp_path / "script").write_text(script("fish"))
    (tmp_path / "my file.tfrecord").touch()

    def offered(line):
        code = f"source script; complete -C {line!r}"
        result = subprocess.run(
            ["fish", "--no-config", "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**ENVIRONMENT, "HOME": str(tmp_path)},
        )
        assert (0, "") == (result.returncode, result.stderr)
        return [word.split("\t")[0] for word in result.stdout.splitlines()]

    assert ["verify", "view"] == sorted(offered("tfwire v"))
    assert ["--where"] == offered("tfwire head --wh")
    assert ["raw"] == offered("tfwire cat --format ra")
    assert ["--format=raw"] == offered("tfwire cat --format=ra")
    assert ["my file.tfrecord"] == offered("tfwire cat my")
    assert ["zsh"] == offered("tfwire completion z")
    assert [] == offered("tfwire head -n m")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(script, shell):
    text = script(shell)
    assert all(name in text for name in _COMMANDS)
    assert "%(" not in text
    assert ("#compdef tfwire\n" == text[: len("#compdef tfwire\n")]) == (shell == "zsh")
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True)
        assert (0, "") == (check.returncode, check.stderr)


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "csh"])
    assert "csh" in capsys.readouterr().err


def test_the_manual_page_has_every_command(tmp_path):
    out = tmp_path / "tfwire.1"
    command = [sys.executable, ROOT / "packaging" / "make_man.py", out]
    subprocess.run(command, check=True, env=ENVIRONMENT)
    text = out.read_text()
    for name in _COMMANDS:
        assert f".SS tfwire {name}\n" in text
    assert not any(line.startswith(("'", ". ")) for line in text.splitlines())
    assert "%(" not in text
    if shutil.which("man"):
        check = subprocess.run(["man", "-l", "--warnings", out], capture_output=True, text=True)
        assert (0, "") == (check.returncode, check.stderr)
        assert "EXIT STATUS" in check.stdout
