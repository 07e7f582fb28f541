"""Searches and rankings, each driven by hand: what they ask, and what they take."""

import json
from types import MappingProxyType

import numpy as np
import pytest

from ranmask.attacks.constraints import MostWords, SimilarSentence
from ranmask.attacks.recipe import AttackRecipe, Ranking, distance
from ranmask.attacks.replacements import Candidates, Synonyms
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.search import (
    AnyWords,
    AtRandom,
    Beam,
    ByCertificate,
    ByDeletion,
    ByGradient,
    BySaliency,
    ByUnknown,
    Greedy,
    LabelsOnly,
    Together,
)
from ranmask.attacks.steps import Attempt, EncodeSentences, FirstOrder, QueryModel, QueryResult
from ranmask.attacks.tokenization import tokenize
from ranmask.models.testing import keyword_classifier
from ranmask.results import Certificate
from ranmask.smoothing.smoothed import SmoothedClassifier


class Listed(Candidates):
    """The same few words at every place."""

    def __init__(self, *words):
        self.listed = words

    def words(self, attempt, current, position):
        return list(self.listed)
        yield


class InOrder(Ranking):
    """The first word first, without a question."""

    def order(self, attempt, positions):
        return list(positions)
        yield


def made(search, candidates, ranking=None, tokenization="words", **options):
    if isinstance(candidates, dict):
        candidates = Synonyms(NeighbourTable(candidates))
    return AttackRecipe(
        "made up", tokenization, ranking or InOrder(), candidates, search, **options
    )


class Course:
    """Runs a search against ``harm(text) -> (label, score)`` for a text whose label is 0."""

    def __init__(self, harm, *, queries=None, encode=None):
        self.harm = harm
        self.queries = queries
        self.encode = encode
        self.asked = []  # texts, a tuple a request
        self.labels_only = []

    def judged(self, text, labels_only=False):
        label, score = self.harm(text.text)
        seen = None if labels_only else score
        return QueryResult(text, label, label != 0, seen, None if seen is None else 2 * seen - 1)

    def run(self, recipe, text, *, certificate=None, number=1, budget=None):
        attempt = Attempt(
            *(number, tokenize(text, recipe.tokenization), 0, 0, budget, certificate),
            most_queries=self.queries,
        )
        steps = recipe.search.run(attempt, recipe, self.judged(attempt.original))
        return self.answer(attempt, steps)

    def answer(self, attempt, steps):
        try:
            request = next(steps)
            while True:
                request = steps.send(self._reply(attempt, request))
        except StopIteration as stop:
            return stop.value

    def _reply(self, attempt, request):
        if isinstance(request, EncodeSentences):
            return np.array([self.encode(one) for one in request.sentences])
        if isinstance(request, FirstOrder):  # scores that rise are shares that fall
            before = self.harm(request.text.text)[1]
            rises = [self.harm(text.text)[1] - before for text in request.others]
            return np.array([[-rise, rise] for rise in rises])
        assert isinstance(request, QueryModel)
        texts = request.texts
        if self.queries is not None:
            texts = texts[: self.queries - attempt.queries]
        attempt.queries += len(texts)
        self.asked.append(tuple(text.text for text in texts))
        self.labels_only.append(request.labels_only)
        return [self.judged(text, request.labels_only) for text in texts]


def by_table(**scores):
    """Harm of the words in a text, added up; more than a half is another label."""

    def harm(text):
        score = 0.125 + sum(scores.get(word, 0) for word in text.split())
        return int(score > 0.5), score

    return harm


