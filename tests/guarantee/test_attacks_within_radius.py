"""Every recipe shoots at certificates: within the radius none may hit, beyond it some must.

The victims are certified by ``exact``; the budget of each attack is the radius that it was given,
counted in the steps of the recipe's own threat.
"""

import random
import zlib
from functools import partial

import pytest

from ranmask import FunctionClassifier, OptionError, SmoothedClassifier, attack, load_default
from ranmask.attacks.recipes import RECIPES, AttackResources
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.resources.word_lists import StopWords, Vocabulary

pytestmark = pytest.mark.slow

WORDS = (
    *("the", "a", "film", "plot", "was", "is", "not", "good", "bad", "fine", "dull", "story"),
    *("very", "great", "awful", "and", "but", "acting", "[SEP]", "[MASK]", "!", "(good)", "film's"),
)
NEWS = (
    "Stocks rallied on Wall Street as oil prices fell and the bank raised its profit forecast",
    "The striker scored twice in the final as United won the cup for the third time",
    "The prime minister said the army would leave the city before the election in March",
    "Microsoft said the new software update closes a hole that let viruses spread over the web",
    "Shares of the airline dropped after the company reported a loss for the quarter",
    "NASA scientists say the probe found water ice on the moon of the planet",
    "Police said a bomb killed ten people near the embassy in the capital",
    "The coach said the team will play its best players in the Olympic final",
)


def letters(texts):
    """Three classes by an arbitrary weight of each visible word at its place."""
    rows = []
    for text in texts:
        row = [1.0, 1.05, 1.1]
        for place, word in enumerate(text.split()):
            if word != "[MASK]":
                code = zlib.crc32(word.encode())
                row[code % 3] += 1 + (code % 7 + place % 2) / 10
        rows.append([score / sum(row) for score in row])
    return rows


def sure(texts):
    """Two classes: nearly sure of 0 unless an exclamation mark is seen."""
    return [[0.1, 0.9] if "!" in text.split() else [0.8, 0.2] for text in texts]


@pytest.fixture(scope="module")
def resources():
    import tiny_models
    import torch
    import transformers

    from ranmask.attacks.resources.masked_lm import MaskedLM

    tokenizer = tiny_models.wordpiece_tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=tiny_models.LONGEST,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformers.BertForMaskedLM(config).eval()
    known = [word for text in NEWS for word in text.lower().split()] + [*WORDS]
    order = random.Random(5)
    table = {word: order.sample(known, 6) for word in dict.fromkeys(known)}
    return AttackResources(
        neighbours=NeighbourTable(table, name="made up"),
        masked_lm=MaskedLM(model, tokenizer),
        stop_words=StopWords("few", frozenset({"the", "a"})),
        vocabulary=Vocabulary("made up", (*WORDS, "goal", "profit", "software", "troops")),
    )


@pytest.fixture(scope="module")
def victims():
    import tiny_models

    from ranmask.models.huggingface import HuggingFaceClassifier

    bert = HuggingFaceClassifier(*tiny_models.bert(), hide="drop")
    masked = HuggingFaceClassifier(*tiny_models.bert(), hide="mask")
    return {
        "votes of three classes": SmoothedClassifier(letters, keep=1),
        "scores": SmoothedClassifier(letters, keep=2, ensemble="score"),
        "logits": SmoothedClassifier(
            FunctionClassifier(letters, outputs="logits"), keep=2, ensemble="logit"
        ),
        "a sampled family": SmoothedClassifier(sure, mask_rate=0.8, family="sampled", masks=60),
        "windows": SmoothedClassifier(sure, keep=2, family="windows"),
        "an encoder": SmoothedClassifier(bert, keep=1),
        "an encoder that sees masks": SmoothedClassifier(masked, keep=2, masks=80),
        "the word table": load_default("news-words"),
        "the shipped default": load_default("news"),
    }


VICTIMS = (
    *("votes of three classes", "scores", "logits", "a sampled family", "windows"),
    *("an encoder", "an encoder that sees masks", "the word table", "the shipped default"),
)


def texts_for(victim, count=6):
    if victim in ("the word table", "the shipped default"):
        return list(NEWS[:count])
    order = random.Random(11)
    return [" ".join(order.choices(WORDS, k=order.randint(5, 14))) for _ in range(4 * count)]


def aimed_at(classifier, texts):
    """Texts with the label that the classifier gives them, those with the largest radii first."""
    results = classifier.certify(texts)
    order = sorted(range(len(texts)), key=lambda place: -(results[place].radius or 0))
    return [texts[place] for place in order], [results[place].label_id for place in order]


