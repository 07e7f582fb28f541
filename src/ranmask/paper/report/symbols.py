"""Signs that look like others in print, by name."""

from __future__ import annotations

ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
BETA = "\N{GREEK SMALL LETTER BETA}"
GAMMA = "\N{GREEK SMALL LETTER GAMMA}"
DELTA = "\N{GREEK CAPITAL LETTER DELTA}"
RHO = "\N{GREEK SMALL LETTER RHO}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
DASH = "\N{EN DASH}"
HIDDEN = "\N{MEDIUM SHADE}"

IN_PROSE = {
    "alpha": ALPHA,
    "beta": BETA,
    "gamma": GAMMA,
    "Delta": DELTA,
    "rho": RHO,
    "minus": MINUS,
    "times": TIMES,
    "dash": DASH,
}
"""What prose may write in braces."""