class TestGreedy:
    def test_the_best_candidate_of_each_word_in_order(self):
        course = Course(by_table(x=0.1, y=0.2, z=0.05))
        found = course.run(made(Greedy(), {"a": ["x", "y"], "b": ["z"]}), "a b c")
        assert found.text.text == "y z c" and not found.flipped
        assert found.score == pytest.approx(0.375)
        assert course.asked == [("x b c", "y b c"), ("y z c",)]

    def test_ends_with_the_first_success(self):
        course = Course(by_table(x=0.5, z=0.5))
        found = course.run(made(Greedy(), {"a": ["x"], "b": ["z"]}), "a b c")
        assert found.flipped and found.text.text == "x b c" and len(course.asked) == 1

    def test_only_strictly_better_is_kept(self):
        course = Course(by_table(x=0.0, y=-0.05))
        found = course.run(made(Greedy(), {"a": ["x"], "b": ["y"], "c": ["x"]}), "a b c")
        assert found.text.text == "a b c" and not found.text.modified
        assert course.asked == [("x b c",), ("a y c",), ("a b x",)]

    def test_a_wrong_label_without_a_higher_score_is_not_taken(self):
        """As in TextAttack: with three classes the label can flip while its share stays."""
        course = Course(lambda text: (int("x" in text), 0.5))
        found = course.run(made(Greedy(), {"a": ["x"]}), "a b")
        assert not found.flipped and found.text.text == "a b"

    def test_ties_go_to_the_first_in_the_alphabet(self):
        course = Course(by_table(zoo=0.125, Ape=0.125, bee=0.125))
        found = course.run(made(Greedy(), {"a": ["zoo", "bee", "Ape"]}), "- a")
        assert found.text.text == "- bee"  # in the case of the word
        assert course.asked == [("- ape", "- bee", "- zoo")]

    def test_the_order_of_the_ranking(self):
        class Backwards(Ranking):
            def order(self, attempt, positions):
                return list(reversed(positions))
                yield

        course = Course(by_table())
        course.run(made(Greedy(), Listed("x"), Backwards()), "a b c")
        assert course.asked == [("a b x",), ("a x c",), ("x b c",)]

    @pytest.mark.parametrize(
        ("likeness", "expected"),
        [
            ({"m": 0.5, "n": 0.9, "o": 1.0}, "n b"),  # o is similar, but not wrong
            ({"m": 0.9, "n": 0.5, "o": 1.0}, "m b"),
            ({"m": 0.7, "n": 0.7, "o": 0.7}, "m b"),  # alike: the better one
            ({"m": 0.1, "n": 0.3, "o": 0.9}, "n b"),  # m is not allowed
        ],
    )
    def test_the_most_similar_of_the_successes(self, likeness, expected):
        def encode(sentence):
            cosine = likeness.get(sentence.split()[0], 1.0)
            return [cosine, (1 - cosine**2) ** 0.5]

        recipe = made(
            Greedy(),
            {"a": ["o", "n", "m"]},
            constraints=(SimilarSentence(0.2, against="original"),),
        )
        found = Course(by_table(m=0.6, n=0.5, o=0.2), encode=encode).run(recipe, "a b")
        assert found.flipped and found.text.text == expected

    def test_without_similarity_the_best_of_the_successes(self):
        course = Course(by_table(m=0.5, n=0.6, o=0.2))
        assert course.run(made(Greedy(), {"a": ["m", "n", "o"]}), "a b").text.text == "n b"

    def test_no_word_is_changed_twice(self):
        recipe = made(Greedy(), {"a": ["b"], "b": ["c"], "c": ["d"]})
        found = Course(by_table(b=0.01, c=0.02, d=0.03)).run(recipe, "a b c")
        assert found.text.text == "b c d"
        current = found.text
        assert recipe.positions(current) == []
        attempt = Attempt(1, tokenize("a b c", "words"), 0, 0)
        assert Course(None).answer(attempt, recipe.candidate_texts(attempt, current, 0)) == []

    def test_stop_words_are_left_alone_as_they_are_spelt(self):
        recipe = made(Greedy(), Listed("x"), stop_words=frozenset({"the", "a"}))
        course = Course(by_table())
        course.run(recipe, "The film the A a")
        assert course.asked == [("x film the A a",), ("The x the A a",), ("The film the x a",)]

    def test_stop_words_within_punctuation(self):
        recipe = made(
            Greedy(), Listed("x"), tokenization="textattack-2021", stop_words=frozenset("a")
        )
        course = Course(by_table())
        course.run(recipe, "(a) film, a.")
        assert course.asked == [("(a) x, a.",)]

    @pytest.mark.parametrize("frozen", [True, False])
    def test_the_premise_of_a_pair(self, frozen):
        course = Course(lambda pair: (0, 0.5))
        recipe = made(Greedy(), Listed("x"), frozen_premise=frozen)
        course.run(recipe, ("a b", "c d"))
        own = [(("a b", "x d"),), (("a b", "c x"),)]
        premise = [(("x b", "c d"),), (("a x", "c d"),)]
        assert course.asked == (own if frozen else premise + own)

    def test_blanks_nothing_and_the_word_itself_are_no_candidates(self):
        course = Course(by_table())
        recipe = made(Greedy(), Listed("", " ", "two words", "a", "x", "b\u00a0c"))
        course.run(recipe, "a")
        assert course.asked == [("x",)]

    def test_candidates_that_move_the_words_are_dropped(self):
        course = Course(by_table())
        course.run(made(Greedy(), Listed("u.s", "...", "x"), tokenization="textattack-2021"), "a b")
        assert course.asked == [("x b",), ("a x",)]

    def test_a_budget_and_constraints_are_kept_to(self):
        scores = by_table(x=0.05)
        assert Course(scores).run(made(Greedy(), Listed("x")), "a b c d").text.text == "x x x x"
        found = Course(scores).run(made(Greedy(), Listed("x")), "a b c d", budget=2)
        assert found.text.text == "x x c d"
        recipe = made(Greedy(), Listed("x"), constraints=(MostWords(0.25),))
        assert Course(scores).run(recipe, "a b c d").text.text == "x b c d"
        course = Course(scores)
        course.run(made(Greedy(), Listed("x")), "a b", budget=0)
        assert course.asked == []

    def test_a_budget_counts_words_not_attackable_words(self):
        """``one/two`` is one word, though two may be attacked."""
        recipe = made(Greedy(), Listed("x"), tokenization="textattack-2021")
        found = Course(lambda text: (0, text.count("x") / 8)).run(recipe, "one/two three", budget=1)
        assert found.text.text == "x/x three"

    def test_without_queries_the_search_ends(self):
        course = Course(by_table(x=0.01, y=0.02, z=0.03), queries=4)
        found = course.run(made(Greedy(), Listed("x", "y", "z")), "a b c")
        assert course.asked == [("x b c", "y b c", "z b c"), ("z x c",)]
        assert found.text.text == "z x c"


