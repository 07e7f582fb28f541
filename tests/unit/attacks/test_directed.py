"""Searches that go for a rival: what they find, what they ask, and what they keep to."""

import itertools
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranmask import OptionError, SmoothedClassifier
from ranmask.attacks.api import as_victim, attack, attack_loop
from ranmask.attacks.constraints import Constraint
from ranmask.attacks.directed import Directed, Strongest
from ranmask.attacks.loop import AttackLoop, Target
from ranmask.attacks.population import Genetic, Swarm
from ranmask.attacks.recipe import AttackRecipe, Ranking
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.replacements import OpposingWords, Synonyms
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.resources.word_lists import Vocabulary
from ranmask.attacks.search import Greedy, Together
from ranmask.attacks.searches import SEARCHES
from ranmask.attacks.white_box import adds_up, has_slopes, surrogate_of, word_scores
from ranmask.models.base import BaseClassifier


class InOrder(Ranking):
    """The first word first, without a question."""

    def order(self, attempt, positions):
        return list(positions)
        yield


class Table(BaseClassifier):
    """Rows of scores by word, from one dictionary: a word table that tests can read."""

    order_free = True
    repeatable = True

    def __init__(self, rows):
        self.rows = {word: np.array(row) for word, row in rows.items()}
        self.asked = 0

    def score(self, copies):
        self.asked += sum(len(text) for text in copies)
        return [
            np.stack([self.row(text.document.words[place]) for [place] in text.kept.tolist()])
            for text in copies
        ]

    def row(self, word):
        """Of two words that are written as one, what is said of both, louder."""
        if word in self.rows:
            return self.rows[word]
        parts = [row for known, row in self.rows.items() if known in word]
        return ((np.mean(parts, axis=0) - 0.5) * 1.1 + 0.5).clip(0, 1) if parts else np.full(3, 0.5)

    def configured(self, *, hide=None, mask_token=None):
        return self


def recipe(search, candidates, **options):
    if isinstance(candidates, dict):
        candidates = Synonyms(NeighbourTable(candidates))
    options = {"tokenization": "words", "ranking": InOrder(), **options}
    return AttackRecipe(name="made up", candidates=candidates, search=search, **options)


def run(victim, made, text, label=0, **options):
    [outcome] = AttackLoop(as_victim(victim), made, **options).run([Target(1, text, label)])
    assert outcome.error is None
    return outcome


def smoothed(rows, **options):
    return SmoothedClassifier(Table(rows), **{"keep": 1, "ensemble": "score", **options})


ROWS = {
    "a": [0.9, 0.2, 0.2],
    "b": [0.8, 0.3, 0.2],
    "c": [0.7, 0.2, 0.3],
    "low": [0.1, 0.45, 0.45],  # takes most from the label, and gives it to several
    "one": [0.3, 0.9, 0.0],
    "two": [0.3, 0.0, 0.6],
    "nearly": [0.5, 0.6, 0.0],
}
LONG = "a a a a a"
CHOICES = {word: ["low", "one", "two", "nearly"] for word in "abc"}


