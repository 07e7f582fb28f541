"""What each certificate rests on, in words."""

from __future__ import annotations

from functools import lru_cache

from ranmask.certificates.threats import COVERS

_LONGER = "a text that grows beyond {} words is refused, not classified"
_PREMISE = "the premise does not change"
_DETERMINISTIC = "the base classifier always says the same of the same visible words"
_IDEAL_VOTE = "the label is that of a vote over all kept sets, of which predict() takes a sample"
_SEED = "the text was not chosen by someone who knows the seed {}"
_IDEAL_COPIES = "the label is that of a vote over all random copies, of which predict() draws some"
_TOLERANCE = "recomputing a copy moves no output of the model by more than {:.3g}"
_CHECKED = "checked on up to {} of the copies that are scored together"
_UNCHECKED = "not checked"
_READER = (
    "nothing of the reader, which may say anything of a text with a changed word; where the radius "
    "is 0, that it reads the unchanged text alike"
)
_SEGMENTS = "the reader says the same of a segment whose words did not change"
POISONED = (
    "a poisoned text counts once, however many of its rows are added, removed or relabelled; a row "
    "whose text is changed counts as two",
    "which table a row belongs to follows from its text alone",
    "each table is trained anew on its own rows by the same program, with the same options, to "
    "the same integers",
)
"""What a certificate of classifiers that were trained apart assumes besides."""
_ANSWERS = "the base classifier answers for every copy; a text that it fails on gets no label"


def missing_guarantee(kind: str) -> tuple[str, str]:
    """Why a certificate of this kind that is no guarantee is none, and what to use instead."""
    if kind.startswith("paper"):
        return "the certificate of the paper is unsound", "certificate='exact'"
    return (
        "how far rounding moves the model was left unmeasured",
        "the model itself, not what its unmeasured() gives",
    )


@lru_cache(maxsize=1024)
def assumptions(
    kind: str,
    *,
    seed: int,
    tolerance: float,
    rechecked: int | None = None,
    pair: bool = False,
    threats: tuple[str, ...] = ("substitutions",),
    most_words: int | None = None,
    table: str | None = None,
    reader: bool = False,
    segments: bool = False,
) -> tuple[str, ...]:
    """What a certificate rests on, in words; nothing where it is no guarantee.

    ``rechecked``: most copies of those scored together that were asked about again; None where
    there was no need, because ranmask knows the classifier.  ``threats``: what is covered.
    ``most_words``: where a text may grow, the longest that is classified.  ``table``: the name of
    the synonyms that are covered.
    ``reader``: a model reads whole texts beside the copies, and, it may be, their ``segments``.
    """
    if kind.startswith("paper"):
        return ()
    if threats == ("synonyms",):
        assumes = [COVERS["synonyms"].format(table), COVERS["substitutions"]]
    elif len(threats) == 1:
        assumes = [COVERS[threats[0]]]
    else:
        assumes = [f"{threat}: {COVERS[threat].format(table)}" for threat in threats]
    if most_words is not None:
        assumes.append(_LONGER.format(most_words))
    if pair:
        assumes.append(_PREMISE)
    if reader:
        assumes.append(_READER)
    if segments:
        assumes.append(_SEGMENTS)
    if kind != "exact":
        ideal = _IDEAL_VOTE if kind.startswith("ablation") else _IDEAL_COPIES
        assumes += [ideal, _SEED.format(seed)]
    same = _TOLERANCE.format(tolerance / 2) if tolerance > 0 else _DETERMINISTIC
    if rechecked is None:
        return (*assumes, same)
    checked = _CHECKED.format(rechecked) if rechecked else _UNCHECKED
    return (*assumes, f"{same} ({checked})", _ANSWERS)