class TestRankings:
    def order(self, ranking, text, harm, positions=None, **options):
        course = Course(harm, **options)
        attempt = Attempt(1, tokenize(text, "textattack-2021"), 0, 0)
        if positions is None:
            positions = list(range(len(attempt.original.words)))
        return course.answer(attempt, ranking.order(attempt, positions)), course.asked

    def test_by_deletion(self):
        order, asked = self.order(
            ByDeletion(),
            "a (b) c",
            lambda text: (0, 1.0 if "b" not in text else 0.5 * ("a" in text)),
        )
        assert asked == [("(b) c", "a () c", "a (b) ")]
        assert order == [1, 2, 0]

    def test_by_unknown(self):
        order, asked = self.order(ByUnknown(), "a (b) c", lambda text: (0, -text.index("[UNK]")))
        assert asked == [("[UNK] (b) c", "a ([UNK]) c", "a (b) [UNK]")]
        assert order == [0, 1, 2]
        _, asked = self.order(ByUnknown("<unk>"), "a b", lambda text: (0, 0))
        assert asked == [("<unk> b", "a <unk>")]

    def test_ties_go_to_the_earlier_word(self):
        harm = lambda text: (0, 0.5 + 0.25 * ("d" not in text))  # noqa: E731
        assert self.order(ByDeletion(), "a b c d e", harm)[0] == [3, 0, 1, 2, 4]

    def test_only_the_words_that_may_be_attacked(self):
        order, asked = self.order(ByDeletion(), "a b c", lambda text: (0, -len(text)), [0, 2])
        assert asked == [("b c", "a b ")] and order == [0, 2]

    @pytest.mark.parametrize("text", ["one", "(one)"])
    def test_a_text_of_one_word(self, text):
        """Without it nothing would be left to ask about, unless its brackets are."""
        order, asked = self.order(ByDeletion(), text, lambda text: (0, 1))
        assert order == [0] and asked == ([()] if text == "one" else [("()",)])
        assert self.order(ByUnknown(), text, lambda text: (0, 1))[0] == [0]

    def test_the_only_word_of_a_hypothesis(self):
        order, asked = self.order(ByDeletion(), ("a b", "c"), lambda text: (0, 1), [2])
        assert order == [2] and asked == [()]

    def test_words_that_were_not_asked_about_come_last(self):
        order, asked = self.order(ByDeletion(), "a b c d", lambda text: (0, len(text)), queries=2)
        assert asked == [("b c d", "a c d")] and order == [0, 1, 2, 3]
        scores = {"b c d": 0.5, "a c d": 0.75}
        order, _ = self.order(ByDeletion(), "a b c d", lambda t: (0, scores[t]), queries=2)
        assert order == [1, 0, 2, 3]

    def test_at_random(self):
        places = [4, 7, 9, 11, 13, 20]
        text = tokenize("w " * 30, "words")
        orders = []
        for number in range(40):
            attempt = Attempt(number, text, 0, 0)
            course = Course(None)
            orders.append(tuple(course.answer(attempt, AtRandom().order(attempt, places))))
            again = tuple(course.answer(attempt, AtRandom().order(attempt, places)))
            assert sorted(orders[-1]) == places and again == orders[-1] and course.asked == []
        assert len(set(orders)) > 30 and {order[0] for order in orders} == set(places)