POPULATIONS = ("alzantot", "faster-alzantot", "pso")
WHITE_BOX = ("a2t", "a2t-mlm", "hotflip")
EDITING = {
    "textbugger": "edits",
    "clare": "edits",
    "bad-characters": "characters",
    "insertions": "insertions",
    "appending": "insertions",
    "deletions": "deletions",
    "edits": "edits",
    "characters": "characters",
}
"""Recipes that change more than words for words, and the threats in whose steps they count."""


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe not in EDITING])
@pytest.mark.parametrize("victim", VICTIMS)
def test_no_recipe_flips_a_label_within_the_radius(victims, resources, victim, recipe):
    classifier = victims[victim]
    texts, labels = aimed_at(classifier, texts_for(victim))
    shoot = partial(attack, classifier, texts[:6], labels[:6], recipe, resources=resources)
    if recipe in POPULATIONS:
        shoot = partial(shoot, most_queries=300)
    if recipe in WHITE_BOX and "encoder" not in victim:
        with pytest.raises(OptionError, match=f"{recipe}.* needs a victim whose gradient"):
            shoot(budget="radius")
        return
    outcomes = shoot(budget="radius")
    assert {outcome.status for outcome in outcomes} == {"failed"}
    assert all(outcome.words_changed <= (outcome.radius or 0) for outcome in outcomes)
    # Shots were fired: not every radius is 0, and words were changed within them.
    assert max(outcome.radius or 0 for outcome in outcomes) >= 1
    asked = [outcome.queries for outcome in outcomes if outcome.radius]
    assert recipe == "labels-only" or max(asked) > 2


@pytest.mark.parametrize("recipe", ["textfooler", "anywords"])
@pytest.mark.parametrize("victim", VICTIMS)
def test_nor_does_the_strongest_search(victims, resources, victim, recipe):
    """All searches that there are for the victim, the gradient of encoders included."""
    classifier = victims[victim]
    texts, labels = aimed_at(classifier, texts_for(victim))
    outcomes = attack(
        *(classifier, texts[:8], labels[:8], recipe),
        resources=resources,
        budget="radius",
        search="strongest",
    )
    assert {outcome.status for outcome in outcomes} == {"failed"}
    assert all(outcome.words_changed <= (outcome.radius or 0) for outcome in outcomes)
    assert max(outcome.radius or 0 for outcome in outcomes) >= 1
    assert sum(outcome.queries for outcome in outcomes) > 50


def test_exact_flips_every_text_of_a_word_table_one_word_beyond_the_radius(victims):
    """With the most opposing word of a vocabulary at the dearest positions, in few queries."""
    opposing = (
        "Iraqi",
        "Baghdad",
        "quarterback",
        "touchdown",
        "Microsoft",
        "software",
        "oil",
        "Fed",
    )
    vocabulary = AttackResources(vocabulary=Vocabulary("made up", (*opposing, *WORDS)))
    table = victims["the word table"]
    texts, labels = aimed_at(table, list(NEWS))
    for recipe in ("anywords", "critical"):
        outcomes = attack(table, texts, labels, recipe, resources=vocabulary)
        assert {outcome.status for outcome in outcomes} == {"succeeded"}
        for outcome in outcomes:
            assert outcome.words_changed == outcome.radius + 1
            assert outcome.queries <= 1 + 3 * outcome.words_changed


@pytest.mark.parametrize("victim", VICTIMS)
def test_beyond_the_radius_some_labels_flip(victims, resources, victim):
    """The attacks above can hit: one word more is enough for some texts."""
    classifier = victims[victim]
    texts, labels = aimed_at(classifier, texts_for(victim))
    flipped = 0
    for recipe in ("anywords", "critical"):
        outcomes = attack(classifier, texts, labels, recipe, resources=resources)
        for outcome in outcomes:
            assert outcome.budget == 1 + (outcome.radius or 0)
            if outcome.status == "succeeded":
                assert outcome.words_changed == outcome.budget
                [now] = classifier.predict([outcome.adversarial])
                assert now.label_id == outcome.final_label != outcome.label
        flipped += sum(outcome.status == "succeeded" for outcome in outcomes)
    assert flipped


KNOWN = ("film", "plot", "good", "fine", "story", "great", "acting")


def known_or_not(texts):
    """Single words: those it knows speak for class 1 as loud as can be, all others against it.

    (For class 1, so that a tie is lost.)
    """
    return [[0.0, 1.0] if text in KNOWN else [1.0, 0.0] for text in texts]