class TestDirected:
    @pytest.mark.parametrize("measured", ["victim", "words", "surrogate"])
    def test_goes_for_the_rival_not_against_the_label(self, measured):
        """A greedy search takes ``low``, which takes most from the label, and flips later."""
        victim = smoothed(ROWS)
        greedy = run(victim, recipe(Greedy(), CHOICES), LONG)
        found = run(victim, recipe(Directed(measured), CHOICES), LONG, surrogate=as_victim(victim))
        assert found.status == greedy.status == "succeeded"
        assert found.words_changed == 3 and greedy.words_changed == 4
        assert {change.after for change in found.changes} == {"one"}
        assert "low" in {change.after for change in greedy.changes}

    def test_only_the_walk_is_asked_where_words_add_up(self):
        found = run(smoothed(ROWS), recipe(Directed("words"), CHOICES), "a b c")
        # The text itself; then for each of two rivals one word, and two.
        assert found.queries == 1 + 2 + 2

    def test_every_candidate_is_asked_about_otherwise(self):
        found = run(smoothed(ROWS), recipe(Directed(), CHOICES), "a b c")
        assert found.queries == 1 + (1 + 3 * 4) + 2 + 2

    def test_a_surrogate_is_asked_instead(self):
        owned = smoothed(ROWS)
        victim = smoothed(ROWS, ensemble="vote")
        made = recipe(Directed("surrogate"), CHOICES)
        found = run(victim, made, "a b c", surrogate=as_victim(owned))
        assert found.status == "succeeded" and found.queries <= 1 + 3 * 2
        with pytest.raises(OptionError, match="needs a surrogate"):
            found = AttackLoop(as_victim(victim), made).run([Target(1, "a b c", 0)])
            raise OptionError(next(found).error)

    def test_what_the_surrogate_is_surest_of(self):
        """Where the draw decides, the first text that flips may stand on another draw."""
        victim = smoothed(ROWS, ensemble="vote")
        owned = as_victim(smoothed(ROWS))
        first = run(victim, recipe(Directed("surrogate"), CHOICES), LONG, surrogate=owned)
        made = recipe(Directed("surrogate", sure=True), CHOICES)
        surest = run(victim, made, LONG, surrogate=owned)
        assert first.status == surest.status == "succeeded"
        assert first.words_changed == 3 and surest.words_changed == 5
        assert surest.queries == 1 + 4
        drawn = SmoothedClassifier(Table(ROWS), keep=1, sampling="fresh")
        for name in ("transfer", "strongest"):
            loop = attack_loop(drawn, recipe(Greedy(), CHOICES), search=name)
            search = loop.recipe.search
            assert (search.members[0] if name == "strongest" else search).sure
        assert not search.fewest
        [found] = loop.run([Target(1, LONG, 0)])
        assert found.words_changed == 5 and found.queries == 1 + 4

    def test_constraints_are_checked_as_it_goes(self):
        class OneOfAKind(Constraint):
            def permits(self, text, original):
                return text.words.count("one") <= 1 and not {"low", "two"} & {*text.words}

        made = recipe(Directed(), CHOICES, constraints=(OneOfAKind(),))
        found = run(smoothed(ROWS), made, "a b c")
        assert found.status == "succeeded"
        assert {change.after for change in found.changes} >= {"one", "nearly"}

    @pytest.mark.parametrize("measured", ["victim", "words"])
    @pytest.mark.parametrize("budget", [0, 1, 2])
    def test_a_budget_is_kept_to(self, budget, measured):
        found = run(smoothed(ROWS), recipe(Directed(measured), CHOICES), "a b c", budget=budget)
        assert found.words_changed <= budget
        assert found.status == ("succeeded" if budget == 2 else "failed")

    @pytest.mark.parametrize("most", [1, 2, 3, 7, 12, 15, 16, 17, 18, 100])
    def test_without_queries_the_search_ends(self, most):
        made = recipe(Directed(), CHOICES)
        found = run(smoothed(ROWS), made, "a b c", most_queries=most)
        # With few, fewer candidates are measured, so that some are left for the walk.
        assert found.queries <= most and (found.status == "succeeded") == (most > 10)

    def test_nothing_to_replace(self):
        found = run(smoothed(ROWS), recipe(Directed(), {}), "a b c")
        assert (found.status, found.queries, found.words_changed) == ("failed", 1, 0)

    def test_measured_again_around_the_best_text(self):
        """``y`` does harm only where ``x`` is, which is seen once ``x`` is there."""

        def judge(texts):
            rows = []
            for text in texts:
                words = text.split()
                lead = 0.1 * ("x" in words) + (0.8 if {"x", "y"} <= set(words) else 0)
                lead -= 0.05 * ("y" in words) - 0.01 * ("z" in words)
                rows.append([0.7 - lead / 2, 0.3 + lead / 2])
            return rows

        candidates = {"a": ["x"], "b": ["y"], "c": ["z"]}
        once = run(judge, recipe(Directed(rounds=1), candidates), "a b c")
        twice = run(judge, recipe(Directed(rounds=2), candidates), "a b c")
        assert once.status == "failed" and twice.status == "succeeded"
        assert {change.after for change in twice.changes} == {"x", "y"}

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_no_choice_of_candidates_needs_fewer_words_where_they_add_up(self, data):
        """Against every choice: enumerated."""
        points = st.integers(0, 16).map(lambda point: point / 16)
        classes = data.draw(st.integers(2, 3))
        row = st.lists(points, min_size=classes, max_size=classes)
        words = [f"w{number}" for number in range(4)]
        others = [f"o{number}" for number in range(3)]
        rows = {word: data.draw(row) for word in (*words, *others)}
        victim, text = smoothed(rows), " ".join(words)
        label = victim.predict([text])[0].label_id
        fewest = None
        for changed in range(1, 5):
            places = itertools.combinations(range(4), changed)
            for where, what in itertools.product(places, itertools.product(others, repeat=changed)):
                new = list(words)
                for place, word in zip(where, what, strict=True):
                    new[place] = word
                if victim.predict([" ".join(new)])[0].label_id != label:
                    fewest = changed
                    break
            if fewest:
                break
        made = recipe(Directed("words"), dict.fromkeys(words, others))
        found = run(victim, made, text, label)
        # Equal sums fall to the lower class: a word more may be needed where a tie does not flip.
        if fewest is None:
            assert found.status == "failed"
        else:
            assert found.status == "succeeded" and found.words_changed == fewest


