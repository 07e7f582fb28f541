"""``ranmask protect``: parse, call, print."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ranmask.cli.command import Given, command, flag_of
from ranmask.cli.terminal import resumed_later, say
from ranmask.data.pile import Pile, read_pile
from ranmask.data.rows import Columns
from ranmask.errors import OptionError, folders_cut
from ranmask.options import LABELS
from ranmask.options.fields import REQUIRED, Checked, option
from ranmask.training.protect_options import ProtectOptions

_SAID_EVERY = 20.0  # seconds


@dataclass(frozen=True, kw_only=True)
class ProtectCommand(Checked, group="Model and texts"):
    """Which model is protected, and what it is asked about."""

    model: str = option(
        "The model to protect, which stays as it is: a folder, a hub id, module:name of a "
        "pipeline or function, or the reader.json of an endpoint.",
        REQUIRED,
        short="m",
    )
    texts: tuple[str, ...] = option(
        "Texts of its domain that it was not trained on, with labels or without: txt, csv, tsv, "
        "jsonl or parquet; several files one after another.",
        REQUIRED,
        repeated=True,
        several=True,
    )
    output: Path = option("Folder for the protected model; resumed if it exists.", REQUIRED)
    reader_key: str | None = option("Environment variable that holds the key of an endpoint.")
    text_column: str | None = option("Column that holds the text.", unset="text")
    labels_column: str | None = option(
        "Column that holds true labels, of all rows or of some: those then choose and measure.",
        unset="none; the model's own labels count",
    )
    labels: tuple[str, ...] | None = LABELS()
    split: Literal["none", "sentences"] = option(
        "sentences: cut long documents into sentences.", "none"
    )

    def pile(self) -> Pile:
        """The texts of all files."""
        columns = Columns(self.text_column, None, self.labels_column)
        files = [Path(name) for name in self.texts]
        return read_pile(files, columns, by_sentence=self.split == "sentences")


@command(ProtectCommand, ProtectOptions)
def protect(given: Given) -> None:
    """Protect a model that you have: keep its accuracy, and prove what can be proved.

    Asks the model about your texts, trains a word table on what it says, chooses how much the
    model weighs beside it, and saves both in a folder that loads like any other.  The same command
    again resumes, and asks for no answer twice.

    Example: ranmask protect --model module:classify --labels ham,spam --texts pile.txt --output DIR
    """
    asked = given.build(ProtectCommand)
    options = given.build(ProtectOptions)
    pile = asked.pile()
    from ranmask.cli.choice_printing import PICTURE, show_choice, write_picture
    from ranmask.smoothing import reader_store
    from ranmask.smoothing.reader_store import Access
    from ranmask.training import protecting
    from ranmask.training.protection import read_protection

    reader = reader_store.named(asked.model, Access(asked.reader_key), asked.labels)
    if reader.labels is None and asked.labels is None and pile.labels is None:
        raise OptionError(
            "the model does not say its classes: name them in the order of its scores, as "
            "--labels ham,spam"
        )
    with resumed_later(asked.output):
        protecting.protect(
            reader,
            pile,
            asked.output,
            label_names=asked.labels,
            options=options,
            report=ProtectLog(asked.output),
            command=_command(given),
        )
    protection = read_protection(asked.output)
    write_picture(asked.output / PICTURE, protection)
    show_choice(protection, str(asked.output))


def _command(given: Given) -> str:
    """The command that was given, without the folders of this machine."""
    words = ["ranmask", "protect"]
    for name, value in given.items():
        values = value if name == "texts" else [value]
        for one in values:
            shown = ",".join(map(str, one)) if isinstance(one, tuple) else str(one)
            words += [flag_of(name), shown]
    return folders_cut(shlex.join(words))


class ProtectLog:
    """Says how far it is, on standard error: a line for each step, and now and then between."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._started = self._said = time.monotonic()
        self._first = 0

    def __call__(self, line: dict[str, Any]) -> None:
        """Say one line of the log, where it is worth it."""
        said = getattr(self, f"_{line['phase']}")(line)
        if said:
            say(said)

    def _pile(self, line: dict[str, Any]) -> str:
        left_out = [
            f"{line[name]:,} {what}"
            for name, what in (
                ("duplicates", "duplicates"),
                ("empty", "empty"),
                ("unusable", "not usable"),
            )
            if line[name]
        ]
        but = f" of {line['rows']:,} rows; left out: {', '.join(left_out)}" if left_out else ""
        first = f" ({line['problem']})" if line["problem"] else ""
        return f"{line['texts']:,} different texts{but}{first}"

    def _asking(self, line: dict[str, Any]) -> str:
        self._started = self._said = time.monotonic()
        self._first = line["done"]
        if line["what"] == "segments":
            return f"asking the model about segments: {line['cost']}"
        more = f"; then at most {line['segments']:,} segments" if line["segments"] else ""
        if line["other_texts"]:
            say(
                f"warning: {self._output} was begun with other texts: {line['done']:,} of these "
                f"{line['texts']:,} have an answer in it"
            )
        return f"asking the model: {line['cost']}{more}"

    def _asked(self, line: dict[str, Any]) -> str:
        now = time.monotonic()
        if now - self._said < _SAID_EVERY:
            return ""
        self._said = now
        done, left = line["done"] - self._first, line["texts"] - line["done"]
        minutes = (now - self._started) / max(done, 1) * left / 60
        return (
            f"{line['done']:,} of {line['texts']:,} {line['what']} asked, about {minutes:.1f} "
            "minutes left"
        )

    def _unanswered(self, line: dict[str, Any]) -> str:
        return f"warning: {line['problem']}"

    def _training(self, line: dict[str, Any]) -> str:
        last = line["epoch"] == line["epochs"]
        return f"{line['what']}: trained, loss {line['loss']:.4f}" if last else ""

    def _searching(self, line: dict[str, Any]) -> str:
        return f"choosing weights of {line['levels']} levels"

    def _complete(self, line: dict[str, Any]) -> str:
        return f"{self._output}: saved"
