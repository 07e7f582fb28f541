"""How word tables are trained."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ranmask.errors import OptionError
from ranmask.models.normalising import Normalisation
from ranmask.options.fields import Checked, option
from ranmask.training import shared_options as shared
from ranmask.words import split

TableFamily: TypeAlias = Literal["all", "distinct"]
Lexicon: TypeAlias = Literal["open", "closed"]
TableThreat: TypeAlias = Literal["substitutions", "edits", "insertions", "characters", "synonyms"]

_LARGEST_BATCH, _STEPS_AN_EPOCH = 512, 32  # few texts make smaller batches
_WORDS_A_TARGET, _LONGEST_TARGET = 8, 64  # by the words of the median text
_DEARNESS = {"insertions": 0.5, "characters": 1.5}  # of a change, against that of a replaced word

# What a word table's options are where they are not given: with a target, for accuracy alone, and
# for all words at once by synonyms.
_DEFAULTS: dict[str, tuple[Any, Any, Any]] = {
    "family": ("all", "distinct", "all"),
    "epochs": (8, 12, 6),
    "warm_epochs": (2, 0, 0),
    "temperature": ("target / 2.5 (insertions / 5, characters / 1.67)", 0.2, 1.0),
    "learning_rate": (0.05, 0.005, 0.005),
    "feature_dropout": (0.1, 0.0, 0.0),
    "weight_decay": (0.0, 1e-4, 0.0),
    "accuracy_weight": (0.0, 1.0, 0.5),
}


def _by_target(name: str) -> str:
    return "{}, {} of target 0, {} of all synonyms".format(*_DEFAULTS[name])


@dataclass(frozen=True)
class WordTableOptions(Checked, kind="words", group="Training"):
    """How a word table is trained.  Checked when built.

    What is None depends on whether there is a target (`resolved`); against synonyms, no
    ``target_words`` is all words at once.  A target out of reach only teaches the table to say
    always the same.
    """

    threat: TableThreat = shared.vote_option(
        "What is trained for, and certified by default: words replaced by any others "
        "(substitutions) or by synonyms, inserted, or edited; or edited characters. Several, "
        "separated by commas, are trained for together, and certified side by side.",
        "substitutions",
    )
    threats: tuple[TableThreat, ...] | None = shared.vote_option(
        "Other threats that are trained for too; of synonyms, all words at once.",
        unset="none",
        after="threat",
    )
    synonyms: str | None = shared.vote_option(
        "Their table: a name (jia2019), a JSON file, or the folder of a model with one."
    )
    synonym_weight: float = shared.vote_option(
        "What synonyms count beside other threats: more proves more of them, less of the others.",
        0.2,
        above=0,
    )
    target_words: int | None = shared.vote_option(
        "Most changes (of words; characters) that training tries to certify; 0: accuracy alone.",
        unset="an eighth of the median text, 1 to 8; twice that of insertions, two thirds of "
        "characters, all words of synonyms",
        least=0,
    )
    family: TableFamily | None = shared.mask_option(
        "all, or distinct (each word counts once).", unset=_by_target("family")
    )
    temperature: float | None = shared.vote_option(
        shared.TEMPERATURE, unset=_by_target("temperature"), above=0
    )
    epochs: int | None = option(shared.EPOCHS, unset=_by_target("epochs"), least=1)
    warm_epochs: int | None = option(
        "Epochs on the margin before the certified loss.", unset=_by_target("warm_epochs"), least=0
    )
    learning_rate: float | None = shared.schedule_option(
        shared.LEARNING_RATE, unset=_by_target("learning_rate"), above=0
    )
    batch_size: int | None = shared.schedule_option(
        shared.TEXTS, unset="up to 512, 256 of all synonyms", least=1
    )
    feature_dropout: float | None = option(
        "Share of features that is silent in a step.",
        unset=_by_target("feature_dropout"),
        least=0,
        below=1,
    )
    weight_decay: float | None = shared.schedule_option(
        shared.SQUARED, unset=_by_target("weight_decay"), least=0
    )
    margin: float = shared.vote_option(shared.MARGIN, 0.3, above=0, below=1)
    accuracy_weight: float | None = shared.vote_option(
        shared.ACCURACY_WEIGHT, unset=_by_target("accuracy_weight"), least=0
    )
    whole_weight: float = shared.vote_option(
        "Words that a whole-text model weighs, which votes too.", 0.0, least=0
    )
    class_weights: shared.ClassWeights = shared.class_weights("balanced")
    normalise: Normalisation = shared.size_option(
        "Spellings that are read as one: case (and punctuation around a word), or lookalikes too.",
        "none",
    )
    lexicon: Lexicon | None = shared.size_option(
        "open: any word says something. closed: a word that was not learned says nothing, so that "
        "changed characters do less.",
        unset="closed for characters, else open",
    )
    positive: str | None = shared.positive()
    buckets: int = shared.size_option(
        "Rows of the table; of a closed lexicon, most words.", 1 << 18, least=1
    )
    most_words: int = shared.most_words()
    partitions: int | None = option(
        "Tables that vote, each trained on the texts that a hash sends to it: certifies poisoned "
        "training texts, too.",
        unset="one table",
        least=2,
    )
    seed: int = shared.random_seed()

    def __post_init__(self) -> None:
        super().__post_init__()
        more = dict.fromkeys(threat for threat in self.threats or () if threat != self.threat)
        object.__setattr__(self, "threats", tuple(more) or None)
        if self.partitions is not None:
            self._check_partitioned()
        if self.warm_epochs and self.epochs and self.warm_epochs > self.epochs:
            raise OptionError(
                f"warm_epochs={self.warm_epochs} is more than epochs={self.epochs}: the warm "
                "epochs are the first of them"
            )
        if ("synonyms" in self.all_threats) != (self.synonyms is not None):
            table = "no synonyms" if self.synonyms is None else f"synonyms={self.synonyms!r}"
            raise OptionError(
                f"threat={','.join(self.all_threats)!r} and {table}: they go together, as in "
                "threat='synonyms' and synonyms='jia2019'",
                "synonyms",
            )
        if self.all_threats != ("substitutions",) and self.target_words == 0:
            raise OptionError(
                "target_words=0 trains for accuracy alone, not for threat="
                f"{','.join(self.all_threats)!r}: leave one of them out",
                "target_words",
            )
        if "synonyms" in self.all_threats and self.family == "distinct":
            raise OptionError(
                "family='distinct' cannot be trained for synonyms, which may repeat a word that is "
                "there: use family='all'",
                "family",
            )

        others = self.normalise != "none", self.family == "distinct", self.target_words == 0
        if self.lexicon == "closed" and any(others):
            raise OptionError(
                "lexicon='closed' reads letters alone, every word counts, and a target is "
                "trained for: leave normalise, family and target_words=0 out",
                "lexicon",
            )

    @property
    def all_threats(self) -> tuple[TableThreat, ...]:
        """All threats that are trained for, first the one that is certified by default."""
        return (self.threat, *(self.threats or ()))

    def target_of(self, threat: TableThreat) -> int | None:
        """Most changes to be certified of a threat; None: all words at once."""
        return None if threat == "synonyms" and self.threats else self.target_words

    def _check_partitioned(self) -> None:
        """Refuse what tables that are trained apart are not certified for."""
        threats = ",".join(self.all_threats)
        for name, value, refused in (
            ("threat", threats, threats not in ("substitutions", "edits")),
            ("family", self.family, self.family == "distinct"),
            ("target_words", self.target_words, self.target_words == 0),
            ("lexicon", self.lexicon, self.lexicon == "closed"),
            ("whole_weight", self.whole_weight, self.whole_weight != 0),
        ):
            if refused:
                raise OptionError(
                    f"{name}={value!r} does not go with partitions={self.partitions}, whose tables "
                    "are trained for substitutions or edits and count every word: leave one of "
                    "them out",
                    name,
                )

    def resolved(self, texts: Sequence[str]) -> WordTableOptions:
        """These options with every default filled in, for these texts."""
        target = self.target_words
        dearness = max(_DEARNESS.get(threat, 1.0) for threat in self.all_threats)
        apart = self.family == "distinct" or self.normalise != "none"
        closes = "characters" in self.all_threats and not apart
        if target is None and self.all_threats != ("synonyms",):
            median = statistics.median([len(split(text)) for text in texts]) if texts else 0
            target = max(1, round(min(median, _LONGEST_TARGET) / (_WORDS_A_TARGET * dearness)))
        column = 2 if target is None else 0 if target else 1
        defaults = {name: values[column] for name, values in _DEFAULTS.items()}
        defaults |= {"target_words": target, "lexicon": "closed" if closes else "open"}
        largest = _LARGEST_BATCH // 2 if target is None else _LARGEST_BATCH
        defaults["batch_size"] = min(largest, max(1, len(texts) // _STEPS_AN_EPOCH))
        if target:
            defaults["temperature"] = target * dearness / 2.5
            warm = defaults["warm_epochs"]
            defaults["warm_epochs"] = min(warm, self.epochs or warm)
        return replace(
            self, **{name: one for name, one in defaults.items() if getattr(self, name) is None}
        )
