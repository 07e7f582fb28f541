"""Attacks with the real resources on real texts, where the data folder is."""

import pytest

from ranmask import attack, load_default
from ranmask.attacks.outcome import summarise
from ranmask.attacks.recipes import AttackResources
from ranmask.attacks.victims import PlainVictim
from ranmask.data import data_folder, load_corpus

DATA = data_folder()
NEEDED = ("agnews", "nltk", "synonyms")

pytestmark = pytest.mark.skipif(
    DATA is None or not all((DATA / name).is_dir() for name in NEEDED),
    reason="no datasets: set RANMASK_DATA to the folder that holds them",
)


@pytest.fixture(scope="module")
def resources():
    from ranmask.attacks.resources.neighbours import load_neighbours
    from ranmask.attacks.resources.tagging import load_tagger

    return AttackResources(neighbours=load_neighbours("jia2019"), tagger=load_tagger())


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("agnews", "validation").take(40)


@pytest.mark.parametrize("recipe", ["textfooler", "deepwordbug", "several-words", "labels-only"])
def test_a_word_table_falls_but_not_within_its_radius(resources, corpus, recipe):
    victim = load_default("news-words")
    free = attack(victim, corpus.texts, corpus.labels, recipe, resources=resources)
    assert free == attack(
        victim, corpus.texts, corpus.labels, recipe, resources=resources, together=3
    )
    figures = summarise(free).values()
    assert figures["clean_accuracy"] > 0.8 and figures["errors"] == 0
    assert figures["success_rate"] > (0.1 if recipe == "labels-only" else 0.5)
    for outcome in free:
        if outcome.status == "succeeded":
            assert victim.predict([outcome.adversarial])[0].label_id == outcome.final_label
            assert len(outcome.adversarial.split()) == len(outcome.text.split())
    within = attack(
        victim, corpus.texts, corpus.labels, recipe, resources=resources, budget="radius"
    )
    assert summarise(within).succeeded == 0


def test_a_plain_victim_reverts_now_and_then(resources, corpus):
    victim = PlainVictim(load_default("news-words").base)
    outcomes = attack(victim, corpus.texts, corpus.labels, "textfooler", resources=resources)
    shares = [one.reverted for one in outcomes if one.status == "succeeded"]
    assert shares and all(0 <= share <= 1 for share in shares) and any(shares)
