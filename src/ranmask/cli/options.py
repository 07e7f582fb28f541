"""Options that several commands share and the library does not have; and how they are read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ranmask.errors import OptionError
from ranmask.options import DEVICE, ModelOptions
from ranmask.options.fields import Checked, option

if TYPE_CHECKING:
    from ranmask.cli.command import Given
    from ranmask.data.rows import Columns, RowSource
    from ranmask.runs.shards.run import Sharding
    from ranmask.smoothing.masks import WordLosses

_CORPORA = (
    "agnews, sst2, imdb, snli, hate, sms_spam, enron_spam, spamassassin, jigsaw_part, injection"
)
DATA = partial(option, f"Labelled texts: {_CORPORA}; a file or folder; or a dataset on the hub.")
NumberType: TypeAlias = Literal["float32", "bfloat16", "float16", "screened"]
DTYPE = partial(
    option,
    "screened: the votes of float32, most of them decided in float16; for GPUs.",
    unset="float32",
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
        from ranmask.data.rows import Columns

        pair = self.pair_columns
        if pair is not None and (len(pair) != 2 or not all(pair)):
            raise OptionError(
                f"pair_columns takes two names, premise,hypothesis; not {','.join(pair)!r}"
            )
        kept = self.keep_columns or ()
        return Columns(self.text_column, pair and (pair[0], pair[1]), self.label_column, kept)


@dataclass(frozen=True, kw_only=True)
class SourceOptions(Checked, group="Data"):
    """What a command reads: a file, or a corpus by name."""

    input: Path | None = option("A txt, csv, tsv, jsonl or parquet file.")
    data: str | None = option(f"Or a corpus by name ({_CORPORA}), with its labels.")
    split: str | None = option("Part of the corpus.", unset="test, with --data")
    rows: int | None = option("Only the first rows.", unset="all", least=1)
    skip_bad_rows: bool = SKIP_BAD_ROWS(False)

    def open(self, columns: Columns, *, rows_of_a_file: bool = False) -> RowSource:
        """The rows of the file or of the corpus."""
        if self.data is None and (
            self.split is not None or (self.rows is not None and not rows_of_a_file)
        ):
            raise OptionError("--split and --rows go with --data")
        if self.data is None and self.skip_bad_rows:
            raise OptionError(
                "--skip-bad-rows goes with --data; bad rows of --input get their error"
            )
        if self.input is None and columns.wanted:
            raise OptionError("columns go with --input")
        from ranmask.data.rows import file_rows
        from ranmask.data.splits import corpus_rows

        if self.data is not None:
            return corpus_rows(self.data, self.split, self.rows, skip_bad_rows=self.skip_bad_rows)
        return file_rows(str(self.input), columns)


@dataclass(frozen=True, kw_only=True)
class InputOptions(SourceOptions):
    """What a command reads: the same, or texts on the command line."""

    texts: tuple[str, ...] = option("Texts to classify.", (), positional=True)

    def open(self, columns: Columns, *, rows_of_a_file: bool = False) -> RowSource:
        """The rows of what was given."""
        if self.texts and not (self.split or self.rows or self.skip_bad_rows or columns.wanted):
            from ranmask.data.rows import Row, RowSource

            rows = [Row(number, text) for number, text in enumerate(self.texts, 1)]
            return RowSource(rows, len(rows))
        return super().open(columns, rows_of_a_file=rows_of_a_file)


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Checked, group="Output"):
    """Where results go."""

    output: Path | None = option(
        "JSONL file for the results, resumed if it exists (with --shard-rows: a folder); "
        "without it they are printed."
    )
    as_json: bool = option("JSON lines, also on a terminal.", False, flag="json")


@dataclass(frozen=True, kw_only=True)
class ModelChoice(ModelOptions):
    """Which model, and how it computes."""

    model: str | None = option(
        "news, news-words or reviews-words (they come with ranmask), a model folder, a hub "
        "id, or module:function.",
        unset="news",
        short="m",
        variable="RANMASK_MODEL",
    )
    recheck: int | None = option(
        "Of the copies scored together, how many are scored again, in another batch, and must "
        "get the same answer; 0 for functions whose every call is dear.",
        unset="4 for functions, 0 for models",
        least=0,
    )
    device: str | None = DEVICE()
    dtype: NumberType | None = DTYPE()


@dataclass(frozen=True, kw_only=True)
class ShardingOptions(Checked, group="Large inputs"):
    """How a run is cut and who computes it."""

    shard_rows: int | None = option(
        "Write a Parquet file for every so many rows, computed by worker processes, to the "
        "folder --output.",
        least=1,
    )
    engine: Literal["local", "ray"] | None = option("Who computes shards.", unset="local")
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

        return Sharding(
            self.shard_rows,
            self.engine or "local",
            self.workers,
            self.address,
            self.cpus_per_worker or 1,
            self.gpus_per_worker or 0,
        )


@dataclass(frozen=True, kw_only=True)
class ResourceOptions(Checked, group="Attacks"):
    """What a recipe attacks with."""

    neighbours: str | None = option(
        "Synonyms: jia2019, safer2020, dne, a JSON table, or (attacks) the counter-fitted vectors.",
        unset="jia2019",
    )
    tagger: str | None = option("nltk, a folder with NLTK's data, or none.", unset="nltk")
    stop_words: str | None = option(
        "textfooler, nltk, none, or a file with a word a line.", unset="the recipe's"
    )
    sentence_encoder: str | None = option(
        "Folder or hub id of a sentence encoder, or of the Universal Sentence Encoder.",
        unset="none; the recipe's name says so",
    )
    attack_lm: str | None = option("Folder or hub id of the masked language model of bert-attack.")


@dataclass(frozen=True, kw_only=True)
class LmOption(Checked, group="Smoothing"):
    """What weighs words."""

    lm: str | None = option("Folder of a masked language model, for --sampling lm.")


def open_input(given: Given, output: Path | None) -> RowSource:
    """The rows to read; exactly one of texts, a file and a corpus must be given."""
    asked, columns = given.build(InputOptions), given.build(ColumnOptions).columns()
    if sum((bool(asked.texts), asked.input is not None, asked.data is not None)) != 1:
        raise OptionError(
            "give texts, or a file with --input, or a corpus with --data: one of them"
        )
    if asked.texts and output is not None:
        raise OptionError("--output goes with --input or --data; texts given here are printed")
    return asked.open(columns)


def word_losses_from(given: Given) -> WordLosses | None:
    """The losses of the language model that was named; it is loaded only where it is needed."""
    lm, sampling = given.get("lm"), given.get("sampling")
    if (lm is not None) != (sampling == "lm"):
        raise OptionError(
            "sampling='lm' needs a masked language model: name its folder with --lm"
            if lm is None
            else f"lm={lm!r} goes with sampling='lm'"
        )
    if lm is None:
        return None
    tame_libraries()
    from ranmask.attacks.resources.masked_lm import MaskedLM

    return MaskedLM.from_pretrained(lm, device=given.get("device")).word_losses


def tame_libraries() -> None:
    """Have libraries say little, and keep little.  Call it before they are imported."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Batches have ever other shapes: kernels that are made for each and kept, up to a thousand,
    # are memory that grows for minutes, and looking them up takes longer than making them.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")
