"""`protect`: put a model that you have behind copies that prove what they can.

The model is asked about texts of its domain.  A word table learns what it says (or true labels,
where there are some), to vote beside it; held-out texts decide how much the model weighs.  Nothing
of the model is changed, and nobody labels anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask import __version__
from ranmask.data.pile import Pile, pile_of
from ranmask.errors import DataError, ModelError, OptionError
from ranmask.models import model_config
from ranmask.models.readers import Reader, as_reader, in_order
from ranmask.results.files import write_file, write_json
from ranmask.smoothing.protected import ProtectedClassifier
from ranmask.training.asking import Asking
from ranmask.training.protect_card import protect_card
from ranmask.training.protect_options import ProtectOptions
from ranmask.training.protect_work import Known, ProtectWork, parts_of
from ranmask.training.protection import ANSWERS, FORMAT, RECORD, Protection, begin
from ranmask.training.records import CARD, Report, check_one_process
from ranmask.training.word_table import table_smoothing

LEAST_TEXTS = 100
_LEAST_OF_A_CLASS, _LEAST_LABELLED = 10, 50


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
    _check_levels(reader, asked)
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
    other_texts = begin(folder, run)
    labelled = np.full(len(pile.texts), -1) if given is None else np.array(given)
    asking = Asking(reader, len(names), folder / ANSWERS, tell)
    judged = labelled >= 0 if given is not None else np.ones(len(pile.texts), dtype=bool)
    said = asking.about_texts(pile.texts, other_texts, _segments_to_read(judged, asked))
    heard = np.flatnonzero(np.logical_not(np.isnan(said).any(axis=1)))
    run["texts"]["unanswered"] = len(pile.texts) - len(heard)
    right = np.where(labelled < 0, said.argmax(axis=1), labelled)
    known = Known([pile.texts[place] for place in heard], said[heard], right[heard])
    _check_answers(known, names)
    true = None if given is None else labelled[heard] >= 0
    work = ProtectWork(known, names, asked, true, tolerance=reader.tolerance, report=tell)
    protection, table = work.protection(run, command, asking.about_segments)
    protected = ProtectedClassifier(
        table.base,
        reader=reader,
        reader_weights=protection.weights,
        **table_smoothing(work.plan),
    )
    protected.save_pretrained(str(folder))
    _write(folder, protection)
    tell({"phase": "complete", "weights": list(protection.weights)})
    return protected


def save_choice(folder: str | Path, protection: Protection) -> None:
    """Give the protected model in a folder the weights that are chosen here.

    Which weights it has, its ``ranmask.json`` alone says.  So whoever is interrupted leaves the old
    choice or the new one, without a card rather than with a wrong one.
    """
    place = Path(folder)
    known = model_config.of_folder(place)
    if known is None or known.kind != model_config.PROTECTED:
        raise ModelError(f"{str(folder)!r} holds no protected model")
    smoothing = {**known.smoothing, "reader_weights": list(protection.weights)}
    (place / CARD).unlink(missing_ok=True)
    model_config.write(place, known.kind, smoothing, known.parts)
    _write(place, protection)


def _write(folder: Path, protection: Protection) -> None:
    """The card and the record; that last, for a folder whose record is complete lacks nothing."""
    write_file(folder / CARD, protect_card(protection))
    record = {**FORMAT, "ranmask": __version__, "complete": True, **protection.to_dict()}
    write_json(folder / RECORD, record)


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


def _check_answers(known: Known, names: tuple[str, ...]) -> None:
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


def _check_levels(reader: Reader, options: ProtectOptions) -> None:
    if options.levels > 1 and not reader.repeatable:
        raise OptionError(
            f"levels={options.levels} reads segments, which a model must read alike each time: "
            "name a model or a scikit-learn pipeline, or a FunctionReader(..., repeatable=True); "
            "or leave levels at 1",
            "levels",
        )


def _segments_to_read(judged: npt.NDArray[np.bool_], options: ProtectOptions) -> int:
    """How many there are at most, where every text gets an answer."""
    parts = parts_of(judged, options)
    each: int = 2**options.levels - 2
    return (len(parts.choosing) + len(parts.figures)) * each
