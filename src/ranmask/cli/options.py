"""Options that several commands share and the library does not have; and how they are read."""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ranmask.data.rows import SUFFIXES, Columns, Row, RowSource, file_rows
from ranmask.data.splits import corpus_rows
from ranmask.errors import DataError, OptionError
from ranmask.options import DEVICE, ModelOptions
from ranmask.options.fields import Checked, option

if TYPE_CHECKING:
    from ranmask.cli.command import Given
    from ranmask.runs.shards.run import Sharding

_CORPORA = (
    "agnews, sst2, imdb, snli, hate, sms_spam, enron_spam, spamassassin, jigsaw_part, injection"
)
DATA = partial(option, f"Labelled texts: {_CORPORA}; a file or folder; or a dataset on the hub.")
STANDARD = Path("-")
"""Standard input, or output."""
Printed: TypeAlias = Literal["json", "csv"] | None
"""As what results are printed; None: as a table for people."""
NumberType: TypeAlias = Literal["float32", "bfloat16", "float16", "screened"]
DTYPE = partial(
    option,
    "Number type of encoders. screened: the votes of float32, most of them decided in float16; "
    "for GPUs.",
    unset="float32",
)
CACHE = partial(
    option,
    "File that keeps the answers of a function (module:name) or an endpoint, so that it is asked "
    "about a text only once. Take another file when the function changes.",
)
SKIP_BAD_ROWS = partial(
    option, "Leave out rows of --data without a usable text or label, and say how many."
)


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Checked, group="Columns"):
    """Columns of a file."""

    text_column: str | None = option("Column that holds the text.", unset="text")
    label_column: str | None = option("Column that holds the true label.")
    pair_columns: tuple[str, ...] | None = option(
        "Two columns, premise,hypothesis; only the hypothesis is masked."
    )
    keep_columns: tuple[str, ...] | None = option(
        "Columns of the input, separated by commas, that results repeat; id always is."
    )

    def columns(self) -> Columns:
        """The columns that were named."""
        pair = self.pair_columns
        if pair is not None and (len(pair) != 2 or not all(pair)):
            raise OptionError(
                f"pair_columns takes two names, premise,hypothesis; not {','.join(pair)!r}"
            )
        kept = self.keep_columns or ()
        return Columns(self.text_column, pair and (pair[0], pair[1]), self.label_column, kept)


@dataclass(frozen=True, kw_only=True)
class PositiveOption(Checked, group="Columns"):
    """A class that is looked for among others."""

    positive: str | None = option(
        "Name of a class, such as spam, to measure against all others: precision, recall, ROC, "
        "certified recall at rates of false positives."
    )


@dataclass(frozen=True, kw_only=True)
class SourceOptions(Checked, group="Data"):
    """What a command reads: a file, or a corpus by name."""

    input: Path | None = option("A txt, csv, tsv, jsonl or parquet file; - is standard input.")
    input_format: Literal["txt", "csv", "tsv", "jsonl", "parquet"] | None = option(
        "Format of standard input.", unset="txt, a text a line"
    )
    data: str | None = option(f"Or a corpus by name ({_CORPORA}), with its labels.")
    split: str | None = option("Part of the corpus.", unset="test, with --data")
    rows: int | None = option("Read only this many rows.", unset="all", least=1)
    skip_bad_rows: bool = SKIP_BAD_ROWS(False)


@dataclass(frozen=True, kw_only=True)
class InputOptions(SourceOptions):
    """What a command reads: the same, or texts on the command line."""

    texts: tuple[str, ...] = option("Texts to read, each in quotes.", (), positional=True)


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Checked, group="Output"):
    """Where results go."""

    output: Path | None = option(
        "JSONL file for the results, resumed if it exists (with --shard-rows: a folder); "
        "without it, or as -, they are printed."
    )
    as_json: bool = option("Print JSON lines, also on a terminal.", False, flag="json")
    as_csv: bool = option("Print CSV.", False, flag="csv")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_json and self.as_csv:
            raise OptionError("--json and --csv: leave one of them out")
        if self.output == STANDARD:
            object.__setattr__(self, "output", None)
            object.__setattr__(self, "as_json", not self.as_csv)
        if self.output is not None and self.as_csv:
            table = self.output.with_suffix(".csv")
            results = table.with_suffix(".jsonl") if self.output == table else self.output
            raise OptionError(
                f"--csv is for what is printed: leave it out, with --output {results}, and make "
                f"CSV of that afterwards, ranmask runs merge {results} {table}"
            )

    @property
    def printed(self) -> Printed:
        """As what results are printed."""
        if self.as_csv:
            return "csv"
        return "json" if self.as_json or not sys.stdout.isatty() else None