class TestByCertificate:
    def order(self, text, certificate, positions):
        attempt = Attempt(1, tokenize(text, "words"), 0, 0, None, certificate)
        return Course(None).answer(attempt, ByCertificate().order(attempt, positions))

    def certified(self, *critical):
        [one] = SmoothedClassifier(keyword_classifier, keep=1).certify(["good"])
        return Certificate.from_dict({**one.to_dict(), "critical_words": list(critical)})

    def test_the_worst_words_in_the_order_of_the_text(self):
        assert ByCertificate.needs_certificate and not ByDeletion().needs_certificate
        assert self.order("a b c d", self.certified(3, 1), [0, 1, 2, 3]) == [1, 3]

    def test_counted_in_the_hypothesis_of_a_pair(self):
        certificate = self.certified(0, 2)
        assert self.order(("p q r", "a b c"), certificate, [3, 4, 5]) == [3, 5]
        assert self.order(("p q  r.", "a b c"), certificate, [4, 5]) == [5]

    def test_every_word_where_the_certificate_names_none(self):
        assert self.order("a b c", self.certified(), [0, 2]) == [0, 2]
        assert self.order("a b c", self.certified(1), [0, 2]) == [0, 2]
        assert self.order("a b c", None, [0, 2]) == [0, 2]

    def test_of_a_real_certificate(self):
        [certificate] = SmoothedClassifier(keyword_classifier, keep=1).certify(
            ["good film best plot great"]
        )
        worst = self.order("good film best plot great", certificate, range(5))
        assert tuple(worst) == certificate.critical_words
        assert len(worst) == certificate.radius + 1 and set(worst) <= {0, 2, 4}


class TestTogether:
    @property
    def synonyms(self):
        return {letter: [letter + "x", letter + "y"] for letter in "abcd"}

    def all_changed(self, *letters):
        """Nothing moves before all of these words are changed."""

        def harm(text):
            done = not set(letters) & set(text.split())
            return int(done), 0.75 if done else 0.25

        return harm

    def test_several_words_where_one_alone_moves_nothing(self):
        greedy = Course(self.all_changed("a", "b"))
        assert not greedy.run(made(Greedy(), self.synonyms), "a b c d").flipped
        together = Course(self.all_changed("a", "b"))
        found = together.run(made(Together(group=2), self.synonyms), "a b c d")
        assert found.flipped and distance(found.text, tokenize("a b c d", "words")) == 2

    def test_equal_steps_are_taken(self):
        """The first group alone moves nothing, yet its change is kept for the second."""
        course = Course(self.all_changed(*"abcd"))
        recipe = made(Together(group=2, rounds=1), self.synonyms)
        found = course.run(recipe, "a b c d")
        assert found.flipped and found.text.modified == {0, 1, 2, 3}

    def test_steps_back_are_not(self):
        course = Course(lambda text: (0, 0.5 - len(text) / 99))
        found = course.run(made(Together(group=2), self.synonyms), "a b c d")
        assert found.text.text == "a b c d"

    def test_groups_of_the_ranking(self):
        course = Course(by_table())
        course.run(made(Together(group=2, rounds=1), {k: [k + "x"] for k in "abc"}), "a b c")
        assert course.asked == [("ax bx c",), ("ax bx cx",)]

    def test_as_many_different_ways_as_there_are(self):
        course = Course(by_table())
        course.run(
            made(Together(group=2, tries=100, rounds=1), {"a": ["x", "y"], "b": ["z"]}), "a b"
        )
        assert course.asked == [("x z", "y z")]
        course = Course(by_table())
        many = {"a": [f"x{n}" for n in range(99)], "b": [f"y{n}" for n in range(99)]}
        course.run(made(Together(group=2, tries=7, rounds=1), many), "a b")
        assert len(course.asked[0]) == 7 and list(course.asked[0]) == sorted(course.asked[0])

    def test_a_second_round_draws_other_ways_from_the_original_words(self):
        course = Course(by_table())
        many = {"a": [f"x{n}" for n in range(50)], "x1": ["never"]}
        course.run(made(Together(group=1, tries=5, rounds=2), many), "a")
        assert len(course.asked) == 2 and "never" not in str(course.asked)
        assert len(set(course.asked[1]) - set(course.asked[0])) >= 3

    def test_no_text_is_asked_about_as_it_is(self):
        course = Course(by_table())
        course.run(made(Together(group=1, rounds=3), {"a": ["x"]}), "a")
        assert course.asked == [("x",)]

    def test_a_budget_is_kept_to(self):
        course = Course(self.all_changed(*"abcd"))
        found = course.run(made(Together(group=2), self.synonyms), "a b c d", budget=3)
        assert not found.flipped
        assert all(self.changed(text) <= 3 for texts in course.asked for text in texts)

    def changed(self, text):
        return sum(one != other for one, other in zip(text.split(), "abcd", strict=True))

    def test_candidates_that_move_the_words_are_dropped(self):
        course = Course(by_table())
        recipe = made(
            Together(group=2, rounds=1), {"a": ["..."], "b": ["x"]}, tokenization="textattack-2021"
        )
        course.run(recipe, "a b")
        assert course.asked == [("a x",)]

    def test_without_queries_the_search_ends(self):
        course = Course(by_table(), queries=3)
        course.run(made(Together(group=2, tries=40), self.synonyms), "a b c d")
        assert sum(map(len, course.asked)) == 3


