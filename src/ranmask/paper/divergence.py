"""The divergence by which the paper compares beta with p_c, and why it shows so little."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """The Jensen-Shannon divergence, in nats, of two lists of numbers, each scaled to sum to 1.

    Both have an entry for each text, none below 0, and one that is above.

    From 0 (in proportion) to ``log 2`` (nowhere positive both).  The paper's figure compares in
    this way p_c and beta, one entry for each *text*.  Scaling these lists, which are no
    distributions over texts, hides what was asked:

    * a common factor is lost: had every beta half the size of its p_c, the divergence would be 0;
    * it is an average: about an eighth of the mean square of the relative differences, so one
      text may differ much while it stays below the 2.5e-5 that the paper calls very small.

    The published code mixes the lists before it scales them, which makes it larger by about the
    ((P - Q) / (P + Q))^2-th part, P and Q being the sums: next to nothing here.

    >>> shares = [0.9, 0.8, 0.6]
    >>> jensen_shannon(shares, [share / 2 for share in shares])
    0.0
    >>> jensen_shannon([0.65] * 1000, [0.65] * 999 + [0.95]) < 2.5e-5
    True
    >>> round(jensen_shannon([1, 0], [0, 1]), 4)
    0.6931
    """
    first, second = _distribution(p), _distribution(q)
    middle, total = (first + second) / 2, 0.0
    for shares in (first, second):
        some = shares > 0  # 0 log 0 is 0
        total += float(np.sum(shares[some] * np.log(shares[some] / middle[some])))
    return max(0.0, total / 2)  # rounding may leave a few bits below 0 where both are in proportion


def _distribution(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64)
    given = given / given.max()  # so that no sum overflows
    return np.asarray(given / given.sum(), dtype=np.float64)
