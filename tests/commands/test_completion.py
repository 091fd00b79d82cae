"""``gapview completion``: scripts that name every command, option and choice, and work in the shells that are here."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import pytest
from click.testing import CliRunner

from gapview.commands.cli import main

SHOWN = [command for command in main.commands.values() if not command.hidden]


def script(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_command_option_and_choice(shell):
    words = set(re.findall(r"[\w-]+", script(shell)))
    for command in SHOWN:
        assert command.name in words
        for parameter in command.params:
            if isinstance(parameter.type, click.Choice):
                assert {word for word in parameter.type.choices if word.isalpha()} <= words
            if isinstance(parameter, click.Option):
                names = parameter.opts if shell != "fish" else [name.lstrip("-") for name in parameter.opts]
                assert set(names) <= words, command.name
    assert not {command.name for command in main.commands.values() if command.hidden} & words


def of_bash(*typed):
    words = " ".join(f"'{word}'" for word in typed)
    lines = [f"COMP_WORDS=({words})", f"COMP_CWORD={len(typed) - 1}", "_gapview", 'echo "${COMPREPLY[@]}"']
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join([script("bash"), *lines])], capture_output=True, text=True, check=True
    )
    assert not done.stderr
    return done.stdout.split()


def of_fish(*typed):
    command = f"{script('fish')}\ncomplete -C '{' '.join(typed)}'"
    done = subprocess.run(["fish", "--no-config", "-c", command], capture_output=True, text=True, check=True)
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("complete", [of_bash, of_fish])
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (["cl"], ["cluster"]),
        (["cluster", "x.csv", "--batch-c"], ["--batch-correction"]),
        (["cluster", "x.csv", "--method", "Bri"], ["BridgedGRMF"]),
        (["cluster", "x.csv", "--partial-rows", ""], ["drop", "fill", "raise"]),
        (["completion", "b"], ["bash"]),
        (["predict", "--batch"], []),
    ],
)
def test_words_that_are_completed(complete, typed, wanted):
    shell = complete.__name__.removeprefix("of_")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert sorted(complete("gapview", *typed)) == wanted


def test_the_script_for_zsh_is_read_without_an_error():
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    subprocess.run(["zsh", "-f", "-n", "-c", script("zsh")], check=True)


def test_other_shells_are_refused():
    result = CliRunner().invoke(main, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in result.stderr
