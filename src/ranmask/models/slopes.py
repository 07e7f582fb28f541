"""The gradient of a smoothed encoder at each word: what a small move of its vector would do.

`word_slopes` is the derivative of the mean class probabilities over all masked copies, with the
masks known, by the embedding of each word; `word_vectors` are the embeddings of words.  Their
product with a difference of two words is the first-order effect of replacing one by the other, as
in HotFlip (Ebrahimi et al. 2018).  A word of several tokens counts as the mean of their vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ranmask.models.base import MaskedCopies
from ranmask.models.batching import batches
from ranmask.models.huggingface import HuggingFaceClassifier

_LEAST_ROWS = 8


def word_slopes(base: HuggingFaceClassifier, copies: MaskedCopies) -> npt.NDArray[np.float64]:
    """Shape (classes, words read, dimensions)."""
    import torch

    [(tokens, frame)] = base.encoder.spelt([copies])
    rows = base.encoder.lay_out(tokens, copies.kept, frame)
    # The same rows with the number of its word, from 1 below 0, in place of each of its tokens.
    numbers = [(-1 - place,) * len(ids) for place, ids in enumerate(tokens)]
    owners = base.encoder.lay_out(numbers, copies.kept, frame).ids
    model, layer = base.model, base.model.get_input_embeddings()
    shown: list[Any] = []

    def watch(module: Any, given: Any, vectors: Any) -> Any:
        shown.append(vectors.detach().requires_grad_())
        return shown[-1]

    total = None
    plan = batches(
        [rows], tokens=base.batch_tokens, least_rows=_LEAST_ROWS, pad_id=base.encoder.pad_id
    )
    for batch in plan:
        hook = layer.register_forward_hook(watch)
        try:
            inputs = base.inputs(batch)
            given = {name: value.to(model.device) for name, value in inputs.items()}
            logits = model(**given).logits.double()
        finally:
            hook.remove()
        judged = torch.sigmoid if base.outputs == "approvals" else torch.nn.Softmax(dim=1)
        sums = judged(logits).sum(dim=0)
        word = torch.from_numpy(owners[batch.places, : batch.ids.shape[1]]).to(model.device)
        places = (-1 - word).clamp(min=-1).flatten()
        if total is None:
            total = sums.new_zeros(len(sums), copies.words_read, shown[-1].shape[-1])
        for number, share in enumerate(sums):
            [slope] = torch.autograd.grad(share, shown[-1], retain_graph=True)
            own = places >= 0
            total[number].index_add_(0, places[own], slope.flatten(0, 1)[own].double())
        shown.clear()
    assert total is not None
    found: npt.NDArray[np.float64] = (total / len(copies)).cpu().numpy()
    return found


def word_vectors(base: HuggingFaceClassifier, words: Sequence[str]) -> npt.NDArray[np.float64]:
    """The mean embedding of the tokens of each word, shape (words, dimensions)."""
    vectors = base.model.get_input_embeddings().weight.detach()
    read = base.encoder.inner_word_ids(words)
    rows = [vectors[list(ids)].double().mean(dim=0) if ids else vectors[0] * 0 for ids in read]
    return np.stack([row.cpu().numpy() for row in rows])
