"""What training minimises: a smooth count of the texts that are not certified, or a hinge.

`certified_loss` trains the *certificate*, not the single copy.  `margin_loss` is the gentler form
of the paper's successors: a hinge on the averaged margin.
"""

from __future__ import annotations

import torch
from torch import Tensor

_NO_RIVAL = 1e9


def certified_loss(
    scores: Tensor,
    present: Tensor,
    labels: Tensor,
    met: Tensor,
    words_per_copy: Tensor,
    temperature: float,
    accuracy_weight: float = 0.0,
    weights: Tensor | None = None,
) -> Tensor:
    """The share of texts that are not certified, averaged over numbers of changed words.

    Text ``t`` is certified at ``d`` words if against every rival its margin, the sum over copies
    of ``score[label] - score[rival]``, is larger than the cost: the ``met[t, d]`` heaviest
    copies, each at its difference plus 1.  With one word a copy that is the certificate itself;
    with more it is an upper bound on the cost.  A step at 0 has no gradient, so a sigmoid of
    width ``temperature``, in words, stands in for it.  Unlike a hinge it gives up on texts that
    are far out of reach, which is what a count of certified texts rewards.

    It may also give up on a whole class: a classifier that always says the same is certified at
    any number of words wherever it is right.  ``accuracy_weight`` puts, in the place of the step
    at 0 words, so many times a logistic loss, which grows with every lost text and forbids that.

    Args:
        scores: (texts, copies, classes), each in [0, 1].
        present: (texts, copies): which copies there are; the others are padding.
        labels: (texts,).
        met: (texts, D + 1): how many copies ``d`` changed words can meet; ``met[:, 0]`` is 0.
        words_per_copy: (texts,): turns sums over copies into words.
        temperature: Width of the step, in words.
        accuracy_weight: 0 keeps the plain count.
        weights: (texts,): what each text counts (`weighted_mean`); None: all the same.
    """
    margins = certified_margins(scores, present, labels, met) * words_per_copy[:, None]
    lost = torch.sigmoid(-margins / temperature)
    if accuracy_weight:
        wrong = torch.nn.functional.softplus(-margins[:, :1] / temperature)
        lost = torch.cat([accuracy_weight * wrong, lost[:, 1:]], dim=1)
    return weighted_mean(lost.mean(1), weights)


def certified_margins(scores: Tensor, present: Tensor, labels: Tensor, met: Tensor) -> Tensor:
    """What is left of the margin after ``d`` changed words, in copies: (texts, D + 1)."""
    texts, copies, classes = scores.shape
    of_label = scores.gather(2, labels[:, None, None].expand(-1, copies, 1))
    differences = (of_label - scores) * present[..., None]
    weights = (differences + 1) * present[..., None]
    most = min(int(met.max()), copies)
    heaviest = weights.topk(most, dim=1).values.cumsum(1)
    costs = torch.cat([heaviest.new_zeros(texts, 1, classes), heaviest], dim=1)
    at = met.clamp(max=most)[..., None].expand(-1, -1, classes)
    left = differences.sum(1)[:, None, :] - costs.gather(1, at)
    own = torch.nn.functional.one_hot(labels, classes).bool()[:, None, :]
    return left.masked_fill(own, _NO_RIVAL).amin(2)


def margin_loss(
    scores: Tensor,
    present: Tensor,
    labels: Tensor,
    target: float,
    temperature: float,
    weights: Tensor | None = None,
) -> Tensor:
    """A soft hinge that pushes the margin of the averaged scores past ``target``."""
    shown = present.sum(1).clamp(min=1)[:, None]
    means = (scores * present[..., None]).sum(1) / shown
    own = torch.nn.functional.one_hot(labels, means.shape[1]).bool()
    rival = means.masked_fill(own, -_NO_RIVAL).amax(1)
    margin = means.gather(1, labels[:, None])[:, 0] - rival
    loss = torch.nn.functional.softplus((target - margin) / temperature) * temperature
    return weighted_mean(loss, weights)


def weighted_mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of the losses of texts, each times its weight.

    Weights have a mean of 1 over all training texts, not in each batch: dividing by a batch's own
    sum would make a text count by who else happens to be there.
    """
    return losses.mean() if weights is None else (losses * weights).mean()
