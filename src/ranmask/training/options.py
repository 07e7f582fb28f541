"""How encoders, word tables and masked language models are trained; no torch is imported."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from ranmask.certificates.kept import DeletionRates, Retention
from ranmask.errors import OptionError
from ranmask.models.normalising import Normalisation
from ranmask.options import Ensemble
from ranmask.options.fields import Checked, option, option_fields
from ranmask.words import Hiding, split

ClassWeights: TypeAlias = Literal["none", "balanced"]
Head: TypeAlias = Literal["choice", "approval"]
VoteLoss: TypeAlias = Literal["certified", "margin"]
WeightType: TypeAlias = Literal["float32", "float16"]
TableFamily: TypeAlias = Literal["all", "distinct"]
Lexicon: TypeAlias = Literal["open", "closed"]
TableThreat: TypeAlias = Literal["substitutions", "edits", "insertions", "characters", "synonyms"]

_LARGE, _LARGE_RATE, _SMALL_RATE = 50_000_000, 5e-5, 2e-4  # parameters; learning rates
_LARGEST_BATCH, _STEPS_AN_EPOCH = 512, 32  # of a word table; few texts make smaller batches
_WORDS_A_TARGET, _LONGEST_TARGET = 8, 64  # of a word table, by the words of its median text
_DEARNESS = {"insertions": 0.5, "characters": 1.5}  # of a change, against that of a replaced word

MARGIN_WIDTH = 0.1
"""Width of the margin loss's hinge, in scores."""

WHOLE_TEXTS: dict[str, Any] = {"mask_rate": 0.0, "hide": "mask", "ensemble": "score"}
"""Options of training that hides no word: one copy shows all of a text, and decides alone."""

DELETION_VALIDATION: dict[str, Any] = {"masks": 200, "selection_masks": 50}
"""Copies of a held-out text that lack words at random: thousands of each would take hours."""

MASKS, VOTES = "Masks", "Vote training"
"""Groups of options that mean nothing where no word is hidden."""
_SCHEDULE, _SIZES, _SAVED = "Learning", "Size of the model", "Saved classifier"

# Options that kinds of training share.
_EPOCHS, _LEARNING_RATE, _TEXTS = (
    *("Most epochs of (masked) training.", "Peak of the schedule."),
    "Texts that are computed at once.",
)
_CLASS_WEIGHTS = partial(
    option, "balanced: every class counts the same, however few texts it has; or none."
)
_POSITIVE = partial(
    option, "Class, by its name, that the card holds against all others: ROC, certified recall."
)
_SEED = partial(option, "Fixes whatever is drawn at random.", least=0, below=2**32)
_BATCH_SIZE = partial(option, _TEXTS, least=1, group=_SCHEDULE)
_ACCUMULATE = partial(option, "Batches in a step.", least=1, group=_SCHEDULE)
_GRADIENT_CLIP = partial(option, "Largest norm of the gradient.", above=0, group=_SCHEDULE)
_WEIGHT_DECAY = partial(option, "AdamW's.", least=0, group=_SCHEDULE)
_WEIGHTS = partial(option, "Type that weights are stored in.", group=_SIZES)
_EVALUATE_EVERY = partial(
    option, "Steps between evaluations, each a checkpoint.", unset="an epoch", least=1
)
_VALIDATION_ROWS = partial(option, "Texts that an evaluation reads.", least=1)


