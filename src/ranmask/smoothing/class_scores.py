"""What is proved about the score of one class, whatever the label is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranmask.certificates.class_margins import class_margins
from ranmask.errors import OptionError
from ranmask.options import SmoothingOptions
from ranmask.results import Certificate, MarginCertificate
from ranmask.smoothing.masks import MaskedText
from ranmask.smoothing.voting import ScoredTexts


def has_margins(options: SmoothingOptions) -> bool:
    """Whether classifiers with these options prove anything about scores."""
    return (
        options.certificate == "exact"
        and options.threat == "substitutions"
        and options.sampling == "fixed"
    )


def check_margins(options: SmoothingOptions) -> None:
    """Refuse what is not proved: an insertion moves the scale of scores."""
    if not has_margins(options):
        raise OptionError(
            f"scores of a class are proved with certificate='exact' and threat='substitutions' "
            f"only, not with {options.certificate!r} and {options.threat!r}"
        )


def class_index(positive: int | str, labels: Sequence[str] | None) -> int:
    """The number of a class that is named, or given by its number."""
    if not isinstance(positive, str):
        return positive
    if positive not in (labels or ()):
        known = ", ".join(labels) if labels else "known by numbers only"
        raise OptionError(f"positive must be one of the classes ({known}), not {positive!r}")
    return list(labels or ()).index(positive)


def with_margins(
    scored: ScoredTexts[MaskedText], certificates: Sequence[Certificate], positive: int
) -> Iterator[MarginCertificate]:
    """Exact certificates of the winners, each with the margins of the positive class."""
    classes = scored.votes.classes
    if classes < 2 or not 0 <= positive < classes:
        raise OptionError(
            f"positive must be the number of one of several classes, not {positive!r} of {classes}"
        )
    families = [text.family for text in scored.texts]
    radii = [certificate.radius for certificate in certificates]
    margins = class_margins(scored.votes, families, radii, positive)
    for certificate, own in zip(certificates, margins, strict=True):
        yield MarginCertificate.of(certificate, positive, own.lead, own.scale, own.least)
