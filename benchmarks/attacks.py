"""Attacks in lock-step: 64 texts at a time against one at a time.

50 AG News test texts, the shipped default; outcomes and query counts must be the same.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.settings import data_folder
from ranmask import attack, load_default
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.resources.neighbours import load_neighbours
from ranmask.attacks.resources.tagging import load_tagger
from ranmask.attacks.victims import SmoothedVictim
from ranmask.data import load_corpus

RECIPES = ("deepwordbug", "textfooler")


def run(quick: bool) -> dict[str, Any]:
    data_folder()
    corpus = load_corpus("agnews", "test").take(10 if quick else 50)
    resources = AttackResources(neighbours=load_neighbours("jia2019"), tagger=load_tagger())
    # What loading, measuring the tolerance and the tagger's first words cost is not compared.
    attack(load_default(), corpus.texts[:2], corpus.labels[:2], "textfooler", resources=resources)
    rows = []
    for recipe in RECIPES:
        seconds, outcomes, copies = {}, {}, {}
        for together in (64, 1):
            victim = SmoothedVictim(load_default())  # has seen no text before
            victim.smoothed.predict(corpus.texts[:1])  # measures the encoder's numbers
            before = time.process_time()
            outcomes[together] = attack(
                victim, corpus.texts, corpus.labels, recipe, resources=resources, together=together
            )
            seconds[together] = time.process_time() - before
            copies[together] = victim.copies_scored
        if outcomes[64] != outcomes[1]:
            raise AssertionError(
                f"{recipe}: outcomes depend on how many texts are attacked at once"
            )
        queries = sum(outcome.queries for outcome in outcomes[1])
        every = sum(outcome.queries * outcome.words for outcome in outcomes[1])
        rows.append(
            {
                "recipe": recipe,
                "texts": len(corpus.texts),
                "queries": queries,
                "copies_scored": copies[64],
                "copies_without_sharing": every,
                "seconds_together": round(seconds[64], 2),
                "seconds_one_by_one": round(seconds[1], 2),
                "faster": round(seconds[1] / seconds[64], 2),
            }
        )
    return {"recipes": rows}
