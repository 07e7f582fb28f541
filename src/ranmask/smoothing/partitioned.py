"""`PartitionedClassifier`: word tables that were trained apart vote, so that poison is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ranmask.certificates.assumed import POISONED, assumptions
from ranmask.certificates.coverage import Ints
from ranmask.certificates.exact import radii_against_each
from ranmask.certificates.partitions import most_poisoned, vote_counts
from ranmask.errors import ModelError, OptionError
from ranmask.models import model_config, pretrained
from ranmask.models.blend import Blend
from ranmask.models.word_table import WordTable
from ranmask.options import SmoothingOptions
from ranmask.options.fields import check_saved
from ranmask.results import Certificate, PartitionCertificate, Prediction
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.smoothing.threatened import covered
from ranmask.words import Document, Text, documents

THREATS = ("substitutions", "edits")
"""What may be done to a text beside poisoned training texts."""

_TEXTS_AT_ONCE = 1024  # bounds memory


class PartitionedClassifier:
    """Word tables vote, one vote each; certifies poisoned training texts *and* changed words.

    Guarantee: with ``result.poisoned[d]`` training texts poisoned, the tables trained anew, and
    ``d`` words of the text changed, to anything, the label stays (`certificates.partitions`).  It
    holds for tables that `training.partitions` trained, each on the texts that a hash sends to it.
    ``Certificate.assumes`` lists what it rests on.

    Args:
        tables: Two or more, of the same classes.  A tie goes to the lowest class.
        threat: What a changed word is: one of ``substitutions``, ``edits``.
    """

    def __init__(self, tables: Sequence[WordTable], threat: str = THREATS[0]) -> None:
        if threat not in THREATS:
            raise OptionError(
                f"threat={threat!r} is not certified beside poisoned texts: use one of "
                f"{', '.join(THREATS)}",
                "threat",
            )
        self.base = Blend(tables)  # refuses tables of other classes, and a single one
        self.threat = threat
        self.tables = tuple(
            SmoothedClassifier(table, **{**table.smoothing, "threat": threat}) for table in tables
        )
        self.labels: tuple[str, ...] = tables[0].labels

    @classmethod
    def from_pretrained(cls, folder: str, **options: Any) -> Self:
        """Load a folder that `save_pretrained` wrote; only ``threat`` may be another."""
        for name, value in options.items():
            if name != "threat":
                raise OptionError(
                    f"{name}={value!r} means nothing for {folder!r}, whose tables vote: leave it "
                    "out",
                    name,
                )
        known = pretrained.saved_config(folder)
        if known.kind != model_config.PARTITIONS:
            raise ModelError(
                f"{folder!r} holds no tables that vote: load it with "
                "ranmask.load_classifier, or train them with --partitions"
            )
        check_saved(known.path, known.smoothing, SmoothingOptions)
        tables = []
        for part in known.parts:
            table = pretrained.load_part(Path(folder), part, {})
            if not isinstance(table, WordTable):
                raise ModelError(f"the part {part!r} of {folder!r} is no word table")
            tables.append(table)
        return cls(tables, **{**known.smoothing, **options})

    def save_pretrained(self, folder: str) -> None:
        """Save the tables, each in a folder inside; `from_pretrained` loads them again."""
        names = [f"part{number}" for number in range(1, len(self.tables) + 1)]
        for name, table in zip(names, self.tables, strict=True):
            table.save_pretrained(str(Path(folder) / name))
        model_config.write(Path(folder), model_config.PARTITIONS, {"threat": self.threat}, names)

    def description(self) -> dict[str, Any]:
        """What determines the results, as plain JSON values."""
        return {
            "kind": model_config.PARTITIONS,
            "base": self.base.description(),
            "labels": list(self.labels),
            "options": {"threat": self.threat},
        }

    def check_certifiable(self) -> None:
        """Nothing is refused: the tables vote as they are."""

    def predict(self, texts: Sequence[Text | Document]) -> list[Prediction]:
        """The label of each text: a vote of the tables, without a certificate."""
        read = documents(texts)
        return [
            Prediction(**fields)
            for some in _batches(read)
            for fields in self._answers(some, self._said(some, proving=False)[0])
        ]

    def certify(self, texts: Sequence[Text | Document]) -> list[PartitionCertificate]:
        """The label of each text, and what is proved: see ``PartitionCertificate.poisoned``.

        All texts are checked before the first is classified; one that cannot be used raises
        `TextError` with its index.
        """
        read = documents(texts)
        return [found for some in _batches(read) for found in self._certified(some)]

    def _certified(self, texts: Sequence[Document]) -> Iterator[PartitionCertificate]:
        said, proved = self._said(texts, proving=True)
        own = covered(self.tables[0].options, None)
        assumes = assumptions("exact", seed=0, tolerance=0.0, **own) + POISONED
        for fields, poisoned in zip(
            self._answers(texts, said), most_poisoned(said, proved), strict=True
        ):
            certificate = Certificate(
                **fields,
                radius=len(poisoned) - 1,
                threat=self.threat,
                uncertain=0,
                certificate=model_config.PARTITIONS,
                guarantee=True,
                alpha=None,
                tight=False,
                critical_words=(),
                assumes=assumes,
            )
            yield PartitionCertificate.of(certificate, poisoned)

    def _said(self, texts: Sequence[Document], *, proving: bool) -> tuple[Ints, Ints]:
        """The label that each table gives each text, and what is proved of each class.

        Shapes (tables, texts) and (tables, texts, classes), as `most_poisoned` takes them.
        """
        said, proved = [], []
        for table in self.tables:
            votes = [scored.votes for scored in table.scored(texts)]
            said.append(np.concatenate([some.winners for some in votes]))
            if proving:
                found = [
                    radii_against_each(
                        some.differences(some.winners, every=True), some.copies, some.bound
                    )
                    for some in votes
                ]
                proved.append(_by_class(np.concatenate(found, axis=1).T, said[-1]))
        return np.stack(said), np.stack(proved) if proving else np.empty((0, 0, 0), dtype=np.int64)

    def _answers(self, texts: Sequence[Document], said: Ints) -> Iterator[dict[str, Any]]:
        counts = vote_counts(said, len(self.labels))
        rows = zip(texts, counts.argmax(axis=1).tolist(), counts.tolist(), strict=True)
        for text, label, votes in rows:
            yield {
                "label": self.labels[label],
                "label_id": label,
                "votes": tuple(votes),
                "scores": None,
                "words": len(text.words),
                "words_read": len(text.words),
                "kept": 1,
                "masks": len(self.tables),
                "family": "all",
                "ensemble": "vote",
            }


def _by_class(rivals: Ints, labels: Ints) -> Ints:
    """Radii against rivals, (texts, classes - 1), by class, and at the label the least of them.

    A table always says the same of the same text: without a changed word nothing is in doubt,
    though a tie with a rival leaves no radius.
    """
    rivals = rivals.clip(0)
    places = np.arange(rivals.shape[1] + 1)
    after = places > labels[:, None]  # rivals are all classes but the label, in their order
    found = np.take_along_axis(rivals, np.minimum(places - after, rivals.shape[1] - 1), axis=1)
    found[np.arange(len(labels)), labels] = rivals.min(axis=1)
    return found


def _batches(texts: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        yield texts[start : start + _TEXTS_AT_ONCE]