@dataclass(frozen=True, kw_only=True)
class _NamedModel(Checked, group="Model"):
    """Which model: a class of its own, so that it stands before the other options of models."""

    model: str | None = option(
        "news, news-words, reviews or reviews-words (they come with ranmask), a model folder, a "
        "hub id, or module:name of a function, a pipeline or an estimator.",
        unset="news",
        short="m",
        variable="RANMASK_MODEL",
    )


@dataclass(frozen=True, kw_only=True)
class ModelChoice(ModelOptions, _NamedModel):
    """Which model, and how it computes."""

    reader: str | None = option(
        "A model that reads whole texts beside the copies, with --reader-weights: a model folder, "
        "a hub id, module:name (a function, or a pipeline), or the reader.json of an endpoint."
    )
    reader_key: str | None = option(
        "Environment variable that holds the key of a reader that is an endpoint."
    )
    cache: Path | None = CACHE()
    recheck: int | None = option(
        "Of the copies scored together, how many are scored again, in another batch, and must "
        "get the same answer; 0 where each call is expensive.",
        unset="4 for functions, 0 for models",
        least=0,
    )
    device: str | None = DEVICE()
    dtype: NumberType | None = DTYPE()


@dataclass(frozen=True, kw_only=True)
class ShardingOptions(Checked, group="Large inputs"):
    """How a run is cut and who computes it."""

    shard_rows: int | None = option(
        "Rows of a shard: a Parquet file in the folder --output, computed by one of the worker "
        "processes.",
        least=1,
    )
    engine: Literal["local", "ray"] | None = option("What computes shards.", unset="local")
    workers: int | None = option(
        "Processes that compute shards, each with a model of its own.",
        unset="1; with --engine ray as many as fit",
        least=1,
    )
    address: str | None = option(
        "Ray cluster to use.", unset="RAY_ADDRESS, else one on this machine"
    )
    cpus_per_worker: int | None = option(
        "Threads of each worker; its numbers may depend on it.", unset="1", least=1
    )
    gpus_per_worker: float | None = option("GPUs of each Ray worker.", unset="0", least=0)

    def sharding(self, output: Path | None) -> Sharding | None:
        """How a run is cut into shards; None where it is not."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        for name, value in given.items():
            if self.shard_rows is None:
                raise OptionError(f"{name}={value!r} goes with --shard-rows", name)
            if self.engine != "ray" and name in ("address", "gpus_per_worker"):
                raise OptionError(f"{name}={value!r} goes with --engine ray", name)
        if self.shard_rows is None:
            return None
        if output is None:
            raise OptionError("--shard-rows needs --output: the folder for its files")
        from ranmask.runs.shards.run import Sharding

        names = {"shard_rows": "rows", "cpus_per_worker": "cpus", "gpus_per_worker": "gpus"}
        return Sharding(**{names.get(name, name): value for name, value in given.items()})


@dataclass(frozen=True, kw_only=True)
class ResourceOptions(Checked, group="Attacks"):
    """What a recipe attacks with."""

    neighbours: str | None = option(
        "Synonyms: jia2019, safer2020, dne, a JSON table, or (attacks) the counter-fitted vectors, "
        "wordnet, or a folder with it.",
        unset="jia2019; of pwws and pso, wordnet",
    )
    tagger: str | None = option("nltk, a folder with NLTK's data, or none.", unset="nltk")
    stop_words: str | None = option(
        "textfooler, nltk, none, or a file with a word a line.", unset="the recipe's"
    )
    sentence_encoder: str | None = option(
        "Folder or hub id of a sentence encoder, or of the Universal Sentence Encoder.",
        unset="none; the recipe's name says so",
    )
    attack_lm: str | None = option(
        "Folder or hub id of the masked language model of bert-attack, bae, clare."
    )


@dataclass(frozen=True, kw_only=True)
class SynonymTable(Checked, group="Smoothing"):
    """What words may be replaced by."""

    synonyms: str | None = option(
        "Table for --threat synonyms: a JSON file (.json, .json.gz) of words and lists of words; "
        "jia2019, safer2020, dne; or the folder of a model with one.",
        unset="the model's",
    )


@dataclass(frozen=True, kw_only=True)
class LmOption(Checked, group="Smoothing"):
    """What weighs words."""

    lm: str | None = option("Folder of a masked language model, for --sampling lm.")


def open_input(given: Given, output: Path | None = None, *, attacked: bool = False) -> RowSource:
    """The rows of what was given: texts, a file or a corpus; exactly one of them.

    ``attacked``: a file must have labels.
    """
    asked, columns = given.build(InputOptions), given.build(ColumnOptions).columns()
    if asked.input_format is not None and asked.input != STANDARD:
        raise OptionError("--input-format goes with --input -; a file's name says what it is")
    if sum((bool(asked.texts), asked.input is not None, asked.data is not None)) != 1:
        raise OptionError(
            "give texts, or a file with --input, or a corpus with --data: one of them"
        )
    if named := [text for text in asked.texts if _is_file(text)]:
        raise OptionError(
            f"{named[0]!r} is a file, not a text: to read it, give --input {named[0]}"
        )
    if asked.texts and output is not None:
        raise OptionError("--output goes with --input or --data; texts given here are printed")
    told_elsewhere = None if output is not None else STANDARD  # the label is the victim's own
    if attacked and asked.input not in (None, told_elsewhere) and columns.label is None:
        raise OptionError("labels are needed: name their column with --label-column")
    if asked.data is None and asked.split is not None:
        raise OptionError(
            f"--split {asked.split} goes with --data, as in --data FILE --split {asked.split}"
        )
    if asked.texts and asked.rows is not None:
        raise OptionError(f"--rows {asked.rows} goes with --input or --data: leave it out")
    if asked.data is None and asked.skip_bad_rows:
        raise OptionError("--skip-bad-rows goes with --data; bad rows of --input get their error")
    kept = Columns(keep=columns.keep)
    if asked.input is None and (columns != kept or (kept.keep and asked.data is None)):
        raise OptionError("columns go with --input")

    if asked.data is not None:
        bad = asked.skip_bad_rows
        return corpus_rows(asked.data, asked.split, asked.rows, columns=kept, skip_bad_rows=bad)
    if asked.input is None:
        rows = [Row(number, text) for number, text in enumerate(asked.texts, 1)]
        return RowSource(rows, len(rows))
    if asked.input == STANDARD:
        source = _standard_input(asked.input_format or "txt", columns)
    else:
        source = file_rows(asked.input, columns)
    # The record of an attack has the number of rows also where it is that of all.
    return _first_rows(source, asked.rows) if attacked or asked.rows is not None else source


def _is_file(text: str) -> bool:
    """Whether a text is the name of a file that could be read as --input."""
    if not text.lower().endswith(tuple(SUFFIXES)):
        return False
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a character that none has
        return False


def _first_rows(source: RowSource, rows: int | None) -> RowSource:
    """The first rows, None being all; a run over them is another than one over all."""
    return replace(
        source,
        rows=itertools.islice(source.rows, rows),
        total=source.total if rows is None else min(rows, source.total),
        description={**source.description, "texts": rows},
    )


def _standard_input(kind: str, columns: Columns) -> RowSource:
    """The rows of standard input, which is read to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin.{kind}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            source = file_rows(path, columns)
            rows = list(source.rows)
        except DataError as error:
            raise DataError(str(error).replace(str(path), "standard input")) from error
    description = {**source.description, "path": str(STANDARD)}
    return replace(source, rows=rows, total=len(rows), description=description)
