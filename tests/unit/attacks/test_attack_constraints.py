"""Constraints: which replacements an attack may try, each judged by hand-made resources."""

import json
import math
import sys

import numpy as np
import pytest

from ranmask import MissingDependencyError
from ranmask.attacks import constraints
from ranmask.attacks.constraints import (
    EditDistance,
    MostWords,
    SamePartOfSpeech,
    SimilarSentence,
    SimilarWord,
)
from ranmask.attacks.recipes import AttackResources, build_recipe
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.resources.word_lists import StopWords
from ranmask.attacks.steps import EncodeSentences
from ranmask.attacks.tokenization import tokenize


def text_of(*words):
    return tokenize(" ".join(words), "words")


def proposal(text, **words):
    """``a3="x"`` puts x in place 3."""
    places = {int(name[1:]): word for name, word in words.items()}
    return text.replaced(places)


def allowed(constraint, proposals, original, encode=None):
    """What a constraint allows, and the sentences that it asked for."""
    asked = []
    steps = constraint.allowed(proposals, original)
    try:
        request = next(steps)
        while True:
            assert isinstance(request, EncodeSentences) and encode is not None
            asked.append(request.sentences)
            request = steps.send(np.array([encode[one] for one in request.sentences]))
    except StopIteration as stop:
        return stop.value, asked


def words_at(proposals, position):
    return [one.words[position] for one in proposals]


def at_angle(degrees):
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


class Vectors:
    """Neighbours that know a few cosines."""

    def nearest(self, word, count):
        raise NotImplementedError

    def similarity(self, a, b):
        known = {("good", "fine"): 0.7, ("good", "nice"): 0.5, ("good", "bad"): 0.499}
        return known.get((a, b))

    def description(self):
        return {}


class TestSimilarWord:
    @property
    def text(self):
        return text_of("a", "good", "film", "good")

    def judged(self, *words, original=None, position=1):
        original = original or self.text
        made = [proposal(self.text, **{f"a{position}": word}) for word in words]
        kept, asked = allowed(SimilarWord(Vectors(), least=0.5), made, original)
        assert asked == []
        return words_at(kept, position)

    def test_at_least_so_similar(self):
        assert self.judged("fine", "bad", "nice") == ["fine", "nice"]

    def test_words_without_a_vector_pass(self):
        assert self.judged("unheard", "bad") == ["unheard"]

    def test_case_does_not_matter(self):
        shouted = text_of("a", "GOOD", "film", "good")
        assert self.judged("BAD", "Fine", original=shouted) == ["Fine"]

    def test_compared_with_the_original(self):
        """Two small steps may not add up to a large one."""
        elsewhere = text_of("a", "unheard", "film", "good")
        assert self.judged("bad", original=elsewhere) == ["bad"]
        assert self.judged("bad", original=self.text) == []

    def test_every_replaced_word_counts(self):
        constraint = SimilarWord(Vectors(), least=0.5)
        both = proposal(self.text, a1="fine", a3="bad")
        assert allowed(constraint, [both], self.text)[0] == []
        assert allowed(SimilarWord(Vectors(), least=0.4), [both], self.text)[0] == [both]

    def test_a_table_has_no_vectors(self):
        constraint = SimilarWord(NeighbourTable({"good": ["bad"]}), least=0.5)
        made = [proposal(self.text, a1="bad")]
        assert allowed(constraint, made, self.text)[0] == made


class FakeTagger:
    """Tags by a rule of its own, and remembers what it was asked."""

    def __init__(self, rule):
        self.rule = rule
        self.asked = []

    def tag(self, words, first=None):
        self.asked.append(tuple(words))
        return tuple(self.rule(word, place, words) for place, word in enumerate(words[:first]))

    def description(self):
        return {}


def by_table(**tags):
    return FakeTagger(lambda word, place, words: tags.get(word, "X"))


