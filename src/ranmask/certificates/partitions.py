"""Poisoned training texts and changed words together: a vote of classifiers trained apart.

Guarantee.  Let ``T`` classifiers vote on a text, each trained on its own part of the training
texts; the label with the most votes wins, the lowest class on a tie.  Let `most_poisoned` find
``r`` for ``d``.  Then the label stays the same when at most ``d`` words of the text are changed,
*and* the classifiers are trained anew after at most ``r`` training texts were poisoned.

What counts as one poisoned text.  Any number of rows with the same text that are added, removed or
relabelled: a hash of the text alone says which part they are in, so that one classifier is trained
on something else.  A row whose *text* is changed counts twice, for the text that is gone and for
the new one.

Assumptions.  (1) What a classifier is follows from the rows of its part alone, in whatever order
they were given, and from options that were set beforehand.  (2) ``proved`` is right: with at most
``proved[b]`` changed words classifier ``t`` does not say the class ``b``.  With none it says its
label: nothing there is drawn at random.

Proof.  Let ``c`` be the label, ``b`` a rival and ``N`` the votes.  ``c`` wins against ``b`` while

    N_c - N_b >= [b < c],

for ``c`` wins a tie if it is the lower class.  Voting ``b`` instead of what it says, a classifier
takes ``p`` from that lead: 2 if it says ``c``, 0 if it says ``b``, else 1.  That is all that a
poisoned one can do.  With ``d`` changed words another one can take ``w`` of it, at most: all of
``p`` where ``d > proved[b]``; else, if it says ``c``, 1 where ``d > proved[c]``, the most words
with which it keeps its label; else 0.  The attacker poisons ``r`` and changes words for the others:
he takes at most the sum of all ``w``, and the ``r`` largest ``p - w``.  Those are 2 (``A``
classifiers, that say ``c`` whatever ``d`` words are changed), then 1.  So ``c`` stays while

    2 min(r, A) + max(r - A, 0)  <=  N_c - N_b - [b < c] - sum of w,

which is solved for ``r``.  (There are enough of the 1: all ``p`` together are ``T`` more than
``N_c - N_b``.)  The smallest ``r`` over all rivals holds against each of them.

With no changed word the bound is attained: poisoned classifiers that say ``b`` take the win from
``c`` at ``r + 1``.  With changed words more might be provable, since the same words must be changed
for all classifiers, and here each may have its worst.

This module knows nothing of texts or training; integers decide.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranmask.certificates.coverage import Ints


def vote_counts(labels: Ints, classes: int) -> Ints:
    """How many classifiers say each class, (texts, classes), from (classifiers, texts)."""
    counts: Ints = (labels[:, :, None] == np.arange(classes)).sum(axis=0)
    return counts


def most_poisoned(labels: Ints, proved: Ints) -> list[tuple[int, ...]]:
    """For each text: how many training texts may be poisoned beside 0, 1, 2, ... changed words.

    The tuple ends where the label is not even proved without poisoned texts; it has an entry at
    least.  ``labels``: what each classifier says, (classifiers, texts).  ``proved``: with how many
    changed words it is proved not to say each class, and to keep saying its own: (classifiers,
    texts, classes), none below 0.
    """
    classes = proved.shape[2]
    counts = vote_counts(labels, classes)
    texts = np.arange(len(counts))
    winners = counts.argmax(axis=1)
    found: list[list[int]] = [[] for _ in counts]
    for changed in range(int(proved.max(initial=0)) + 2):
        left = _most_beside(labels, proved < changed, counts[texts], winners)
        for text, most in zip(texts.tolist(), left.tolist(), strict=True):
            if most >= 0:
                found[text].append(most)
        stays = left >= 0
        texts, winners = texts[stays], winners[stays]
        labels, proved = labels[:, stays], proved[:, stays]
        if not len(texts):
            break
    return [tuple(most) for most in found]


def _most_beside(labels: Ints, lost: npt.NDArray[np.bool_], counts: Ints, winners: Ints) -> Ints:
    """The most poisoned texts where ``lost`` says which classes are not proved; -1: none is."""
    texts = np.arange(len(winners))
    own = labels == winners
    moved = own & lost[:, texts, winners]
    most = np.full(len(winners), len(labels), dtype=np.int64)
    for rival in range(counts.shape[1]):
        turned = lost[:, :, rival] & (labels != rival)
        # Of those that say the label, one that may say the rival has moved, too: it takes 2.
        by_words = turned.sum(axis=0) + moved.sum(axis=0)
        firm = (own & ~moved).sum(axis=0)
        lead = counts[texts, winners] - counts[:, rival] - (rival < winners) - by_words
        beside = np.where(lead >= 2 * firm, lead - firm, lead // 2)
        most = np.where(winners == rival, most, np.minimum(most, beside))
    return np.maximum(most, -1)
