"""Candidates: which words an attack puts in a word's place."""

import json
import re
import string

import pytest

from ranmask.attacks.recipe import AttackRecipe
from ranmask.attacks.replacements import (
    AnyWord,
    LikelyWords,
    Synonyms,
    TypingErrors,
    in_case_of,
)
from ranmask.attacks.resources.neighbours import NeighbourTable
from ranmask.attacks.search import AtRandom, Greedy
from ranmask.attacks.steps import Attempt, FillMask
from ranmask.attacks.tokenization import tokenize


def attempt_on(text, number=1, seed=0, tokenization="textattack-2021"):
    return Attempt(number, tokenize(text, tokenization), 0, seed)


def words_of(candidates, text, position=0, *, current=None, likely=None, **names):
    """The candidates for a word of a text; ``likely`` is what the language model answers."""
    attempt = attempt_on(text, **names)
    steps = candidates.words(attempt, current or attempt.original, position)
    try:
        request = next(steps)
        while True:
            assert isinstance(request, FillMask) and likely is not None
            answer = likely(request.text, request.count)
            request = steps.send([answer[place] for place in request.places])
    except StopIteration as stop:
        return stop.value


class TestCase:
    @pytest.mark.parametrize(
        ("reference", "word", "expected"),
        [
            ("film", "Movie", "movie"),
            ("FILM", "movie", "MOVIE"),
            ("Film", "movie", "Movie"),
            ("Film", "USA", "Usa"),
            ("fIlm", "moVie", "moVie"),
            ("FiLM", "movie", "movie"),
            ("I", "myself", "myself"),  # one capital says nothing
            ("It's", "that's", "That's"),
            ("9", "nIne", "nIne"),
            ("9th", "tenTH", "tenth"),
            ("straße", "Weg", "weg"),
        ],
    )
    def test_restored(self, reference, word, expected):
        assert in_case_of(reference, word) == expected


class TestSynonyms:
    def test_of_the_lower_cased_word_in_its_case(self):
        synonyms = Synonyms(NeighbourTable({"film": ["movie", "Picture"], "plot": ["story"]}))
        assert words_of(synonyms, "Film FILM film plots plot") == ["Movie", "Picture"]
        assert words_of(synonyms, "Film FILM film plots plot", 1) == ["MOVIE", "PICTURE"]
        assert words_of(synonyms, "Film FILM film plots plot", 2) == ["movie", "picture"]
        assert words_of(synonyms, "Film FILM film plots plot", 3) == []

    def test_so_many(self):
        table = NeighbourTable({"film": [f"film{number}" for number in range(99)]})
        assert words_of(Synonyms(table, count=3), "film") == ["film0", "film1", "film2"]
        assert len(words_of(Synonyms(table), "film")) == 50

    def test_of_the_current_word(self):
        table = NeighbourTable({"film": ["movie"], "movie": ["picture"]})
        current = tokenize("film", "words").replaced({0: "movie"})
        assert words_of(Synonyms(table), "film", current=current) == ["picture"]


class FakeMaskedLM:
    """Cuts words into pieces of three letters, sees a few tokens, and guesses as it is told."""

    mask_token = "[MASK]"

    def __init__(self, guesses, longest=99, byte_level=False):
        self.guesses = guesses  # by piece
        self.longest = longest
        self.byte_level = byte_level

    def pieces(self, word):
        letters = [word[start : start + 3] for start in range(0, len(word), 3)]
        return tuple(f"##{piece}" if place else piece for place, piece in enumerate(letters))

    def tokens(self, text):
        words = re.findall(r"\[MASK\]|\w+|[^\w\s]", text)
        pieces = [
            piece
            for word in words
            for piece in ((word,) if word == "[MASK]" else self.pieces(word))
        ]
        return ["[CLS]", *pieces[: self.longest - 2], "[SEP]"]

    def mask_place(self, text):
        tokens = self.tokens(text)
        return tokens.index("[MASK]") if "[MASK]" in tokens else None

    def top_tokens(self, text, count):
        return [tuple(self.guesses.get(token, ())[:count]) for token in self.tokens(text)]

    def continues(self, token, first):
        if self.byte_level:
            return not first and not token.startswith("Ġ")
        return "##" in token

    def plain(self, token):
        return token.replace("Ġ" if self.byte_level else "##", "")