class TestLabelsOnly:
    @property
    def synonyms(self):
        return {letter: [letter + "x", letter + "y"] for letter in "abcdef"}

    def needs(self, *words):
        return lambda text: (int(set(words) <= set(text.split())), float("nan"))

    def test_never_sees_a_score(self):
        """Scores that are not numbers would show: no comparison with them holds."""
        course = Course(self.needs("bx", "dy"))
        found = course.run(made(LabelsOnly(), self.synonyms, AtRandom()), "a b c d e f")
        assert found.flipped and found.score is None
        assert course.labels_only and all(course.labels_only)
        honest = Course(lambda text: (self.needs("bx", "dy")(text)[0], len(text) / 99))
        same = honest.run(made(LabelsOnly(), self.synonyms, AtRandom()), "a b c d e f")
        assert same.text == found.text and honest.asked == course.asked

    def test_puts_back_every_word_that_it_can(self):
        course = Course(self.needs("bx", "dy"))
        found = course.run(made(LabelsOnly(), self.synonyms, AtRandom()), "a b c d e f")
        assert found.text.text == "a bx c dy e f"
        assert found.text.modified == {1, 3}

    def test_asks_one_text_at_a_time_all_words_first(self):
        course = Course(self.needs("bx", "dy"))
        course.run(made(LabelsOnly(), self.synonyms, AtRandom()), "a b c d e f")
        assert all(len(texts) == 1 for texts in course.asked)
        starts = [texts[0] for texts in course.asked if "bx" not in texts[0]]
        assert all(len(word) == 2 for word in starts[0].split())

    def test_goes_on_until_nothing_can_be_put_back(self):
        """``a`` can only be put back when ``b`` was: the words are visited again."""

        def harm(text):
            a, b = text.split()
            return int((a, b) in {("ax", "bx"), ("ay", "bx"), ("ax", "b"), ("a", "b")}), 0

        class Fixed(Ranking):
            def order(self, attempt, positions):
                return [0, 1]
                yield

        # Never mind that the text itself is wrong then: no search is asked to look at it.
        course = Course(harm)
        recipe = made(LabelsOnly(), {"a": ["ax"], "b": ["bx"]}, Fixed())
        found = course.run(recipe, "a b")
        assert [texts[0] for texts in course.asked] == ["ax bx", "a bx", "ax b", "a b"]
        assert found.text.text == "a b" and found.text.modified == frozenset()

    def test_so_many_starts(self):
        course = Course(lambda text: (0, 0))
        found = course.run(made(LabelsOnly(starts=5), self.synonyms, AtRandom()), "a b c d e f")
        assert not found.flipped and found.text.text == "a b c d e f"
        assert len(course.asked) == 5 and len(set(course.asked)) > 1

    def test_nothing_to_replace(self):
        course = Course(lambda text: (1, 0))
        found = course.run(made(LabelsOnly(), {}, AtRandom()), "a b")
        assert found.text.text == "a b" and course.asked == []

    @pytest.mark.parametrize(("budget", "found"), [(0, False), (1, False), (2, True), (6, True)])
    def test_a_budget_is_kept_to(self, budget, found):
        course = Course(self.needs("bx", "dy"))
        recipe = made(LabelsOnly(), self.synonyms, AtRandom())
        end = course.run(recipe, "a b c d e f", budget=budget)
        assert end.flipped == found
        assert distance(end.text, tokenize("a b c d e f", "words")) == (2 if found else 0)
        assert (budget == 0) == (course.asked == [])

    def test_without_queries_the_search_ends(self):
        unlimited = Course(self.needs("bx", "dy"))
        unlimited.run(made(LabelsOnly(), self.synonyms, AtRandom()), "a b c d e f")
        for queries in range(1, len(unlimited.asked)):
            course = Course(self.needs("bx", "dy"), queries=queries)
            course.run(made(LabelsOnly(), self.synonyms, AtRandom()), "a b c d e f")
            assert course.asked == unlimited.asked[:queries]


