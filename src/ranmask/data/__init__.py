"""Labelled texts by name, for training, tuning and evaluation: all of a split, or an error.

A name is one of `known.KNOWN` (``sms_spam`` comes with ranmask), a local file (csv, tsv, jsonl,
parquet), a local folder with ``train.*`` and perhaps ``validation.*`` (or ``dev.*``) and
``test.*``, or a dataset of the Hugging Face hub.  A known name wins over a file of that name: write
``./sst2`` for the file.

Unlike `rows`, which serves runs over any file, nothing of a corpus passes over a bad row: a model
that was trained on most of a file is not the model that was asked for.

- **train** comes in the order of a fixed permutation, since files are often sorted.
- **validation** is the part that the corpus ships with, left whole.  Where there is none it is
  carved from train, the first of that permutation: a tenth of it, at most 2,000 rows.  A carved
  row whose exact text stays in train is left out, and the note says how many.
- **test** keeps the order of its file, except where that is label by label: the first rows would
  all be of one class.  It is carved only for corpora that come as one file (hate, sms_spam).
"""

from ranmask.data.corpus import Corpus, joined, permutation
from ranmask.data.known import SPLITS
from ranmask.data.origins import data_folder
from ranmask.data.splits import load_corpus, load_splits

__all__ = [
    "SPLITS",
    "Corpus",
    "data_folder",
    "joined",
    "load_corpus",
    "load_splits",
    "permutation",
]