@dataclass(frozen=True)
class TrainingOptions(Checked, kind="encoder", group="Training"):
    """Masked training, then vote training.

    The defaults of the first are the paper's but for class weights, and for the learning rate of
    encoders that are smaller than its own.

    **Masked training** (``epochs``, at most): cross-entropy on copies of each text with fresh
    random masks every epoch.  It stops after ``patience`` evaluations without a better certified
    accuracy on validation.  **Vote training** (``vote_epochs``): several copies of a text are
    added up as the smoothed classifier does, and the loss is on the margin of the sum.
    """

    keep: tuple[int, ...] = option(
        "Words that copies show; several, as 1,2,3, are mixed, and the first is certified. Beside "
        "--mask-rate, with --family deletion: on average, of longer texts.",
        (),
        least=1,
        group=MASKS,
    )
    mask_rate: float | None = option(
        "Or: share of words that is hidden.", least=0, below=1, group=MASKS
    )
    hide: Hiding = option(
        "drop leaves hidden words out, mask shows a token for each.", "drop", group=MASKS
    )
    family: Literal["auto", "windows", "deletion"] = option(
        "Kept sets that training draws: at random (auto) or windows; or deletion: every word is "
        "deleted with the chance --mask-rate.",
        "auto",
        group=MASKS,
    )
    head: Head = option(
        "choice (softmax), or approval (a sigmoid for each class: a word may speak for two).",
        "choice",
        group=_SIZES,
    )
    pair_head: bool = option(
        "For pairs: both encodings, concatenated, and two layers.", False, group=_SIZES
    )
    epochs: int = option(_EPOCHS, 20, least=0)
    copies: int = option("Masked copies of a text in a step.", 1, least=1, group=MASKS)
    ramp: float = option(
        "Share of masked training in which the number of hidden words rises, from none.",
        0.0,
        least=0,
        most=1,
        group=MASKS,
    )
    patience: int | None = option(
        "Evaluations without gain before it stops.", 3, unset="never", least=1
    )
    vote_epochs: int = option("Epochs of vote training after it.", 0, least=0, group=VOTES)
    vote_copies: int = option("Most copies of a text in a vote.", 64, least=1, group=VOTES)
    vote_loss: VoteLoss = option(
        "certified: counts texts that are not certified; margin: a hinge.", "certified", group=VOTES
    )
    target_words: int = option(
        "Changed words to be certified against: certified accuracy is averaged from 0 up to "
        "it, in the loss and where the best checkpoint is chosen.",
        5,
        least=1,
        group=VOTES,
    )
    temperature: float | None = option(
        "Width of the certified loss, in words.", unset="target / 2.5", above=0, group=VOTES
    )
    accuracy_weight: float = option(
        "Weight of plain accuracy in the loss; 0 may give up on a class.", 1.0, least=0, group=VOTES
    )
    margin: float = option("Margin to reach.", 0.55, least=0, group=VOTES)
    class_weights: ClassWeights = _CLASS_WEIGHTS("balanced")
    positive: str | None = _POSITIVE()
    learning_rate: float | None = option(
        _LEARNING_RATE, unset="2e-4, 5e-5 from 50M parameters", above=0, group=_SCHEDULE
    )
    vote_learning_rate: float | None = option(
        "The same for vote training.", unset="the same", above=0, group=VOTES
    )
    weight_decay: float = _WEIGHT_DECAY(1e-6)
    batch_size: int = _BATCH_SIZE(32)
    accumulate: int = _ACCUMULATE(1)
    gradient_clip: float = _GRADIENT_CLIP(1.0)
    layers: int | None = option(
        "Keep only the first layers of the base.", unset="all", least=1, group=_SIZES
    )
    vocabulary: int | None = option(
        "Keep only the most frequent tokens.", unset="all", least=100, group=_SIZES
    )
    longest: int | None = option(
        "Most tokens of a text that are read.", unset="as the base", least=8, group=_SIZES
    )
    weights: WeightType = _WEIGHTS("float32")
    evaluate_every: int | None = _EVALUATE_EVERY()
    validation_rows: int = _VALIDATION_ROWS(500)
    ensemble: Ensemble | None = option(
        "How copies are added up.", unset="vote; score after vote training", group=_SAVED
    )
    masks: int | None = option("Most copies a text.", unset="1000", least=1, group=_SAVED)
    seed: int = _SEED(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deletes_words:
            self._check_deletion()
        _ = self.retentions
        if self.epochs + self.vote_epochs == 0:
            raise OptionError(
                "epochs and vote_epochs are both 0: nothing would be trained", "epochs"
            )

    @property
    def retentions(self) -> tuple[Retention, ...]:
        """How many words copies show; the first is what the saved classifier uses."""
        if self.deletes_words:  # of what is left of a text, all are shown
            return (Retention(mask_rate=0.0),)
        if self.mask_rate is not None or not self.keep:
            return (Retention(self.keep[0] if self.keep else None, self.mask_rate),)
        return tuple(Retention(keep) for keep in self.keep)

    @property
    def hides_words(self) -> bool:
        """Whether any word is hidden at all; a deleted one is not."""
        return self.mask_rate != 0 and not self.deletes_words

    @property
    def deletes_words(self) -> bool:
        """Whether words are deleted at random, as the saved classifier's copies lack them."""
        return self.family == "deletion"

    @property
    def rates(self) -> DeletionRates | None:
        """With what chance words are deleted, if they are."""
        if not self.deletes_words or self.mask_rate is None:
            return None
        return DeletionRates(self.mask_rate, self.keep[0] if self.keep else None)

    @property
    def hiding(self) -> Hiding:
        """How the encoder hides words, where it hides any."""
        return "mask" if self.deletes_words else self.hide

    def _check_deletion(self) -> None:
        if not self.mask_rate:
            raise OptionError(
                f"family='deletion' needs mask_rate, the chance that a word is deleted, as 0.9; "
                f"not {self.mask_rate!r}",
                "mask_rate",
            )
        if len(self.keep) > 1:
            raise OptionError(
                f"family='deletion' takes one keep, not {', '.join(map(str, self.keep))}: copies "
                "of longer texts have so many words on average",
                "keep",
            )
        fields = option_fields(TrainingOptions)
        for name in ("copies", "ramp", "vote_epochs", "ensemble"):
            if getattr(self, name) != fields[name].default:
                raise OptionError(
                    f"{name}={getattr(self, name)!r} means nothing with family='deletion', which "
                    "trains on one random copy of a text at a time: leave it out",
                    name,
                )

    @property
    def step_width(self) -> float:
        """The temperature of the certified loss, in words."""
        return self.temperature or self.target_words / 2.5

    def smoothing(self) -> dict[str, Any]:
        """The options that the trained classifier is smoothed with."""
        if self.deletes_words:
            keep = self.keep[0] if self.keep else None
            how = {"mask_rate": self.mask_rate, "keep": keep}
            return {**how, "masks": self.masks, "seed": self.seed}
        first = self.retentions[0]
        return {
            "keep": first.keep,
            "mask_rate": first.mask_rate,
            "family": None if self.family == "auto" else self.family,
            "ensemble": self.ensemble or ("score" if self.vote_epochs else "vote"),
            "masks": self.masks,
        }

    def settled(self, parameters: int) -> TrainingOptions:
        """These options with the learning rate filled in, for an encoder of so many parameters."""
        if self.learning_rate is not None:
            return self
        return replace(self, learning_rate=default_learning_rate(parameters))


def default_learning_rate(parameters: int) -> float:
    """The peak for an encoder of so many parameters: the paper's for one of BERT-base's size.

    A small one learns nothing with that from a few thousand texts (docs/training.md).
    """
    return _LARGE_RATE if parameters >= _LARGE else _SMALL_RATE


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

    threat: TableThreat = option(
        "What is trained for, and certified by default: words replaced by any others "
        "(substitutions) or by synonyms, inserted, or edited; or edited characters.",
        "substitutions",
        group=VOTES,
    )
    synonyms: str | None = option(
        "Their table: a name (jia2019), a JSON file, or the folder of a model with one.",
        group=VOTES,
    )
    target_words: int | None = option(
        "Most changes (of words; characters) that training tries to certify; 0: accuracy alone.",
        unset="an eighth of the median text, 1 to 8; twice that of insertions, two thirds of "
        "characters, all words of synonyms",
        least=0,
        group=VOTES,
    )
    family: TableFamily | None = option(
        "all, or distinct (each word counts once).", unset=_by_target("family"), group=MASKS
    )
    temperature: float | None = option(
        "Width of the certified loss, in words.",
        unset=_by_target("temperature"),
        above=0,
        group=VOTES,
    )
    epochs: int | None = option(_EPOCHS, unset=_by_target("epochs"), least=1)
    warm_epochs: int | None = option(
        "Epochs on the margin before the certified loss.", unset=_by_target("warm_epochs"), least=0
    )
    learning_rate: float | None = option(
        _LEARNING_RATE, unset=_by_target("learning_rate"), above=0, group=_SCHEDULE
    )
    batch_size: int | None = option(
        _TEXTS, unset="up to 512, 256 of all synonyms", least=1, group=_SCHEDULE
    )
    feature_dropout: float | None = option(
        "Share of features that is silent in a step.",
        unset=_by_target("feature_dropout"),
        least=0,
        below=1,
    )
    weight_decay: float | None = option(
        "Of squared weights.", unset=_by_target("weight_decay"), least=0, group=_SCHEDULE
    )
    margin: float = option("Margin to reach.", 0.3, above=0, below=1, group=VOTES)
    accuracy_weight: float | None = option(
        "Weight of plain accuracy in the loss; 0 may give up on a class.",
        unset=_by_target("accuracy_weight"),
        least=0,
        group=VOTES,
    )
    whole_weight: float = option(
        "Words that a whole-text model weighs, which votes too.", 0.0, least=0, group=VOTES
    )
    class_weights: ClassWeights = _CLASS_WEIGHTS("balanced")
    normalise: Normalisation = option(
        "Spellings that are read as one: case (and punctuation around a word), or lookalikes too.",
        "none",
        group=_SIZES,
    )
    lexicon: Lexicon | None = option(
        "open: any word says something. closed: a word that was not learned says nothing, so that "
        "changed characters do less.",
        unset="closed for characters, else open",
        group=_SIZES,
    )
    positive: str | None = _POSITIVE()
    buckets: int = option(
        "Rows of the table; of a closed lexicon, most words.", 1 << 18, least=1, group=_SIZES
    )
    most_words: int = option(
        "Words of a text that are trained on, which bounds memory.", 800, least=1
    )
    partitions: int | None = option(
        "Tables that vote, each trained on the texts that a hash sends to it: certifies poisoned "
        "training texts, too.",
        unset="one table",
        least=2,
    )
    seed: int = option("Fixes whatever is drawn at random.", 0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partitions is not None:
            self._check_partitioned()
        if self.warm_epochs and self.epochs and self.warm_epochs > self.epochs:
            raise OptionError(
                f"warm_epochs={self.warm_epochs} is more than epochs={self.epochs}: the warm "
                "epochs are the first of them"
            )
        if (self.threat == "synonyms") != (self.synonyms is not None):
            raise OptionError(
                f"threat={self.threat!r} and synonyms={self.synonyms!r}: they go together, as in "
                "threat='synonyms' and synonyms='jia2019'",
                "synonyms",
            )
        if self.threat != "substitutions" and self.target_words == 0:
            raise OptionError(
                f"target_words=0 trains for accuracy alone, not for threat={self.threat!r}: leave "
                "one of them out",
                "target_words",
            )
        if self.threat == "synonyms" and self.family == "distinct":
            raise OptionError(
                "family='distinct' cannot be trained for synonyms, which may repeat a word that is "
                "there: use family='all'",
                "family",
            )

        others = self.normalise != "none", self.family == "distinct", self.target_words == 0
        if self.lexicon == "closed" and (any(others) or self.threat == "synonyms"):
            raise OptionError(
                "lexicon='closed' reads letters alone, every word counts, and a target is "
                "trained for: leave normalise, family, synonyms and target_words=0 out",
                "lexicon",
            )

    def _check_partitioned(self) -> None:
        """Refuse what tables that are trained apart are not certified for."""
        for name, refused in (
            ("threat", self.threat not in ("substitutions", "edits")),
            ("family", self.family == "distinct"),
            ("target_words", self.target_words == 0),
            ("lexicon", self.lexicon == "closed"),
            ("whole_weight", self.whole_weight != 0),
        ):
            if refused:
                raise OptionError(
                    f"{name}={getattr(self, name)!r} does not go with partitions="
                    f"{self.partitions}, whose tables are trained for substitutions or edits and "
                    "count every word: leave one of them out",
                    name,
                )

    def resolved(self, texts: Sequence[str]) -> WordTableOptions:
        """These options with every default filled in, for these texts."""
        target, dearness = self.target_words, _DEARNESS.get(self.threat, 1.0)
        apart = self.family == "distinct" or self.normalise != "none"
        closes = self.threat == "characters" and not apart
        if target is None and self.threat != "synonyms":
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


@dataclass(frozen=True)
class MlmOptions(Checked, kind="mlm", group="Training"):
    """How a masked language model is trained.  Checked when built.

    As BERT's, 80 % of the tokens to predict are shown as the mask token, 10 % as a random token,
    and 10 % as they are; in every epoch they are others.  The learning rate is for a base without
    a head; 5e-5 suits one that is a masked language model already.
    """

    epochs: int = option(_EPOCHS, 3, least=1)
    mask_rate: float = option(
        "Share of tokens that are predicted.", 0.15, above=0, below=1, group=MASKS
    )
    learning_rate: float = option(_LEARNING_RATE, 3e-4, above=0, group=_SCHEDULE)
    warmup: float = option(
        "Share of the steps in which it rises.", 0.06, least=0, below=1, group=_SCHEDULE
    )
    weight_decay: float = _WEIGHT_DECAY(0.01)
    batch_size: int = _BATCH_SIZE(32)
    accumulate: int = _ACCUMULATE(1)
    gradient_clip: float = _GRADIENT_CLIP(1.0)
    longest: int = option("Most tokens of a text that are read.", 128, least=16, group=_SIZES)
    weights: WeightType = _WEIGHTS("float32")
    evaluate_every: int | None = _EVALUATE_EVERY()
    validation_rows: int = _VALIDATION_ROWS(500)
    seed: int = _SEED(0)