class TestStrongest:
    def test_the_fewest_words_of_all(self):
        made = recipe(Strongest((Greedy(), Directed("words"), Together())), CHOICES)
        found = run(smoothed(ROWS), made, "a b c")
        assert found.status == "succeeded" and found.words_changed == 2 and found.budget is None

    def test_one_more_than_the_radius_cannot_be_beaten(self):
        victim = smoothed({**ROWS, "worst": [0.0, 1.0, 0.0]})
        choices = {word: ["worst"] for word in "abc"}
        alone = run(victim, recipe(Directed("words"), choices), LONG)
        assert alone.words_changed == alone.radius + 1 == 3
        made = recipe(Strongest((Directed("words"), Directed(), Greedy())), choices)
        assert run(victim, made, LONG).queries == alone.queries

    def test_all_shots_are_fired_within_the_radius(self):
        victim = smoothed({**ROWS, "worst": [0.0, 1.0, 0.0]})
        choices = {word: ["worst"] for word in "abc"}
        made = recipe(Strongest((Directed("words"), Directed())), choices)
        found = run(victim, made, LONG, budget="radius")
        assert found.status == "failed" and found.words_changed == found.radius == 2
        assert found.queries > 1 + 5

    def test_descriptions_are_plain_json(self):
        described = Strongest((Directed(), Greedy())).description()
        assert json.loads(json.dumps(described))["members"][0]["measured"] == "victim"


@pytest.mark.parametrize("search", [Genetic(), Swarm()], ids=["genetic", "pso"])
class TestPopulations:
    def test_find_several_words(self, search):
        found = run(smoothed(ROWS), recipe(search, CHOICES), LONG)
        assert found.status == "succeeded" and found.words_changed >= 3
        again = run(smoothed(ROWS), recipe(search, CHOICES), LONG)
        assert again == found
        assert run(smoothed(ROWS), recipe(search, CHOICES), LONG, seed=1) != found

    @pytest.mark.parametrize("limit", [{"budget": 2}, {"most_queries": 40}, {"budget": 0}])
    def test_limits(self, search, limit):
        found = run(smoothed(ROWS), recipe(search, CHOICES), LONG, **limit)
        assert found.words_changed <= limit.get("budget", 5)
        assert found.queries <= limit.get("most_queries", 10**6)
        assert found.status == "failed" or "most_queries" in limit

    def test_constraints(self, search):
        class NoTwo(Constraint):
            def permits(self, text, original):
                return len(set(text.words)) == len(text.words)

        made = recipe(search, CHOICES, constraints=(NoTwo(),))
        found = run(smoothed(ROWS), made, "a b c")
        assert len(set(found.adversarial.split())) == 3

    def test_nothing_to_replace(self, search):
        assert run(smoothed(ROWS), recipe(search, {}), "a b c").queries == 1


class TestOpposingWords:
    def made(self, **options):
        vocabulary = (*ROWS, *(f"idle{number}" for number in range(40)))
        rows = {**ROWS, **{word: [0.5, 0.1, 0.1] for word in vocabulary if word not in ROWS}}
        return smoothed(rows), vocabulary, options

    def test_the_words_that_speak_for_each_rival(self):
        victim, vocabulary, _ = self.made()
        made = recipe(Directed("words"), OpposingWords(vocabulary, each=1))
        found = run(victim, made, "a b c")
        assert {change.after for change in found.changes} == {"oneone"}

    def test_all_of_a_few(self):
        victim, _, _ = self.made()
        made = recipe(Directed(), OpposingWords(("low", "one")))
        found = run(victim, made, "a b c")
        assert found.queries >= 1 + (1 + 3 * 2)

    def test_a_vocabulary_is_scored_once_for_all_texts(self):
        victim, vocabulary, _ = self.made()
        loop = AttackLoop(as_victim(victim), recipe(Directed("words"), OpposingWords(vocabulary)))
        before = victim.base.asked
        list(loop.run(Target(number, "a b c", 0) for number in range(1, 9)))
        assert victim.base.asked - before < 8 * len(vocabulary)


