"""Training an encoder to be smoothed: `train_encoder`.

Masked training, then vote training from its best checkpoint.  Ours is what is fed in (`masking`),
what is minimised (`losses`), and what "best" means: certified accuracy on validation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from ranmask.certificates.kept import FamilyChoice
from ranmask.data import Corpus
from ranmask.errors import (
    ClassifierError,
    DataError,
    MissingDependencyError,
    ModelError,
    OptionError,
)
from ranmask.metrics import CertifiedSummary
from ranmask.smoothing.interface import CertifiedClassifier
from ranmask.training.class_weights import class_weights
from ranmask.training.evaluating import (
    certified_score,
    certified_summary,
    check_positive,
    figures,
    measured_figures,
)
from ranmask.training.masking import MaskingPlan, Turn
from ranmask.training.options import MARGIN_WIDTH, TrainingOptions
from ranmask.training.records import Report, RunFolder, check_corpora, description
from ranmask.words import Document, documents

try:
    import numpy as np
    import torch
    import transformers
    from torch.nn import functional

    from ranmask.models import hub, pair_head
    from ranmask.models.base import BaseClassifier, MaskedCopies
    from ranmask.models.batching import batches
    from ranmask.models.huggingface import HuggingFaceClassifier
    from ranmask.models.mixed_precision import MixedPrecisionClassifier
    from ranmask.training import compact, losses, processes
    from ranmask.training.defence import Defence, Step
    from ranmask.training.trainer import Phase, train_phase
except ImportError as error:
    raise MissingDependencyError("PyTorch, transformers or accelerate", "train") from error

_Measured = TypeVar("_Measured")

_KIND = "AutoModelForSequenceClassification"
_VOTES = "votes"
_PARTS = 6  # most forward passes a step: more waste less padding, and take more launches
_GPU_ROWS = 128  # fewer rows keep a GPU waiting for the next launch
_NO_LIMIT = 1 << 40


def train_encoder(
    base: str,
    train: Corpus,
    validation: Corpus,
    output: Path,
    options: TrainingOptions,
    *,
    defence: Defence | None = None,
    report: Report | None = None,
    device: str | None = None,
) -> CertifiedClassifier:
    """Train ``base`` on ``train`` and save it, smoothed, in the folder ``output``.

    The same call again resumes after an interruption, to the same result; a folder that holds
    another run is refused.  ``output`` ends with model, tokenizer, ``ranmask.json``, a model card
    (README.md), ``training.json`` and the log ``training.jsonl``.

    Started by ``torchrun``, all processes train one model, and the first one writes it.

    ``base``: the folder or hub id of an encoder, with or without a classification head.
    ``validation`` has the labels of ``train``; the best checkpoint is chosen by it.  ``defence``:
    what is done against attacks besides masking.  ``report`` is called with every line of the log;
    ``device="cpu"`` keeps it off a GPU.
    """
    defence = defence or Defence()
    check_corpora(train, validation)
    check_positive(options.positive, train.label_names)
    on_gpu = processes.on_gpu(device)
    if processes.devices(on_gpu) > processes.count() and type(defence).loss is not Defence.loss:
        raise OptionError(
            f"the defence {defence.name} cannot be trained on several GPUs by one process: start "
            "one for each with torchrun, or choose one GPU with CUDA_VISIBLE_DEVICES"
        )
    texts = documents(train.texts)
    processes.meet(cpu=not on_gpu)
    about = description("encoder", base, train, validation, options.to_dict())
    about |= {"defence": defence.description(), "processes": processes.count()}
    run = RunFolder(output, about, report)
    processes.by_the_first(run.check)
    names = [phase.name for phase in phases(options)]
    done = processes.by_the_first(lambda: sum(run.finished(name) for name in names))
    if done:
        folder = run.phase_folder(names[done - 1])
        model, tokenizer, _ = hub.load_pretrained(_KIND, str(folder))
    else:
        model, tokenizer = _new_model(base, texts, train.label_names, options)
    options = options.settled(model.num_parameters())

    device_name = "cuda" if on_gpu else "cpu"

    def classifier_of(model: Any, **how: Any) -> HuggingFaceClassifier:
        if not options.hides_words and tokenizer.mask_token is None:  # none is hidden: any will do
            how["mask_token"] = tokenizer.unk_token or tokenizer.pad_token
        return HuggingFaceClassifier(model, tokenizer, hide=options.hiding, **how)

    def learner_of(model: Any) -> HuggingFaceClassifier:
        # Checked where it learns: many trainings at once would wait for each other's CPU threads.
        return classifier_of(model.to(device_name), backend="plain")

    learner = learner_of(model)
    learner.words_read(texts[0])
    defence.begin(learner)
    # Whatever can be refused was, so that a corrected run finds the folder free.
    processes.by_the_first(run.begin)

    rows = slice(options.validation_rows)
    # Of one copy a text, the packed engine takes longer to compile than the model to compute.
    alone = on_gpu and not options.hides_words and options.ensemble == "score"
    backend = "plain" if alone else "auto"
    least_rows = _GPU_ROWS if on_gpu else 1
    checked = lru_cache(maxsize=1)(classifier_of)  # once a phase: see `Objective.measured`

    def measure(model: Any) -> CertifiedSummary:
        def summary(base: BaseClassifier) -> CertifiedSummary:
            classifier = defence.validator(base, options)
            return certified_summary(classifier, validation.texts[rows], validation.labels[rows])

        exact = checked(model, backend=backend)
        faster = exact.unmeasured("float16") if on_gpu else None
        return _in_half_if_possible(summary, faster, exact.unmeasured())

    for phase in phases(options)[done:]:
        checked.cache_clear()  # it held what measured the phase before
        if learner.model is not model:
            learner = learner_of(model)
        votes = phase.name == _VOTES
        copies, ramp = (options.vote_copies, 0.0) if votes else (options.copies, options.ramp)
        family: FamilyChoice = "windows" if options.family == "windows" else "auto"
        plan = MaskingPlan(
            *(options.retentions, family, copies, ramp, options.seed, phase.number),
            rates=options.rates,
        )
        collate = Collator(
            learner, texts, train.labels, plan, options.target_words, defence, least_rows
        )
        classes = train.label_names
        counts = class_weights(train.labels, len(classes), options.class_weights)
        weights = None if counts is None else torch.from_numpy(counts)
        objective = CertifiedClassification(
            learner, options, defence, votes, classes, weights, collate, measure
        )
        model = train_phase(
            phase, model, tokenizer, objective, len(texts), run, options, on_gpu=on_gpu
        )

    checked.cache_clear()
    model = model.to(device_name)
    if options.weights == "float16":
        model.half().float()  # what is measured is what is stored
    trained = classifier_of(model, backend=backend)
    classifier = defence.classifier(trained, options)

    def finish() -> None:
        votes = on_gpu and options.smoothing().get("ensemble") == "vote"
        faster = MixedPrecisionClassifier(trained) if votes else None

        def figures(base: BaseClassifier) -> dict[str, Any]:
            return measured_figures(
                defence.validator(base, options, final=True),
                validation.texts,
                validation.labels,
                train.label_names,
                class_weights=options.class_weights,
                positive=options.positive,
            )

        exact = trained.unmeasured() if alone else trained
        measured = _in_half_if_possible(figures, faster, exact)
        model.to(torch.float16 if options.weights == "float16" else torch.float32)
        classifier.save_pretrained(str(output))
        model.to(torch.float32)
        run.settle(learning_rate=options.learning_rate)
        run.complete(measured, validation_rows=len(validation.texts))

    processes.by_the_first(finish)
    return classifier


def _in_half_if_possible(
    measure: Callable[[BaseClassifier], _Measured],
    faster: BaseClassifier | None,
    exact: BaseClassifier,
) -> _Measured:
    """What is measured of the ``faster`` classifier, if there is one; of the other, if it fails."""
    if faster is not None:
        try:
            return measure(faster)
        except (ClassifierError, ModelError) as error:
            said = f"measured in single precision, which takes longer: in half, {error}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
    return measure(exact)


def phases(options: TrainingOptions) -> list[Phase]:
    """Masked training (or plain, or of words deleted) and vote training, as asked for."""
    rate, vote_rate = options.learning_rate, options.vote_learning_rate
    name = "masked" if options.hides_words else "deleted" if options.deletes_words else "plain"
    masked = Phase(name, options.epochs, rate, patience=options.patience)
    named = "vote_learning_rate" if vote_rate else "learning_rate"
    votes = Phase(_VOTES, options.vote_epochs, vote_rate or rate, number=1, rate_option=named)
    return [phase for phase in (masked, votes) if phase.epochs]


@dataclass(frozen=True, eq=False)
class Collator:
    """Builds the batch of a training step.

    A batch holds ``parts`` (inputs of the model's forward) with their ``bodies`` (where a row holds
    the text itself, and not its premise), and for the rows of all parts in their order ``text``
    and ``copy``; for each text its ``classes`` (not ``labels``: the trainer must not count them),
    ``present``, ``met`` and ``words_per_copy``, as `losses` takes them; and a ``seed``.
    ``least_rows``: of a part, where there are as many.
    """

    base: HuggingFaceClassifier
    documents: Sequence[Document]
    labels: Sequence[int]
    plan: MaskingPlan
    target_words: int
    defence: Defence
    least_rows: int = 1

    def __call__(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The batch of these texts' turns."""
        draws, copies = [], []
        as_it_is = type(self.defence).reads is Defence.reads
        for turn in turns:
            document = self.documents[turn.row]
            if not as_it_is:
                document = self.defence.reads(document, self.plan.text_seed(turn))
            document = self.plan.shortened(document, turn)
            words = self.base.words_read(document)
            draw = self.plan.draw(words, turn)
            draws.append(draw)
            copies.append(MaskedCopies(document, words, draw.sets))
        rows = self.base.encoder.rows_of_each(copies)
        sizes = np.array([len(draw.sets) for draw in draws])
        least_rows = max(self.least_rows, -(-int(sizes.sum()) // _PARTS))
        pad_id = self.base.encoder.pad_id
        plan = list(batches(rows, tokens=_NO_LIMIT, least_rows=least_rows, pad_id=pad_id))
        order = np.concatenate([batch.places for batch in plan])
        text = np.repeat(np.arange(len(turns)), sizes)
        copy = np.arange(len(text)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        starts = torch.tensor([of_text.first_body_place for of_text in rows])[text]
        met = [[draw.met(changed) for changed in range(self.target_words + 1)] for draw in draws]
        return {
            "parts": [self.base.inputs(batch) for batch in plan],
            "bodies": [
                torch.arange(batch.ids.shape[1]) >= starts[batch.places][:, None] for batch in plan
            ],
            "text": torch.from_numpy(text[order]),
            "copy": torch.from_numpy(copy[order]),
            "classes": torch.tensor([self.labels[turn.row] for turn in turns]),
            "present": torch.from_numpy(np.arange(sizes.max()) < sizes[:, None]),
            "met": torch.tensor(met),
            "words_per_copy": torch.tensor([draw.words_per_copy for draw in draws]),
            "seed": self.plan.step_seed(turns[0]),  # no tensor: asking a GPU for it would wait
        }


@dataclass(frozen=True, eq=False)
class CertifiedClassification:
    """The loss of masked copies, or of their votes; the best checkpoint certifies most.

    ``weights``: what a text of each class counts.  ``measure``: what is proved on held-out rows.
    """

    base: HuggingFaceClassifier
    options: TrainingOptions
    defence: Defence
    votes: bool
    names: Sequence[str]
    weights: torch.Tensor | None
    collate: Callable[[Sequence[Turn]], dict[str, Any]]
    measure: Callable[[Any], CertifiedSummary]

    def loss(
        self, model: Any, batch: Any, backward: Callable[[torch.Tensor], None]
    ) -> torch.Tensor:
        """The loss of a batch, as the defence computes it."""

        def plain_loss(logits: torch.Tensor) -> torch.Tensor:
            return self._plain_loss(logits, batch)

        parts, bodies, seed = batch["parts"], batch["bodies"], batch["seed"]
        step = Step(model, self.base, parts, bodies, plain_loss, backward, seed)
        return self.defence.loss(step)

    def _plain_loss(self, logits: torch.Tensor, batch: Any) -> torch.Tensor:
        """What plain training minimises, from the logits of all rows."""
        classes, text, options = batch["classes"], batch["text"], self.options
        counts = None if self.weights is None else self.weights.to(logits.device)[classes]
        if not self.votes:
            if options.head == "choice":
                each = functional.cross_entropy(logits, classes[text], reduction="none")
            else:
                wanted = functional.one_hot(classes[text], logits.shape[-1]).to(logits.dtype)
                with_logits = functional.binary_cross_entropy_with_logits
                each = with_logits(logits, wanted, reduction="none").mean(1)
            return losses.weighted_mean(each, None if counts is None else counts[text])
        scores = logits.sigmoid() if options.head == "approval" else logits.softmax(-1)
        present = batch["present"]
        table = scores.new_zeros(*present.shape, scores.shape[-1])
        table = table.index_put((text, batch["copy"]), scores)
        if options.vote_loss == "margin":
            return losses.margin_loss(table, present, classes, options.margin, MARGIN_WIDTH, counts)
        return losses.certified_loss(
            table,
            present,
            classes,
            batch["met"],
            batch["words_per_copy"].to(table.dtype),
            options.step_width,
            options.accuracy_weight,
            counts,
        )

    def measured(self, model: Any) -> dict[str, Any]:
        """What is certified of the held-out rows."""
        summary, weights = self.measure(model), self.options.class_weights
        score = certified_score(summary, self.options.target_words, weights)
        return {"score": score, **figures(summary, self.names, weights)}


def _new_model(
    base: str, texts: Sequence[Document], names: Sequence[str], options: TrainingOptions
) -> tuple[Any, Any]:
    """The base encoder with a new head, made smaller if asked for."""
    for row, text in enumerate(texts if options.pair_head else (), 1):
        if text.premise is None:
            raise DataError(
                "pair_head reads pairs of premise and hypothesis, and this text is a single one: "
                "train without pair_head, or on pairs",
                row,
            )
    transformers.set_seed(options.seed)  # fixes the new head
    several = options.head == "approval"
    model, tokenizer, _ = hub.load_pretrained(
        "AutoModel" if options.pair_head else _KIND,
        base,
        called="the base encoder ",
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
        problem_type="multi_label_classification" if several else "single_label_classification",
        ignore_mismatched_sizes=True,
    )
    if isinstance(model, pair_head.PairHeadModel) and not options.pair_head:
        raise OptionError(f"the base {base!r} has a pair head: train it with pair_head")
    if options.layers is not None:
        compact.keep_layers(model, options.layers)
    if options.vocabulary is not None:
        words = (word for text in texts for word in (*text.words, *(text.premise or "").split()))
        tokenizer = compact.keep_tokens(model, tokenizer, words, options.vocabulary)
    if options.longest is not None:
        # Saved with the tokenizer, and read by `RowFormat` wherever the model is loaded.
        tokenizer.model_max_length = min(options.longest, tokenizer.model_max_length)
    if options.pair_head:
        model = pair_head.with_pair_head(model, tokenizer)
    return model, tokenizer