class TestBySaliency:
    CHOICES = MappingProxyType({"a": ["m"], "b": ["n"], "c": ["o"]})

    def test_what_a_replacement_does_counts_too(self):
        """The loss of b matters most, but nothing much can be put there."""
        course = Course(by_table(a=0.1, b=-0.2, c=0.1, m=0.11, n=-0.2, o=0.6))
        found = course.run(made(BySaliency(), dict(self.CHOICES), ByUnknown()), "a b c")
        assert found.text.text == "a b o" and found.flipped
        # Each word hidden, each replaced, and then the words in order until the label falls.
        assert course.asked == [
            ("[UNK] b c", "a [UNK] c", "a b [UNK]"),
            *(("m b c",), ("a n c",), ("a b o",)),
            ("a b o",),
        ]

    def test_words_without_replacements_come_last(self):
        course = Course(by_table(x=0.0, c=0.0, o=0.6))
        found = course.run(made(BySaliency(), dict(self.CHOICES), ByUnknown()), "x y c")
        assert found.flipped and course.asked[-1] == ("x y o",)

    def test_queries_may_end(self):
        for queries in range(1, 7):
            course = Course(by_table(m=0.01, n=0.02, o=0.03), queries=queries)
            course.run(made(BySaliency(), dict(self.CHOICES), ByUnknown()), "a b c")
            assert sum(map(len, course.asked)) <= queries

    def test_nothing_to_replace(self):
        course = Course(by_table())
        recipe = made(BySaliency(), {}, ByUnknown(), stop_words=frozenset("a"))
        assert course.run(recipe, "a").text.text == "a" and not course.asked


class TestBeam:
    def test_the_best_text_goes_on_though_it_is_no_better(self):
        course = Course(by_table(a=0.2, m=0.1, n=0.0))
        found = course.run(made(Beam(), Listed("m", "n")), "a b", budget=2)
        assert found.text.text == "m m"  # replaced words stay
        assert course.asked == [("a m", "a n", "m b", "n b"), ("m m", "n m")]

    def test_several_go_on(self):
        """The way to the best pair leads over a word that is not the best by itself."""

        def harm(text):
            score = {"m b": 0.3, "a n": 0.2, "m n": 0.25, "m o": 0.3, "p n": 0.9}.get(text, 0.1)
            return int(score > 0.5), score

        words = {"a": ["m", "p"], "b": ["n", "o"]}
        assert not Course(harm).run(made(Beam(1), words), "a b").flipped
        assert Course(harm).run(made(Beam(2), words), "a b").text.text == "p n"

    def test_the_gradient_chooses_whom_to_ask(self):
        course = Course(by_table(m=0.1, n=0.2, o=0.15))
        found = course.run(made(Beam(10, steepest=1), Listed("m", "n", "o")), "a b")
        assert found.text.text == "n n"
        assert course.asked == [("a n",), ("n n",)]

    def test_queries_may_end(self):
        course = Course(by_table(m=0.1), queries=3)
        course.run(made(Beam(3), Listed("m", "n")), "a b c")
        assert sum(map(len, course.asked)) <= 3


