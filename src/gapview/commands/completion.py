"""``gapview completion``: scripts that let shells complete commands, options, choices and files.

The scripts are written from the commands once and start no Python: those of click start the program for every word, and
importing the library takes a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from .start import StartCommand

_BASH = """\
_gapview() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words=""
    case "${COMP_WORDS[1]} $previous" in
@CHOICES
    esac
    if [[ -z "$words" && $COMP_CWORD -eq 1 ]]; then
        words="@COMMANDS"
    elif [[ -z "$words" && "$current" == -* ]]; then
        case "${COMP_WORDS[1]}" in
@OPTIONS
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o bashdefault -o default -F _gapview gapview
"""
_ZSH = "autoload -U +X compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n"
SHELLS = ("bash", "zsh", "fish")


def completion_script(shell: str, program: click.Group) -> str:
    """Return a script for bash, zsh or fish.

    >>> program = click.Group("gapview", commands=[click.Command("demo", params=[click.Option(["--seed"])])])
    >>> print(completion_script("fish", program).splitlines()[-1])
    complete -c gapview -n '__fish_seen_subcommand_from demo' -l seed -r
    """
    commands = [command for command in program.commands.values() if not command.hidden]
    if shell == "fish":
        return "\n".join(_fish_lines(commands)) + "\n"
    choices = [
        f'        "{command.name} {name}") words="{" ".join(parameter.type.choices)}" ;;'
        for command in commands
        for parameter in command.params
        if isinstance(parameter.type, click.Choice)
        for name in (parameter.opts if isinstance(parameter, click.Option) else [command.name])
    ]
    options = [f'            {command.name}) words="{" ".join(_names(command))}" ;;' for command in commands]
    script = _BASH.replace("@CHOICES", "\n".join(choices)).replace("@OPTIONS", "\n".join(options))
    script = script.replace("@COMMANDS", " ".join(str(command.name) for command in commands))
    return _ZSH + script if shell == "zsh" else script


def _options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def _names(command: click.Command) -> list[str]:
    return [*(name for option in _options(command) for name in option.opts), "--help"]


def _fish_lines(commands: list[click.Command]) -> Iterator[str]:
    """Yield a line for each command and each option."""
    for command in commands:
        text = _quoted(command.get_short_help_str(80))
        yield f"complete -c gapview -n __fish_use_subcommand -f -a {command.name} -d {text}"
    for command in commands:
        seen = _quoted(f"__fish_seen_subcommand_from {command.name}")
        for parameter in command.params:
            if isinstance(parameter, click.Argument) and isinstance(parameter.type, click.Choice):
                yield f"complete -c gapview -n {seen} -f -a {_quoted(' '.join(parameter.type.choices))}"
        for option in _options(command):
            names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.opts]
            more = [] if option.is_flag else ["-r"]
            if isinstance(option.type, click.Choice):
                more = [f"-x -a {_quoted(' '.join(option.type.choices))}"]
            if option.help:
                more.append(f"-d {_quoted(re.split(r'[.;:,] |[.]$', option.help)[0])}")
            yield f"complete -c gapview -n {seen} {' '.join([*names, *more])}"


def _quoted(text: str) -> str:
    """Return a text in single quotes, as fish reads them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@click.command(
    cls=StartCommand,
    short_help="Print a script with which a shell completes commands.",
    epilog="Example: gapview completion bash",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script with which a shell completes commands, options, choices and files.

    bash: gapview completion bash > ~/.local/share/bash-completion/completions/gapview

    zsh: add the line source <(gapview completion zsh) to ~/.zshrc

    fish: gapview completion fish > ~/.config/fish/completions/gapview.fish
    """
    program = context.find_root().command
    assert isinstance(program, click.Group)
    click.echo(completion_script(shell, program), nl=False)