class TestLikelyWords:
    def found(self, model, text, position, count=8, tokenization="textattack-2021", asked=None):
        def likely(about, most):
            if asked is not None:
                asked.append((about, most))
            return model.top_tokens(about, most)

        candidates = LikelyWords(model, count)
        return words_of(candidates, text, position, likely=likely, tokenization=tokenization)

    def test_asks_about_the_text_as_it_is(self):
        asked = []
        model = FakeMaskedLM({"bad": ["ill"]})
        self.found(model, "(a) bad day", 1, count=5, asked=asked)
        assert asked == [("(a) bad day", 5)]
        self.found(model, ("a day", "so bad"), 3, asked=asked)
        assert asked[1][0] == "a day\nso bad"

    def test_asks_about_the_current_text(self):
        model = FakeMaskedLM({"bad": ["ill"], "odd": ["eve"]})
        current = tokenize("a good day", "textattack-2021").replaced({1: "odd"})
        asked = []

        def likely(about, most):
            asked.append(about)
            return model.top_tokens(about, most)

        candidates = LikelyWords(model, 5)
        assert words_of(candidates, "a bad day", 1, current=current, likely=likely) == ["eve"]
        assert asked == ["a odd day"]

    def test_one_piece_whole_words_only(self):
        model = FakeMaskedLM({"bad": ["bad", "##ly", "ill", ".", "'", "u.s", "sad", "two words"]})
        assert self.found(model, "a bad day", 1) == ["bad", "ill", "sad"]
        assert self.found(model, "a bad day", 1, count=3) == ["bad", "ill"]

    def test_at_its_own_place(self):
        model = FakeMaskedLM({"bad": ["ill"], "day": ["one"], "odd": ["eve"]})
        assert self.found(model, "oddities (bad) day", 1) == ["ill"]
        assert self.found(model, "oddities (bad) day", 2) == ["one"]

    def test_several_pieces_in_the_order_of_their_product(self):
        guesses = {"ter": ["ter", "ho"], "##rib": ["##rif", "rr"], "##le": ["##ic", "##y"]}
        model = FakeMaskedLM(guesses)
        assert self.found(model, "a terrible day", 1) == [
            *("terrific", "terrify", "terrric", "terrry"),
            *("horific", "horify", "horric", "horry"),
        ]
        assert self.found(model, "a terrible day", 1, count=3) == ["terrific", "terrify", "terrric"]

    def test_several_pieces_that_are_not_one_word_do_not_count(self):
        model = FakeMaskedLM({"ter": [".", "ho"], "##rib": [".", "##me"], "##le": ["##s"]})
        found = self.found(model, "terrible", 0, count=4, tokenization="words")
        assert found == ["..s", ".mes", "ho.s", "homes"]
        found = self.found(model, "terrible", 0, count=4)
        assert "ho.s" not in found and found[-1] == "homes"

    def test_a_word_beyond_what_the_model_reads(self):
        model = FakeMaskedLM({"bad": ["ill"], "day": ["one"]}, longest=4)
        assert self.found(model, "a bad day", 1) == ["ill"]
        assert self.found(model, "a bad day", 2) == []

    def test_a_word_without_pieces(self):
        model = FakeMaskedLM({"bad": ["ill"]})
        model.pieces = lambda word: ()
        assert self.found(model, "a bad day", 1) == []

    def test_only_the_first_word_has_no_blank_before_it(self):
        guesses = {"bad": ["Ġill", "ly"], "odd": ["Ġodd", "eve"]}
        model = FakeMaskedLM(guesses, byte_level=True)
        assert self.found(model, "odd bad", 0) == ["odd", "eve"]
        assert self.found(model, "odd bad", 1) == ["ill"]

    def test_blanks_and_nothing_are_never_put_in_a_text(self):
        strange = ["Ġ", "Ġ\u00a0ill", "Ġnew\u00a0york", "Ġfine", "Ġbad"]
        model = FakeMaskedLM({"bad": strange}, byte_level=True)
        for tokenization in ("words", "textattack-2021", "textattack-0.3.11"):
            attempt = attempt_on("a bad day", tokenization=tokenization)
            recipe = AttackRecipe(
                "made up", tokenization, AtRandom(), LikelyWords(model, 9), Greedy()
            )
            steps = recipe.candidate_texts(attempt, attempt.original, 1)
            request = next(steps)
            with pytest.raises(StopIteration) as stop:
                steps.send([model.top_tokens("a bad day", 9)[place] for place in request.places])
            assert [text.text for text in stop.value.value] == ["a fine day"]

    def test_description(self):
        assert LikelyWords(FakeMaskedLM({}), 48).description() == {
            "candidates": "LikelyWords",
            "count": 48,
        }


class Scripted:
    """Chances that come out as they are told."""

    def __init__(self, at, letter="q"):
        self.at, self.letter = at, letter
        self.counts = []

    def below(self, count):
        self.counts.append(count)
        return min(self.at, count - 1)

    def choice(self, letters):
        assert letters == string.ascii_letters
        return self.letter


