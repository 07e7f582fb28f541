"""Hugging Face sequence classifiers as base classifiers.

The fast path: words are tokenised once, kept sets become token rows directly (`encoding`), rows
are batched by length (`batching`), and nothing is padded that need not be.  On a GPU a packed
scorer (`gpu`) does all of this and the forward pass itself, for models whose structure it knows.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from ranmask.errors import ClassifierError, MissingDependencyError, ModelError, OptionError
from ranmask.models import hub, identity
from ranmask.models.base import (
    BaseClassifier,
    DeletedCopies,
    DrawnCopies,
    MaskedCopies,
    Scores,
    by_text,
    check_hiding,
    checked_scores,
)
from ranmask.models.batching import Batch, RowCount, even_batches
from ranmask.models.encoding import TokenRows, WordEncoder
from ranmask.models.numerics import SAME_LIMIT, Probes, relative_difference
from ranmask.models.tokenizing import RowFormat
from ranmask.words import Document, Hiding

try:
    import torch

    from ranmask.models.first_row import first_row_model
    from ranmask.models.gpu.scoring import PackedScorer, select
    from ranmask.models.row_counts import ALONE, row_counts
except ImportError as error:
    raise MissingDependencyError("PyTorch", "hf") from error

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Backend: TypeAlias = Literal["auto", "packed", "plain"]
"""What computes logits: see `HuggingFaceClassifier`."""

_CPU_TOKENS = 2304  # measured: smaller and larger batches are slower
_GPU_TOKENS = 1 << 17
_PACKED_ON = ("cuda",)  # where rows are packed unless something else is said

_STEADY = (
    "the model computes a copy to the same bits in any batch on this machine with as many threads, "
    "as it was seen to do with copies of many lengths"
)


class HuggingFaceClassifier(BaseClassifier):
    """A sequence classification model with its tokenizer.

    A hidden word leaves no trace in what the model is given (see `encoding`).  The logits of a
    copy do not depend on other copies, to the last bit, where batches of some shape are seen to
    compute it so (`Probes.steady_rows`); elsewhere how far they move is measured (`tolerance`).

    Args:
        model: A ``...ForSequenceClassification`` model, on the device and in the dtype to run in.
        tokenizer: Its tokenizer.
        hide: ``mask`` puts one mask token for a whole hidden word.  ``drop`` leaves hidden words
            out and keeps the positions of the others; refused unless it equals hiding them from
            attention, which is checked here by running the model.
        mask_token: A token of the vocabulary to use where the tokenizer has no mask token.
        batch_tokens: Most tokens in one forward pass; a default for the device otherwise.
        backend: ``packed`` computes rows without padding (`ranmask.models.gpu`), once its logits
            were compared with the model's own, or refuses; ``plain`` calls the model; ``auto`` is
            ``packed`` on a GPU, where that is possible, and ``plain`` elsewhere.
    """

    repeatable = True

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        hide: Hiding = "mask",
        mask_token: str | None = None,
        batch_tokens: int | None = None,
        source: str | None = None,
        backend: Backend = "auto",
    ) -> None:
        check_hiding(hide)
        if backend not in get_args(Backend):
            raise OptionError(
                f"backend must be one of {', '.join(get_args(Backend))}; not {backend!r}"
            )
        self._backend = backend
        self.model: Any = model
        self.model.train(False)
        if hide == "drop" and any(type(part).__name__ == "MPNetModel" for part in model.modules()):
            from ranmask.models.mpnet_positions import follow_position_ids

            follow_position_ids(self.model)
        self.tokenizer: Any = tokenizer
        self.source = source
        self.labels = _label_names(self.model.config)
        # A model of several labels judges each class by itself.
        several = self.model.config.problem_type == "multi_label_classification"
        self.outputs = "approvals" if several else "logits"
        self.pairs = getattr(self.model, "reads_pairs", None)
        on_cpu = self.model.device.type == "cpu"
        self.batch_tokens = batch_tokens or (_CPU_TOKENS if on_cpu else _GPU_TOKENS)
        self._forget()
        takes = RowFormat.of(model, tokenizer)
        self.encoder = WordEncoder(tokenizer, takes, hide, mask_token)
        self._probes = Probes(self.encoder, self.batch_tokens)
        self._prepare()

    def _forget(self) -> None:
        """What was found out of the model's numbers."""
        self._tolerance: float | None = None
        self._threads: int | None = None  # with which it was found out
        self._steady: RowCount | None = None
        self._seen_shapes: set[tuple[int, int, int]] = set()

    def configured(
        self, *, hide: Hiding | None = None, mask_token: str | None = None
    ) -> HuggingFaceClassifier:
        return HuggingFaceClassifier(
            self.model,
            self.tokenizer,
            hide=self.encoder.hide if hide is None else hide,
            mask_token=self.encoder.mask_token if mask_token is None else mask_token,
            batch_tokens=self.batch_tokens,
            source=self.source,
            backend=self._backend,
        )

    def in_dtype(self, dtype: str) -> HuggingFaceClassifier:
        """The same with a copy of the model in another number type; what was checked holds."""
        other = copy.copy(self)
        other.model = copy.deepcopy(self.model).to(getattr(torch, dtype))
        other._fast = None if self._fast is None else first_row_model(other.model)
        if self._packed is not None:
            other._packed = self._packed.for_model(other.model)
        other._forget()
        return other

    def unmeasured(self, dtype: str | None = None) -> HuggingFaceClassifier:
        """The same where nothing is to be proved, as of checkpoints that are only compared.

        What rounding does to copies is not found out, and taken to be nothing: its certificates
        are no guarantees.  ``dtype``: another number type, as in `in_dtype`.
        """
        other = copy.copy(self) if dtype is None else self.in_dtype(dtype)
        other._forget()
        other.proves = False
        return other

    def description(self) -> dict[str, object]:
        return {
            "kind": "huggingface",
            "model": self.source or self.model.config.name_or_path,
            "sha256": identity.digest(self.model, self.tokenizer),
            "hide": self.encoder.hide,
            "mask_id": self.encoder.mask_id,
            "dtype": self.dtype,
            "device": self.model.device.type,
        }

    @property
    def dtype(self) -> str:
        """The name of the model's number type."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def epsilon(self) -> float:
        """The rounding step of the model's numbers near 1."""
        return float(torch.finfo(self.model.dtype).eps)

    def words_read(self, document: Document) -> int:
        return self.encoder.words_read(document)

    @property
    def tolerance(self) -> float:
        """0 where a copy has the same bits in any batch, else measured: found out on first use.

        For this model, dtype, device and number of threads; see `numerics`.
        """
        if not self.proves:
            return 0.0
        threads = torch.get_num_threads()
        if self._tolerance is None or self._threads != threads:
            self._threads = threads
            self._tolerance = self._find_tolerance()
        return self._tolerance

    @property
    def assumes(self) -> tuple[str, ...]:
        return (_STEADY,) if self.proves and self.tolerance == 0 else ()

    def _find_tolerance(self) -> float:
        if self._packed is None:
            self._steady = self._probes.steady_rows(self._in_batches, row_counts(self.model))
            steady = self._steady is not None
            if self._steady == ALONE:
                warnings.warn(
                    f"{type(self.model).__name__} gives the same copy other numbers in "
                    "other batches: copies are computed one by one, which is slow",
                    RuntimeWarning,
                    stacklevel=2,
                )
        else:
            # On a CPU, rounding to a smaller dtype would hide most of what there is to see.
            shows = self.model.device.type != "cpu" or self.model.dtype == torch.float32
            steady = shows and self._probes.same_everywhere(self.score_rows, self.score_copies)
        if steady:
            return 0.0
        if self._packed is None:
            return self._probes.tolerance(self._in_batches, self.epsilon)
        return self._probes.tolerance(self._packed.score_rows, self.epsilon, self.score_copies)

    def score(self, copies: Sequence[MaskedCopies]) -> list[Scores]:
        return by_text(self.score_copies(copies), copies)

    def score_each(self, batches: Iterable[Sequence[MaskedCopies]]) -> Iterator[list[Scores]]:
        if self._packed is None:
            yield from super().score_each(batches)
            return
        launched: Iterator[Any] = ((copies, self._packed.launch(copies)) for copies in batches)
        for (copies, logits), _ in pairwise(chain(launched, [None])):  # the next one has begun
            rows = logits()
            yield by_text(checked_scores(rows, len(rows), None), copies)

    def score_drawn(self, texts: Sequence[DrawnCopies]) -> list[Scores]:
        return by_text(self.score_rows(self.encoder.rows_of_drawn(texts)), texts)

    def score_deleted(self, texts: Sequence[DeletedCopies]) -> list[Scores]:
        laid_out = [self.encoder.rows_of_deleted(text) for text in texts]
        scores = self.score_rows([rows for of_text, _ in laid_out for rows in of_text])
        pairs = zip(by_text(scores, texts), laid_out, strict=True)
        return [own[np.argsort(order)] for own, (_, order) in pairs]

    def score_copies(self, copies: Sequence[MaskedCopies]) -> Scores:
        """Logits of all copies of all texts, in their order."""
        logits = self.raw_copies(copies)
        return checked_scores(logits, len(logits), None)

    def score_rows(self, rows: Sequence[TokenRows], *, tokens: int | None = None) -> Scores:
        """Logits of token rows, in their order, whatever batches they are computed in."""
        logits = self.raw_rows(rows, tokens=tokens)
        return checked_scores(logits, len(logits), None)

    def raw_copies(self, copies: Sequence[MaskedCopies]) -> Scores:
        """As `score_copies`; but where the model's numbers overflow, a row may not be finite."""
        if self._packed is None:
            return self.raw_rows(self.encoder.rows_of_all(copies))
        return self._packed.score(copies)

    def raw_rows(self, rows: Sequence[TokenRows], *, tokens: int | None = None) -> Scores:
        """As `score_rows`; but where the model's numbers overflow, a row may not be finite."""
        if self._packed is not None:
            return self._packed.score_rows(rows, tokens)
        _ = self.tolerance  # finds out in which batches
        return self._in_batches(rows, tokens, self._steady)

    def _in_batches(
        self, rows: Sequence[TokenRows], tokens: int | None = None, count: RowCount | None = None
    ) -> Scores:
        logits: Scores | None = None
        plan = even_batches(
            rows,
            tokens=tokens or self.batch_tokens,
            count=count or row_counts(self.model)[0],
            pad_id=self.encoder.pad_id,
        )
        for batch in plan:
            part = self.forward(batch)
            if count is not None and count == self._steady:
                self._check_steady(batch, part, count)
            if logits is None:
                logits = np.empty((sum(map(len, rows)), part.shape[1]))
            logits[batch.places] = part[: len(batch.places)]
        if logits is None:
            raise ClassifierError("no copies to score")
        return logits

    def _check_steady(self, batch: Batch, logits: Scores, count: RowCount) -> None:
        """Once for each length and about as many rows: a few have the same bits by themselves."""
        rows, width = batch.ids.shape
        shape = (width, rows.bit_length(), torch.get_num_threads())
        if shape in self._seen_shapes:
            return
        some = np.linspace(rows - 1, 0, count.step).astype(np.intp)
        again = self.forward(batch.some(some))
        if not np.array_equal(again, logits[some], equal_nan=True):
            moved = float(np.nanmax(np.abs(again - logits[some])))
            raise ClassifierError(
                f"{rows} rows of {width} tokens have other logits, by up to {moved:.1e}, than "
                f"{count.step} of them by themselves, though other shapes had the same when the "
                "model was loaded: nothing can be proved of such a computation. Another number of "
                "threads, batch_tokens or device may compute it alike"
            )
        self._seen_shapes.add(shape)

    def forward(self, batch: Batch) -> Scores:
        """Logits of one batch, as doubles."""
        return self._run(self.model if self._fast is None else self._fast, batch)

    def _run(self, model: Any, batch: Batch, *, positions: bool | None = None) -> Scores:
        """Logits from one model; ``positions``: whether to pass them explicitly."""
        inputs = self.inputs(batch, positions=positions)
        with torch.inference_mode():
            output = model(**{name: value.to(model.device) for name, value in inputs.items()})
        logits: Scores = output.logits.float().cpu().numpy().astype(np.float64)
        return logits

    def inputs(self, batch: Batch, *, positions: bool | None = None) -> dict[str, torch.Tensor]:
        """What the model's forward takes for a batch; training and inference share it."""
        inputs = batch.inputs(self.encoder.types)
        if self.encoder.hide == "drop" if positions is None else positions:
            inputs["position_ids"] = torch.from_numpy(batch.positions + self.encoder.first_position)
        return inputs

    def _prepare(self) -> None:
        """Check what the fast path relies on, by running the model in single precision.

        Rounding in a smaller dtype would hide what is looked for, so a copy is checked then.
        """
        checked = self.model if self.dtype == "float32" else copy.deepcopy(self.model).float()
        try:
            logits = self._probes.padded_logits(partial(self._run, checked))
        except (ValueError, IndexError) as error:
            raise ModelError(
                f"{type(checked).__name__} cannot compute several rows together: "
                f"{hub.first_line(error)} Name the padding token in its config as pad_token_id"
            ) from error
        if self.encoder.hide == "drop":
            self._check_dropping(checked)
        self._packed = self._select_packed(checked)
        shorter = self._packed is None and self._first_row_is_enough(checked, logits)
        self._fast: Any = first_row_model(self.model) if shorter else None

    def _select_packed(self, exact: Any) -> PackedScorer | None:
        """What computes packed rows, if anything should; ``exact``: the model in float32."""
        wanted = self._backend
        if wanted == "plain" or (wanted == "auto" and self.model.device.type not in _PACKED_ON):
            return None
        found, complaints = select(self.model, exact, self._run, self._probes)
        reasons = "; ".join(complaints)
        if found is None and wanted == "packed":
            raise ModelError(f"backend='packed' is not possible: {reasons}. Use backend='plain'")
        if reasons:
            instead = "the model's own forward" if found is None else "plain PyTorch"
            warnings.warn(
                f"{instead} is used, which is slower than the packed kernels: {reasons}",
                RuntimeWarning,
                stacklevel=4,
            )
        return found

    def _first_row_is_enough(self, model: Any, logits: Scores) -> bool:
        """Whether the head reads the first row alone, where the model's structure is known."""
        fast = first_row_model(model)
        if fast is None:
            return False
        try:
            other = self._probes.padded_logits(partial(self._run, fast))
        except Exception:  # whatever the unknown structure does: the plain path stays right
            return False
        return relative_difference(other, logits) <= SAME_LIMIT

    def _check_dropping(self, model: Any) -> None:
        name = type(model).__name__
        if "position_ids" not in inspect.signature(self.model.forward).parameters:
            raise ModelError(f"{name} takes no position_ids, so hide='drop' is not possible")
        difference = self._probes.dropping_difference(partial(self._run, model))
        if difference > SAME_LIMIT:
            raise ModelError(
                f"hide='drop' is not exact for {name}: leaving hidden words out moves its logits "
                f"by {difference:.1e} of their size, where hiding them from attention would not. "
                "Its positions are probably relative. Use hide='mask'"
            )


def _label_names(config: Any) -> tuple[str, ...]:
    if config.num_labels < 2:
        raise ModelError(
            f"the model has {config.num_labels} output: a classifier needs at least two classes"
        )
    names = config.id2label
    if set(names) != set(range(config.num_labels)):
        raise ModelError(
            f"the model's id2label names classes {sorted(names)}, not 0 to {config.num_labels - 1}"
        )
    return tuple(str(names[index]) for index in range(config.num_labels))
