"""What a masked language model expects in each place of a text, read as it is, nothing masked.

For BERT-Attack's candidates (`MaskedLM.top_tokens`) and LM-weighted masks (`MaskedLM.word_losses`).
For BAE's and CLARE's a word is masked (`MaskedLM.fill`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.attacks.resources.checkpoints import Checkpoint
from ranmask.errors import ModelError, OptionError
from ranmask.models.base import MaskedCopies
from ranmask.models.encoding import WordEncoder
from ranmask.models.tokenizing import RowFormat
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
        for batch, output in self.outputs(rows):
            owners = [asked[row] for row in batch.places]
            who = [index for some in owners for index, _ in some]
            if not who:
                continue
            row = np.repeat(np.arange(len(owners)), [len(some) for some in owners])
            best = self._likeliest(
                output.logits[row, [place for some in owners for _, place in some]], count
            )
            for index, tokens in zip(who, best, strict=True):
                found[index].append(tuple(self._names[token] for token in tokens))
        return found

    def fill(self, gaps: Sequence[Gap]) -> list[list[str]]:
        """The tokens for each gap, the likeliest first; none where its mask token is cut off."""
        rows = self.rows([gap.text for gap in gaps])
        found: list[list[str]] = [[] for _ in gaps]
        for batch, output in self.outputs(rows):
            for place, logits in zip(batch.places, output.logits, strict=True):
                masked = np.flatnonzero(rows.ids[place] == self.tokenizer.mask_token_id)
                if not len(masked):
                    continue
                shares = logits[int(masked[0])].float().softmax(dim=0)
                enough = int((shares >= gaps[place].least).sum())
                [best] = self._likeliest(shares[None], max(1, enough))
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
        [ids] = self.rows([text]).ids
        found = np.flatnonzero(ids == self.tokenizer.mask_token_id)
        return int(found[0]) if len(found) else None

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
        for lack of room or of tokens, has the mean loss of the others.
        """
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
                    raise self._not_numbers()
                found[place] = _by_word(own, owners, len(copies[place].document.words))
        return [found[distinct[document]].copy() for document in documents]

    def _likeliest(self, logits: Any, count: int) -> list[list[int]]:
        """Which of `_names` have the largest logits, row by row and in order; ties by lower id."""
        if len(self._known) < logits.shape[1]:  # the matrix is often larger than the vocabulary
            logits = logits[:, self._known]
        count = min(count, logits.shape[1])
        values, places = logits.topk(count, dim=1)
        if values.isnan().any():
            raise self._not_numbers()
        least = values[:, -1:]
        places, order = places.sort(dim=1)
        order = values.gather(1, order).argsort(dim=1, descending=True, stable=True)
        places = places.gather(1, order)
        # More tokens as good as the last one: topk took any of them.
        for row in ((logits >= least).sum(dim=1) > count).nonzero()[:, 0].tolist():
            tied = (logits[row] >= least[row]).nonzero()[:, 0]
            order = logits[row, tied].argsort(descending=True, stable=True)
            places[row] = tied[order[:count]]
        best: list[list[int]] = places.tolist()
        return best

    def _not_numbers(self) -> ModelError:
        return ModelError(
            f"{self.source!r} gives logits that are not numbers: get its weights again"
        )


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
