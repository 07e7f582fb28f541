"""What a masked language model expects in each place of a text, read as it is, nothing masked.

For BERT-Attack's candidates (`MaskedLM.top_tokens`) and LM-weighted masks (`MaskedLM.word_losses`).
For BAE's and CLARE's a word is masked (`MaskedLM.fill`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.checkpoints import Checkpoint
from ranmask.errors import OptionError
from ranmask.models.base import MaskedCopies
from ranmask.models.batching import Batch
from ranmask.models.encoding import WordEncoder
from ranmask.models.tokenizing import RowFormat, plain
from ranmask.words import Document

LOSS_DIGITS = 3
"""Losses are rounded to so many digits after the point, and none rounds to nothing."""

_MARKS = ("##", "Ġ", "▁")


@dataclass(frozen=True)
class Gap:
    """A text with a mask token: the ``count`` likeliest tokens there that ``counts`` accepts.

    None is less likely than ``least``.
    """

    text: str
    count: int
    least: float
    counts: Callable[[str], bool]


class MaskedLM(Checkpoint):
    """A Hugging Face masked language model with its tokenizer, which must have a mask token."""

    kind = "masked-lm"
    loader = "AutoModelForMaskedLM"
    untrained = "a trained masked language model"
    advice = (
        ". Name a model with its masked-LM head, or train one on plain text with 'ranmask train "
        "--kind mlm'"
    )
    batch_tokens = (1024, 1 << 14)  # each has a number for every word of the vocabulary

    def __init__(
        self, model: Any, tokenizer: Any, *, source: str | None = None, longest: int | None = None
    ) -> None:
        super().__init__(model, tokenizer, source=source, longest=longest)
        takes = replace(RowFormat.of(model, tokenizer), longest=self.longest)
        self._encoder = WordEncoder(tokenizer, takes, "mask")
        names = {int(place): str(token) for token, place in tokenizer.get_vocab().items()}
        self._known = sorted(names)
        self._names = [names[place] for place in self._known]
        # ``##`` continues a word; the others begin one.  The most frequent mark decides: RoBERTa
        # knows ``##`` as a word, and some BERT knows the letter Ġ.
        self._mark = max(
            _MARKS, key=lambda mark: sum(token.startswith(mark) for token in self._names)
        )

    @cached_property
    def _marks_apart(self) -> bool:
        """Whether a mask token inside a word is still one: then what is before it is read alone."""
        return self.tokenizer.mask_token_id in self.tokenizer(f"a{self.mask_token}a")["input_ids"]

    @property
    def mask_token(self) -> str:
        """The token that stands for a hidden word in a text."""
        return str(self.tokenizer.mask_token)

    def top_tokens(
        self, texts: Sequence[str], count: int, places: Sequence[range] | None = None
    ) -> list[list[tuple[str, ...]]]:
        """The ``count`` likeliest tokens in ``places`` of each text, or in all; the best first.

        Places are those of tokens, special ones included; a text is cut to what the model takes.
        Where two tokens are equally likely the one with the lower id comes first.
        """
        if count < 1:
            raise OptionError(f"count must be at least 1, not {count}")
        distinct = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        rows = self.rows(list(distinct))
        asked: list[list[tuple[int, int]]] = [[] for _ in distinct]  # of each text: who, and where
        for index, text in enumerate(texts):
            size = int(rows.lengths[distinct[text]])
            own = range(size) if places is None else places[index]
            asked[distinct[text]] += [(index, place) for place in own if place < size]
        found: list[list[tuple[str, ...]]] = [[] for _ in texts]
        for batch in self.batches(rows):
            owners = [asked[row] for row in batch.places]
            who = [index for some in owners for index, _ in some]
            if not who:
                continue
            row = np.repeat(np.arange(len(owners)), [len(some) for some in owners])
            logits = self._logits(batch, row, np.array([at for some in owners for _, at in some]))
            for index, tokens in zip(who, self._likeliest(logits, count), strict=True):
                found[index].append(tuple(self._names[token] for token in tokens))
        return found

    def fill(self, gaps: Sequence[Gap]) -> list[list[str]]:
        """The tokens for each gap, the likeliest first; none where its mask token is cut off."""
        rows = self.rows([gap.text for gap in gaps])
        found: list[list[str]] = [[] for _ in gaps]
        for batch in self.batches(rows):
            masked = batch.ids == self.tokenizer.mask_token_id
            [row] = np.nonzero(masked.any(axis=1))
            if not len(row):
                continue
            shares = self._logits(batch, row, masked[row].argmax(axis=1)).float().softmax(dim=1)
            for place, own in zip(batch.places[row], shares, strict=True):
                enough = int((own >= gaps[place].least).sum())
                [best] = self._likeliest(own[None], max(1, enough))
                names = filter(gaps[place].counts, (self._names[token] for token in best[:enough]))
                found[place] = list(itertools.islice(names, gaps[place].count))
        return found

    def pieces(self, word: str) -> tuple[str, ...]:
        """The tokens of a word by itself, without special tokens."""
        return tuple(self.tokenizer.tokenize(word))

    def mask_place(self, text: str) -> int | None:
        """Which token of a text is its first mask token; None if there is none, or it is cut off.

        Places are those of `top_tokens`.
        """
        before, found, _ = text.partition(self.mask_token)
        if self._frame is not None and self._marks_apart and found and plain(before):
            first, after = self._frame
            words = before.split()
            tokens = self._tokens_of(words)
            place = len(first) + sum(len(tokens[word]) for word in words)
            return place if place < self.longest - len(after) else None
        [ids] = self.rows([text]).ids
        masked = np.flatnonzero(ids == self.tokenizer.mask_token_id)
        return int(masked[0]) if len(masked) else None

    def continues(self, token: str, first: bool) -> bool:
        """Whether a token continues a word; ``first``: whether it stands at the text's start.

        Byte-level vocabularies mark the blank before a word, which the first word has not.
        """
        if self._mark == "##":
            return "##" in token
        if self._mark == "Ġ" and first:
            return False
        return not token.startswith(self._mark)

    def plain(self, token: str) -> str:
        """A token without the mark that says whether it begins or continues a word."""
        return token.replace(self._mark, "")

    def word_losses(self, documents: Sequence[Document]) -> list[npt.NDArray[np.float64]]:
        """How unexpected each word of each document is: the mean cross-entropy of its tokens.

        The premise of a pair is read but has no losses.  A word that the model does not get to see,
        for lack of room or of tokens, has the mean loss of the others.  In single precision only:
        a defence's masks follow from them.
        """
        if self.dtype != "float32":
            raise OptionError(
                f"losses of words are computed in float32, and {self.source!r} was loaded in "
                f"{self.dtype}: load it with dtype='float32'"
            )
        distinct = {document: index for index, document in enumerate(dict.fromkeys(documents))}
        copies = []
        for document in distinct:
            read = self._encoder.words_read(document)
            copies.append(MaskedCopies(document, read, np.arange(read, dtype=np.int32)[None]))
        rows = [self._encoder.rows(copy) for copy in copies]
        spelt = self._encoder.spelt(copies)
        found: list[npt.NDArray[np.float64]] = [np.empty(0)] * len(rows)
        for batch, output in self.outputs(rows):
            losses = _cross_entropies(output.logits, batch.ids)
            for place, row_losses in zip(batch.places, losses, strict=True):
                words, frame = spelt[place]
                start = rows[place].first_body_place
                body = int(rows[place].lengths[0]) - start - len(frame.after)
                # The word of each token; the last ones may not have fitted in.
                owners = np.repeat(np.arange(len(words)), [len(tokens) for tokens in words])[:body]
                own = row_losses[start : start + len(owners)]
                if not np.isfinite(own).all():
                    raise self._not_numbers("logits")
                found[place] = _by_word(own, owners, len(copies[place].document.words))
        return [found[distinct[document]].copy() for document in documents]

    def _logits(self, batch: Batch, row: npt.NDArray[Any], place: npt.NDArray[Any]) -> Any:
        """The logits in some places of a batch's rows; the head reads no others, where it can."""
        if not self._reads_apart:
            return self.output(batch).logits[row, place]
        return self._logits_of(batch, row, place)

    def _logits_of(self, batch: Batch, row: npt.NDArray[Any], place: npt.NDArray[Any]) -> Any:
        """The same by showing the head some of the encoder's states, as if they were a text."""
        mine = threading.get_ident()

        def only(_encoder: Any, _given: Any, output: Any) -> Any:
            if threading.get_ident() != mine:  # another one computes with the same model
                return output
            output.last_hidden_state = output.last_hidden_state[row, place][None]
            return output

        hook = self.model.base_model.register_forward_hook(only)
        try:
            return self.output(batch).logits[0]
        finally:
            hook.remove()

    @cached_property
    def _reads_apart(self) -> bool:
        """Whether the head reads every place by itself, as all known ones do: seen on a row."""
        import torch

        [batch] = self.batches(self.rows([self.mask_token]))
        row, place = np.zeros(1, dtype=np.intp), np.array([batch.ids.shape[1] - 1])
        whole = self.output(batch).logits[row, place].float()
        try:
            apart = self._logits_of(batch, row, place).float()
        except Exception:  # a model of another build raises anything
            return False
        return apart.shape == whole.shape and torch.allclose(apart, whole, rtol=0.01, atol=0.01)

    def _likeliest(self, logits: Any, count: int) -> list[list[int]]:
        """Which of `_names` have the largest logits, row by row and in order; ties by lower id."""
        import torch

        if len(self._known) < logits.shape[1]:  # the matrix is often larger than the vocabulary
            logits = logits[:, self._known]
        if logits.isnan().any():
            raise self._not_numbers("logits")
        # As whole numbers, in the order of the floats, and no two alike: topk takes any of equals.
        bits = (logits.float() + 0.0).view(torch.int32)  # -0.0 is 0.0
        bits ^= (bits >> 31) & 0x7FFFFFFF
        ranks = bits.long()  # in place, as of all tokens of a vocabulary there are many
        ranks <<= 32
        ranks -= torch.arange(logits.shape[1], device=logits.device)
        best: list[list[int]] = ranks.topk(min(count, logits.shape[1]), dim=1).indices.tolist()
        return best


def _cross_entropies(logits: Any, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """How unexpected each token of a batch is, padding included; fetched at once."""
    import torch

    target = torch.from_numpy(ids).to(logits.device)
    losses = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), target.flatten(), reduction="none"
    )
    numbers: npt.NDArray[np.float64] = losses.cpu().numpy().astype(np.float64)
    return numbers.reshape(ids.shape)


def _by_word(
    losses: npt.NDArray[np.float64], owners: npt.NDArray[np.intp], words: int
) -> npt.NDArray[np.float64]:
    counts = np.bincount(owners, minlength=words)
    sums = np.bincount(owners, losses, minlength=words)
    seen = counts > 0
    means = np.full(words, 1.0)  # nothing seen at all: all alike
    means[seen] = sums[seen] / counts[seen]
    if seen.any():
        means[~seen] = means[seen].mean()
    # Another batch moves a loss by some last digits: most of that ends here.
    return np.maximum(np.round(means, LOSS_DIGITS), 10.0**-LOSS_DIGITS)
