"""What ``--help`` says: every command has its place, and examples are commands that exist."""

import importlib
import re
import shlex

import pytest

from ranmask.cli.main import COMMANDS, GROUPS, PURPOSES, command_line

EXAMPLES = [
    (name, shown)
    for name in COMMANDS
    for shown in re.findall(
        r"Example: ranmask (.+)",
        getattr(
            importlib.import_module(f"ranmask.cli.{'certify' if name == 'predict' else name}"), name
        ).__doc__,
    )
]


def test_every_command_has_one_purpose():
    names = [name for names in PURPOSES.values() for name in names]
    assert len(set(names)) == len(names) and set(names) == {*COMMANDS, *GROUPS}


def test_the_commands_that_newcomers_meet_show_an_example():
    assert {name for name, _ in EXAMPLES} >= {"certify", "train", "protect", "detect", "attack"}


@pytest.mark.parametrize(("name", "shown"), EXAMPLES, ids=lambda value: value.split()[0])
def test_examples_are_understood(name, shown):
    words = shlex.split(shown)
    app = command_line(words)
    command, bound, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert words[0] == name == command.__name__ and (bound.args or bound.kwargs)