def by_letters(texts):
    """Single words: whatever the letters say, in eighths, of three classes; and hostile words."""
    rows = []
    for text in texts:
        code = zlib.crc32(text.encode())
        own = [0.5 + code % 5 / 8, code // 5 % 5 / 8, code // 25 % 5 / 8]
        rows.append([0.0, 1.0, 0.0] if "!" in text else own if text in WORDS else own[::-1])
    return rows


def single_words(function, **options):
    base = FunctionClassifier(function, hide="drop")
    return SmoothedClassifier(base, keep=1, **{"ensemble": "score", **options})


SINGLE = {
    "knows words": lambda: single_words(known_or_not),
    "knows words, votes": lambda: single_words(known_or_not, ensemble="vote"),
    "knows words, each once": lambda: single_words(known_or_not, family="distinct"),
    "letters of three classes": lambda: single_words(by_letters),
    "the word table": lambda: load_default("news-words"),
}


@pytest.fixture(scope="module")
def edited(resources):
    """Outcomes of a recipe against a victim, 8 texts with its own labels."""

    def outcomes(victim, recipe, budget):
        classifier = SINGLE[victim]().with_options(threat=EDITING[recipe])
        order = random.Random(23)
        lengths = [order.randint(4, 12) for _ in range(40)]
        # A word that is not known, so that something is left when known ones are deleted.
        texts = [" ".join([*order.choices(KNOWN, k=length), "dull"]) for length in lengths]
        texts, labels = aimed_at(classifier, list(NEWS) if "table" in victim else texts)
        return attack(
            *(classifier, texts[:8], labels[:8], recipe), resources=resources, budget=budget
        )

    return outcomes


@pytest.mark.parametrize("recipe", EDITING)
@pytest.mark.parametrize("victim", SINGLE)
def test_no_edits_flip_a_label_within_the_radius_of_their_threat(edited, victim, recipe):
    outcomes = edited(victim, recipe, "radius")
    assert {outcome.status for outcome in outcomes} == {"failed"}
    assert {outcome.unit for outcome in outcomes} == {EDITING[recipe]}
    assert all(outcome.distance <= (outcome.radius or 0) for outcome in outcomes)
    assert max(outcome.radius or 0 for outcome in outcomes) >= 1
    assert max(outcome.queries for outcome in outcomes if outcome.radius) > 2


@pytest.mark.parametrize(
    "recipe", [recipe for recipe, threat in EDITING.items() if recipe == threat]
)
def test_beyond_the_radius_edits_flip_every_label_where_the_bound_is_exact(edited, recipe):
    """Some word is as hostile as can be, and a word that is split is two of those."""
    for victim in ("knows words", "knows words, votes"):
        for outcome in edited(victim, recipe, "radius+1"):
            assert outcome.status == "succeeded" and outcome.distance == 1 + (outcome.radius or 0)


def test_a_pair_is_safe_while_its_premise_is_frozen(resources):
    def overlap(pairs):
        rows = []
        for premise, hypothesis in pairs:
            seen = [word for word in hypothesis.split() if word != "[MASK]"]
            shared = sum(word in premise.split() for word in seen)
            rows.append([0.4 + 0.2 * shared, 1.0])
        return [[one / sum(row) for one in row] for row in rows]

    classifier = SmoothedClassifier(overlap, keep=1)
    order = random.Random(2)
    pairs = []
    for _ in range(30):
        premise = order.sample(WORDS, 9)
        pairs.append((" ".join(premise), " ".join(order.choices([*premise, *WORDS], k=7))))
    pairs, labels = aimed_at(classifier, pairs)
    for recipe in ("textfooler", "several-words", "labels-only", "anywords", "critical"):
        outcomes = attack(classifier, pairs, labels, recipe, resources=resources, budget="radius")
        assert {outcome.status for outcome in outcomes} == {"failed"}
        for outcome in outcomes:
            assert outcome.adversarial[0] == outcome.text[0]
    assert max(outcome.radius or 0 for outcome in outcomes) >= 1


def test_the_papers_certificate_is_shot_down():
    """Its counterexample: 12 key words of 43, 4 visible; 3 planted words flip what it "certified".

    The exact certificate of the same votes stands.
    """
    keys = tuple(f"key{number}" for number in range(12))
    text = " ".join([*keys, *(f"other{number}" for number in range(31))])

    def planted(texts):
        rows = []
        for one in texts:
            seen = one.split()
            says = any(word in keys for word in seen) and "planted" not in seen
            rows.append([0.0, 1.0] if says else [1.0, 0.0])
        return rows

    classifier = SmoothedClassifier(planted, keep=4, family="sampled", masks=5000)
    claims = SmoothedClassifier(planted, keep=4, masks=5000, certificate="paper").compare([text])[0]
    assert (claims["paper-as-printed"].radius, claims["paper"].radius) == (4, 3)
    assert not claims["paper"].guarantee
    words = AttackResources(vocabulary=Vocabulary("made up", ("planted", "harmless")))
    for budget in (3, 4):
        [outcome] = attack(classifier, [text], [1], "anywords", resources=words, budget=budget)
        assert outcome.status == "succeeded" and outcome.words_changed == 3
    for recipe in ("anywords", "critical"):
        [outcome] = attack(classifier, [text], [1], recipe, resources=words, budget="radius")
        assert outcome.status == "failed" and outcome.radius == 2 == outcome.words_changed