class TestSamePartOfSpeech:
    @property
    def letters(self):
        return text_of(*"abcdefghij")

    def permitted(self, tagger, old, *new):
        text = text_of("the", old, "ends")
        made = [proposal(text, a1=word) for word in new]
        return words_at(allowed(SamePartOfSpeech(tagger), made, text)[0], 1)

    def test_the_tag_stays(self):
        tagger = by_table(film="NOUN", movie="NOUN", nice="ADJ")
        assert self.permitted(tagger, "film", "movie", "nice", "unheard") == ["movie"]

    def test_nouns_and_verbs_are_exchanged(self):
        tagger = by_table(film="NOUN", shoot="VERB", nice="ADJ", kind="ADJ", well="ADV")
        assert self.permitted(tagger, "film", "shoot") == ["shoot"]
        assert self.permitted(tagger, "shoot", "film") == ["film"]
        assert self.permitted(tagger, "nice", "film", "shoot", "kind") == ["kind"]
        assert self.permitted(tagger, "shoot", "nice", "well") == []

    def test_a_tagger_need_not_be_hashable(self, monkeypatch):
        monkeypatch.setattr(FakeTagger, "__hash__", None)
        assert self.permitted(by_table(film="NOUN", movie="NOUN"), "film", "movie") == ["movie"]

    def test_the_old_word_is_read_once_for_all_its_candidates(self):
        tagger = by_table(film="NOUN", movie="NOUN", shoot="VERB")
        assert self.permitted(tagger, "film", "movie", "shoot", "nice") == ["movie", "shoot"]
        assert [asked[1] for asked in tagger.asked].count("film") == 1

    def test_a_word_has_a_tag_of_its_own_in_every_context(self):
        def after_to(word, place, words):
            return "VERB" if place and words[place - 1] == "to" else "NOUN"

        text = text_of("to", "run", "a", "run")
        made = [proposal(text, a1="walk"), proposal(text, a3="walk")]
        tagger = FakeTagger(after_to)
        constraint = SamePartOfSpeech(tagger, verbs_for_nouns=False)
        assert allowed(constraint, made[:1], text)[0] == made[:1]
        other = text_of("a", "run", "to", "walk")
        changed = [proposal(other, a1="walk")]  # a noun, where "run" was a verb before
        assert allowed(constraint, changed, other)[0] == changed

    def test_words_of_one_window_have_their_own_tags(self):
        text = text_of("film", "nice")
        made = [proposal(text, a0="movie"), proposal(text, a1="kind")]
        tagger = by_table(film="NOUN", movie="NOUN", nice="ADJ", kind="ADJ")
        assert allowed(SamePartOfSpeech(tagger), made, text)[0] == made

    def test_so_many_tags_are_kept_and_no_more(self, monkeypatch):
        monkeypatch.setattr(constraints, "_MOST_KNOWN", 2)
        tagger = by_table(film="NOUN", movie="NOUN", play="NOUN", nice="ADJ")
        constraint = SamePartOfSpeech(tagger)
        for first in "abcde":
            text = text_of(first, "film", "ends")
            made = [proposal(text, a1=word) for word in ("movie", "nice", "play")]
            assert words_at(allowed(constraint, made, text)[0], 1) == ["movie", "play"]
            assert 1 <= constraint._known_tag.cache_info().currsize <= 2

    def test_nouns_and_verbs_are_not_exchanged_where_that_is_asked(self):
        tagger = by_table(film="NOUN", shoot="VERB", movie="NOUN")
        text = text_of("the", "film", "ends")
        made = [proposal(text, a1=word) for word in ("shoot", "movie")]
        kept, _ = allowed(SamePartOfSpeech(tagger, verbs_for_nouns=False), made, text)
        assert words_at(kept, 1) == ["movie"]

    @pytest.mark.parametrize(
        ("position", "window"),
        [(5, "bcde?ghi"), (0, "?bcd"), (2, "ab?def"), (4, "abcd?fgh"), (8, "efgh?j"), (9, "fghi?")],
    )
    def test_four_words_before_and_three_after(self, position, window):
        tagger = by_table()
        made = [proposal(self.letters, **{f"a{position}": "x"})]
        allowed(SamePartOfSpeech(tagger), made, self.letters)
        old = self.letters.words[position]
        expected = {tuple(window.replace("?", old)), tuple(window.replace("?", "x"))}
        assert set(tagger.asked) == expected

    def test_read_between_the_original_words(self):
        """An earlier replacement has no say in the tag of a later one."""
        tagger = by_table()
        current = self.letters.replaced({4: "changed"})
        allowed(SamePartOfSpeech(tagger), [proposal(current, a5="x")], self.letters)
        assert not any("changed" in words for words in tagger.asked)

    def test_the_first_occurrence_in_the_window_is_read(self):
        """As TextAttack does, whatever one thinks of it."""
        text = text_of("run", "and", "run", "on")
        tagger = FakeTagger(
            lambda word, place, words: (
                "VERB" if word == "run" and place == 0 else "ADJ" if place == 2 else "X"
            )
        )
        made = [proposal(text, a2="walk")]
        # "run" in place 2 would be an adjective, as "walk" is; its first occurrence is a verb.
        assert allowed(SamePartOfSpeech(tagger), made, text)[0] == []

    def test_every_replaced_word_counts(self):
        tagger = by_table(a="DET", x="DET", b="ADJ", y="NOUN")
        both = proposal(self.letters, a0="x", a1="y")
        one = proposal(self.letters, a0="x")
        assert allowed(SamePartOfSpeech(tagger), [both, one], self.letters)[0] == [one]


