"""Attacks that insert, delete, split and join words, and change characters."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranmask import FunctionClassifier, SmoothedClassifier, attack
from ranmask.attacks.edits import INVISIBLE, AnyEdits, CharacterEdits, WordEdits
from ranmask.attacks.recipe import distance
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.replacements import AnyWord, OpposingWords
from ranmask.attacks.resources import NeighbourTable, StopWords, Vocabulary
from ranmask.attacks.steps import Attempt
from ranmask.attacks.tokenization import tokenize
from ranmask.words import split

NONE = StopWords("none", frozenset())


def of(text, tokenization="words"):
    return tokenize(text, tokenization)


def run(steps):
    """What a search that asks nothing returns."""
    with pytest.raises(StopIteration) as end:
        next(steps)
    return end.value.value


def attempt(text, **more):
    return Attempt(1, of(text), 1, 0, **more)


def counting(good, bad):
    """Class 1 by good words, class 0 by bad ones; a text without either is class 1."""

    def scores(texts):
        rows = []
        for text in texts:
            words = text.split()
            up = sum(map(good.__contains__, words)) + 1
            down = sum(map(bad.__contains__, words)) + 0.5
            rows.append([down / (up + down), up / (up + down)])
        return rows

    return scores


class TestMovedWords:
    def test_a_word_in_front(self):
        text = of("a b c").rewritten(1, "x b")
        assert text.parts == ("a x b c",)
        assert text.places == (0, 2, 3)
        assert text.modified == {1, 2} and text.new_words == {1: "x", 2: "b"}

    def test_a_word_behind(self):
        assert of("a b c").rewritten(1, "b x").places == (0, 1, 3)

    def test_a_word_less(self):
        text = of("a b c").deleted(1)
        assert (text.parts, text.places, text.modified) == (("a c",), (0, None, 1), frozenset())

    def test_two_words_joined(self):
        text = of("a b c d").rewritten(1, "bc", through=2)
        assert (text.parts, text.places) == (("a bc d",), (0, 1, None, 2))

    def test_changed_words_move_along(self):
        text = of("a b c").replaced({2: "y"}).rewritten(0, "x a")
        assert text.parts == ("x a b y",) and text.modified == {0, 1, 3}
        assert text.deleted(1).modified == {0, 2}
        assert text.replaced({2: "z"}).places == (1, 2, 3)

    def test_punctuation_stays(self):
        text = of("(Good) film, really.", "textattack-0.3.11")
        assert text.rewritten(1, "new film").parts == ("(Good) new film, really.",)
        assert text.rewritten(1, "new film").keeps_positions

    @given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), st.data())
    def test_places_follow_the_words(self, words, data):
        """Every word of the original is where `places` says, through any edits of others."""
        named = [f"{word}{at}" for at, word in enumerate(words)]
        text, gone = of(" ".join(named)), set()
        for _ in range(4):
            at = data.draw(st.integers(0, len(text.words) - 1))
            old = text.words[at]
            sort = data.draw(st.sampled_from(["before", "after", "delete"]))
            if sort == "delete" and len(text.words) > 1:
                text, gone = text.deleted(at), gone | {old}
            elif sort != "delete":
                text = text.rewritten(at, f"new {old}" if sort == "before" else f"{old} new")
        assert text.document.words == split(text.parts[0]) == text.words
        for word, place in zip(named, text.places, strict=True):
            assert (place is None) == (word in gone)
            assert place is None or text.words[place] == word


class TestDistances:
    def test_units(self):
        original = of("a good film")
        longer = original.rewritten(1, "very good")
        assert distance(longer, original, "insertions") == 1
        assert distance(longer, original, "edits") == 1
        assert distance(longer, original, "characters") == 5
        assert distance(original.deleted(0).deleted(0), original, "deletions") == 2
        assert distance(longer.deleted(3), original, "edits") == 2

    def test_other_edits_than_the_threat_has(self):
        text, original = of("a c d"), of("a b")
        for unit in ("insertions", "deletions", "substitutions"):
            with pytest.raises(AssertionError):
                distance(text, original, unit)

    @given(st.text("ab c", min_size=1), st.text("ab c", min_size=1))
    def test_characters_are_counted_in_the_text_as_it_stands(self, one, other):
        assert (distance(of(one), of(other), "characters") == 0) == (one == other)


class TestCharacterEdits:
    @given(st.text("ab -", min_size=1).filter(str.split))
    def test_each_is_one_character(self, string):
        original = of(string)
        for position in range(len(original.words)):
            made = run(CharacterEdits().edits(attempt(string), original, position))
            assert made
            assert {distance(text, original, "characters") for text in made} <= {0, 1}
            assert all(text.keeps_positions for text in made)

    def test_what_may_become_of_a_word(self):
        made = run(CharacterEdits().edits(attempt("a bc d"), of("a bc d"), 1))
        texts = {text.parts[0] for text in made}
        assert {"a c d", "a b d", "a b  d", "a  c d", "a b c d", "a bcd"} <= texts
        assert {"a \u042cc d", "a b\u03f2 d", f"a b{INVISIBLE[0]}c d"} <= texts


class TestSearch:
    WORDS = AttackResources(vocabulary=Vocabulary("made up", ("bad", "film", "poor")))

    @pytest.mark.parametrize(
        ("recipe", "text", "unit", "steps"),
        [
            ("insertions", "a good fine film", "insertions", 3),
            ("appending", "a good fine film", "insertions", 3),
            ("deletions", "good fine best film", None, 3),
            ("edits", "a good fine film", "edits", 2),
        ],
    )
    def test_as_few_as_it_takes(self, recipe, text, unit, steps):
        victim = counting({"good", "fine", "best"}, {"bad", "poor"})
        for budget in (steps - 1, steps):
            [outcome] = attack(victim, [text], [1], recipe, resources=self.WORDS, budget=budget)
            if unit is None:  # what is left says nothing, and nothing speaks for class 0
                assert outcome.status == "failed" and outcome.distance == budget
                continue
            assert outcome.status == ("succeeded" if budget == steps else "failed")
            assert (outcome.distance, outcome.unit) == (budget, unit)
            assert outcome.words_changed == len(outcome.changes) == budget

    def test_appended_words_are_around_the_text(self):
        victim = counting({"good", "fine"}, {"bad"})
        for text in ("a good fine film", ("bad bad", "a good fine film")):
            function = (
                victim
                if isinstance(text, str)
                else lambda pairs: victim([hypothesis for _, hypothesis in pairs])
            )
            [outcome] = attack(function, [text], [1], "appending", resources=self.WORDS, budget=5)
            assert outcome.status == "succeeded"
            last = outcome.adversarial if isinstance(text, str) else outcome.adversarial[1]
            assert "a good fine film" in last

    def test_a_premise_that_is_frozen_stays(self):
        pair = of(("one two", "a good film"))
        edits = WordEdits(AnyWord(("bad",)), ("before", "after", "insert"))
        texts = run(edits.anywhere(attempt("-"), pair, ()))
        assert [text.parts for text in texts] == [
            ("one two", "bad a good film"),
            ("one two", "a good film bad"),
        ]
        recipe = build_recipe("insertions", self.WORDS)
        here = Attempt(1, pair, 1, 0)
        made = [pair.rewritten(0, "bad one"), pair.rewritten(3, "bad good")]
        assert run(recipe.allowed(here, made)) == made[1:]
        assert run(replace(recipe, frozen_premise=False).allowed(here, made)) == made

    def test_no_text_is_deleted_whole(self):
        victim = counting({"good"}, {"bad"})
        [outcome] = attack(victim, ["good"], [1], "deletions", budget=3)
        assert (outcome.status, outcome.adversarial, outcome.distance) == ("failed", "good", 0)

    def test_blanks_are_characters(self):
        def whole(texts):
            return [[0.1, 0.9] if "good" in text.split() else [0.9, 0.1] for text in texts]

        [outcome] = attack(whole, ["a good film"], [1], "characters", budget=1)
        assert (outcome.status, outcome.distance, outcome.unit) == ("succeeded", 1, "characters")

    def test_the_worst_words_are_found_first(self):
        """Of many words only a few are tried, those that the victim itself likes least."""
        words = (*(f"word{number}" for number in range(60)), "bad")
        found = WordEdits(OpposingWords(words, each=2), ("insert",))
        victim = counting({"good", "fine", "best"}, {"bad"})
        recipe = build_recipe("insertions", AttackResources(vocabulary=Vocabulary("-", words)))
        assert recipe.candidates == found and recipe.search == AnyEdits(4)
        [outcome] = attack(victim, ["a good fine best film"], [1], recipe, budget=4)
        assert outcome.status == "succeeded" and outcome.adversarial.count("bad") == 4
        assert outcome.queries == 1 + 5 + 4 * 4 * 2

    def test_queries_may_end(self):
        victim = counting({"good", "fine", "best"}, {"bad"})
        for recipe, most in itertools.product(("edits", "characters", "clean"), (1, 2, 5, 9)):
            if recipe != "clean":
                [outcome] = attack(
                    *(victim, ["a good fine best film"], [1], recipe),
                    **{"resources": self.WORDS, "budget": 3, "most_queries": most},
                )
                assert outcome.queries <= most and outcome.status == "failed"


def test_the_radius_is_that_of_the_recipes_threat():
    """Whatever threat the victim was made for."""
    base = FunctionClassifier(
        lambda texts: [[0.0, 1.0] if text == "good" else [1.0, 0.0] for text in texts], hide="drop"
    )
    texts = ["good good good good good bad"]
    radii = {}
    for recipe in ("insertions", "deletions", "edits", "characters", "anywords"):
        for threat in ("substitutions", "edits", "insertions"):
            victim = SmoothedClassifier(base, keep=1, ensemble="score", threat=threat)
            resources = TestSearch.WORDS
            [outcome] = attack(victim, texts, [1], recipe, resources=resources, budget="radius")
            radii.setdefault(recipe, set()).add(outcome.radius)
            [proved] = victim.with_options(threat=outcome.unit).certify(texts)
            assert outcome.radius == proved.radius == outcome.budget
    assert radii == {
        **{"insertions": {3}, "deletions": {3}},
        **{"edits": {1}, "characters": {1}, "anywords": {1}},
    }


class TestTricks:
    NEIGHBOURS = NeighbourTable({"good": ["fine"], "film": ["movie"]})

    def test_textbugger_splits_words(self):
        def whole(texts):
            return [[0.1, 0.9] if "film" in text.split() else [0.9, 0.1] for text in texts]

        resources = AttackResources(neighbours=self.NEIGHBOURS, stop_words=NONE)
        recipe = build_recipe("textbugger", resources)
        text = of("a good film", recipe.tokenization)
        made = run(recipe.candidates.edits(attempt("a good film"), text, 2))
        assert [one.parts[0].replace(" ", "") for one in made] == ["agoodfilm"]
        assert made[0].words[2:] in {("f", "ilm"), ("fi", "lm")}
        [outcome] = attack(whole, ["a good film"], [1], recipe)
        assert outcome.status == "succeeded" and outcome.unit == "edits"

    def test_later_words_are_still_found_after_a_split(self):
        """Whatever is split, the other words are attacked where they now stand."""

        def whole(texts):
            words = [set(text.split()) for text in texts]
            rows = [len(one & {"alpha", "gamma", "omega"}) for one in words]
            return [[1 - row / 3.5, row / 3.5] for row in rows]

        resources = AttackResources(neighbours=NeighbourTable({}), stop_words=NONE)
        recipe = build_recipe("textbugger", resources)
        [outcome] = attack(whole, ["alpha beta gamma omega"], [1], recipe, seed=3)
        assert outcome.status == "succeeded"
        assert "beta" in outcome.adversarial.split()

    def test_unseen_characters(self):
        def whole(texts):
            rows = [len({"good", "film"} & set(text.split())) for text in texts]
            return [[1 - row / 2.5, row / 2.5] for row in rows]

        [outcome] = attack(whole, ["a good film"], [1], "bad-characters")
        assert (outcome.status, outcome.unit, outcome.words_changed) == (
            *("succeeded", "characters"),
            outcome.distance,
        )
        assert len(split(outcome.adversarial)) == 3


class TestSettings:
    """Of recipes that are not compared with TextAttack step by step."""

    @pytest.fixture
    def described(self):
        class Given:
            def description(self):
                return {}

        resources = AttackResources(
            NeighbourTable({"good": ["fine"]}), Given(), Given(), Given(), NONE
        )
        return lambda name: build_recipe(name, resources).description()

    def test_a2t(self, described):
        for name, candidates in (("a2t", "Synonyms"), ("a2t-mlm", "MaskedWords")):
            found = described(name)
            assert (found["candidates"], found["count"]) == (candidates, 20)
            words, speech, sentence, *more = found["constraints"]
            assert (words["share"], words["least"]) == (0.1, 4)
            assert speech["verbs_for_nouns"] is False
            assert (sentence["least"], sentence["metric"]) == (0.9, "cosine")
            assert [one["least"] for one in more] == ([0.8] if name == "a2t" else [])
            assert found["frozen_premise"] and found["ranking"] == "ByGradient"

    def test_hotflip(self, described):
        found = described("hotflip")
        assert (found["search"], found["width"], found["steepest"]) == ("Beam", 10, 1)
        assert [one.get("least") for one in found["constraints"]] == [2, 0.8, None]
        assert not found["frozen_premise"]

    @pytest.mark.parametrize(
        ("name", "search", "generations", "frozen"),
        [
            ("alzantot", "Genetic", 20, True),
            ("faster-alzantot", "Genetic", 40, False),
            ("pso", "Swarm", 20, True),
        ],
    )
    def test_populations(self, described, name, search, generations, frozen):
        found = described(name)
        assert (found["search"], found["members"]) == (search, 60)
        assert (found["generations"], found["frozen_premise"]) == (generations, frozen)
        if search == "Genetic":
            assert found["count"] == 8 and found["constraints"][0]["share"] == 0.2

    def test_clare_and_textbugger_count_edits(self, described):
        assert described("clare")["unit"] == described("textbugger")["unit"] == "edits"
        ways = described("clare")["candidates"]
        assert [(one["count"], one["least"]) for one in ways] == [(50, 5e-4), (50, 0), (50, 5e-3)]
