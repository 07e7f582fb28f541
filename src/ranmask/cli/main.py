"""The command line: parse, call, print.

Exit codes: 0 all rows done; 1 the run could not be done or finished; 2 wrong usage or options;
3 finished, but some rows have errors; 4 not good enough: trained, but no better than the largest
class (``train --fail-below-majority``), or a requirement of ``gate`` does not hold; 130
interrupted.  Only the command that is named is imported, and heavy libraries when it needs them, so
that ``ranmask train --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError

from ranmask import __version__
from ranmask.cli.terminal import quietly, say, tame_libraries, untie_libraries
from ranmask.errors import OptionError, RanmaskError, ReaderWarning

FAILED, WRONG_USAGE, SOME_ROWS_FAILED, INTERRUPTED = 1, 2, 3, 130

_FULL_GPU = (
    "the GPU has no memory left. End other programs that use it, run fewer steps or workers at "
    "once (--jobs, --workers), or compute elsewhere (--device cpu); what was written stays, and "
    "the same command goes on"
)

_QUIET, _VERBOSE = ("-q", "--quiet"), ("-v", "--verbose")  # everywhere

PURPOSES = {
    "Use a model": ("certify", "predict", "explain", "detect", "serve"),
    "Make a model": ("train", "protect", "tune", "blend", "cascade"),
    "Test a model": ("attack", "gate", "compare"),
    "The paper": ("reproduce", "report", "beta"),
    "Data and runs": ("data", "runs"),
}
"""What commands are for, in the order in which ``--help`` shows them."""
GROUPS = {
    "cascade": (
        "Send only suspicious texts to the smoothed model: build and measure a cascade.",
        ("detector", "build", "report"),
    ),
    "data": (
        "Corpora known by name: list them, download them, find them on disk.",
        ("list", "get", "path"),
    ),
    "runs": (
        "Sharded runs (--shard-rows): show how far they are, verify them, merge their files.",
        ("show", "verify", "merge"),
    ),
}
"""Groups of commands: what they are for, and what is in them."""

COMMANDS = tuple(name for names in PURPOSES.values() for name in names if name not in GROUPS)


def command_line(words: Sequence[str] = ()) -> App:
    """The commands that ``words`` may mean: the one that they name, else all."""
    app = App(
        name="ranmask",
        help="Certified robustness for text classifiers: labels with a proved radius, in words.",
        help_epilogue="-q, --quiet: results and errors alone. -v, --verbose: also what libraries "
        "say, and where an error comes from.\n\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some rows have errors, "
        "4 not good enough (a requirement of gate, or of train on request), 130 interrupted.",
        group_commands=Group("Other", sort_key=len(PURPOSES)),
        group_parameters="Options",
        help_flags=["--help"],
        help_format="plaintext",
        version=f"ranmask {__version__}",
        version_flags=["--version"],
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    named = _named(words, (*COMMANDS, *GROUPS))
    if len(named) > 1:
        about = "Set up completion of commands and options in this shell, from its next start on."
        app.register_install_completion_command(help=about)
    groups = (Group(purpose, sort_key=place) for place, purpose in enumerate(PURPOSES))
    purposes = {
        name: purpose
        for purpose, names in zip(groups, PURPOSES.values(), strict=True)
        for name in names
    }
    for name in named:
        if name in COMMANDS:
            _add(app, "certify" if name == "predict" else name, name, group=purposes[name])
            continue
        about, names = GROUPS[name]
        app.command(
            group := App(name=name, help=about, group=purposes[name], group_commands="Commands")
        )
        for inner in _named(words[1:], names):
            _add(group, name, inner)
    return app


def _named(words: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    return words[:1] if words and words[0] in names else names


def _own_words(words: Sequence[str]) -> list[str]:
    """What a command is given: no flag that is everywhere; a ``-`` alone is ``--input -``."""
    found: list[str] = []
    for word in words:
        if word in (*_QUIET, *_VERBOSE):
            continue
        own = word == "-" and (not found or found[-1] not in ("--input", "--output"))
        found += ["--input", word] if own else [word]
    return found


def _add(app: App, module: str, name: str, **how: Any) -> None:
    function = getattr(import_module(f"ranmask.cli.{module}"), name)
    paragraphs = function.__doc__.split("\n\n")
    # Paragraphs as single lines: the terminal breaks them.
    about = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(function, name=name, help=about, **how)


def run_command(words: Sequence[str]) -> int:
    """Run a ranmask command in this process, and return its exit code.

    A command returns whether a row failed, an exit code, or nothing.  Every error on purpose is
    one line on standard error; ``--verbose`` shows where it comes from before.
    """
    quiet, verbose = (any(flag in words for flag in flags) for flags in (_QUIET, _VERBOSE))
    if quiet and verbose:
        print("error: --quiet and --verbose: leave one of them out", file=sys.stderr)
        return WRONG_USAGE
    if verbose:
        untie_libraries()
    tame_libraries()
    with quietly(quiet):
        return _run(_own_words(words), verbose)


def _run(words: Sequence[str], verbose: bool) -> int:
    try:
        app = command_line(words)
        if not words or (len(words) == 1 and words[0] in GROUPS):
            app.help_print(list(words))
            return WRONG_USAGE
        with warnings.catch_warnings():
            if verbose:
                warnings.simplefilter("default")
            warnings.filterwarnings("always", category=ReaderWarning)
            warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
            done = app(list(words))
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:  # as a signal ends a run
        return end.code if isinstance(end.code, int) else FAILED
    except BrokenPipeError:
        # The reader went away, as `head` does.  Nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (CycloptsError, RanmaskError) as error:
        if verbose:
            traceback.print_exception(error)
        print(f"error: {_told(error)}", file=sys.stderr)
        return WRONG_USAGE if isinstance(error, CycloptsError | OptionError) else FAILED
    except Exception as error:
        if not _is_full_gpu(error) or verbose:
            raise
        print(f"error: {_FULL_GPU} ({str(error).partition('. ')[0]})", file=sys.stderr)
        return FAILED
    return SOME_ROWS_FAILED if done is True else int(done or 0)


def check_command(words: Sequence[str]) -> None:
    """Raise where an option of a command is unknown or has a wrong value; nothing is run."""
    words = _own_words(words)
    try:
        command, given, _ = command_line(words).parse_args(words)
    except CycloptsError as error:
        raise OptionError(_told(error)) from error
    if not hasattr(command, "read"):
        raise OptionError("it would print a help or a version and do nothing: leave out that flag")
    command.read(*given.args, **given.kwargs)


def _is_full_gpu(error: Exception) -> bool:
    """Whether an error is PyTorch's for a device without memory; it need not be loaded."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)


def _told(error: CycloptsError | RanmaskError) -> str:
    if not isinstance(error, MissingArgumentError) or error.argument is None:
        return str(error)
    if error.keyword is not None:  # it ends the line
        return f"{error.keyword} needs a value"
    unknown = [word for word in error.unused_tokens or () if word.startswith("--")]
    more = f", and does not know {unknown[0]}" if unknown else ""
    return f"ranmask {' '.join(error.command_chain or ())} needs {error.argument.name}{more}"


def main() -> None:
    """The ``ranmask`` command."""
    sys.exit(run_command(sys.argv[1:]))
