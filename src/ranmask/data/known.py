"""The corpora that are known by name: their labels, files, places on the hub, and terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ranmask.data.rows import PAIR, Columns

SPLITS = ("train", "validation", "test")

_TEXT = Columns("text", None, "label")
_PAIR = Columns(None, PAIR, "label")


def _files(train: str = "train", validation: str = "", test: str = "test") -> dict[str, str]:
    named = zip(SPLITS, (train, validation, test), strict=True)
    return {split: f"{name}.parquet" for split, name in named if name}


@dataclass(frozen=True)
class Known:
    """A corpus that is known by name: its files in the data folder, and its place on the hub.

    ``hub`` None: these rows are on no hub, and are read from files only; ``address`` is then where
    they were collected from.  ``folder``: where it is not called as the corpus.
    """

    label_names: tuple[str, ...]
    files: Mapping[str, str]
    hub: str | None = None
    terms: str | None = None
    """What is known of the terms that the data is offered on; a model's card repeats it."""
    folder: str = ""
    columns: Columns = _TEXT
    hub_columns: Columns = _TEXT
    hub_unlabelled: int | None = None
    whole: Mapping[str, int] = field(default_factory=dict)
    """Rows of the complete published parts, where a copy may be partial."""
    notes: Mapping[str, str] = field(default_factory=dict)
    carves_test: bool = False
    no_test: str = ""
    address: str = ""
    shipped: str = ""
    """The file with all rows that comes with ranmask."""

    @property
    def source(self) -> str:
        """Where on the web these rows, or those that they were chosen from, are."""
        return self.address or f"https://huggingface.co/datasets/{self.hub}"


KNOWN = {
    "agnews": Known(
        ("World", "Sports", "Business", "Sci/Tech"),
        _files("train_subset"),
        "fancyzhx/ag_news",
        "AG News (Zhang, Zhao and LeCun 2015, from A. Gulli's corpus) is offered for "
        "research and non-commercial use.",
        whole={"train": 120_000, "test": 7_600},
    ),
    # Whole sentences; of the hub's copies this one has them too, with the labels of the test part.
    "sst2": Known(
        ("negative", "positive"),
        _files(validation="dev"),
        "SetFit/sst2",
        "No licence is stated for SST2 (Socher et al. 2013).",
        whole={"test": 1_821},
    ),
    "sst2_glue": Known(
        ("negative", "positive"),
        _files(validation="dev", test=""),
        "stanfordnlp/sst2",
        "No licence is stated for the GLUE phrases of SST2 (Socher et al. 2013).",
        hub_columns=Columns("sentence", None, "label"),
        notes={"validation": "GLUE hides its test labels, so this part stands in for test"},
        no_test="GLUE hides its labels; evaluate on validation and tune on a part of train, or "
        "take the test split of sst2",
    ),
    "imdb": Known(
        ("negative", "positive"),
        _files(),
        "stanfordnlp/imdb",
        "No licence is stated for the IMDB reviews (Maas et al. 2011).",
        whole={"test": 25_000},
    ),
    "snli": Known(
        ("entailment", "neutral", "contradiction"),
        _files("train_subset", "dev"),
        "stanfordnlp/snli",
        "SNLI is offered under CC BY-SA 4.0 (Bowman et al. 2015).",
        columns=_PAIR,
        hub_columns=_PAIR,
        hub_unlabelled=-1,  # pairs that the annotators did not agree on
        whole={"train": 549_367, "test": 9_824},
    ),
    "hate": Known(
        ("hate speech", "offensive", "neither"),
        _files("all", test=""),
        "tdavidson/hate_speech_offensive",
        "The tweets are offered under the MIT licence (Davidson et al. 2017).",
        folder="hate_davidson",
        hub_columns=Columns("tweet", None, "class"),
        carves_test=True,
    ),
    "sms_spam": Known(
        ("ham", "spam"),
        _files("all", test=""),
        "ucirvine/sms_spam",
        "The SMS Spam Collection (Almeida and Gómez Hidalgo 2011) is offered under CC BY 4.0 by "
        "the UCI Machine Learning Repository.",
        hub_columns=Columns("sms", None, "label"),
        carves_test=True,
        address="https://archive.ics.uci.edu/dataset/228",
        shipped="sms_spam.jsonl.gz",
    ),
    "enron_spam": Known(
        ("ham", "spam"),
        _files(),
        terms="No licence is stated for the Enron spam mails (Metsis et al. 2006).",
        address="https://www2.aueb.gr/users/ion/data/enron-spam/",
    ),
    "spamassassin": Known(
        ("ham", "spam"),
        _files(),
        terms="The SpamAssassin mails are offered under ODC PDDL 1.0 and CC0.",
        address="https://spamassassin.apache.org/old/publiccorpus/",
    ),
    "jigsaw_part": Known(
        ("not toxic", "toxic"),
        _files(),
        terms="The Jigsaw comments are offered under CC0, their text under CC BY-SA 3.0.",
        address="https://www.kaggle.com/c/jigsaw-toxic-comment-classification-challenge",
    ),
    # One of the public sets that it was put together from.
    "injection": Known(
        ("benign", "injection"),
        _files(),
        address="https://huggingface.co/datasets/deepset/prompt-injections",
    ),
}