class TestSimilarSentence:
    @property
    def text(self):
        return text_of("a", "b", "c")

    @property
    def made(self):
        return [proposal(self.text, a1=word) for word in ("x", "y", "z")]

    @property
    def encode(self):
        angles = {"a b c": 0, "a x c": 60, "a y c": 90, "a z c": 180}
        return {sentence: at_angle(angle) for sentence, angle in angles.items()}

    @pytest.mark.parametrize(
        ("metric", "similarities"),
        [("cosine", (0.5, 0, -1)), ("angular", (2 / 3, 0.5, 0))],
    )
    def test_metrics(self, metric, similarities):
        kept, _ = allowed(SimilarSentence(-1, metric), self.made, self.text, encode=self.encode)
        assert [one.similarity for one in kept] == pytest.approx(similarities, abs=1e-12)
        assert kept == self.made
        assert [tuple(one.new_words) for one in kept] == [(1,)] * 3

    @pytest.mark.parametrize(
        ("metric", "least", "expected"),
        [
            ("cosine", 0.49, ["x"]),
            ("cosine", 0.51, []),
            ("cosine", -0.01, ["x", "y"]),
            ("angular", 0.66, ["x"]),
            ("angular", 0.67, []),
            ("angular", 0.49, ["x", "y"]),
        ],
    )
    def test_least(self, metric, least, expected):
        constraint = SimilarSentence(least, metric)
        kept, _ = allowed(constraint, self.made, self.text, encode=self.encode)
        assert words_at(kept, 1) == expected

    def test_exactly_the_least_is_enough(self):
        encode = {"a b c": [1.0, 0.0], "a x c": [0.5, 0.8]}
        kept, _ = allowed(SimilarSentence(0.5), self.made[:1], self.text, encode=encode)
        assert [one.similarity for one in kept] == [0.5]

    def test_rounding_errors_make_no_cosine_larger_than_one(self):
        encode = {"a b c": [1.0000001, 0.0], "a x c": [1.0000001, 0.0]}
        constraint = SimilarSentence(0.84, "angular")
        kept, _ = allowed(constraint, self.made[:1], self.text, encode=encode)
        assert [one.similarity for one in kept] == [1.0]

    def test_all_in_one_request(self):
        _, asked = allowed(SimilarSentence(0), self.made, self.text, encode=self.encode)
        assert asked == [("a b c", "a b c", "a b c", "a x c", "a y c", "a z c")]
        assert allowed(SimilarSentence(0), [], self.text) == ([], [])

    @pytest.mark.parametrize(
        ("against", "old"), [("original", "a b c"), ("current", "changed b c")]
    )
    def test_against(self, against, old):
        current = self.text.replaced({0: "changed"})
        made = [proposal(current, a1="x")]
        encode = {"a b c": at_angle(0), "changed b c": at_angle(50), "changed x c": at_angle(100)}
        constraint = SimilarSentence(0.5, against=against)
        kept, asked = allowed(constraint, made, self.text, encode)
        assert asked == [(old, "changed x c")]
        assert len(kept) == (1 if against == "current" else 0)

    def test_each_against_the_text_that_it_came_from(self):
        made = [proposal(self.text.replaced({0: word}), a1="x") for word in ("one", "two")]
        read = ("one b c", "two b c", "one x c", "two x c")
        encode = {text: at_angle(10 * place) for place, text in enumerate(read)}
        constraint = SimilarSentence(-1, against="current")
        assert allowed(constraint, made, self.text, encode)[1] == [read]

    def test_window_around_the_first_replaced_word(self):
        text = text_of(*"abcdefghi")
        made = [proposal(text, a5="x"), proposal(text, a0="y"), proposal(text, a7="z", a2="w")]
        old = ["e f g", "a b c", "g h i"]
        new = ["e x g", "y b c", "g z i"]
        encode = {one: at_angle(10 * place) for place, one in enumerate(old + new)}
        kept, asked = allowed(SimilarSentence(-1, window=3), made, text, encode=encode)
        assert asked == [(*old, *new)] and len(kept) == 3
        cosines = [math.cos(math.radians(30))] * 3
        assert [one.similarity for one in kept] == pytest.approx(cosines)

    @pytest.mark.parametrize(("words", "short"), [(4, True), (5, False), (6, False)])
    def test_short_texts_pass_unasked(self, words, short):
        text = text_of(*"abcdefg"[:words])
        changed = text.replaced({0: "x"})
        encode = {text.window(0, 5): at_angle(0), changed.window(0, 5): at_angle(90)}
        constraint = SimilarSentence(0.9, window=5, skip_short=True)
        kept, asked = allowed(constraint, [proposal(text, a0="x")], text, encode=encode)
        assert [one.similarity for one in kept] == ([1.0] if short else [])
        assert len(asked) == (not short)

    def test_short_texts_are_asked_about_where_that_was_not_said(self):
        constraint = SimilarSentence(0.6, window=15)
        kept, asked = allowed(constraint, self.made[:1], self.text, encode=self.encode)
        assert asked and kept == []


