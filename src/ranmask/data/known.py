"""The corpora that are known by name: their labels, files, places on the hub, and terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ranmask.data.rows import Columns

SPLITS = ("train", "validation", "test")

_TEXT = Columns("text", None, "label")
_PAIR = Columns(None, ("premise", "hypothesis"), "label")
_TRAIN_AND_TEST = {"train": "train.parquet", "test": "test.parquet"}
_FILES = {"train": "train.parquet", "validation": "dev.parquet", "test": "test.parquet"}


@dataclass(frozen=True)
class Known:
    """A corpus that is known by name: its files in the data folder, and its place on the hub.

    ``hub`` None: these rows are on no hub, and are read from files only.
    """

    label_names: tuple[str, ...]
    folder: str
    files: Mapping[str, str]
    hub: str | None = None
    hub_columns: Columns = _TEXT
    columns: Columns = _TEXT
    hub_splits: tuple[str, ...] = SPLITS
    hub_unlabelled: int | None = None
    whole: Mapping[str, int] = field(default_factory=dict)
    """Rows of the complete published parts, where a copy may be partial."""
    notes: Mapping[str, str] = field(default_factory=dict)
    carves_test: bool = False
    no_test: str = ""
    terms: str | None = None
    """What is known of the terms that the data is offered on; a model's card repeats it."""


KNOWN = {
    "agnews": Known(
        ("World", "Sports", "Business", "Sci/Tech"),
        "agnews",
        {"train": "train_subset.parquet", "test": "test.parquet"},
        "fancyzhx/ag_news",
        _TEXT,
        hub_splits=("train", "test"),
        whole={"train": 120_000, "test": 7_600},
        terms="AG News (Zhang, Zhao and LeCun 2015, from A. Gulli's corpus) is offered for "
        "research and non-commercial use.",
    ),
    # Whole sentences; of the hub's copies this one has them too, with the labels of the test part.
    "sst2": Known(
        ("negative", "positive"),
        "sst2",
        _FILES,
        "SetFit/sst2",
        _TEXT,
        whole={"test": 1_821},
        terms="No licence is stated for SST2 (Socher et al. 2013).",
    ),
    "sst2_glue": Known(
        ("negative", "positive"),
        "sst2_glue",
        {"train": "train.parquet", "validation": "dev.parquet"},
        "stanfordnlp/sst2",
        Columns("sentence", None, "label"),
        hub_splits=("train", "validation"),
        notes={"validation": "GLUE hides its test labels, so this part stands in for test"},
        no_test="GLUE hides its labels; evaluate on validation and tune on a part of train, or "
        "take the test split of sst2",
        terms="No licence is stated for the GLUE phrases of SST2 (Socher et al. 2013).",
    ),
    "imdb": Known(
        ("negative", "positive"),
        "imdb",
        {"train": "train.parquet", "test": "test.parquet"},
        "stanfordnlp/imdb",
        _TEXT,
        hub_splits=("train", "test"),
        whole={"test": 25_000},
        terms="No licence is stated for the IMDB reviews (Maas et al. 2011).",
    ),
    "snli": Known(
        ("entailment", "neutral", "contradiction"),
        "snli",
        _FILES | {"train": "train_subset.parquet"},
        "stanfordnlp/snli",
        _PAIR,
        columns=_PAIR,
        hub_unlabelled=-1,  # pairs that the annotators did not agree on
        whole={"train": 549_367, "test": 9_824},
        terms="SNLI is offered under CC BY-SA 4.0 (Bowman et al. 2015).",
    ),
    "hate": Known(
        ("hate speech", "offensive", "neither"),
        "hate_davidson",
        {"train": "all.parquet"},
        "tdavidson/hate_speech_offensive",
        Columns("tweet", None, "class"),
        hub_splits=("train",),
        carves_test=True,
        terms="The tweets are offered under the MIT licence (Davidson et al. 2017).",
    ),
    "sms_spam": Known(
        ("ham", "spam"),
        "sms_spam",
        {"train": "all.parquet"},
        "ucirvine/sms_spam",
        Columns("sms", None, "label"),
        hub_splits=("train",),
        carves_test=True,
    ),
    "enron_spam": Known(
        ("ham", "spam"),
        "enron_spam",
        _TRAIN_AND_TEST,
        terms="No licence is stated for the Enron spam mails (Metsis et al. 2006).",
    ),
    "spamassassin": Known(
        ("ham", "spam"),
        "spamassassin",
        _TRAIN_AND_TEST,
        terms="The SpamAssassin mails are offered under ODC PDDL 1.0 and CC0.",
    ),
    "jigsaw_part": Known(
        ("not toxic", "toxic"),
        "jigsaw_part",
        _TRAIN_AND_TEST,
        terms="The Jigsaw comments are offered under CC0, their text under CC BY-SA 3.0.",
    ),
    "injection": Known(("benign", "injection"), "injection", _TRAIN_AND_TEST),
}
NAMES = tuple(KNOWN)
