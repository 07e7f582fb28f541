"""What ranmask answers with: frozen records, to and from versioned JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from fractions import Fraction
from numbers import Integral
from typing import Any, Self

from ranmask.errors import DataError, OptionError

RESULT_VERSION = 2
CONSTANTS = (
    "version",
    "ensemble",
    "reader",
    "threat",
    "certificate",
    "guarantee",
    "alpha",
    "assumes",
    "positive",
    "detector",
    "threshold",
)
"""What all results of a run have in common, most often; a file of results says it once."""

_CONTAINERS = frozenset((tuple, list, dict))
_COMPARED_FIELDS = ("label", "label_id", "radius", "guarantee", "alpha", "ensemble", "masks")


def check_version(what: str, data: Mapping[str, Any], wanted: int) -> None:
    """Refuse a record of another version than the one wanted."""
    version = data.get("version")
    if version != wanted:
        raise DataError(f"{what} version {version!r} is not {wanted}, the one this ranmask reads")


def check_count(name: str, value: object) -> None:
    """Refuse what is no number of things."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise OptionError(f"{name} must be a whole number of at least 0, not {value!r}")


class Record:
    """What all results are: frozen dataclasses, to and from JSON with a version number."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with a version number."""
        values = {"version": RESULT_VERSION, **_plain(vars(self))}
        if values.get("radii") == {}:
            del values["radii"]
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record that `to_dict` wrote; keys that are not its own are left alone."""
        check_version("result", data, RESULT_VERSION)
        own: Any = cls
        names = [field.name for field in fields(own) if field.name in data or _needed(field)]
        missing = [name for name in names if name not in data]
        if missing:
            raise DataError(f"not a {cls.__name__}: no {', '.join(missing)}")
        return cls(**{name: _frozen(data[name]) for name in names})


@dataclass(frozen=True)
class _Result(Record):
    """Fields that every result has.

    ``label`` and ``label_id``: the smoothed classifier's answer; a tie goes to the lowest id.
    ``votes``: copies that named each class.  ``scores``: average score of each class, only for
    score and logit ensembles.  ``words``: words of the text (of the hypothesis, for a pair);
    ``words_read``: how many of them the model reads, the later ones being cut off.  ``kept``:
    visible words in each copy.  ``masks``: number of copies.  ``reader``: whether a model that
    reads whole texts beside them ``answered`` or ``failed``; None where there is none.
    """

    label: str
    label_id: int
    votes: tuple[int, ...]
    scores: tuple[float, ...] | None
    words: int
    words_read: int
    kept: int
    masks: int
    family: str
    ensemble: str
    reader: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Prediction(_Result):
    """The smoothed label of a text.  Carries no guarantee; see `Certificate`."""


@dataclass(frozen=True)
class Certificate(_Result):
    """A smoothed label, and how many words can be changed without changing it.

    If ``guarantee`` is True: every text within ``radius`` of this one gets ``label`` too, under
    the conditions in ``assumes``; with certainty if ``alpha`` is None, else with probability at
    least ``1 - alpha`` over the masks.  What is within ``radius`` is said by ``threat``, of which
    at most ``radius`` steps make such a text:
    ``substitutions``, words replaced one for one; ``edits``, words replaced, inserted or deleted,
    in any order of the words; ``edit-distance``, the same with the others in their order;
    ``insertions`` and ``deletions``, these alone; ``characters``
    inserted, deleted or replaced, blanks too; ``span``, a run of so many neighbouring words
    replaced by as many; ``synonyms``, words replaced by words *that a table lists for them*, and
    no others (``assumes`` names the table; a ``radius`` of all ``words`` covers all at once).
    ``radii`` has, where several threats were asked for, the radius against each.
    ``radius`` None: not certified even unchanged.  ``tight`` True: no certificate that sees only
    what the copies said could prove that the label wins alone after one word more; False: more
    might be provable, because a search was cut short, votes are uncertain, or a bound is not
    attained.
    ``uncertain``: near-tied votes, all counted against the label by a vote ensemble (the others
    lower every score instead).  ``critical_words``: positions (from 0) of a worst choice of
    ``radius + 1`` words.
    """

    radius: int | None
    threat: str
    uncertain: int
    certificate: str
    guarantee: bool
    alpha: float | None
    tight: bool
    critical_words: tuple[int, ...]
    assumes: tuple[str, ...]
    radii: dict[str, int | None] = field(default_factory=dict, kw_only=True, hash=False)

    def certified(self, words: int, threat: str | None = None) -> bool:
        """Whether it is proved that changing ``words`` words (0: none) leaves ``label`` as it is.

        Or so many steps of another ``threat`` that was asked for.  False where nothing is proved:
        the radius is None, or the certificate is no guarantee.
        """
        check_count("words", words)
        radii = {self.threat: self.radius, **self.radii}
        threat = self.threat if threat is None else threat
        if threat not in radii:
            raise OptionError(
                f"this certificate says nothing of threat={threat!r}, only of {', '.join(radii)}: "
                "certify with threats that hold it"
            )
        radius = radii[threat]
        return self.guarantee and radius is not None and int(words) <= radius


@dataclass(frozen=True)
class Comparison(Certificate):
    """The exact certificate, and other certificates of the same text beside it.

    ``others``: for each kind, its ``label`` and ``label_id`` (selected by a sample of its own),
    ``radius``, ``guarantee``, ``alpha``, ``ensemble`` and ``masks`` (what it was estimated from),
    which mean what they mean for a `Certificate`.
    """

    others: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, certificates: Mapping[Any, Certificate]) -> Self:
        """From certificates by their kinds; one of them is ``exact``."""
        others = {
            str(kind): {name: getattr(one, name) for name in _COMPARED_FIELDS}
            for kind, one in certificates.items()
            if kind != "exact"
        }
        return cls(**_fields_of(certificates["exact"]), others=others)


@dataclass(frozen=True)
class ShownCertificate(Certificate):
    """A certificate, and some of the copies that it rests on.

    ``copies``: the first copies of the family, each with ``kept``, the positions of the words
    that it shows, and ``label_id``, the class that it votes for; None: all say the same to it.
    """

    copies: tuple[dict[str, Any], ...]

    @classmethod
    def of(
        cls, certificate: Certificate, kept: Sequence[Sequence[int]], votes: Sequence[int | None]
    ) -> Self:
        """``kept`` and ``votes`` are those of the copies to show, one entry a copy."""
        copies = tuple(
            {"kept": list(positions), "label_id": vote}
            for positions, vote in zip(kept, votes, strict=True)
        )
        return cls(**_fields_of(certificate), copies=copies)


@dataclass(frozen=True)
class MarginCertificate(Certificate):
    """A certificate, and what is proved about the *score* of one class, the positive one.

    ``positive_id``: that class.  ``margin``: its lead over its strongest rival; its score is that
    over ``margin_scale``, from -1 to 1, and the text is labelled positive where it is above 0.
    ``margins``: entry ``d`` is what the margin is at least, whichever ``d`` words are changed, to
    anything.  So every threshold, set beforehand, has its own radius.
    """

    positive_id: int
    margin: int
    margin_scale: int
    margins: tuple[int, ...]

    @property
    def score(self) -> float:
        """The lead of the positive class as a share of all votes or points."""
        return self.margin / self.margin_scale

    def flagged(self, threshold: float = 0.0) -> bool:
        """Whether the score is above a threshold; exactly, though `score` is rounded."""
        return _above(self.margin, self.margin_scale, threshold)

    def flag_radius(self, threshold: float = 0.0) -> int | None:
        """How many words can be changed, to anything, without taking the flag away.

        None: there is none, or even that is not proved.
        """
        if not (self.guarantee and self.flagged(threshold)):
            return None
        proved = [_above(margin, self.margin_scale, threshold) for margin in self.margins]
        return [*proved, False].index(False) - 1 if proved[0] else None

    @classmethod
    def of(
        cls,
        certificate: Certificate,
        positive_id: int,
        margin: int,
        margin_scale: int,
        margins: tuple[int, ...],
    ) -> Self:
        """A certificate with the margins of a class beside it."""
        return cls(
            **_fields_of(certificate),
            positive_id=positive_id,
            margin=margin,
            margin_scale=margin_scale,
            margins=margins,
        )


@dataclass(frozen=True)
class PartitionCertificate(Certificate):
    """A certificate of tables that vote, and how many training texts may be *poisoned* besides.

    ``poisoned``: entry ``d`` is how many training texts may be poisoned, and the tables trained
    anew, while ``d`` words are changed: the label stays, whatever is done of both.  It has
    ``radius + 1`` entries.  A poisoned text is one whose rows, however many, are added, removed or
    relabelled; a row whose text is changed counts as two.  Here ``votes`` counts tables, and
    ``masks`` is how many there are.
    """

    poisoned: tuple[int, ...]

    def certified(self, words: int, threat: str | None = None, poisoned: int = 0) -> bool:
        """Whether it is proved that changing ``words`` words and poisoning texts changes nothing.

        ``poisoned``: how many training texts, at most.
        """
        check_count("poisoned", poisoned)
        return super().certified(words, threat) and int(poisoned) <= self.poisoned[int(words)]

    @classmethod
    def of(cls, certificate: Certificate, poisoned: tuple[int, ...]) -> Self:
        """A certificate, and what is proved of poisoned texts besides."""
        return cls(**_fields_of(certificate), poisoned=poisoned)


@dataclass(frozen=True)
class BetaEstimate(_Result):
    """How often copies that show a changed word still vote for the label.  Proves nothing.

    ``share``: the label's share of all votes, the paper's p_c.  For each number of words in
    ``changed``: ``average``, the label's share among copies that show one of so many random
    positions, averaged over random choices (the paper's beta, Algorithm 1); and ``largest``, that
    of the worst choice that was tried, **a lower bound** on what an adversary can choose.  None
    where the model reads fewer words than that, or (``average``) no copy showed a position drawn.
    """

    share: float
    changed: tuple[int, ...]
    average: tuple[float | None, ...]
    largest: tuple[float | None, ...]


@dataclass(frozen=True)
class CascadePrediction(Prediction):
    """The label that a cascade shows.  **Carries no certificate**.

    An attacker who fools the detector reaches the plain classifier.
    ``path``: ``plain`` or ``smoothed``, the classifier whose answer this is.  ``suspicion``: the
    detector's score, from 0 to 1, that the text was attacked.  On the plain path one copy votes,
    which shows every word.
    """

    path: str
    suspicion: float


@dataclass(frozen=True)
class CascadeCertificate(Certificate):
    """The certificate of a cascade's smoothed classifier, and the label that the cascade shows.

    What is said of ``label`` is what `Certificate` says; **nothing is proved of
    ``shown_label``**, which comes from the plain classifier where ``path`` is ``plain``.
    """

    shown_label: str
    shown_label_id: int
    path: str
    suspicion: float


def _needed(known: Field[Any]) -> bool:
    """Whether a record must have a field; ``radii`` is there where threats were asked for."""
    return known.default_factory is MISSING


def _above(margin: int, scale: int, threshold: float) -> bool:
    limit = Fraction(threshold)
    return margin * limit.denominator > limit.numerator * scale


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values in which no list or mapping is shared with ``values``."""
    return {
        key: _copied(value) if type(value) in _CONTAINERS else value
        for key, value in values.items()
    }


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return _plain(value)
    return [_copied(one) if type(one) in _CONTAINERS else one for one in value]


def _frozen(value: Any) -> Any:
    """Lists as tuples; what an object holds stays as it is."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _fields_of(certificate: Certificate) -> dict[str, Any]:
    return {field.name: getattr(certificate, field.name) for field in fields(Certificate)}
