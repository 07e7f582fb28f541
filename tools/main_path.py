"""Which functions of ours a call goes through: the main path, counted.

`python -m tools.main_path` prints module, function and calls of a second
`load_default("news-words").certify([text])`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import ranmask

TEXT = "Oil prices fall as the new pipeline opens and exports rise again"

_HOME = Path(ranmask.__file__).parent


def functions_called(call: Callable[[], object]) -> Counter[tuple[str, str]]:
    """How often ``call`` enters each function of ranmask, by module and qualified name.

    Comprehensions and lambdas count as the function that they stand in.
    """
    entered: list[CodeType] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.append(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    ours = (code for code in entered if Path(code.co_filename).is_relative_to(_HOME))
    return Counter((_module(code), code.co_qualname.partition(".<locals>")[0]) for code in ours)


def certify_again() -> Counter[tuple[str, str]]:
    """The main path: certifying one text with a word table, for the second time."""
    classifier = ranmask.load_default("news-words")
    classifier.certify([TEXT])
    return functions_called(lambda: classifier.certify([TEXT]))


def _module(code: CodeType) -> str:
    return ".".join(Path(code.co_filename).relative_to(_HOME).with_suffix("").parts)


def main() -> None:
    """Print the main path."""
    called = certify_again()
    for (module, function), calls in called.items():
        sys.stdout.write(f"{module:24} {function:44} {calls}\n")
    modules = {module for module, _ in called}
    sys.stdout.write(f"{len(called)} functions in {len(modules)} modules\n")


if __name__ == "__main__":
    main()
