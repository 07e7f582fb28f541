"""Words that an attacker would try first: each says a lot about what a text is about.

Written for the models that come with ranmask, news topics and film reviews, and common enough to
trouble others too.  Which of them hurt is asked of the model that is attacked.
"""

from __future__ import annotations

import itertools

import numpy as np

from ranmask.models.base import BaseClassifier, MaskedCopies
from ranmask.words import Document

_WORLD = """
    president minister parliament troops soldiers army militants rebels insurgents bombing bomb
    attack killed killing hostage hostages embassy ceasefire refugees peacekeepers Iraq Baghdad
    Fallujah Iran Israel Israeli Palestinian Gaza Darfur Sudan Kabul Afghanistan Chechnya Najaf
    Ukraine Kashmir cleric election elections ballot diplomat nuclear sanctions treaty rebels
    gunmen prison tribunal coup protest protesters police explosion suicide earthquake
"""
_SPORTS = """
    game games season team coach quarterback touchdown touchdowns inning innings homer pitcher
    baseball football basketball soccer tennis golf hockey cricket striker goalkeeper midfielder
    playoff playoffs league championship cup medal Olympic Olympics stadium referee tournament
    victory defeat scored wicket batsman sprinter Yankees Red-Sox Lakers NBA NFL NHL NCAA rebounds
    semifinal quarterfinal rookie halftime overtime knockout racing lap
"""
_BUSINESS = """
    stocks shares profit profits earnings quarterly revenue investors shareholders dividend merger
    acquisition takeover bid billion million dollar dollars euro oil crude barrel prices inflation
    economy economic retailer retail sales bank banks lender mortgage bankruptcy airline union
    layoffs NYSE Nasdaq Wall-Street Reuters Fed Greenspan exports tariff tariffs IPO hedge bonds
    forecast outlook insurer pension
"""
_SCIENCE = """
    software Microsoft Google Linux Windows Intel chip chips browser internet online web email
    spam virus worm hackers server servers wireless broadband download downloads computer
    computers laptop iPod Apple Sony console NASA spacecraft satellite orbit Mars telescope
    astronomers scientists researchers genome species fossil climate asteroid robot search-engine
    open-source patch security-flaw desktop VoIP phones processor
"""
_POOR = """
    awful terrible horrible dull boring tedious bland lifeless stupid worst waste wasted mess
    pointless pretentious unfunny lame clumsy predictable shallow disappointing disappointment
    fails failure flat tiresome silly poorly bad badly ridiculous annoying painful incoherent
    forgettable contrived mediocre stale hollow sloppy unwatchable ugly neither lacks
"""
_FINE = """
    wonderful superb moving perfect brilliant delightful charming touching beautiful beautifully
    excellent masterpiece powerful engaging gripping hilarious funny fresh warm enjoyable
    compelling remarkable best great terrific fascinating clever witty heartfelt elegant stunning
    refreshing captivating thoughtful vivid tender inspiring unforgettable rich honest smart
"""

WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        word
        for some in (_WORLD, _SPORTS, _BUSINESS, _SCIENCE, _POOR, _FINE)
        for word in some.split()
    )
)
"""All of them, each once."""


def most_telling(base: BaseClassifier, label: int, premise: str | None = None) -> list[str]:
    """All `WORDS`, those first that speak most for another class than ``label``.

    Every other class has its turn, for it is not known which of them is easiest to reach.
    """
    shown = np.zeros((1, 1), dtype=np.int32)
    alone = [MaskedCopies(Document((word,), premise), 1, shown) for word in WORDS]
    rows = np.concatenate(base.score(alone))
    rivals = [rival for rival in range(rows.shape[1]) if rival != label]
    orders = [np.argsort(rows[:, label] - rows[:, rival], kind="stable") for rival in rivals]
    in_turn = itertools.chain.from_iterable(zip(*orders, strict=True))
    return list(dict.fromkeys(WORDS[place] for place in in_turn))