class TestMostWords:
    @pytest.mark.parametrize(
        ("words", "most"), [(1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (10, 4), (11, 5)]
    )
    def test_a_share_rounded_up(self, words, most):
        text = text_of(*"abcdefghijk"[:words])
        for count in range(1, words + 1):
            made = [proposal(text, **{f"a{place}": "x" for place in range(count)})]
            kept, asked = allowed(MostWords(0.4), made, text)
            assert bool(kept) == (count <= most) and asked == []

    @pytest.mark.parametrize(("words", "most"), [(3, 3), (5, 4), (11, 4)])
    def test_so_many_at_least(self, words, most):
        text = text_of(*"abcdefghijk"[:words])
        for count in range(1, words + 1):
            made = [proposal(text, **{f"a{place}": "x" for place in range(count)})]
            assert bool(allowed(MostWords(0.1, least=4), made, text)[0]) == (count <= most)

    def test_earlier_replacements_count_those_undone_do_not(self):
        text = text_of(*"abcde")
        current = text.replaced({0: "x", 1: "y"})
        made = [proposal(current, a2="z"), proposal(current, a1="z"), proposal(current, a1="b")]
        kept, _ = allowed(MostWords(0.4), made, text)
        assert kept == made[1:]

    def test_attackable_words_of_both_parts(self):
        text = tokenize(("one, two", "three - four!"), "textattack-2021")
        made = [proposal(text, a0="x", a3="y"), proposal(text, a0="x", a2="z", a3="y")]
        assert allowed(MostWords(0.5), made, text)[0] == made[:1]


class TestEditDistance:
    def test_counts_against_the_original(self):
        text = text_of("abcdef", "ghijkl", "mn")
        current = text.replaced({0: "abcxyz"})  # three already
        made = [
            proposal(current, a1="ghijk"),
            proposal(current, a1="gh"),
            proposal(current, a2="mno"),
        ]
        kept, asked = allowed(EditDistance(4), made, text)
        assert kept == [made[0], made[2]] and asked == []
        assert allowed(EditDistance(3), made, text)[0] == []
        assert allowed(EditDistance(7), made, text)[0] == made

    def test_over_the_whole_of_a_pair(self):
        text = tokenize(("premise here", "short one"), "words")
        made = [proposal(text, a0="premises", a3="ones")]
        assert allowed(EditDistance(2), made, text)[0] == made
        assert allowed(EditDistance(1), made, text)[0] == []

    def test_without_rapidfuzz(self, monkeypatch):
        for name in ("rapidfuzz", "rapidfuzz.distance"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingDependencyError, match=r"pip install 'ranmask\[attacks\]'"):
            EditDistance(30)
        with pytest.raises(MissingDependencyError, match="rapidfuzz is not installed"):
            build_recipe("deepwordbug", AttackResources(stop_words=StopWords("none", frozenset())))


def test_descriptions_are_plain_json():
    made = [
        SimilarWord(Vectors(), least=0.5),
        SamePartOfSpeech(by_table()),
        SimilarSentence(0.84, "angular", "current", 15, True),
        MostWords(0.4),
        EditDistance(30),
    ]
    described = [constraint.description() for constraint in made]
    assert json.loads(json.dumps(described)) == described
    assert described[0] == {"constraint": "SimilarWord", "least": 0.5}
    assert described[2] == {
        "constraint": "SimilarSentence",
        "least": 0.84,
        "metric": "angular",
        "against": "current",
        "window": 15,
        "skip_short": True,
    }
    assert described[4] == {"constraint": "EditDistance", "most": 30}
