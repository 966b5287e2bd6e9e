"""The scripts for shells, and the manual page."""

import shutil
import subprocess
import sys

import pytest

from command import ENVIRONMENT
from paths import ROOT
from tfwire.cli import _COMMANDS, main


@pytest.fixture
def script(capsys):
    def script(shell):
        assert 0 == main(["completion", shell])
        return capsys.readouterr().out

    return script


def complete(script, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in ("tfwire", *words))
    code = (
        f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _tfwire; echo "${{COMPREPLY[@]}}"'
    )
    result = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_files(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tfrecord").touch()
    bash = script("bash")
    assert {*_COMMANDS, "--help", "--version"} == set(complete(bash, ""))
    assert ["verify", "view"] == sorted(complete(bash, "v"))
    assert "--where" in complete(bash, "head", "--w")
    assert ["text", "json", "raw"] == complete(bash, "cat", "--format", "")
    assert ["gzip"] == complete(bash, "cat", "--compression", "g")
    assert ["train.tfrecord"] == complete(bash, "cat", "tr")
    assert [] == complete(bash, "nothing", "--w")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(script, shell):
    text = script(shell)
    assert all(name in text for name in _COMMANDS)
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
