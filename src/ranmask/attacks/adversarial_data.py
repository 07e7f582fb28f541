"""Files of attacked texts as data: to train on (`augmented`), and to train a detector on.

Guarantee of `augmented`: **no text gets into training that was not a training text before it was
attacked.**  A detector learns from whatever is in the files that it is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranmask.attacks.outcome import AttackOutcome
from ranmask.data import Corpus, joined, permutation
from ranmask.errors import DataError, shortened
from ranmask.runs.result_file import read_header
from ranmask.runs.stored import stored_lines
from ranmask.smoothing.cascade import DETECTOR_LABELS
from ranmask.words import Text

NAME = "attacked"
"""The name of a corpus of attacked texts."""

_MOST_VALIDATION_PAIRS = 1000


@dataclass(frozen=True)
class AttackedTexts:
    """Outcomes of finished attack runs, in the order of their files, and who attacked."""

    outcomes: tuple[AttackOutcome, ...]
    recipes: tuple[str, ...]

    @property
    def successes(self) -> tuple[AttackOutcome, ...]:
        """The outcomes whose adversarial text fooled the victim."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "succeeded")

    @property
    def note(self) -> str:
        """How many texts, and by which recipes."""
        return (
            f"{len(self.successes):,} of {len(self.outcomes):,} texts attacked with success by "
            f"{', '.join(self.recipes)}"
        )


def read_attacked(paths: Iterable[Path]) -> AttackedTexts:
    """The outcomes in files that attack runs wrote; each must be finished."""
    outcomes: list[AttackOutcome] = []
    recipes: dict[str, None] = {}
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise DataError(f"{path} is named twice: its texts would count twice")
        seen.add(path.resolve())
        recipes[_recipe_of(path)] = None
        for number, line in enumerate(stored_lines(path), 2):
            try:
                outcomes.append(AttackOutcome.from_dict(line))
            except (DataError, TypeError, KeyError) as error:
                raise DataError(f"{path}, line {number}: {error}") from error
    if not seen:
        raise DataError("no file of attacked texts was given: name at least one")
    return AttackedTexts(tuple(outcomes), tuple(recipes))


def _recipe_of(path: Path) -> str:
    """The name of the recipe of a finished run."""
    if not path.is_file():
        raise DataError(f"there is no file {path}: write one with `ranmask attack --output {path}`")
    found = read_header(path)
    if found is None or found.get("command") != "attack":
        said = "" if found is None else f": its first line says command={found.get('command')!r}"
        raise DataError(f"{path} was not written by an attack run{said}")
    if "finished" not in found:
        raise DataError(
            f"the attack run of {path} is not finished: the command that began it resumes it"
        )
    return str(dict(found.get("recipe") or {}).get("name", "unknown"))


def augmented(train: Corpus, attacked: AttackedTexts, *, without: Corpus) -> Corpus:
    """All of ``train`` and the adversarial text of every successful attack, with its true class.

    Every attacked text must be a row of ``train``, and none may be one of ``without``, the rows
    held out.  Where nothing is to be added the result is ``train`` itself.
    """
    held_out = set(without.texts)
    _check_rows(train, attacked.outcomes, held_out, without)
    added = [
        (outcome.adversarial, outcome.label)
        for outcome in attacked.successes
        if outcome.adversarial is not None
        and outcome.label is not None
        and outcome.adversarial not in held_out
    ]
    if not added:
        return train
    texts, labels = zip(*added, strict=True)
    more = Corpus(NAME, train.split, texts, labels, train.label_names, attacked.note)
    return joined(train, more, without=without)


def _check_rows(
    train: Corpus, outcomes: Sequence[AttackOutcome], held_out: set[Text], without: Corpus
) -> None:
    """Refuse texts that are not training texts, or have another class there."""
    classes: dict[Text, set[int]] = {}
    for row, label in zip(train.texts, train.labels, strict=True):
        classes.setdefault(row, set()).add(label)
    for outcome in outcomes:
        text = outcome.text
        if text is None or outcome.status == "error":
            continue
        shown = shortened(repr(text))
        if text in held_out:
            raise DataError(
                f"an attacked text is held out, in {without.name} {without.split}: {shown}. "
                "Attack training texts only",
                row=outcome.number,
            )
        if text not in classes:
            raise DataError(
                f"an attacked text is no row of {train.name} {train.split}: {shown}. Attack texts "
                "of the rows that are trained on",
                row=outcome.number,
            )
        if outcome.label not in classes[text]:
            there = ", ".join(train.label_names[label] for label in sorted(classes[text]))
            raise DataError(
                f"the attacked text {shown} has the class {outcome.label!r} in its file, and "
                f"{there} in {train.name}: attack a model with the classes "
                f"{', '.join(train.label_names)}, in that order",
                row=outcome.number,
            )


def detector_corpora(attacked: AttackedTexts) -> tuple[Corpus, Corpus]:
    """What a detector learns from, and what it is validated by: classes ``clean``, ``attacked``.

    Each successful attack gives two rows, the text before and after, so that the classes are
    balanced.  The two, and all other attacks on the same text, are on the same side of the split:
    a tenth of the texts, at most 1,000, are held out.
    """
    pairs: dict[Text, list[tuple[Text, Text]]] = {}
    for outcome in attacked.successes:
        if outcome.text is not None and outcome.adversarial is not None:
            pairs.setdefault(outcome.text, []).append((outcome.text, outcome.adversarial))
    groups = list(pairs.values())
    if len(groups) < 2:
        raise DataError(
            f"a detector needs at least two texts that were attacked with success, and there are "
            f"{len(groups)} ({attacked.note}): attack more texts"
        )
    groups = [groups[place] for place in permutation(len(groups))]
    held_out = min(_MOST_VALIDATION_PAIRS, -(-len(groups) // 10))
    learned = list(itertools.chain(*groups[held_out:]))
    seen = set(itertools.chain(*learned))
    # Two texts can be attacked into one.
    held = itertools.chain(*groups[:held_out])
    checked = [pair for pair in held if seen.isdisjoint(pair)]
    if not checked:
        raise DataError(
            "no attacked text is left to validate a detector by: all that are held out occur in "
            "training too; attack more texts"
        )
    corpora = []
    for split, pairs_of in (("train", learned), ("validation", checked)):
        rows = [(text, label) for pair in pairs_of for label, text in enumerate(pair)]
        texts, labels = zip(*(rows[place] for place in permutation(len(rows))), strict=True)
        corpora.append(Corpus(NAME, split, texts, labels, DETECTOR_LABELS, attacked.note))
    return corpora[0], corpora[1]