class TestByName:
    resources = AttackResources(vocabulary=Vocabulary("made up", ("low", "one", "two")))

    def test_the_names(self):
        with pytest.raises(OptionError, match="search must be one of exact, transfer"):
            attack_loop(smoothed(ROWS), "anywords", resources=self.resources, search="best")
        with pytest.raises(OptionError, match="a surrogate goes with search='transfer'"):
            attack_loop(smoothed(ROWS), "anywords", resources=self.resources, surrogate=len)

    @pytest.mark.parametrize("name", ["exact", "transfer", "gradient"])
    def test_refused_where_it_cannot_be(self, name):
        with pytest.raises(OptionError, match=f"search='{name}' needs a"):
            attack_loop(lambda texts: [], "anywords", resources=self.resources, search=name)

    def test_what_strongest_is_made_of(self):
        def members(victim, **options):
            loop = attack_loop(
                *(victim, "anywords"),
                resources=self.resources,
                search="strongest",
                budget=2,
                **options,
            )
            assert loop.recipe.name == "anywords by strongest"
            return [
                getattr(one, "measured", type(one).__name__) for one in loop.recipe.search.members
            ]

        assert members(smoothed(ROWS)) == ["words", "victim", "Together"]
        assert members(smoothed(ROWS, ensemble="vote")) == [
            *("words", "surrogate", "victim", "Together")
        ]
        assert members(lambda texts: []) == ["victim", "Together"]
        assert members(lambda texts: [], surrogate=smoothed(ROWS))[0] == "surrogate"

    def test_any_words_are_exact_where_words_add_up(self):
        loop = attack_loop(smoothed(ROWS), "anywords", resources=self.resources)
        assert loop.recipe.search == Directed("words")
        assert build_recipe("anywords", self.resources).search == Directed()

    def test_each_by_name(self):
        victim = smoothed(ROWS, ensemble="vote")
        for name in set(SEARCHES) - {"gradient"}:
            [found] = attack(
                victim, ["a b c"], [0], "anywords", resources=self.resources, search=name
            )
            assert (found.status, found.words_changed) == ("succeeded", 2), name


class TestWhiteBox:
    def test_what_adds_up(self):
        assert adds_up(as_victim(smoothed(ROWS)))
        assert not adds_up(as_victim(SmoothedClassifier(Table(ROWS), keep=2, ensemble="score")))
        assert not adds_up(as_victim(SmoothedClassifier(Table(ROWS), keep=1, sampling="fresh")))
        assert not adds_up(as_victim(lambda texts: []))

    def test_words_by_themselves(self):
        words = ("one", "a")
        assert word_scores(as_victim(smoothed(ROWS)), words) == pytest.approx(
            np.array([ROWS[word] for word in words]), abs=1e-5
        )
        votes = word_scores(as_victim(smoothed(ROWS, ensemble="vote")), words)
        assert votes.tolist() == [[0, 1, 0], [1, 0, 0]]

    def test_surrogates(self):
        assert surrogate_of(as_victim(smoothed(ROWS))) is None
        assert surrogate_of(as_victim(lambda texts: [])) is None
        for hidden in (
            {"ensemble": "vote"},
            {"sampling": "fresh"},
            {"sampling": "fresh", "keep": 2},
        ):
            owned = surrogate_of(as_victim(smoothed(ROWS, **hidden)))
            options = owned.smoothed.options
            assert (options.ensemble, options.sampling) == ("score", "fixed")
            assert options.keep == hidden.get("keep", 1)

    def test_no_gradient_of_a_table(self):
        assert not has_slopes(as_victim(smoothed(ROWS)))


def test_a_long_text_does_not_fill_the_memory():
    """All its candidates are measured, but never as one table of texts, words and classes."""
    words, candidates, classes = 600, 8, 4
    rows = {f"w{place}": np.eye(classes)[place % classes] for place in range(candidates)}
    text = " ".join(f"w{place % candidates}" for place in range(words))
    made = recipe(Directed("words"), OpposingWords(tuple(rows)))
    victim = smoothed(rows)
    tracemalloc.start()
    try:
        run(victim, made, text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * (words * candidates) * words * classes * 8