class TestTypingErrors:
    @pytest.mark.parametrize(
        ("at", "expected"),
        [
            (0, ["lpot", "qlot", "lot", "qplot"]),
            (1, ["polt", "pqot", "pot", "pqlot"]),
            (9, ["plto", "ploq", "plo", "ploqt"]),  # as late as each may be
        ],
    )
    def test_one_of_each_sort(self, at, expected):
        errors = TypingErrors(lambda attempt, position, word, sort: Scripted(at))
        assert words_of(errors, "a plot", 1) == expected

    def test_each_sort_has_chances_of_its_own(self):
        asked = []

        def typist(attempt, position, word, sort):
            asked.append((attempt.number, position, word, sort))
            return Scripted(0)

        words_of(TypingErrors(typist), "a plot", 1, number=7)
        assert asked == [(7, 1, "plot", s) for s in ("swap", "substitute", "delete", "insert")]

    def test_the_word_itself_and_repetitions_are_left_out(self):
        same = TypingErrors(lambda attempt, position, word, sort: Scripted(0, "a"))
        # Swapped and substituted it is the same word, one letter fewer "a", one more "aaa".
        assert words_of(same, "aa") == ["a", "aaa"]
        twice = TypingErrors(lambda attempt, position, word, sort: Scripted(0, "b"))
        assert words_of(twice, "ab") == ["ba", "bb", "b", "bab"]
        assert words_of(twice, "bb") == ["b", "bbb"]

    @pytest.mark.parametrize("text", ["a", "中", "9"])
    def test_words_of_one_character_are_left_alone(self, text):
        assert words_of(TypingErrors(), text) == []
        assert words_of(TypingErrors(), text * 2) != []

    def test_the_same_for_the_same_word_in_the_same_place(self):
        text = "extraordinarily extraordinarily"
        first = words_of(TypingErrors(), text, 0)
        words_of(TypingErrors(), text, 1)
        assert words_of(TypingErrors(), text, 0) == first
        changed = attempt_on(text).original.replaced({1: "other"})
        assert words_of(TypingErrors(), text, 0, current=changed) == first

    def test_different_for_other_texts_seeds_places_and_words(self):
        text = "extraordinarily extraordinarily"
        seen = [
            words_of(TypingErrors(), text, 0),
            words_of(TypingErrors(), text, 0, number=2),
            words_of(TypingErrors(), text, 0, seed=1),
            words_of(TypingErrors(), text, 1),
        ]
        assert len({tuple(one) for one in seen}) == 4
        places = [self.inserted_at("extraordinarily", number) for number in range(200)]
        assert set(places) == set(range(len("extraordinarily")))
        longer = [self.inserted_at("extraordinarilx", number) for number in range(200)]
        assert sum(a == b for a, b in zip(places, longer, strict=True)) < 60

    def inserted_at(self, word, number):
        """Where the typist puts an additional letter; after it, where the two are the same."""
        [error] = [
            one for one in words_of(TypingErrors(), word, number=number) if len(one) > len(word)
        ]
        pairs = enumerate(zip(word + "\0", error, strict=True))
        return next(place for place, (one, other) in pairs if one != other)

    def test_the_sorts_are_what_they_say(self):
        word = "wonderful"
        for number in range(50):
            for error in words_of(TypingErrors(), word, number=number):
                assert set(error) <= set(string.ascii_letters)
                if len(error) == len(word):
                    wrong = [place for place in range(9) if error[place] != word[place]]
                    swapped = sorted(error) == sorted(word) and wrong[1:] == [wrong[0] + 1]
                    assert swapped or len(wrong) == 1
                else:
                    longer, shorter = sorted((error, word), key=len, reverse=True)
                    ways = {longer[:at] + longer[at + 1 :] for at in range(len(longer))}
                    assert len(longer) == len(shorter) + 1 and shorter in ways


class TestAnyWord:
    vocabulary = tuple(f"word{number}" for number in range(300))

    def test_so_many_different_words_of_the_vocabulary(self):
        drawn = words_of(AnyWord(self.vocabulary), "a text")
        assert len(drawn) == len(set(drawn)) == 200 and set(drawn) < set(self.vocabulary)
        assert len(words_of(AnyWord(self.vocabulary, count=7), "a text")) == 7
        assert sorted(words_of(AnyWord(self.vocabulary[:5]), "a text")) == [*self.vocabulary[:5]]

    def test_the_same_at_every_place_and_other_ones_for_other_texts(self):
        words = AnyWord(self.vocabulary, count=20)
        first = words_of(words, "a text")
        assert words_of(words, "a text", 1) == first == words_of(words, "another text")
        assert words_of(words, "a text", number=2) != first != words_of(words, "a text", seed=2)

    def test_description(self):
        described = AnyWord(self.vocabulary, count=20).description()
        assert json.loads(json.dumps(described)) == {
            "candidates": "AnyWord",
            "vocabulary": 300,
            "count": 20,
        }