def test_a_gradient_ranks_without_a_query():
    course = Course(by_table(a=-0.1, b=-0.3, c=-0.2))
    recipe = made(Greedy(), Listed("m"), ByGradient())
    course.run(recipe, "a b c")
    assert course.asked[0] == ("a m c",)


class TestAnyWords:
    words = ("m", "n", "o", "p")

    def needs(self, count):
        """Wrong when so many words are m or n; o does half as much, and p nothing."""

        def harm(text):
            score = sum({"m": 2, "n": 2, "o": 1}.get(word, 0) for word in text.split())
            return int(score >= 2 * count), score / 99

        return harm

    @pytest.mark.parametrize("budget", [0, 1, 2, 3, 4, None])
    def test_stays_within_the_budget(self, budget):
        course = Course(self.needs(3))
        found = course.run(made(AnyWords(), Listed(*self.words)), "a b c d e", budget=budget)
        assert found.flipped == (budget is None or budget >= 3)
        most = 5 if budget is None else budget
        original = tokenize("a b c d e", "words")
        for texts in course.asked:
            assert all(distance(tokenize(text, "words"), original) <= most for text in texts)
        assert distance(found.text, original) == min(most, 3)

    def test_the_harmful_words_at_the_most_harmful_place(self):
        def harm(text):
            words = text.split()
            return 0, sum((place + 1) * (word == "n") for place, word in enumerate(words)) / 99

        course = Course(harm)
        found = course.run(made(AnyWords(best=1), Listed(*self.words)), "a b c d", budget=2)
        assert course.asked[0] == ("m b c d", "n b c d", "o b c d", "p b c d")
        assert set(course.asked[1]) == {"n b c d", "a n c d", "a b n d", "a b c n"}
        assert set(course.asked[2]) == {"n b c n", "a n c n", "a b n n"}
        assert found.text.text == "a b n n"

    def test_goes_on_though_nothing_got_worse(self):
        """Votes move in steps; only the third word shows."""

        def harm(text):
            wrong = text.count("n") >= 3
            return int(wrong), float(wrong)

        course = Course(harm)
        found = course.run(made(AnyWords(best=4), Listed("n")), "a b c d e", budget=3)
        assert found.flipped and found.text.text.count("n") == 3

    def test_only_the_first_places_of_the_ranking(self):
        course = Course(lambda text: (0, text.count("n") / 9))
        found = course.run(made(AnyWords(places=2), Listed("n")), "a b c d", budget=4)
        assert found.text.text == "n n c d"

    def test_one_word_may_be_enough(self):
        course = Course(self.needs(1))
        found = course.run(made(AnyWords(), Listed(*self.words)), "a b", budget=2)
        assert found.flipped and len(course.asked) == 1

    def test_a_wrong_label_comes_before_a_higher_score(self):
        course = Course(lambda text: (int("m" in text), 0.2 if "m" in text else 0.4))
        assert course.run(made(AnyWords(), Listed("m", "n")), "a b", budget=1).text.text == "m b"

    def test_nothing_to_replace(self):
        recipe = made(AnyWords(), Listed("m"), stop_words=frozenset("ab"))
        course = Course(self.needs(1))
        assert course.run(recipe, "a b", budget=1).text.text == "a b" and course.asked == []
        assert Course(self.needs(1)).run(made(AnyWords(), Listed()), "a").text.text == "a"

    @pytest.mark.parametrize("queries", range(1, 12))
    def test_without_queries_the_search_ends(self, queries):
        course = Course(self.needs(3), queries=queries)
        course.run(made(AnyWords(), Listed(*self.words), ByUnknown()), "a b c d", budget=2)
        assert sum(map(len, course.asked)) == queries


def test_descriptions_are_plain_json():
    recipe = made(Together(group=2), {"a": ["b"]}, AtRandom(), constraints=(MostWords(0.4),))
    described = recipe.description()
    assert json.loads(json.dumps(described)) == described
    assert described["search"] == "Together" and described["group"] == 2
    assert described["ranking"] == "AtRandom" and described["candidates"] == "Synonyms"
    other = made(Together(group=3), {"a": ["b"]}, AtRandom(), constraints=(MostWords(0.4),))
    assert other.description() != described
