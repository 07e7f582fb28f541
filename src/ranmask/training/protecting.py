"""`protect`: put a model that you have behind copies that prove what they can.

The model is asked about texts of its domain.  A word table learns what it says (or true labels,
where there are some), to vote beside it; held-out texts decide how much the model weighs.  Nothing
of the model is changed, and nobody labels anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranmask import __version__
from ranmask.certificates.votes import Scores
from ranmask.data.corpus import permutation
from ranmask.data.pile import Pile, pile_of
from ranmask.errors import DataError, ModelError, OptionError
from ranmask.models import model_config
from ranmask.models.readers import Reader, as_reader, in_order
from ranmask.results.files import write_file, write_json
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.smoothing.smoothed import SmoothedClassifier
from ranmask.training.asking import Answers
from ranmask.training.choosing import Weighed, alone, chosen, measured, sum_of, weights_for
from ranmask.training.options import WordTableOptions
from ranmask.training.protect_card import protect_card
from ranmask.training.protect_options import ProtectOptions
from ranmask.training.protection import FORMAT, RECORD, Measure, Protection, begin
from ranmask.training.records import CARD, Report, check_one_process
from ranmask.training.word_table import table_smoothing, train_word_table
from ranmask.words import split

ANSWERS = "answers.jsonl"
LEAST_TEXTS = 100
_LEAST_OF_A_CLASS, _LEAST_LABELLED = 10, 50
_MOST_HELD_OUT = 4000  # texts to choose by, and as many for the figures
_LEAST_TO_CHOOSE, _FOLDS = 1000, 4
_TEMPERATURE = 3.0  # in words: a narrower step gives up on texts that are out of reach now
_TRAINED_WEIGHT = 2.0  # of the model while the table learns; measured, as the next line is
_LABELLED, _UNLABELLED = 1.0, 3.0  # what a label at no changed word counts


class Part(NamedTuple):
    """Some of the texts: what the model says of them, and which label is right."""

    texts: list[str]
    said: Scores
    labels: npt.NDArray[np.int64]

    def rows(self, places: Sequence[int]) -> Part:
        """Those at some places."""
        at = np.array(places, dtype=np.int64)
        return Part([self.texts[place] for place in places], self.said[at], self.labels[at])


def protect(
    model: object,
    texts: Iterable[str] | Pile,
    output: str | Path,
    *,
    labels: Sequence[object] | None = None,
    label_names: Sequence[str] | None = None,
    options: ProtectOptions | None = None,
    report: Report | None = None,
    command: str | None = None,
) -> ProtectedClassifier:
    """A protected classifier of ``model``, saved in the folder ``output``.

    The same call again, after an interruption, asks for no answer that it has.  ``output`` ends
    with the classifier, the answers (``answers.jsonl``), what was measured (``protect.json``) and a
    card (README.md).

    Args:
        model: What `ProtectedClassifier` takes as a reader: a Hugging Face or scikit-learn
            pipeline, a base classifier, a function, ...
        texts: Of its domain, best such that it was not trained on, for on those it is too good.
        output: A new folder, or one that this call began.
        labels: True labels, one a text, by name or number.  Texts whose label is None, or all, are
            learned as the model labels them; where some have one, those choose and measure.
        label_names: Names of the classes, for a model that does not say them.
        options: What matters, and how tables are trained.
        report: Called with every step, as plain JSON values.
        command: What the record says that this was called by.

    >>> import tempfile
    >>> def model(texts):
    ...     return [[0.9, 0.1] if "good" in text else [0.1, 0.9] for text in texts]
    >>> pile = [f"{w} film number {n} , really {w}" for n in range(80) for w in ("good", "bad")]
    >>> quick = ProtectOptions(buckets=512, epochs=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     protected = protect(model, pile, folder, label_names=["good", "bad"], options=quick)
    >>> protected.predict(["a good film , good music"])[0].label
    'good'
    """
    check_one_process("a model is protected")
    asked = options or ProtectOptions()
    tell = report or (lambda line: None)
    if isinstance(texts, Pile) and labels is not None:
        raise OptionError("a Pile has its own labels: leave labels out", "labels")
    pile = texts if isinstance(texts, Pile) else pile_of(texts, labels)
    reader = as_reader(model, label_names)
    names = _class_names(reader, label_names, pile)
    _check_pile(pile)
    given = None if pile.labels is None else _label_ids(pile.labels, names)
    tell({"phase": "pile", **pile.description(), "problem": pile.problem})
    folder = Path(output)
    run: dict[str, Any] = {
        "model": reader.description(),
        "labels": list(names),
        "texts": pile.description(),
        "labelled": given is not None,
        "options": asked.to_dict(),
    }
    begin(folder, run)
    said = _said(reader, pile, names, folder, tell)
    heard = np.flatnonzero(np.logical_not(np.isnan(said).any(axis=1)))
    run["texts"]["unanswered"] = len(pile.texts) - len(heard)
    labelled = np.full(len(pile.texts), -1) if given is None else np.array(given)
    right = np.where(labelled < 0, said.argmax(axis=1), labelled)
    known = Part([pile.texts[place] for place in heard], said[heard], right[heard])
    _check_answers(known, names)
    true = None if given is None else labelled[heard] >= 0
    work = _Work(known, names, asked, true, report=tell)
    protection, table = work.protection(run, command)
    protected = ProtectedClassifier(
        table.base,
        reader=reader,
        reader_weights=(protection.weight,),
        **table_smoothing(work.plan),
    )
    protected.save_pretrained(str(folder))
    _write(folder, protection)
    tell({"phase": "complete", "weight": protection.weight})
    return protected


def save_choice(folder: str | Path, protection: Protection) -> None:
    """Give the protected model in a folder the weight that is chosen here."""
    place = Path(folder)
    known = model_config.of_folder(place)
    if known is None or known.kind != model_config.PROTECTED:
        raise ModelError(f"{str(folder)!r} holds no protected model")
    smoothing = {**known.smoothing, "reader_weights": [protection.weight]}
    model_config.write(place, known.kind, smoothing, known.parts)
    _write(place, protection)


def _write(folder: Path, protection: Protection) -> None:
    """The card and the record; that last, for a folder whose record is complete lacks nothing."""
    write_file(folder / CARD, protect_card(protection))
    record = {**FORMAT, "ranmask": __version__, "complete": True, **protection.to_dict()}
    write_json(folder / RECORD, record)


class _Work:
    """What is done once the answers are known.

    ``true``: which labels are true ones; None where they are all the model's, which then judge.
    """

    def __init__(
        self,
        known: Part,
        names: tuple[str, ...],
        options: ProtectOptions,
        true: npt.NDArray[np.bool_] | None,
        *,
        report: Report,
    ) -> None:
        self._names, self._options, self._report = names, options, report
        self._measure: Measure = "agreement" if true is None else "accuracy"
        self._judged = np.ones(len(known.texts), dtype=bool) if true is None else true
        self._sure = known.said.max(axis=1) >= options.sure
        if true is not None:
            self._sure |= true
        named = np.eye(len(names))[known.said.argmax(axis=1)]  # what votes is the label alone
        self._known = known._replace(said=named)
        self._weights = weights_for(max(len(split(text)) for text in known.texts))
        target = options.target_words or round(sum(options.words) / len(options.words))
        # A table that is surely wrong overrules the model: so the loss at no changed word counts.
        self.plan = WordTableOptions(
            target_words=target,
            temperature=max(_TEMPERATURE, target / 2.5),
            whole_weight=_TRAINED_WEIGHT,
            accuracy_weight=_UNLABELLED if true is None else _LABELLED,
            family="all",
            epochs=options.epochs,
            buckets=options.buckets,
            seed=options.seed,
        )

    def protection(
        self, run: Mapping[str, Any], command: str | None
    ) -> tuple[Protection, SmoothedClassifier]:
        """What was measured and chosen, and the copies that are kept."""
        options = self._options
        learned, choosing, final = _places(self._judged, options.held_out)
        more = [place for place in learned if self._judged[place]]
        if more and len(choosing) < _LEAST_TO_CHOOSE:
            # Too few to choose by: all are, each by a table that did not learn from it.
            folds = _FOLDS
            learned, choosing = [*learned, *choosing], [*more, *choosing]
            curve = self._by_folds(learned)
            copies = self._trained(learned, "table")
        else:
            folds = 1
            copies = self._trained(learned, "table")
            curve = self._measured(copies, choosing, self._weights)
        model = self._alone(choosing), self._alone(final)
        best, reached = chosen(curve, model[0], options.words, options.give_up, options.balanced)
        counted = self._measured(copies, final, self._weights)
        at_best = next(one for one in counted if one.weight == best.weight)
        sizes = {"learning": len(learned), "choosing": len(choosing), "figures": len(final)}
        protection = Protection(
            run={**run, "parts": {**sizes, "folds": folds}},
            measure=self._measure,
            balanced=options.balanced,
            alone=model,
            choosing=curve,
            figures=counted,
            learning=[*self._learning(learned, final, best.weight), (len(learned), at_best)],
            words=options.words,
            give_up=options.give_up,
            weight=best.weight,
            reached=reached,
            command=command,
        )
        return protection, copies

    def _alone(self, places: Sequence[int]) -> Weighed:
        """The model by itself."""
        return alone(self._known.said[places], self._known.labels[places])

    def _trained(self, places: Sequence[int], what: str) -> SmoothedClassifier:
        def progress(epoch: int, epochs: int, loss: float) -> None:
            line = {"phase": "training", "what": what, "epoch": epoch, "epochs": epochs}
            self._report({**line, "loss": loss})

        part = self._known.rows([place for place in places if self._sure[place]])
        if len(np.unique(part.labels)) < 2:
            raise DataError(
                f"of {len(places):,} texts to learn from, the model is sure enough of one class "
                f"only: lower sure={self._options.sure:g}, or add texts"
            )
        table = train_word_table(
            part.texts,
            part.labels.tolist(),
            self._names,
            options=self.plan,
            whole=part.said,
            progress=progress,
        )
        return SmoothedClassifier(table, **table_smoothing(self.plan))

    def _by_folds(self, places: Sequence[int]) -> list[Weighed]:
        """What each weight comes to, each part of the texts by a table of the other parts."""
        found = []
        for fold in range(_FOLDS):
            others = [place for number, place in enumerate(places) if number % _FOLDS != fold]
            copies = self._trained(others, f"fold {fold + 1} of {_FOLDS}")
            judged = [place for place in places[fold::_FOLDS] if self._judged[place]]
            found.append(self._measured(copies, judged, self._weights))
        return [sum_of(parts) for parts in zip(*found, strict=True)]

    def _measured(
        self, copies: SmoothedClassifier, places: Sequence[int], weights: Sequence[float]
    ) -> list[Weighed]:
        part = self._known.rows(places)
        return measured(copies, part.texts, part.said, part.labels, weights)

    def _learning(
        self, learned: Sequence[int], final: Sequence[int], weight: float
    ) -> Iterator[tuple[int, Weighed]]:
        """The same with a quarter and with half of the texts to learn from."""
        for part, name in ((4, "a quarter"), (2, "half")):
            some = learned[: len(learned) // part]
            if len(np.unique(self._known.labels[some])) > 1:
                copies = self._trained(some, f"learning from {name} of the texts")
                yield len(some), self._measured(copies, final, [weight])[0]


def _class_names(reader: Reader, label_names: Sequence[str] | None, pile: Pile) -> tuple[str, ...]:
    """The classes in the order of the reader's answers."""
    if reader.labels is not None:
        if label_names is not None:
            in_order(reader, label_names)  # raises where they are others
        names = reader.labels
    elif label_names is not None:
        names = tuple(label_names)
    elif pile.labels is not None:
        names = tuple(sorted({label for label in pile.labels if label is not None}))
    else:
        raise OptionError(
            "the model does not say its classes: name them in the order of its scores, as "
            "label_names=['ham', 'spam']"
        )
    if len(names) < 2:
        raise ModelError(f"the model has one class, {names!r}: there is nothing to protect")
    return names


def _label_ids(labels: Sequence[str | None], names: tuple[str, ...]) -> list[int]:
    """True labels as places among the model's classes; -1 where there is none."""
    written = [label for label in labels if label is not None]
    if len(written) < _LEAST_LABELLED:
        raise DataError(
            f"{len(written)} texts have a label, too few to choose by: give at least "
            f"{_LEAST_LABELLED}, or leave labels out to follow the model's own"
        )
    place = {name: number for number, name in enumerate(names)}
    if not set(written) <= set(names):
        place = {str(number): number for number in range(len(names))}
    if strange := sorted(set(written) - place.keys()):
        raise DataError(
            f"the texts have the label {strange[0]!r}, and the model's classes are "
            f"{', '.join(names)}: rename the labels, or leave them out to follow the model's own"
        )
    return [-1 if label is None else place[label] for label in labels]


def _check_pile(pile: Pile) -> None:
    if len(pile.texts) < LEAST_TEXTS:
        left_out = pile.rows - len(pile.texts)
        but = f" ({left_out:,} of {pile.rows:,} rows left out)" if left_out else ""
        why = f"; the first of them: {pile.problem}" if pile.problem else ""
        raise DataError(
            f"{len(pile.texts)} different texts{but} are too few to learn from{why}. Give at least "
            f"{LEAST_TEXTS}, better thousands, of the model's domain: they need no labels; long "
            "documents can be split into sentences"
        )


def _check_answers(known: Part, names: tuple[str, ...]) -> None:
    if len(known.texts) < LEAST_TEXTS:
        raise ModelError(
            f"the model answered for {len(known.texts)} texts only, and at least {LEAST_TEXTS} are "
            "needed: run it again to ask about the others"
        )
    counts = Counter(known.labels.tolist()).most_common()
    if len(counts) < 2 or counts[1][1] < _LEAST_OF_A_CLASS:
        few = len(known.texts) - counts[0][1]
        raise DataError(
            f"all but {few} of {len(known.texts):,} texts are {names[counts[0][0]]!r}: a table "
            f"cannot learn the other classes. Add texts of {_others(names, counts[0][0])}, at "
            f"least {_LEAST_OF_A_CLASS} of one"
        )


def _others(names: tuple[str, ...], but: int) -> str:
    return ", ".join(repr(name) for place, name in enumerate(names) if place != but)


def _said(
    reader: Reader, pile: Pile, names: tuple[str, ...], folder: Path, report: Report
) -> Scores:
    """What the model says of each text."""
    answers = Answers(reader, pile.texts, len(names), folder / ANSWERS)
    texts, done = len(pile.texts), answers.known
    report({"phase": "asking", "texts": texts, "done": done, "cost": answers.cost()})

    def progress(more: int) -> None:
        nonlocal done
        done += more
        report({"phase": "asked", "texts": texts, "done": done})

    said = answers.asked(progress)
    if answers.problems:
        report({"phase": "unanswered", "problem": answers.problems[0]})
    return said


def _places(
    judged: npt.NDArray[np.bool_], held_out: float
) -> tuple[list[int], list[int], list[int]]:
    """What is learned from, what is chosen by, and what the figures are of: these are judged."""
    order = permutation(len(judged))
    known = [place for place in order if judged[place]]
    each = min(max(1, round(len(order) * held_out / 2)), _MOST_HELD_OUT, len(known) // 2)
    held = set(known[: 2 * each])
    return [place for place in order if place not in held], known[:each], known[each : 2 * each]
